"""Dates and times as their stored integers: days, microseconds, nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from rowsieve.predicate.ir import PhysicalValue
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, LogicalType, Nanos, Time, Timestamp


def as_ticks(values: pa.Array, type_: LogicalType) -> pa.Array:
    """Return dates or times as integers; values of other types are unchanged."""
    if isinstance(type_, Date):
        return values.view(pa.int32())
    return values.view(pa.int64()) if isinstance(type_, Time | Timestamp | Nanos) else values


def from_ticks(values: Iterable[PhysicalValue], type_: LogicalType) -> pa.Array:
    """Build an array of the type from stored values: integers for dates and times."""
    storage = arrow_type(type_)
    if isinstance(type_, Date):
        storage_of_ticks = pa.int32()
    else:
        storage_of_ticks = pa.int64() if isinstance(type_, Time | Timestamp | Nanos) else storage
    return pa.array(values, storage_of_ticks).view(storage)
