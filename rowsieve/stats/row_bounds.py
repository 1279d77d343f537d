"""Bounds of rows in memory, for the abstract interpreter: least and greatest value, NULL and NaN.

Soundness: a column whose type has no plain order has no bounds, which means unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.ir import BoundColumn
from rowsieve.stats.values import extremes, without_nan
from rowsieve.types.encodings import arrow_type

_PLAINLY_ORDERED: Final = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_string,
)


@dataclass(frozen=True, slots=True)
class RowBounds:
    """`AbstractColumns` of one part: some rows, in storage types."""

    rows: pa.Table

    @property
    def part_count(self) -> int:
        """One."""
        return 1

    def column(self, column: BoundColumn) -> AbstractColumn | None:
        """The bounds of a column; None if its type has none."""
        values = self.rows.column(column.name)
        type_, nan_count = values.type, 0
        if type_ != arrow_type(column.type) or not _has_plain_order(type_):
            return None
        null_count, row_count = values.null_count, len(values)
        if pa.types.is_floating(type_):
            values, nan_count = without_nan(values)
        lower, upper = (None, None) if null_count == row_count else extremes(values)
        return AbstractColumn(
            lower=_one(lower, type_),
            upper=_one(None if nan_count else upper, type_),
            empty=np.array([null_count == row_count]),
            may_be_null=np.array([null_count > 0]),
            may_be_nan=np.array([nan_count > 0]),
        )


def _has_plain_order(type_: pa.DataType) -> bool:
    return any(is_plain(type_) for is_plain in _PLAINLY_ORDERED)


def _one(value: pa.Scalar | None, type_: pa.DataType) -> pa.Array:
    return pa.nulls(1, type_) if value is None else pa.array([value], type_)
