"""Dates and times as the whole numbers that they are stored as: days and microseconds."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from rowsieve.predicate.ir import PhysicalValue
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, LogicalType, Time, Timestamp


def as_ticks(values: pa.Array, type_: LogicalType) -> pa.Array:
    """The values of a date or time as whole numbers; those of other types as they are."""
    if isinstance(type_, Date):
        return values.view(pa.int32())
    return values.view(pa.int64()) if isinstance(type_, Time | Timestamp) else values


def from_ticks(values: Iterable[PhysicalValue], type_: LogicalType) -> pa.Array:
    """An array of the type; of a date or time the values are whole numbers."""
    storage = arrow_type(type_)
    held = {Date: pa.int32(), Time: pa.int64(), Timestamp: pa.int64()}.get(type(type_), storage)
    return pa.array(values, held).view(storage)
