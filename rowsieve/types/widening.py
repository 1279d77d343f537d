"""Widening: decides whether a type holds all values of another type, in the same order.

Soundness: a widened value compares with all others as before, so bounds and sort orders that were
taken of the narrow values still hold.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from rowsieve.types import enums, logical
from rowsieve.types.days import DAY_US, NANOS_OF_MICRO
from rowsieve.types.encodings import arrow_type

WIDE_TYPES: Final = (
    logical.Int,
    logical.Float,
    logical.Decimal,
    logical.Timestamp,
    logical.Nanos,
)
"""Types that a column may have been widened to."""

_NUMBERS: Final = (logical.Int, logical.Float, logical.Decimal)
_TIMES_OF_DATES: Final = (logical.Timestamp(utc=False), logical.Nanos(utc=False))
_MANTISSA_BITS: Final = {32: 24, 64: 53}  # of floats, with the implied one
_DAYS: Final[dict[str, int]] = {"us": DAY_US, "ns": DAY_US * NANOS_OF_MICRO}


def greatest_day(type_: logical.Timestamp | logical.Nanos) -> int:
    """The last day whose midnight the type has; the first is as many days before 1970."""
    return (2**63 - 1) // _DAYS[arrow_type(type_).unit]


def holds_all_of(wide: pa.DataType, narrow: pa.DataType) -> bool:
    """Return whether `wide` has every value of `narrow`, in the same order.

    A time has every date up to its `greatest_day`, as its midnight; a cast of a later date fails.
    """
    if wide == narrow:
        return True
    if pa.types.is_integer(narrow):
        return _holds_integers(wide, np.iinfo(narrow.to_pandas_dtype()))
    if pa.types.is_decimal(wide) and pa.types.is_decimal(narrow):
        more_places = int(wide.scale - narrow.scale)
        return 0 <= more_places <= int(wide.precision - narrow.precision)
    if pa.types.is_date32(narrow):
        return wide in (pa.timestamp("us"), pa.timestamp("ns"))
    return bool(pa.types.is_float64(wide) and pa.types.is_float32(narrow))


def _holds_integers(wide: pa.DataType, narrow: np.iinfo[Any]) -> bool:
    first, last = int(narrow.min), int(narrow.max)
    if pa.types.is_integer(wide):
        limits = np.iinfo(wide.to_pandas_dtype())
        return bool(limits.min <= first and last <= limits.max)
    if pa.types.is_decimal(wide):
        return bool(len(str(last)) <= wide.precision - wide.scale)
    bits = _MANTISSA_BITS.get(wide.bit_width) if pa.types.is_floating(wide) else None
    return bits is not None and max(-first, last) <= 2**bits


def is_widened(old: logical.LogicalType, new: logical.LogicalType) -> bool:
    """Return whether a column of type `old` may get the type `new` without a change of a value."""
    if logical.is_nested(old) or logical.is_nested(new):
        return old == new
    if isinstance(old, logical.Enum) and isinstance(new, logical.Enum):
        return enums.extends(old, new)
    if isinstance(old, logical.Date):
        return new == old or new in _TIMES_OF_DATES
    if isinstance(old, _NUMBERS) and isinstance(new, _NUMBERS):
        return holds_all_of(arrow_type(new), arrow_type(old))
    return old == new


def widened(values: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """Return the values in a type that holds all of theirs; the same object if it is theirs."""
    return values if values.type == type_ else values.cast(type_)


def unified(schemas: list[pa.Schema]) -> pa.Schema:
    """Join the fields of all schemas by name; of two types, the one that holds the other.

    pa.ArrowException if neither of two types holds the other.
    """
    widest: dict[str, pa.DataType] = {}
    for schema in schemas:
        for field in schema:
            known = widest.get(field.name)
            if known is None or holds_all_of(field.type, known):
                widest[field.name] = field.type
    return pa.unify_schemas([_with_types(schema, widest) for schema in schemas])


def _with_types(schema: pa.Schema, widest: dict[str, pa.DataType]) -> pa.Schema:
    return pa.schema(
        [
            field.with_type(wide) if holds_all_of(wide := widest[field.name], field.type) else field
            for field in schema
        ]
    )
