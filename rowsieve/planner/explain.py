"""Explain why parts and row groups are read or skipped: by which conjunct and which bounds.

Interprets each conjunct separately, after the plan is made, so explanations add no cost to
planning. Only explanations of row groups read files: footers and Bloom filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from rowsieve.flags.resolution import ResolvedFlag
from rowsieve.objects import ObjectStore
from rowsieve.pictures.condition_tree import ConditionNode
from rowsieve.planner.explaining.condition_verdicts import condition_verdicts
from rowsieve.planner.explaining.explain_row_groups import explain_row_groups
from rowsieve.planner.explaining.reasons import ConditionReason, GroupPart, GroupReason, PartReason
from rowsieve.planner.explanation import Explanation
from rowsieve.planner.part_facts import Verdicts, part_facts
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.prune_parts import Reason, prune_parts, pruned_by_constraints
from rowsieve.planner.split import Piece, PlannedPart
from rowsieve.planner.statistics import plain_value
from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundPredicate, bind, bind_conjuncts
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.tabulate import statistics_name
from rowsieve.storage.constraints import constraints_of
from rowsieve.storage.differential import plain_frontiers
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot

Describe = Callable[[ir.Predicate], str]

_NOT_BY_ROWS = {
    Reason.VISIBILITY: "it holds only deletes, and no part to read is older",
    Reason.LIMIT: "other parts hold enough rows that are returned for sure",
    Reason.CONSTRAINT: "no row of the table can match, by its constraints",
}


def explain(
    plan: ScanPlan,
    snapshot: Snapshot,
    describe: Describe,
    *,
    store: ObjectStore | None = None,
    flags: Sequence[ResolvedFlag] = (),
) -> Explanation:
    """Explain a plan of this snapshot; `describe` renders a condition as text.

    With a `store`, row groups are explained too, from the footers of the parts to read.
    """
    pieces = [piece for split in plan.splits for piece in split.pieces]
    read = {part.part_id for piece in pieces for part in piece.parts}
    read_bytes = sum(piece.size_bytes for piece in pieces)
    return Explanation(
        table=plan.table_uri,
        version=plan.version,
        where=describe(plan.predicate),
        parts_considered=len(read) + sum(group.parts for group in plan.pruned),
        parts_read=len(read),
        bytes_considered=read_bytes + sum(group.size_bytes for group in plan.pruned),
        bytes_read=read_bytes,
        splits=len(plan.splits),
        merged_groups=sum(piece.needs_merge for piece in pieces),
        filtered=any(piece.residual for piece in pieces),
        skipped=_skipped(plan, snapshot, describe),
        groups=tuple(_groups(plan, snapshot, pieces, describe, store)),
        constraints=tuple(
            f"{each.name}: {describe(each.named(snapshot.schema))}"
            for each in constraints_of(snapshot.table.properties)
            if each.name in plan.constraints
        ),
        conditions=tuple(
            _conditions(plan, snapshot, describe, merged=any(piece.needs_merge for piece in pieces))
        ),
        flags=tuple(flags),
        frontiers=plain_frontiers(snapshot),
        tree=None if plan.predicate == ir.TRUE else _tree(plan, snapshot, describe),
    )


def _tree(plan: ScanPlan, snapshot: Snapshot, describe: Describe) -> ConditionNode:
    bound = bind(
        plan.predicate, snapshot.schema, plan.semantics, now_us=plan.now_us, simplified=False
    )
    return condition_verdicts(bound, PartStatistics(snapshot.parts, snapshot.schema), describe)


def _groups(
    plan: ScanPlan,
    snapshot: Snapshot,
    pieces: list[Piece],
    describe: Describe,
    store: ObjectStore | None,
) -> Iterator[GroupReason]:
    """Yield the overlap groups; pieces cut from one group share its newest part, which is first."""
    cut: dict[str, list[Piece]] = {}
    for piece in pieces:
        cut.setdefault(piece.parts[0].part_id, []).append(piece)
    for group in cut.values():
        parts = max((piece.parts for piece in group), key=len)
        filtered: dict[int, bool] = {}
        for read in (read for piece in group for read in piece.reads):
            filtered[read.part] = filtered.get(read.part, False) or read.residual
        yield GroupReason(
            _why_grouped(plan, len(parts)),
            sum(map(_size, parts)),
            tuple(
                GroupPart(
                    part_id=part.part_id,
                    rows=part.row_count,
                    tombstones=part.tombstone_count,
                    size_bytes=_size(part),
                    read=i in filtered,
                    filtered=filtered.get(i, False),
                    row_groups=None
                    if store is None or i not in filtered
                    else explain_row_groups(plan, snapshot, part, describe, store),
                )
                for i, part in enumerate(parts)
            ),
        )


def _why_grouped(plan: ScanPlan, part_count: int) -> str:
    """Why so many parts are read together, or one alone."""
    if part_count > 1:
        return "they may share keys, and the newest row of each counts"
    if plan.consolidation is not None:
        return "updates, which are added up with those of the other parts"
    if plan.key:
        return "no other part to read shares its keys"
    return "a table without a key: parts share no rows"


def _size(part: PlannedPart) -> int:
    return sum(ref.size_bytes for ref in (part.data, part.deletes) if ref is not None)


def _conditions(
    plan: ScanPlan, snapshot: Snapshot, describe: Describe, *, merged: bool
) -> Iterator[ConditionReason]:
    if plan.predicate == ir.TRUE:
        return
    schema = snapshot.schema
    key = {schema.field(name).id for name in plan.key}
    statistics = PartStatistics(snapshot.parts, schema)
    for term, bound in _conjuncts(plan, snapshot):
        refuted = int((interpret(bound, statistics) == Verdict.NONE).sum()) if plan.pruning else 0
        unknown = [c.name for c in bound.columns if not _is_known(statistics, c)]
        if not plan.pruning:
            note = "pruning is off"
        elif any(isinstance(node, ir.Opaque) for node in ir.walk(bound.root)):
            note = "another engine evaluates part of it"
        elif unknown:
            note = f"no statistics of {', '.join(unknown)}"
        elif merged and not any(column.field_id in key for column in bound.columns):
            note = "not on the key: parts that share keys go only all together"
        else:
            note = ""
        yield ConditionReason(describe(term), refuted, note)


def _conjuncts(
    plan: ScanPlan, snapshot: Snapshot
) -> tuple[tuple[ir.Predicate, BoundPredicate], ...]:
    return bind_conjuncts(plan.predicate, snapshot.schema, plan.semantics, now_us=plan.now_us)


def _is_known(statistics: PartStatistics, column: ir.BoundColumn) -> bool:
    """Return whether any part has statistics of the column."""
    known = statistics.column(column)
    if known is None or not statistics.part_count:
        return known is not None
    bounded = known.lower.null_count + known.upper.null_count < 2 * statistics.part_count
    return bounded or bool(known.empty.any()) or not known.may_be_null.all()


def _skipped(plan: ScanPlan, snapshot: Snapshot, describe: Describe) -> tuple[PartReason, ...]:
    if not plan.pruned:
        return ()
    facts = part_facts(snapshot)
    predicate, limit = None, None
    if plan.pruning:
        limit = None if plan.ordered else plan.limit
        predicate = plan.filter
    if any(group.by == Reason.CONSTRAINT.name.lower() for group in plan.pruned):
        reasons = pruned_by_constraints(facts).reasons
    else:
        reasons = prune_parts(facts, predicate, limit=limit).reasons
    indices = np.flatnonzero(reasons != Reason.KEPT)
    parts, reasons = snapshot.parts.take(indices), reasons[indices]
    terms, refuting = _refuting(plan, snapshot, parts, reasons)
    texts = [describe(term) for term, _ in terms]
    columns = [() if bound is None else bound.columns for _, bound in terms]
    bounds = {
        column.field_id: _bounds(parts, column.field_id)
        for i in set(refuting.tolist())
        for column in columns[i]
    }
    sizes = facts.size_bytes[indices].tolist()
    skipped = []
    for i, (part_id, rows) in enumerate(
        zip(parts.part_ids, parts.data_rows().tolist(), strict=True)
    ):
        reason, term = Reason(reasons[i]), int(refuting[i])
        if (text := _NOT_BY_ROWS.get(reason)) is not None:
            shown: dict[str, str] = {}
        else:
            text = texts[term]
            shown = {column.name: bounds[column.field_id][i] for column in columns[term]}
        skipped.append(PartReason(part_id, rows, sizes[i], reason.name.lower(), text, shown))
    return tuple(skipped)


def _refuting(
    plan: ScanPlan, snapshot: Snapshot, parts: PartTable, reasons: Verdicts
) -> tuple[list[tuple[ir.Predicate, BoundPredicate | None]], Any]:
    """Return the whole predicate and its conjuncts, and for each part the index that refutes it.

    The index is 0, the whole predicate, if no single conjunct refutes the part.
    """
    key_ids = frozenset(snapshot.schema.field(name).id for name in plan.key)
    statistics = PartStatistics(parts, snapshot.schema)
    terms = _conjuncts(plan, snapshot)
    indexes = np.zeros(len(parts), dtype=np.int64)
    for i, (_, bound) in enumerate(terms, start=1):
        by_key = interpret(bound, statistics.only(key_ids))
        verdicts = np.where(reasons == Reason.KEY, by_key, interpret(bound, statistics))
        indexes[(indexes == 0) & (verdicts == Verdict.NONE)] = i
    return [(plan.predicate, plan.filter), *terms], indexes


def _bounds(parts: PartTable, field_id: int) -> list[str]:
    """Return the text of a column's bounds and NULL count for each part."""

    def facts(fact: str) -> list[Any]:
        cells = _values(parts, statistics_name(field_id, fact))
        if field_id in parts.key_ids and fact == "null_count":
            return [0] * len(parts)
        if parts.key_ids[:1] == (field_id,) and "?" in cells:
            keys = _values(parts, f"key.{field_id}.{fact}")
            cells = [b if a == "?" else a for a, b in zip(cells, keys, strict=True)]
        return cells

    return [
        f"[{lower}, {upper}], {nulls} NULL"
        for lower, upper, nulls in zip(
            facts("lower"), facts("upper"), facts("null_count"), strict=True
        )
    ]


def _values(parts: PartTable, name: str) -> list[Any]:
    """Return the values of a manifest column, "?" for unknown ones."""
    if parts.schema.get_field_index(name) < 0:
        return ["?"] * len(parts)
    column = parts.column(name)
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError):  # a time outside Python's range
        values = [plain_value(scalar) if scalar.is_valid else None for scalar in column]
    return ["?" if value is None else value for value in values]
