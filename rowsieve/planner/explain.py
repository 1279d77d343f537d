"""Why a part is read or not, in words: which condition refutes it and by what bounds.

The reasons are found by asking the interpreter about each conjunct alone, after the plan is made,
so that planning itself pays nothing for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from rowsieve.planner.pieces import stored_bytes
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.prune_parts import Reason, Verdicts, prune_parts
from rowsieve.predicate.bind import bind
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.ir import TRUE, BoundColumn, Predicate, conjuncts, walk
from rowsieve.stats.columnar import PartStatistics
from rowsieve.storage.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.keys import KeyOrder
from rowsieve.types.schema import Schema

Describe = Callable[[Predicate], str]

_NOTHING_BELOW = "no older part holds a key that it deletes"


@dataclass(frozen=True, slots=True)
class PartReason:
    """One pruned part: the condition that none of its rows can satisfy, and the bounds."""

    part_id: str
    rows: int
    size_bytes: int
    by: str
    condition: str
    bounds: dict[str, str]

    def __str__(self) -> str:
        seen = "".join(f"; {name} in {bounds}" for name, bounds in self.bounds.items())
        return f"part {self.part_id[:8]} skipped by {self.by}: {self.condition}{seen}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A plan in words; `str` gives the text, `as_dict` plain values."""

    table: str
    version: int
    where: str
    parts_considered: int
    parts_read: int
    bytes_considered: int
    bytes_read: int
    splits: int
    merged_groups: int
    filtered: bool
    skipped: tuple[PartReason, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"scan of {self.table} at version {self.version}",
            f"  where {self.where}",
            (
                f"  parts {self.parts_considered} considered, "
                f"{self.parts_considered - self.parts_read} skipped, {self.parts_read} read in "
                f"{self.splits} splits, {self.merged_groups} groups merged"
            ),
            (
                f"  bytes {self.bytes_considered:,} considered, "
                f"{self.bytes_considered - self.bytes_read:,} skipped, {self.bytes_read:,} to read"
            ),
            f"  {self._filtering()}",
        ]
        lines += [f"  {reason}" for reason in self.skipped[:20]]
        if len(self.skipped) > 20:
            lines.append(f"  and {len(self.skipped) - 20} more parts skipped")
        return "\n".join(lines)

    def _filtering(self) -> str:
        if not self.parts_read:
            return "no rows are read"
        return "rows are filtered" if self.filtered else "rows are not filtered: all of them match"


def explain(plan: ScanPlan, snapshot: Snapshot, describe: Describe) -> Explanation:
    """The reasons behind a plan; `describe` renders a condition as text."""
    pieces = [piece for split in plan.splits for piece in split.pieces]
    read = {part.part_id for piece in pieces for part in piece.parts}
    read_bytes = sum(piece.size_bytes for piece in pieces)
    pruned_parts = sum(group.parts for group in plan.pruned)
    pruned_bytes = sum(group.size_bytes for group in plan.pruned)
    return Explanation(
        table=plan.table_uri,
        version=plan.version,
        where=describe(plan.predicate),
        parts_considered=len(read) + pruned_parts,
        parts_read=len(read),
        bytes_considered=read_bytes + pruned_bytes,
        bytes_read=read_bytes,
        splits=len(plan.splits),
        merged_groups=sum(piece.needs_merge for piece in pieces),
        filtered=any(piece.residual for piece in pieces),
        skipped=_reasons(plan, snapshot, describe),
    )


def _reasons(plan: ScanPlan, snapshot: Snapshot, describe: Describe) -> tuple[PartReason, ...]:
    if not plan.pruned:
        return ()
    schema = snapshot.schema
    order = KeyOrder.of(schema, plan.key) if plan.key else None
    predicate = None
    if plan.pruning and plan.predicate != TRUE:
        predicate = bind(plan.predicate, schema, plan.semantics, now_us=plan.now_us)
    reasons = prune_parts(snapshot.parts, schema, order, predicate).reasons
    indices = np.flatnonzero(reasons != Reason.KEPT)
    parts, reasons = snapshot.parts.take(indices), reasons[indices]
    refuting = _refuting(plan, snapshot, parts, reasons)
    return tuple(
        PartReason(
            part_id,
            int(rows),
            int(size_bytes),
            Reason(reason).name.lower(),
            _NOTHING_BELOW if reason == Reason.VISIBILITY else describe(term),
            {} if reason == Reason.VISIBILITY else _bounds_of(term, parts, i, schema),
        )
        for i, (part_id, rows, size_bytes, reason, term) in enumerate(
            zip(
                parts.part_ids,
                parts.data_rows(),
                stored_bytes(parts),
                reasons,
                refuting,
                strict=True,
            )
        )
    )


def _refuting(
    plan: ScanPlan, snapshot: Snapshot, parts: PartTable, reasons: Verdicts
) -> list[Predicate]:
    """Of each part the conjunct that refutes it, the whole predicate where no single one does."""
    key_ids = frozenset(snapshot.schema.field(name).id for name in plan.key)
    statistics = PartStatistics(parts, snapshot.schema)
    found = [plan.predicate] * len(parts)
    open_ = np.ones(len(parts), dtype=np.bool_)
    for term in conjuncts(plan.predicate):
        bound = bind(term, snapshot.schema, plan.semantics, now_us=plan.now_us)
        by_key = interpret(bound, statistics.only(key_ids))
        by_rows = interpret(bound, statistics)
        verdicts = np.where(reasons == Reason.KEY, by_key, by_rows)
        for i in np.flatnonzero(open_ & (verdicts == Verdict.NONE)):
            found[i], open_[i] = term, False
    return found


def _bounds_of(term: Predicate, parts: PartTable, row: int, schema: Schema) -> dict[str, str]:
    return {
        node.name: _bounds(parts, row, node.field_id)
        for node in walk(bind(term, schema).root)
        if isinstance(node, BoundColumn)
    }


def _bounds(parts: PartTable, row: int, field_id: int) -> str:
    def value(fact: str) -> str:
        name = f"stats.{field_id}.{fact}"
        if name not in parts.table.column_names:
            return "?"
        found = parts.table.column(name)[row].as_py()
        return "?" if found is None else str(found)

    return f"[{value('lower')}, {value('upper')}], {value('null_count')} NULL"
