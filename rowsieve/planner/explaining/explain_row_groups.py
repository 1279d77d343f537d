"""Explain which row groups and how many pages of a part a read skips, from footer and blooms.

Uses the same proofs as `prune_row_groups`, conjunct by conjunct. Rows that newer parts or a
deletion vector hide are not considered.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from rowsieve.objects import ObjectStore
from rowsieve.parquet.bloom_reader import BloomReader
from rowsieve.parquet.footer import Tail, read_tail
from rowsieve.parquet.leaf_columns import names_by_id
from rowsieve.parquet.pages import page_directory
from rowsieve.parquet.statistics.row_groups import JoinedStatistics, RowGroupStatistics
from rowsieve.planner.explaining.reasons import PartRowGroups, RowGroupReason
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.prune_pages import prune_pages
from rowsieve.planner.prune_row_groups import Blooms, probe_blooms
from rowsieve.planner.row_statistics import RowStatistics
from rowsieve.planner.split import PlannedPart
from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.bind import bind_conjuncts
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.ir import TRUE, Predicate, column_names
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts.memory_rows import read_memory
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS
from rowsieve.storage.snapshot import Snapshot

Counts = npt.NDArray[np.int64]


def explain_row_groups(
    plan: ScanPlan,
    snapshot: Snapshot,
    part: PlannedPart,
    describe: Callable[[Predicate], str],
    store: ObjectStore,
) -> PartRowGroups:
    """Explain the row groups of a part with rows; reads its footer and the blooms it needs.

    A part in memory counts as one row group.
    """
    assert part.data is not None
    if part.data.in_memory:
        return _explain_in_memory(plan, snapshot, part.data, describe)
    tail = read_tail(store, part.data)
    metadata = tail.metadata
    remaining = np.ones(metadata.num_row_groups, dtype=np.bool_)
    skipped: list[RowGroupReason] = []
    if plan.pruning and plan.predicate != TRUE:
        blooms = BloomReader(store, part.data, metadata)
        remaining, skipped = _skip(plan, snapshot, metadata, blooms, describe)
    sizes = _column_bytes(plan, snapshot, metadata)
    pages, pages_kept = _pages(plan, snapshot, tail, remaining)
    shares = pages_kept / np.maximum(pages, 1)
    return PartRowGroups(
        total=len(remaining),
        read=int(remaining.sum()),
        pages=int(pages[remaining].sum()),
        pages_read=int(pages_kept.sum()),
        bytes_total=int(sizes.sum()),
        bytes_read=int((sizes * np.where(pages > 0, shares, remaining)).sum()),
        skipped=tuple(skipped),
    )


def _explain_in_memory(
    plan: ScanPlan, snapshot: Snapshot, data: FileRef, describe: Callable[[Predicate], str]
) -> PartRowGroups:
    """Explain a part in memory: which conjunct refutes all of its rows."""
    refuted_by = None
    if plan.pruning and plan.predicate != TRUE:
        assert plan.filter is not None
        rows = JoinedStatistics([RowStatistics(read_memory(data), snapshot.schema)])
        terms = bind_conjuncts(plan.predicate, snapshot.schema, plan.semantics, now_us=plan.now_us)
        refuted_by = next(
            (
                term
                for term, bound in (*terms, (plan.predicate, plan.filter))
                if (interpret(bound, rows) == Verdict.NONE).all()
            ),
            None,
        )
    read = int(refuted_by is None)
    skipped = () if refuted_by is None else (RowGroupReason(1, "statistics", describe(refuted_by)),)
    return PartRowGroups(1, read, 0, 0, data.size_bytes, read * data.size_bytes, skipped)


def _pages(
    plan: ScanPlan, snapshot: Snapshot, tail: Tail, remaining: Mask
) -> tuple[Counts, Counts]:
    """(g,) the number of pages of each row group, and of the pages to read; 0 if unknown."""
    nothing = np.zeros(len(remaining), dtype=np.int64)
    directory = page_directory(tail.metadata)
    if directory is None:
        return nothing, nothing
    pages = np.array(
        [directory.page_count(group) for group in range(len(remaining))], dtype=np.int64
    )
    if not plan.pruning or (bound := plan.filter) is None:
        return pages, pages
    verdicts = interpret(
        bound, JoinedStatistics([RowGroupStatistics(tail.metadata, snapshot.schema)])
    )
    verdicts = np.where(remaining, verdicts, Verdict.NONE).astype(np.int8)
    (unpruned,) = prune_pages(bound, [(tail, verdicts)], snapshot.schema, ROW_GROUP_ROWS)
    if unpruned.rows == ROW_GROUP_ROWS:
        return pages, np.where(remaining, pages, 0)
    group_of = np.repeat(np.arange(len(remaining)), pages)
    return pages, np.bincount(group_of, weights=unpruned.chosen, minlength=len(remaining)).astype(
        np.int64
    )


def _skip(
    plan: ScanPlan,
    snapshot: Snapshot,
    metadata: pq.FileMetaData,
    blooms: Blooms,
    describe: Callable[[Predicate], str],
) -> tuple[Mask, list[RowGroupReason]]:
    """Return the row groups to read, and why the others are skipped: by conjunct, then by bloom."""
    statistics = RowGroupStatistics(metadata, snapshot.schema)
    joined = JoinedStatistics([statistics])
    remaining = np.ones(metadata.num_row_groups, dtype=np.bool_)
    skipped = []
    terms = bind_conjuncts(plan.predicate, snapshot.schema, plan.semantics, now_us=plan.now_us)
    assert plan.filter is not None
    whole = ((plan.predicate, plan.filter),) if len(terms) > 1 else ()
    asked = [*((*each, False) for each in (*terms, *whole)), *((*each, True) for each in terms)]
    for term, bound, by_bloom in asked:
        if by_bloom:
            verdicts = np.where(remaining, Verdict.SOME, Verdict.NONE).astype(np.int8)
            verdicts = probe_blooms(bound, statistics, verdicts, blooms)
        else:
            verdicts = interpret(bound, joined)
        gone = remaining & (verdicts == Verdict.NONE)
        if gone.any():
            by = "bloom" if by_bloom else "statistics"
            skipped.append(RowGroupReason(int(gone.sum()), by, describe(term)))
            remaining &= ~gone
    return remaining, skipped


def _column_bytes(
    plan: ScanPlan, snapshot: Snapshot, metadata: pq.FileMetaData
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """(g,) stored bytes of the columns that the plan reads."""
    names = set(column_names(plan.predicate))
    for column in plan.columns:
        operand = column.operand
        names.update((column.name,) if operand is None else column_names(operand))
    leaf_names = names_by_id(metadata)
    ids = [snapshot.schema.field(name).id for name in names]
    stored = {leaf_names[field_id] for field_id in ids if field_id in leaf_names}
    sizes = np.zeros(metadata.num_row_groups, dtype=np.int64)
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for column in (group.column(j) for j in range(group.num_columns)):
            if column.path_in_schema.split(".", 1)[0] in stored or column.path_in_schema in stored:
                sizes[i] += column.total_compressed_size
    return sizes
