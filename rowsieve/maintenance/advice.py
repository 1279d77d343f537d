"""Recommend actions that make a table cheaper to read; reads only the manifest, opens no file.

The numbers measure the work of a read: parts that a compaction would rewrite, hidden rows, and the
read amplification, which is the number of parts that a read must look at for one row (1.0 if no two
parts overlap).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from rowsieve.changes.expiring_rows import verdicts_of
from rowsieve.changes.expiry_condition import question_of
from rowsieve.changes.vector_building import few_keys_are_new
from rowsieve.compaction.late_horizon import kept_by_default
from rowsieve.compaction.pick import Unit, pick, units_of
from rowsieve.maintenance.analyzing import (
    lacks_newer_sketches,
    lacks_statistics,
    of_current_columns,
)
from rowsieve.planner.overlap import Indices
from rowsieve.predicate.interpret import Verdict
from rowsieve.shown import Shown, html, size_text
from rowsieve.storage.parts.file_forms import target_part_bytes
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder


class AdvisedAction(Enum):
    """An action, by the name of its method or procedure."""

    COMPACT = "compact"
    ANALYZE = "analyze"
    BUILD_DELETION_VECTORS = "build_deletion_vectors"
    EXPIRE_ROWS = "maintain"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """An action that would pay, its parts and bytes, and the reason."""

    action: AdvisedAction
    reason: str
    parts: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Advice:
    """The state of one version, and the actions that would pay; none if it is healthy."""

    version: int
    parts: int
    size_bytes: int
    rows: int
    hidden_rows: int
    small_parts: int
    read_amplification: float
    parts_without_statistics: int
    recommendations: tuple[Recommendation, ...] = ()
    parts_without_distinct_counts: int = 0
    expired_rows: int = 0

    @property
    def is_healthy(self) -> bool:
        """True if nothing is recommended."""
        return not self.recommendations

    def as_dict(self) -> dict[str, Any]:
        """The advice as plain values."""
        fields = asdict(self)
        fields["recommendations"] = [
            {**asdict(each), "action": each.action.value} for each in self.recommendations
        ]
        return fields

    def __str__(self) -> str:
        return self._shown().text()

    def _repr_html_(self) -> str:
        return html(self._shown())

    def _shown(self) -> Shown:
        facts: Mapping[str, str] = {
            "stored": f"{self.parts:,} parts, {size_text(self.size_bytes)}, {self.rows:,} rows",
            "hidden": f"{self.hidden_rows:,} rows by deletes",
            "small": f"{self.small_parts:,} parts",
            "reads": f"{self.read_amplification:.2f} parts for each row",
        }
        advised = {each.action.value: each.reason for each in self.recommendations}
        title = f"rowsieve.Advice for version {self.version}"
        if self.is_healthy:
            title = f"{title}: nothing to do"
        return Shown(title, {**facts, **advised}, ())


def advise(snapshot: Snapshot) -> Advice:
    """Describe a version and recommend actions; O(parts)."""
    parts, key = snapshot.parts, snapshot.table.key
    order = KeyOrder.of(snapshot.schema, key) if key else None
    target = target_part_bytes(snapshot.table.properties)
    sizes = parts.numbers("data.size_bytes") + parts.numbers("deletes.size_bytes")
    units = units_of(parts, order, kept_by_default(snapshot))
    rows = sum(unit.row_count for unit in units)
    read = sum(unit.row_count * len(unit.parts) for unit in units)
    current = of_current_columns(parts, snapshot.schema)
    lacking = lacks_statistics(parts, snapshot.schema) & ~parts.held_in_memory()  # read anyway
    unknown = np.flatnonzero(lacking & current)
    uncounted = np.flatnonzero(lacks_newer_sketches(parts, snapshot.schema) & current)
    advice = Advice(
        snapshot.version,
        len(parts),
        int(sizes.sum()),
        rows,
        sum(unit.hidden_row_count for unit in units),
        int((sizes < target // 2).sum()),
        read / rows if rows else 1.0,
        len(unknown),
        parts_without_distinct_counts=len(uncounted),
    )
    chosen = pick(snapshot).parts
    recommended = [*_expiry(snapshot, sizes), *_compaction(advice, snapshot, chosen, sizes)]
    if snapshot.table.settings.get("statistics", "on") == "on":
        recommended += _analyses(sizes, unknown, uncounted)
    recommended += _vectors(snapshot, units, frozenset(chosen), sizes)
    return replace(
        advice,
        recommendations=tuple(recommended),
        expired_rows=_expired_for_sure(snapshot),
    )


def _compaction(
    advice: Advice, snapshot: Snapshot, chosen: Sequence[int], sizes: npt.NDArray[np.int64]
) -> Iterator[Recommendation]:
    """Recommend to compact the parts that a compaction would choose."""
    if chosen:
        why, size_bytes = _why_compact(advice, snapshot), int(sizes[chosen].sum())
        yield Recommendation(AdvisedAction.COMPACT, why, len(chosen), size_bytes)


def _expired_for_sure(snapshot: Snapshot) -> int:
    """The stored rows that are proved to have expired."""
    if (question := question_of(snapshot)) is None:
        return 0
    certain = verdicts_of(snapshot, question) == Verdict.ALL
    return int(snapshot.parts.data_rows()[certain].sum())


def _expiry(snapshot: Snapshot, sizes: Indices) -> Iterator[Recommendation]:
    """Recommend `maintain` where statistics do not prove that no row has expired."""
    if (question := question_of(snapshot)) is None:
        return
    rows = snapshot.parts.data_rows()
    verdicts = verdicts_of(snapshot, question)
    possible = np.flatnonzero((verdicts != Verdict.NONE) & (rows > 0))
    if not len(possible):
        return
    certain, most = int(rows[verdicts == Verdict.ALL].sum()), int(rows[possible].sum())
    why = f"{certain:,} rows have expired" + (
        f", and up to {most - certain:,} more may have" if most > certain else ""
    )
    yield Recommendation(AdvisedAction.EXPIRE_ROWS, why, len(possible), int(sizes[possible].sum()))


def _analyses(sizes: Indices, unknown: Indices, uncounted: Indices) -> Iterator[Recommendation]:
    """Recommend `analyze` for parts without statistics, and for those without distinct counts."""
    reasons = [
        (f"{len(unknown):,} parts have no statistics, so conditions cannot skip them", unknown),
        (f"distinct counts are unknown: {len(uncounted):,} parts are newer than these", uncounted),
    ]
    causes = [(why, parts) for why, parts in reasons if len(parts)]
    if causes:
        both = np.union1d(unknown, uncounted)
        why = "; ".join(why for why, _ in causes)
        yield Recommendation(AdvisedAction.ANALYZE, why, len(both), int(sizes[both].sum()))


def _vectors(
    snapshot: Snapshot, units: Sequence[Unit], compacted: frozenset[int], sizes: Indices
) -> Iterator[Recommendation]:
    """Recommend vectors for overlap groups that no compaction rewrites, as `maintain` builds them.

    Only where a first read compares many keys.
    """
    groups = [
        unit.parts
        for unit in units
        if len(unit.parts) > 1
        and compacted.isdisjoint(unit.parts)
        and not few_keys_are_new(snapshot, unit.parts)
    ]
    if groups:
        parts = [part for group in groups for part in group]
        why = f"the first read of a process compares the keys of {len(parts):,} parts"
        size_bytes = int(sizes[parts].sum())
        yield Recommendation(AdvisedAction.BUILD_DELETION_VECTORS, why, len(parts), size_bytes)


def _why_compact(advice: Advice, snapshot: Snapshot) -> str:
    reasons: Sequence[tuple[bool, str]] = (
        (
            advice.read_amplification > 1.0,
            f"a read looks at {advice.read_amplification:.1f} parts for each row",
        ),
        (advice.hidden_rows > 0, f"deletes hide up to {advice.hidden_rows:,} rows"),
        (advice.small_parts > 1, f"{advice.small_parts:,} parts are small"),
    )
    if causes := "; ".join(text for holds, text in reasons if holds):
        return causes
    if in_log := int(snapshot.parts.held_in_memory().sum()):
        return f"{in_log:,} parts are in the log, and no file has their rows"
    return "some parts have opaque values, which the table no longer writes"
