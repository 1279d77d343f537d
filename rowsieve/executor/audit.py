"""Audits pruning: reads a sample of what pruning skips and evaluates the predicate on it.

A pruned plan claims that no row of some parts and row groups matches or fails, and that all rows of
some parts match. An audit samples these claims by a hash of part and row group, which is the same
in every process (trap T30). It reads their rows, resolves their visibility without pruning
(invariant 28), and evaluates the predicate on them. It also finds rows that a pruned read returns
although a newer version or a deletion hides them: pruning may have skipped the part that hides
them.

Soundness: a violation is a row that the pruned read would lose or return wrongly. A hidden row that
the pruned read does not return is never one. Limits do not affect these claims, so the compared
plans have none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import xxhash

from rowsieve.bridges.sql import to_sql
from rowsieve.config import OnViolation
from rowsieve.errors import UnsoundPruning, UnsupportedOperation
from rowsieve.executor.consolidation.consolidate import plan_to_audit
from rowsieve.executor.execute import Execution
from rowsieve.executor.part_sources import PartSource
from rowsieve.metrics import ScanMetrics
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.split import Piece, PlannedPart, Read, Split
from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.evaluate import Outcome as Answer
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.parts import part_writer

_LOG = logging.getLogger("rowsieve")
_HASHES: Final = 2**64
_MESSAGE_CHARACTERS: Final = 300  # longest predicate text in a message
_STALE: Final = "is returned, but a newer version or a deletion hides it"


@dataclass(frozen=True, slots=True)
class Sample:
    """Selects `percent` of a table's parts and row groups for the audit."""

    table_uuid: str
    percent: float

    def has_part(self, part_id: str) -> bool:
        """Return whether the sample includes the claim about this whole part."""
        return self._has(part_id)

    def has_row_group(self, part_id: str, row_group: int) -> bool:
        """Return whether the sample includes the claim about this row group."""
        return self._has(f"{part_id}/{row_group}")

    def _has(self, name: str) -> bool:
        digest = xxhash.xxh3_64_intdigest(f"{self.table_uuid}/{name}".encode())
        return digest < self.percent / 100 * _HASHES


@dataclass(frozen=True, slots=True)
class Violation:
    """Rows of one row group that contradict a claim of pruning; `row` is the first of them."""

    part_id: str
    row: int
    rows: int
    what: str
    predicate: str

    def __str__(self) -> str:
        more = f" (and {self.rows - 1} more in its row group)" if self.rows > 1 else ""
        return (
            f"pruning is unsound: row {self.row} of part {self.part_id}{more} {self.what}: "
            f"{self.predicate}; the statistics do not match the file, or this is a bug: read with "
            "pruning='off', and report it"
        )


@dataclass(slots=True)
class Outcome:
    """Counters of an audit: checked claims about parts and row groups, rows, bytes.

    `violations` counts rows.
    """

    audited: int = 0
    violations: int = 0
    rows: int = 0
    bytes_read: int = 0

    def count_in(self, metrics: ScanMetrics) -> None:
        """Copy the counters to the metrics of the scan."""
        metrics.audited = self.audited
        metrics.audit_violations = self.violations
        metrics.rows_audited = self.rows
        metrics.bytes_audited = self.bytes_read


class Auditor:
    """Audits the pruning of one scan, which it plans with and without pruning, without a limit.

    `execute` returns the execution of a plan, with the settings of the scan.
    """

    def __init__(
        self,
        pruned: Callable[[], ScanPlan],
        whole: Callable[[], ScanPlan],
        execute: Callable[[ScanPlan], Execution],
        percent: float,
        on_violation: OnViolation,
    ) -> None:
        self._pruned = pruned
        self._whole = whole
        self._execute = execute
        self._percent = percent
        self._on_violation = on_violation

    def run(self) -> Outcome:
        """Audit the sample; UnsoundPruning at the first violation, unless they are only logged."""
        outcome = Outcome()
        if not self._percent or (pruned := plan_to_audit(self._pruned())).predicate == TRUE:
            return outcome
        audit = _Audit(pruned, plan_to_audit(self._whole()), self._percent)
        for violation in audit.violations(self._execute, outcome):
            if self._on_violation == "raise":
                raise UnsoundPruning(str(violation))
            _LOG.warning("%s", violation)
            outcome.violations += violation.rows
        return outcome


class _Audit:
    """A scan planned with and without pruning, and the rows picked for the audit."""

    def __init__(self, pruned: ScanPlan, whole: ScanPlan, percent: float) -> None:
        self._sample = Sample(whole.table_uuid, percent)
        filtered = frozenset(part.part_id for part, read in _reads(pruned) if read.residual)
        self._read = frozenset(part.part_id for part, _ in _reads(pruned))
        self._certain = self._read - filtered
        self._picked = {
            part.part_id: rows
            for part, _ in _reads(whole)
            if part.data is not None
            and not (rows := self._sampled_rows(part.part_id, part.data.rows)).is_empty
        }
        self._pruned = _with_parts(pruned, self._picked)
        self._whole = _with_parts(whole, self._picked)

    def violations(
        self, execute: Callable[[ScanPlan], Execution], outcome: Outcome
    ) -> Iterator[Violation]:
        """The violated claims, part by part; adds to the counters of `outcome`."""
        pruned, truth = execute(self._pruned), execute(self._whole)
        assert truth.predicate is not None
        shown = {part_id: rows for part_id, (_, rows) in _visible(pruned).items()}
        described = _described(self._whole.predicate)
        for part_id, (source, visible) in _visible(truth).items():
            picked = self._picked[part_id]
            claim = _Claim(
                source,
                visible.intersect(picked),
                shown.get(part_id, RowSet.empty(picked.row_count)).intersect(picked),
                certain=part_id in self._certain,
            )
            outcome.audited += 1 if self._is_whole(part_id) else claim.row_groups
            yield from claim.violations(truth.predicate, described, outcome)
            outcome.bytes_read = pruned.metrics.bytes_read + truth.metrics.bytes_read

    def _is_whole(self, part_id: str) -> bool:
        """Return whether pruning claims about the whole part that no row, or every row, matches."""
        return part_id in self._certain or part_id not in self._read

    def _sampled_rows(self, part_id: str, row_count: int) -> RowSet:
        """The rows of a part that the sampled claims cover."""
        if self._is_whole(part_id):
            picked = self._sample.has_part(part_id)
            return RowSet.full(row_count) if picked else RowSet.empty(row_count)
        group_rows = part_writer.ROW_GROUP_ROWS
        groups = range(-(-row_count // group_rows))
        has = [self._sample.has_row_group(part_id, group) for group in groups]
        return RowSet.from_row_groups(np.array(has, dtype=np.bool_), group_rows, row_count)


@dataclass(frozen=True, slots=True)
class _Claim:
    """The `visible` rows of one part, and the rows that a pruned read has for the predicate.

    `certain`: the pruned read skips the predicate, because it claims that all rows match.
    """

    source: PartSource
    visible: RowSet
    shown: RowSet
    certain: bool

    @property
    def wanted(self) -> RowSet:
        """The rows to check; the scan itself evaluates the predicate on the others."""
        either = self.visible.union(self.shown)
        return either if self.certain else either.difference(self.visible.intersect(self.shown))

    @property
    def row_groups(self) -> int:
        """The number of row groups that have rows to check."""
        starts, stops = self.wanted.ranges()
        first = starts // part_writer.ROW_GROUP_ROWS
        last = (stops - 1) // part_writer.ROW_GROUP_ROWS
        return int((last - first + 1).sum() - (first[1:] == last[:-1]).sum())

    def violations(
        self, predicate: BoundPredicate, described: str, outcome: Outcome
    ) -> Iterator[Violation]:
        """Read the rows and evaluate the predicate on them."""
        wanted = self.wanted
        for start, batch in self.source.rows(self.source.columns_of(predicate), wanted):
            stop = start + batch.num_rows
            ids = wanted.slice(start, stop).to_ids() + start
            outcome.rows += len(ids)
            answer = evaluate(predicate, batch.take(pa.array(ids - start)))
            visible, shown = self.visible.contains(ids), self.shown.contains(ids)
            answer.refuse_unread(visible | shown)
            for what, wrong in self._violations(visible, shown, answer):
                if wrong.any():
                    row, rows = int(ids[np.argmax(wrong)]), int(wrong.sum())
                    yield Violation(self.source.part.part_id, row, rows, what, described)

    def _violations(self, visible: Mask, shown: Mask, answer: Answer) -> Iterator[tuple[str, Mask]]:
        skipped, stale = visible & ~shown, shown & ~visible
        yield "was skipped, but it matches", skipped & answer.true
        yield "was skipped, but the filter fails on it", skipped & answer.failed
        if self.certain:
            yield "was taken to match, but it does not", visible & shown & ~answer.true
            yield _STALE, stale
        else:
            yield _STALE, stale & (answer.true | answer.failed)


def _reads(plan: ScanPlan) -> Iterator[tuple[PlannedPart, Read]]:
    for split in plan.splits:
        for piece in split.pieces:
            for read in piece.reads:
                yield piece.parts[read.part], read


def _with_parts(plan: ScanPlan, part_ids: Collection[str]) -> ScanPlan:
    """The plan with only the reads of these parts; its pieces keep the parts that may hide rows."""

    def cut(piece: Piece) -> Piece:
        reads = tuple(read for read in piece.reads if piece.parts[read.part].part_id in part_ids)
        return msgspec.structs.replace(piece, reads=reads)

    pieces = tuple(cut(piece) for split in plan.splits for piece in split.pieces)
    split = Split(tuple(piece for piece in pieces if piece.reads))
    return msgspec.structs.replace(plan, splits=(split,))


def _visible(execution: Execution) -> dict[str, tuple[PartSource, RowSet]]:
    """Each part with its live rows, by part id; several pieces may read one part."""
    by_part: dict[str, tuple[PartSource, RowSet]] = {}
    for source, rows in execution.visible_parts():
        part_id = source.part.part_id
        known = by_part[part_id][1] if part_id in by_part else RowSet.empty(source.row_count)
        live = RowSet.full(source.row_count) if rows is None else rows
        by_part[part_id] = (source, known.union(live))
    return by_part


def _described(predicate: Predicate) -> str:
    try:
        text = to_sql(predicate)
    except UnsupportedOperation:
        text = str(predicate)
    return text if len(text) <= _MESSAGE_CHARACTERS else f"{text[:_MESSAGE_CHARACTERS]}…"
