"""The rows of a differential table at a time: sums of updates, then the condition, then copies.

Soundness (invariant 33): a condition that may fail, or that reads the multiplicity, is evaluated on
sums only, so an update that another one cancels raises nothing. A row whose sum does not fit 64
bits is an error if the condition on its other columns holds. A negative multiplicity is a row like
any other, and an error where rows are expanded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.errors import MultiplicityOverflow, NegativeMultiplicity
from rowsieve.executor.consolidation.equality_codes import Codes, column_codes, plain_values
from rowsieve.executor.consolidation.sums import Sums, sum_differences
from rowsieve.executor.consolidation.update_windows import update_windows
from rowsieve.planner.plan import ScanPlan, bound_filter, table_columns
from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.evaluate import matching
from rowsieve.storage.differential import DIFF, TIME
from rowsieve.types.shown_values import shown_row

BATCH_ROWS: Final = 65_536

Shares: TypeAlias = Iterable[Sequence[pa.RecordBatch]]
"""The updates, all of a row in one share; see `rowsieve.executor.consolidation.update_shares`."""


def updates_plan(plan: ScanPlan) -> ScanPlan:
    """Return the plan of the updates that the rows of a plan are summed from."""
    consolidation = plan.consolidation
    assert consolidation is not None
    stored, updates = consolidation.stored, consolidation.updates
    names = tuple(name for name in stored.names if name not in (TIME, DIFF))
    return msgspec.structs.replace(
        plan,
        schema=stored,
        columns=table_columns((*names, DIFF)),
        predicate=updates,
        filter=bound_filter(updates, stored, plan.semantics, plan.now_us),
        limit=None,
        consolidation=None,
    )


def plan_to_audit(plan: ScanPlan) -> ScanPlan:
    """Return the plan whose pruning an audit checks: that of the updates, if rows are sums."""
    return plan if plan.consolidation is None else updates_plan(plan)


@dataclass(frozen=True, slots=True)
class Consolidated:
    """The conditions on sums, and the form of the result.

    `condition` is the whole condition; `on_data` the part of it that a row with an overflow must
    match to be an error. None is TRUE.
    """

    condition: BoundPredicate | None
    on_data: BoundPredicate | None
    expanded: bool

    @classmethod
    def of(cls, plan: ScanPlan) -> Consolidated:
        """Bind what a plan asks of its rows."""
        assert plan.consolidation is not None
        terms = (t for t in ir.conjuncts(plan.predicate) if DIFF not in ir.column_names(t))
        on_data = bound_filter(ir.conjoin(terms), plan.schema, plan.semantics, plan.now_us)
        return cls(plan.filter, on_data, plan.consolidation.expanded)

    def batches(self, shares: Shares) -> Iterator[pa.RecordBatch]:
        """The rows of the result, before the projection; batches are never empty."""
        for rows, multiplicities in self._rows(shares):
            if not self.expanded:
                yield from _cut(rows)
                continue
            yield from _copies(rows, multiplicities)

    def count(self, shares: Shares, limit: int | None) -> int:
        """Count the rows of the result up to a limit, without making copies of them."""
        total = 0
        for rows, multiplicities in self._rows(shares):
            total += sum(map(int, multiplicities)) if self.expanded else rows.num_rows
            if limit is not None and total >= limit:
                return limit
        return total

    def _rows(self, shares: Shares) -> Iterator[tuple[pa.RecordBatch, npt.NDArray[np.int64]]]:
        """The matching rows of each window with their multiplicities."""
        for window in (window for share in shares for window in update_windows(share)):
            for summed in _summed(window):
                rows, multiplicities = self._matching(*summed)
                if rows.num_rows:
                    yield rows, multiplicities

    def _matching(
        self, rows: pa.RecordBatch, sums: Sums
    ) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
        if sums.overflows.any():
            self._refuse_overflow(rows.filter(pa.array(sums.overflows)))
            rows = rows.filter(pa.array(~sums.overflows))
            sums = sums.without_overflows()
        multiplicities = sums.sums
        if self.condition is not None and rows.num_rows:
            matches = matching(self.condition, rows)
            rows, multiplicities = rows.filter(pa.array(matches)), multiplicities[matches]
        if self.expanded and (multiplicities < 0).any():
            place = int(np.flatnonzero(multiplicities < 0)[0])
            row = shown_row(_without_difference(rows), place)
            count = int(multiplicities[place])
            raise NegativeMultiplicity(
                f"the row {row} has the multiplicity {count}, so it cannot be expanded: an update "
                "removed it more often than others added it. Read it without expanded=True, and "
                "correct the sum with append_updates",
                row=row,
                multiplicity=count,
            )
        return rows, multiplicities

    def _refuse_overflow(self, rows: pa.RecordBatch) -> None:
        if self.on_data is not None:
            rows = rows.filter(pa.array(matching(self.on_data, rows)))
        if rows.num_rows:
            row = shown_row(_without_difference(rows), 0)
            raise MultiplicityOverflow(
                f"the differences of the row {row} add up to more than 64 bits hold; correct them "
                "with append_updates, or read at an earlier time",
                row=row,
            )


def _summed(window: Sequence[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, Sums]]:
    """One row of each group with its sum, from the batch that has it: payloads are not joined."""
    names = window[0].schema.names
    columns: list[Codes] = []
    for i, name in enumerate(names):
        if name != DIFF:
            columns += column_codes([batch.column(i) for batch in window])
    place = names.index(DIFF)
    (differences,) = column_codes([batch.column(place) for batch in window])
    sums = sum_differences(columns, differences)
    stops = np.cumsum([batch.num_rows for batch in window])
    for batch, stop, sums_of_batch in zip(window, stops, _split(sums, stops), strict=True):
        if len(sums_of_batch.rows):
            rows = pa.array(sums_of_batch.rows - (stop - batch.num_rows))
            taken = batch if len(rows) == batch.num_rows else batch.take(rows)
            columns = [plain_values(column) for column in taken.columns]
            columns[place] = pa.array(sums_of_batch.sums)
            yield pa.RecordBatch.from_arrays(columns, names), sums_of_batch


def _split(sums: Sums, stops: Codes) -> Iterator[Sums]:
    """The sums of the rows of each batch."""
    start = 0
    for stop in np.searchsorted(sums.rows, stops).tolist():
        piece = slice(start, stop)
        yield Sums(sums.rows[piece], sums.sums[piece], sums.overflows[piece])
        start = stop


def _cut(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows.num_rows, BATCH_ROWS):
        yield rows.slice(start, BATCH_ROWS)


def _copies(
    rows: pa.RecordBatch, multiplicities: npt.NDArray[np.int64]
) -> Iterator[pa.RecordBatch]:
    """Each row as often as its multiplicity says, in batches of bounded size."""
    rows, start = _without_difference(rows), 0
    left = multiplicities.copy()
    while start < len(left):
        ends = np.cumsum(np.minimum(left[start : start + BATCH_ROWS], BATCH_ROWS))
        stop = start + max(int(np.searchsorted(ends, BATCH_ROWS, side="right")), 1)
        counts = np.minimum(left[start:stop], BATCH_ROWS)
        yield rows.take(pa.array(np.repeat(np.arange(start, stop), counts)))
        left[start:stop] -= counts
        while start < len(left) and not left[start]:
            start += 1


def _without_difference(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.select([name for name in rows.schema.names if name != DIFF])
