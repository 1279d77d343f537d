"""Widening: decides whether a type holds all values of another type, in the same order.

Soundness: a widened value compares with all others as before, so bounds and sort orders that were
taken of the narrow values still hold.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from rowsieve.types import enums, logical
from rowsieve.types.encodings import arrow_type

WIDE_TYPES: Final = (logical.Int, logical.Float, logical.Decimal, logical.Timestamp)
"""Types that a column may have been widened to."""


LAST_DAY: Final = 106_751_991
"""The last day whose midnight is a timestamp in microseconds; the first is as far before 1970."""


def holds_all_of(wide: pa.DataType, narrow: pa.DataType) -> bool:
    """Return whether `wide` has every value of `narrow`, in the same order.

    A timestamp has every date up to `LAST_DAY`, as its midnight; a cast of a later date fails.
    """
    if wide == narrow:
        return True
    if pa.types.is_integer(wide) and pa.types.is_integer(narrow):
        outer, inner = (np.iinfo(type_.to_pandas_dtype()) for type_ in (wide, narrow))
        return bool(outer.min <= inner.min and inner.max <= outer.max)
    if pa.types.is_decimal(wide) and pa.types.is_decimal(narrow):
        more_places = int(wide.scale - narrow.scale)
        return 0 <= more_places <= int(wide.precision - narrow.precision)
    if pa.types.is_date32(narrow):
        return bool(wide == pa.timestamp("us"))
    return bool(pa.types.is_float64(wide) and pa.types.is_float32(narrow))


def is_widened(old: logical.LogicalType, new: logical.LogicalType) -> bool:
    """Return whether a column of type `old` may get the type `new` without a change of a value."""
    if logical.is_nested(old) or logical.is_nested(new):
        return old == new
    if isinstance(old, logical.Enum) and isinstance(new, logical.Enum):
        return enums.extends(old, new)
    if isinstance(old, logical.Date):
        return new in (logical.Date(), logical.Timestamp(utc=False))
    same = any(isinstance(old, kind) and isinstance(new, kind) for kind in WIDE_TYPES)
    return old == new or (same and holds_all_of(arrow_type(new), arrow_type(old)))


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
