"""Converts the statistics of foreign files; doubtful ones become unknown (trap T32).

Other writers leave out, truncate, invert or miscompute bounds. Soundness, by column and row group:

- bounds that are malformed, or not in the order of the type, have been removed before
  (`rowsieve.parquet.statistics.foreign_chunks`);
- a lower bound above the upper bound, a NaN bound, and counts above the row count are unknown;
- a column of floats in the file may have NaN even if it has bounds, so it has no upper bound (trap
  T13);
- INT96, half floats and types that the table does not just widen have no bounds;
- truncated bounds are valid and count; the sort order that a file claims is never used.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.parquet.leaf_columns import FileColumn, as_text
from rowsieve.parquet.statistics.stored_bounds import StoredBounds, physical_bound
from rowsieve.predicate.arrays import Mask, as_mask, as_type, without
from rowsieve.predicate.interpretation.abstract import AbstractColumn, inverted
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import LogicalType
from rowsieve.types.widening import holds_all_of

_NANOSECONDS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def foreign_column(stored: StoredBounds, column: FileColumn, type_: LogicalType) -> AbstractColumn:
    """The statistics in the storage type of the table's column; never narrower than the values."""
    target = arrow_type(type_)
    column = as_text(column, target)
    sane = (stored.nulls >= 0) & (stored.nulls <= stored.rows)
    empty = sane & (stored.nulls == stored.rows)
    may_be_null = ~(sane & (stored.nulls == 0))
    bounded = stored.bounded & ~(stored.nulls > stored.rows) & ~empty
    nothing = pa.nulls(len(empty), target)
    lower, upper = nothing, nothing
    if bounded.any():
        lower, upper = _bounds(stored, bounded, column, target) or (nothing, nothing)
    wrong = inverted(lower, upper)
    lower, upper = without(lower, wrong), without(upper, wrong)
    may_be_nan = None
    if pa.types.is_floating(column.type):
        lower, upper = without(lower, as_mask(pc.is_nan(lower))), nothing
        may_be_nan = ~empty
    elif pa.types.is_floating(target):
        may_be_nan = np.zeros(len(empty), np.bool_)
    return AbstractColumn(lower, upper, empty, may_be_null, may_be_nan)


def _bounds(
    stored: StoredBounds, bounded: Mask, column: FileColumn, target: pa.DataType
) -> tuple[pa.Array, pa.Array] | None:
    """The bounds in the type `target`; None if a value is not valid or the types do not fit."""
    try:
        is_date = pa.types.is_date32(column.type)
        if (pa.types.is_timestamp(target) or pa.types.is_time64(target)) and not is_date:
            return _in_unit_of_target(stored, bounded, column, target)
        if not holds_all_of(target, column.type):
            return None
        return (
            as_type(physical_bound(stored.lower, bounded, column), target),
            as_type(physical_bound(stored.upper, bounded, column), target),
        )
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _in_unit_of_target(
    stored: StoredBounds, bounded: Mask, column: FileColumn, target: pa.DataType
) -> tuple[pa.Array, pa.Array] | None:
    """Bounds of times in any unit: the lower one rounded down, the upper one up."""
    type_ = column.type
    same_kind = (
        pa.types.is_timestamp(type_) and (type_.tz is None) == (target.tz is None)
        if pa.types.is_timestamp(target)
        else pa.types.is_time(type_)
    )
    if not same_kind or column.physical not in ("INT32", "INT64"):
        return None
    times, over = _NANOSECONDS[type_.unit], _NANOSECONDS[target.unit]

    def converted(raw: list[Any], *, up: bool) -> pa.Array:
        numbers = [value if there else 0 for value, there in zip(raw, bounded, strict=True)]
        exact = [-(-n * times // over) if up else n * times // over for n in numbers]
        values = np.array(exact, dtype=object).astype(np.int64)  # OverflowError beyond 64 bits
        return without(pa.array(values).view(target), ~bounded)

    return converted(stored.lower, up=False), converted(stored.upper, up=True)
