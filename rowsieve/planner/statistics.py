"""Estimate the result of a plan from the manifest: rows, bytes, bounds and NULL counts.

Parts in memory have the statistics of their rows.

Soundness (invariant 26): counts are upper bounds. They are exact only if every stored row is
certainly returned: no residual, no newer part or deletion vector that could hide it, no limit that
may exclude it. Bounds hold whichever rows are hidden. A bound is exact if a part that is returned
completely has a row with that value, and no value may be NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import UnsupportedOperation
from rowsieve.planner.differential.consolidation import Consolidation
from rowsieve.planner.part_rows import within
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.resolved import rows_by_part
from rowsieve.predicate.arrays import as_mask
from rowsieve.predicate.ir import BoundColumn
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.tabulate import statistics_name
from rowsieve.storage.differential import DIFF
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.memory_statistics import with_memory_statistics
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Field

Mask = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """One column of the result: no value is below `lower` or above `upper`; None means unknown.

    An exact bound is the least or greatest value itself, or None if all values are NULL.
    `null_count` is never too low. NaN is the greatest value.
    """

    lower: pa.Scalar | None = None
    lower_exact: bool = False
    upper: pa.Scalar | None = None
    upper_exact: bool = False
    null_count: int | None = None
    null_count_exact: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return plain values; a time outside Python's range is its stored integer."""
        return {
            "lower": plain_value(self.lower),
            "lower_exact": self.lower_exact,
            "upper": plain_value(self.upper),
            "upper_exact": self.upper_exact,
            "null_count": self.null_count,
            "null_count_exact": self.null_count_exact,
        }


@dataclass(frozen=True, slots=True)
class ScanStatistics:
    """Estimates of the result of a scan, made before any read.

    `rows` and `size_bytes` (stored bytes of the parts to read) are never too low. Computed columns
    have no statistics.
    """

    rows: int
    rows_exact: bool
    size_bytes: int
    size_bytes_exact: bool
    columns: Mapping[str, ColumnSummary]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "rows": self.rows,
            "rows_exact": self.rows_exact,
            "size_bytes": self.size_bytes,
            "size_bytes_exact": self.size_bytes_exact,
            "columns": {name: column.as_dict() for name, column in self.columns.items()},
        }


def plan_statistics(plan: ScanPlan, snapshot: Snapshot) -> ScanStatistics:
    """Estimate the result of a plan of this snapshot from the manifest."""
    returned = _Returned.of(plan, snapshot)
    stored = int(returned.rows.sum())
    cut = plan.limit is not None and plan.limit < stored
    rows = stored if plan.limit is None else min(plan.limit, stored)
    whole = returned.whole & (not cut)
    all_whole = bool(whole.all())
    statistics = PartStatistics(returned.parts, snapshot.schema)
    columns = {
        column.name: ColumnSummary()
        if column.operand is not None
        else _column(snapshot.schema.field(column.name), returned, statistics, whole, rows)
        for column in plan.columns
    }
    result = ScanStatistics(
        rows=rows,
        rows_exact=bool(returned.counted.all()),
        size_bytes=sum(split.size_bytes for split in plan.splits),
        size_bytes_exact=all_whole and set(snapshot.schema.names) <= columns.keys(),
        columns=columns,
    )
    return result if plan.consolidation is None else _of_sums(result, plan.consolidation)


def _of_sums(updates: ScanStatistics, consolidation: Consolidation) -> ScanStatistics:
    """Estimate sums by their updates, any of which may be cancelled: nothing is exact.

    UnsupportedOperation where rows are expanded: one update may be any number of rows.
    """
    if consolidation.expanded:
        raise UnsupportedOperation(
            "statistics: with expanded=True an update may be any number of rows; ask without it"
        )
    columns = {
        name: ColumnSummary()
        if name == DIFF
        else replace(column, lower_exact=False, upper_exact=False, null_count_exact=False)
        for name, column in updates.columns.items()
    }
    return replace(updates, rows_exact=updates.rows == 0, columns=columns)


@dataclass(frozen=True, slots=True, eq=False)
class _Returned:
    """The parts with returned rows; arrays of length n.

    `rows`: upper bound of the rows returned; `counted`: whether it is exact; `whole`: whether every
    row of the file is returned.
    """

    parts: PartTable
    rows: Counts
    counted: Mask
    whole: Mask

    @classmethod
    def of(cls, plan: ScanPlan, snapshot: Snapshot) -> _Returned:
        rows: dict[str, int] = {}
        unsure: set[str] = set()
        vectors: dict[str, int] = {}
        resolved = None if plan.resolved is None else rows_by_part(plan.resolved)
        for piece in (piece for split in plan.splits for piece in split.pieces):
            for read in piece.reads:
                part = piece.parts[read.part]
                assert part.data is not None
                start, stop = read.row_range(part.data.rows)
                count = stop - start
                if resolved is not None:
                    count = len(within(resolved[part.part_id], start, stop))
                rows[part.part_id] = rows.get(part.part_id, 0) + count
                if read.residual or (read.part > 0 and resolved is None):  # newer parts are before
                    unsure.add(part.part_id)
                if part.dv is not None and resolved is None:
                    vectors[part.part_id] = part.dv.rows
        ids = snapshot.parts.column("part_id")
        parts = snapshot.parts.take(
            np.flatnonzero(pc.is_in(ids, pa.array(list(rows), pa.string())).to_numpy())
        )
        counts = np.array([rows[id_] for id_ in parts.part_ids], dtype=np.int64)
        hidden = np.array([vectors.get(id_, 0) for id_ in parts.part_ids], dtype=np.int64)
        sure = np.array([id_ not in unsure for id_ in parts.part_ids], dtype=np.bool_)
        complete = counts == parts.data_rows()
        return cls(
            with_memory_statistics(parts, snapshot.schema),
            np.where(complete, counts - hidden, counts),
            counted=sure & (complete | (hidden == 0)),
            whole=sure & complete & (hidden == 0),
        )


def _column(
    field: Field, returned: _Returned, statistics: PartStatistics, whole: Mask, rows: int
) -> ColumnSummary:
    columns = returned.parts
    nulls = _null_counts(returned.parts, field)
    null_count = None if (nulls < 0).any() else min(int(nulls.sum()), rows)
    exact = bool(whole.all()) and null_count is not None
    known = statistics.column(BoundColumn(field.id, field.name, field.type))
    if known is None:
        return ColumnSummary(null_count=null_count, null_count_exact=exact)
    filled = ~known.empty
    if not filled.any():
        return ColumnSummary(
            lower_exact=True, upper_exact=True, null_count=null_count, null_count_exact=exact
        )
    no_nan = known.may_be_nan is None or not known.may_be_nan[filled].any()

    def bound(side: str, values: pa.Array) -> tuple[pa.Scalar | None, bool]:
        taken = values.filter(pa.array(filled))
        if taken.null_count:
            return None, False
        extreme = pc.min_max(taken)["min" if side == "lower" else "max"]
        name = statistics_name(field.id, f"{side}_exact")
        if columns.schema.get_field_index(name) < 0 or not no_nan:
            return extreme, False
        flags = as_mask(columns.column(name))
        attained = as_mask(pc.equal(values, extreme))
        return extreme, bool((flags & whole & filled & attained).any())

    lower, lower_exact = bound("lower", known.lower)
    upper, upper_exact = bound("upper", known.upper)
    return ColumnSummary(lower, lower_exact, upper, upper_exact, null_count, exact)


def _null_counts(parts: PartTable, field: Field) -> Counts:
    """(n,) NULLs among the rows of each part, -1 if unknown."""
    name = statistics_name(field.id, "null_count")
    if parts.schema.get_field_index(name) < 0:
        counts = np.full(len(parts), -1 if field.nullable else 0, dtype=np.int64)
    else:
        counts = np.asarray(pc.fill_null(parts.column(name), -1).to_numpy(), dtype=np.int64)
        counts = np.where(counts > parts.data_rows(), np.int64(-1), counts)
    if not field.added:
        return counts
    filled = parts.data_rows() if field.fill is None else np.int64(0)  # trap T20
    return np.where(parts.numbers("schema_id") < field.added, filled, counts)


def plain_value(scalar: pa.Scalar | None) -> Any:
    """Return a scalar as a Python value; for a time outside Python's range, the stored integer."""
    if scalar is None:
        return None
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return scalar.value
