"""Bounds that somebody else collected, as arrays of a column's storage type.

Soundness: a bound may only get wider. A lower bound is rounded down and an upper one up where the
column's type is coarser; NaN, and integers that a float may have rounded, become unknown. Bounds of
another kind of type are refused, because their order may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import InvalidInput
from rowsieve.types import logical
from rowsieve.types.encodings import arrow_type, is_bytes, is_text
from rowsieve.types.logical import LogicalType, type_name

_EXACT_DOUBLE: Final = 2.0**53
_TICKS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Side(Enum):
    """Which bound of the values, and how it is rounded."""

    LOWER = "min"
    UPPER = "max"


def _listed(values: Any) -> pa.Array:
    """Values of a list or of numpy; integers beyond 63 bits are unsigned."""
    try:
        return pa.array(values, from_pandas=True)
    except OverflowError:
        return pa.array(values, pa.uint64(), from_pandas=True)


def as_array(values: Any, what: str) -> pa.Array:
    """Return values of a list, numpy, pandas, polars or Arrow as one array; NaN may be NULL."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        array = values
    elif hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        array = (
            pa.chunked_array(values) if hasattr(values, "__arrow_c_stream__") else pa.array(values)
        )
    else:
        try:
            array = _listed(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidInput(f"prune: {what} are not an array of one type: {error}") from error
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if not pa.types.is_dictionary(array.type):
        return array
    words = array.dictionary
    words = words.cast(pa.large_string()) if is_text(words.type) else words  # views are not taken
    return words.take(array.indices)


def as_bounds(values: Any, type_: LogicalType, side: Side, name: str) -> pa.Array:
    """Return bounds in the storage type; InvalidInput if they are of another kind of type."""
    what = f"{side.value} of the column {name!r}"
    array = as_array(values, what)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow_type(type_))
    convert = _CONVERSIONS.get(type(type_))
    if convert is None:
        raise InvalidInput(
            f"prune: {what} are given, but values of type {type_name(type_)} have no order here; "
            "leave them out"
        )
    try:
        bounds = convert(array, type_, side)
    except pa.ArrowException as error:
        raise InvalidInput(
            f"prune: {what} do not fit its type {type_name(type_)}: {error}"
        ) from error
    if bounds is None:
        raise InvalidInput(
            f"prune: {what} are of type {array.type}, and the column is of type "
            f"{type_name(type_)}; convert them"
        )
    return bounds


def _same(
    is_kind: Callable[[pa.DataType], bool],
) -> Callable[[pa.Array, LogicalType, Side], pa.Array | None]:
    """Convert arrays of one kind, whose values are the same in every type of it."""

    def convert(array: pa.Array, type_: LogicalType, side: Side) -> pa.Array | None:
        del side
        return array.cast(arrow_type(type_)) if is_kind(array.type) else None

    return convert


def _integers(array: pa.Array, type_: LogicalType, side: Side) -> pa.Array | None:
    """Convert integers; floats, into which pandas turns those with missing values, are rounded."""
    if pa.types.is_floating(array.type):
        floats = array.cast(pa.float64())
        exact = pc.less(pc.abs(floats), _EXACT_DOUBLE)
        array = _unless(pc.if_else(exact, _whole(floats, side), None))
    if not pa.types.is_integer(array.type) and not pa.types.is_floating(array.type):
        return None
    return _within(array.cast(pa.decimal128(20, 0)), arrow_type(type_), side)


def _within(numbers: pa.Array, type_: pa.DataType, side: Side) -> pa.Array:
    """Bounds in a type of integers: wider ones are its ends, and what has no values is unknown."""
    info = np.iinfo(type_.to_pandas_dtype())
    lowest, highest = (pa.scalar(Decimal(int(end)), numbers.type) for end in (info.min, info.max))
    below, above = pc.less(numbers, lowest), pc.greater(numbers, highest)
    wider, end, empty = (below, lowest, above) if side is Side.LOWER else (above, highest, below)
    return pc.if_else(empty, None, pc.if_else(wider, end, numbers)).cast(type_)


def _whole(values: pa.Array, side: Side) -> pa.Array:
    return pc.floor(values) if side is Side.LOWER else pc.ceil(values)


def _unless(values: pa.Array) -> pa.Array:
    """Return values without NaN."""
    return pc.if_else(pc.is_nan(values), None, values)


def _floats(array: pa.Array, type_: LogicalType, side: Side) -> pa.Array | None:
    """Convert numbers; a float64 becomes the nearest float32 that is not inside of it."""
    if pa.types.is_integer(array.type):
        array = array.cast(pa.float64())  # fails beyond 2^53
    if not pa.types.is_floating(array.type):
        return None
    wide = np.asarray(_unless(array.cast(pa.float64())).fill_null(np.nan).to_numpy(), np.float64)
    wide = np.where(wide == 0, -0.0 if side is Side.LOWER else 0.0, wide)
    if arrow_type(type_) == pa.float32():
        with np.errstate(over="ignore"):
            short = wide.astype(np.float32)
        limit = np.float32(-np.inf if side is Side.LOWER else np.inf)
        inside = short > wide if side is Side.LOWER else short < wide
        wide = np.where(inside, np.nextafter(short, limit), short)
    return pa.array(wide.astype(arrow_type(type_).to_pandas_dtype()), from_pandas=True)


def _decimals(array: pa.Array, type_: LogicalType, side: Side) -> pa.Array | None:
    """Convert exact numbers, rounded to the column's scale."""
    assert isinstance(type_, logical.Decimal)
    if pa.types.is_integer(array.type):
        array = array.cast(pa.decimal128(38, 0))
    if not pa.types.is_decimal(array.type):
        return None
    if array.type.scale > type_.scale:
        mode = "down" if side is Side.LOWER else "up"
        array = pc.round(array, ndigits=type_.scale, round_mode=mode)
        if array.type.scale > type_.scale:
            array = array.cast(pa.decimal256(76, array.type.scale))
    wide = array.cast(pa.decimal256(76, type_.scale))
    return wide.cast(arrow_type(type_))


def _dates(array: pa.Array, type_: LogicalType, side: Side) -> pa.Array | None:
    del side
    return array.cast(arrow_type(type_)) if pa.types.is_date(array.type) else None


def _times(array: pa.Array, type_: LogicalType, side: Side) -> pa.Array | None:
    if not pa.types.is_time(array.type):
        return None
    return _ticks(array, arrow_type(type_), side)


def _timestamps(array: pa.Array, type_: LogicalType, side: Side) -> pa.Array | None:
    assert isinstance(type_, logical.Timestamp | logical.Nanos)
    if not pa.types.is_timestamp(array.type) or (array.type.tz is not None) is not type_.utc:
        return None
    return _ticks(array, arrow_type(type_), side)


def _ticks(array: pa.Array, storage: pa.DataType, side: Side) -> pa.Array:
    """Convert a unit of time, rounded where it becomes coarser; what overflows is unknown."""
    integers = pa.int32() if array.type.bit_width == 32 else pa.int64()
    ticks = array.view(integers).cast(pa.int64())
    from_unit, wanted = _TICKS[array.type.unit], _TICKS[storage.unit]
    if wanted >= from_unit:
        factor = wanted // from_unit
        limit = (2**63 - 1) // factor
        fits = pc.less_equal(pc.abs(pc.max_element_wise(ticks, -(2**63 - 1))), limit)
        exact = pc.if_else(fits, ticks, None)
        return pc.multiply(exact, factor).view(storage)
    factor = from_unit // wanted
    floors = np.asarray(ticks.fill_null(0).to_numpy(), np.int64)
    floors = floors // factor if side is Side.LOWER else -(-floors // factor)
    return pc.if_else(ticks.is_valid(), pa.array(floors), None).view(storage)


def _uuids(array: pa.Array, type_: LogicalType, side: Side) -> pa.Array | None:
    del side
    if not pa.types.is_fixed_size_binary(array.type) or array.type.byte_width != 16:
        return None
    return array.cast(arrow_type(type_))


_CONVERSIONS: Final[
    Mapping[type[LogicalType], Callable[[pa.Array, LogicalType, Side], pa.Array | None]]
] = {
    logical.Bool: _same(pa.types.is_boolean),
    logical.Int: _integers,
    logical.Float: _floats,
    logical.Decimal: _decimals,
    logical.String: _same(is_text),
    logical.Binary: _same(is_bytes),
    logical.Date: _dates,
    logical.Time: _times,
    logical.Timestamp: _timestamps,
    logical.Nanos: _timestamps,
    logical.Uuid: _uuids,
}
