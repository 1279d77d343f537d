"""Change rows of a table without a key: hide them by deletion vectors, append the new versions.

Only the deletion vector says which rows are deleted (invariant I3). It only grows: a part's new
vector contains the old one. A concurrent commit that replaces the part makes the change stale
(invariant 13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import msgspec
import numpy as np
import pyarrow as pa

from rowsieve.changes.change import Change, Question
from rowsieve.changes.mutation import AddsMatches, Check, Mutation, TouchesParts
from rowsieve.config import DEFAULT
from rowsieve.executor.execute import Execution
from rowsieve.executor.merging.windows import Numbered
from rowsieve.executor.part_sources import PartSource
from rowsieve.executor.read_ahead import PREFETCH_DIVISOR
from rowsieve.objects import FetchingStore, ObjectStore
from rowsieve.planner.part_rows import PartRows
from rowsieve.planner.plan import OutputColumn, ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.planner.resolved import with_rows
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.ir import TRUE
from rowsieve.predicate.rowset import RowSet
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.log.inline_parts import vector_limit
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.deletion_vectors import write_deletion_vectors
from rowsieve.storage.snapshot import Snapshot


def hide_and_append(
    change: Change, snapshot: Snapshot, plan: ScanPlan, rows: pa.Table | None
) -> Mutation | None:
    """Hide the rows that a plan of this snapshot returns, and append `rows`.

    The table has no key. Returns None if there is nothing to hide and nothing to append.
    """
    if rows is None:
        mutation = hide_and_add(change, snapshot, plan, PartTable.empty(), 0)
        return mutation if mutation.request.removed else None
    added = change.new_parts(snapshot, rows)
    return hide_and_add(change, snapshot, plan, added, rows.num_rows)


def hide_and_update(
    change: Change,
    snapshot: Snapshot,
    plan: ScanPlan,
    columns: tuple[OutputColumn, ...],
    completed: Callable[[pa.Table], pa.Table],
) -> Mutation | None:
    """Hide the rows that a plan of this snapshot returns, and append them with these columns.

    The table has no key. Which rows these are is decided first, so that only their values are read,
    and of small files across a network nothing twice. `completed` makes them rows of the table.
    """
    store = change.store
    if store.overlaps:
        store = FetchingStore(store, DEFAULT.memory_bytes // PREFETCH_DIVISOR)
    row_sets = _returned(store, plan)
    if not row_sets:
        return None
    exact = with_rows(plan, _chosen(plan, row_sets)).with_predicate(TRUE, plan.semantics)
    execution = Execution(msgspec.structs.replace(exact, columns=columns), store)
    rows = completed(pa.Table.from_batches(list(execution.read()), schema=execution.schema))
    added = change.new_parts(snapshot, rows)
    reads = AddsMatches(change.store, snapshot, Question.of(plan))
    return _hidden_and_added(change, snapshot, row_sets, added, rows.num_rows, reads)


def _chosen(plan: ScanPlan, row_sets: Mapping[str, tuple[RowSet, RowSet]]) -> Iterator[PartRows]:
    """The rows of every part of a plan that are in these sets."""
    pieces = [piece for split in plan.splits for piece in split.pieces]
    for part in {part.part_id: part for piece in pieces for part in piece.parts}.values():
        if part.part_id in row_sets:
            yield PartRows(part.part_id, row_sets[part.part_id][0])
        else:
            yield PartRows(part.part_id, RowSet.empty(0 if part.data is None else part.data.rows))


def hide_and_add(
    change: Change, snapshot: Snapshot, plan: ScanPlan, added: PartTable, row_count: int
) -> Mutation:
    """Hide the rows that a plan of this snapshot returns, and add parts with `row_count` rows."""
    row_sets = _returned(change.store, plan)
    reads = AddsMatches(change.store, snapshot, Question.of(plan))
    return _hidden_and_added(change, snapshot, row_sets, added, row_count, reads)


def part_starts(snapshot: Snapshot) -> dict[str, int]:
    """The place of the first row of each part, if all rows of all parts are counted in order."""
    rows = snapshot.parts.data_rows()
    return dict(zip(snapshot.parts.part_ids, (np.cumsum(rows) - rows).tolist(), strict=True))


def hide_places(
    change: Change,
    snapshot: Snapshot,
    places: np.ndarray,
    rows: pa.Table | None,
    reads: Check,
) -> Mutation | None:
    """Hide the rows at these places, which `part_starts` counts, and append `rows`.

    The table has no key. `reads` tells whether a concurrent commit could have changed the choice.
    Returns None if there is nothing to hide and nothing to append.
    """
    added = PartTable.empty() if rows is None else change.new_parts(snapshot, rows)
    row_sets = _placed(change.store, snapshot, places)
    if not row_sets and not len(added):
        return None
    row_count = 0 if rows is None else rows.num_rows
    return _hidden_and_added(change, snapshot, row_sets, added, row_count, reads)


def _placed(
    store: ObjectStore, snapshot: Snapshot, places: np.ndarray
) -> dict[str, tuple[RowSet, RowSet]]:
    """The rows at these places by part, and those that its vector hides already."""
    starts = part_starts(snapshot)
    ends = np.cumsum(snapshot.parts.data_rows())
    touched = np.unique(np.searchsorted(ends, places, side="right"))
    plan = plan_scan(
        replace(snapshot, parts=snapshot.parts.take(touched.tolist())),
        store.uri,
        predicate=TRUE,
        semantics=Semantics.SQL,
        now_us=0,
    )
    row_sets: dict[str, tuple[RowSet, RowSet]] = {}
    for source, _ in Execution(plan, store).visible_parts():
        start = starts[source.part.part_id]
        inside = places[(places >= start) & (places < start + source.row_count)] - start
        mask = np.zeros(source.row_count, dtype=bool)
        mask[inside] = True
        row_sets[source.part.part_id] = RowSet.from_mask(mask), _hidden(source)
    return row_sets


def _hidden_and_added(
    change: Change,
    snapshot: Snapshot,
    row_sets: Mapping[str, tuple[RowSet, RowSet]],
    added: PartTable,
    row_count: int,
    reads: Check,
) -> Mutation:
    """Hide more rows of each part, in addition to the hidden ones, and add parts."""
    parts = snapshot.parts
    places = {part_id: i for i, part_id in enumerate(parts.part_ids)}
    hidden = {part_id: matched.union(before) for part_id, (matched, before) in row_sets.items()}
    partly = {part_id: rows for part_id, rows in hidden.items() if not rows.is_full}
    vectors = write_deletion_vectors(
        change.uploads, list(partly.values()), snapshot.base_version, vector_limit(snapshot)
    )
    replaced = PartTable.empty()
    for part_id, ref in zip(partly, vectors, strict=True):
        replaced = replaced.append(parts.take([places[part_id]]).with_deletion_vector(ref))
    request = change.request(
        replaced.append(added),
        tuple(row_sets),
        rows_written=row_count,
        rows_deleted=sum(len(matched) for matched, _ in row_sets.values()),
    )
    return Mutation(
        request,
        Kind.READING,
        touched_by=TouchesParts(frozenset(row_sets)),
        matched_by=reads,
    )


def _returned(store: ObjectStore, plan: ScanPlan) -> dict[str, tuple[RowSet, RowSet]]:
    """Return the rows that the plan returns, by part, and those that its vector hides already.

    Parts without a returned row are absent.
    """
    execution = Execution(plan, store)
    predicate = execution.predicate
    names = () if predicate is None else tuple(column.name for column in predicate.columns)
    columns = plan.schema.select(names)
    row_sets: dict[str, tuple[RowSet, RowSet]] = {}
    for source, visible, batches in execution.visible_rows(columns):
        matched = visible if predicate is None else _match(visible, batches, predicate)
        if not matched.is_empty:
            part_id = source.part.part_id
            if part_id in row_sets:
                matched = matched.union(row_sets[part_id][0])
            row_sets[part_id] = matched, _hidden(source)
    return row_sets


def _hidden(source: PartSource) -> RowSet:
    """The rows that the part's vector hides."""
    undeleted = source.undeleted_rows()
    return RowSet.empty(source.row_count) if undeleted is None else undeleted.complement()


def _match(visible: RowSet, batches: Iterator[Numbered], predicate: BoundPredicate) -> RowSet:
    """Return the visible rows that match; hidden rows are not evaluated, so they cannot fail."""
    matched = np.zeros(visible.row_count, dtype=bool)
    for start, batch in batches:
        mask = visible.slice(start, start + batch.num_rows).to_mask()
        mask[mask] = matching(predicate, batch.filter(pa.array(mask)))
        matched[start : start + batch.num_rows] = mask
    return RowSet.from_mask(matched)
