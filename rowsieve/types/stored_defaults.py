"""Constants of columns, such as defaults, as text: the form in which the log stores them.

Numbers are in decimal, floats with all digits that matter, dates and times as their stored integer,
bytes in hexadecimal. Soundness: text that is not a constant of the type is CorruptData. A list,
struct or map has no constant but NULL.
"""

from __future__ import annotations

import decimal
import uuid
from functools import lru_cache
from typing import Any

import pyarrow as pa

from rowsieve.errors import CorruptData, InvalidSchemaChange, SchemaMismatch, repr_of
from rowsieve.types import logical, numeric_bytes
from rowsieve.types.conform import conform_values
from rowsieve.types.encodings import arrow_type


def constant_text(value: Any, type_: logical.LogicalType, name: str) -> str | None:
    """Return the text of a Python value or an Arrow scalar for the column `name`.

    SchemaMismatch if the type cannot hold the value exactly; InvalidSchemaChange if the column has
    no constants, or if pyarrow cannot convert the value.
    """
    if value is None or (isinstance(value, pa.Scalar) and not value.is_valid):
        return None
    if logical.is_nested(type_):
        raise InvalidSchemaChange(
            f"column {name!r} of type {logical.type_name(type_)} has the default "
            f"{repr_of(value)}; a list, struct or map can only have the default NULL: leave it out"
        )
    if isinstance(value, uuid.UUID):
        value = value.bytes
    arrow_type_ = value.type if isinstance(value, pa.Scalar) else None
    if isinstance(type_, logical.Numeric) and type(value) in (int, decimal.Decimal):
        value = str(decimal.Decimal(value))  # Arrow's numbers have fewer digits
    if isinstance(value, int) and value >= 2**63:  # Arrow guesses int64
        arrow_type_ = pa.uint64()
    try:
        values = pa.array([value], arrow_type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidSchemaChange(
            f"the default {repr_of(value)} of column {name!r} has no Arrow value: {error}; give "
            f"a value for {logical.type_name(type_)}"
        ) from error
    try:
        default = conform_values(values, type_, name)[0]
    except SchemaMismatch as error:
        raise SchemaMismatch(f"the default of column {name!r} does not fit: {error}") from error
    return _text(default, type_)


@lru_cache(maxsize=1024)
def constant(text: str | None, type_: logical.LogicalType) -> pa.Scalar:
    """Return the scalar of a text in the type's storage type; NULL for None."""
    target = arrow_type(type_)
    if text is None:
        return pa.scalar(None, target)
    try:
        return _scalar(text, type_, target)
    except (pa.ArrowException, ValueError, OverflowError, decimal.InvalidOperation) as error:
        raise CorruptData(
            f"the log has the default {text!r} for a column of type {logical.type_name(type_)}: "
            f"{error}; restore the log from a copy"
        ) from error


def widened_text(
    text: str | None, old: logical.LogicalType, new: logical.LogicalType, name: str
) -> str | None:
    """Return the text of the same constant in a type that its column was widened to."""
    if text is None:
        return None
    try:
        return _text(constant(text, old).cast(arrow_type(new)), new)
    except pa.ArrowException as error:
        raise InvalidSchemaChange(
            f"column {name!r} has a default that {logical.type_name(new)} does not have: {error}; "
            "set another default first"
        ) from error


def is_nan(scalar: pa.Scalar) -> bool:
    """Return whether it is a float that is NaN."""
    if not (scalar.is_valid and pa.types.is_floating(scalar.type)):
        return False
    number = scalar.as_py()
    return bool(number != number)  # noqa: PLR0124 - only NaN differs from itself


def _text(scalar: pa.Scalar, type_: logical.LogicalType) -> str:
    match type_:
        case logical.Bool():
            return "true" if scalar.as_py() else "false"
        case logical.Date() | logical.Time() | logical.Timestamp() | logical.Nanos():
            return str(scalar.value)
        case logical.Float():
            return repr(float(scalar.as_py()))
        case logical.Binary() | logical.Uuid() | logical.Interval():
            return bytes(scalar.as_py()).hex()
        case logical.Numeric():
            return numeric_bytes.spelled(scalar["exact"].as_py())
        case _:
            return str(scalar.as_py())


def _scalar(text: str, type_: logical.LogicalType, target: pa.DataType) -> pa.Scalar:
    match type_:
        case logical.Bool():
            if text not in ("true", "false"):
                raise ValueError("it is neither true nor false")
            return pa.scalar(text == "true", target)
        case logical.Int():
            return pa.scalar(int(text), target)
        case logical.Float():
            number = pa.scalar(float(text), pa.float64())
            return number if type_.bits == 64 else number.cast(target)
        case logical.Decimal():
            return pa.scalar(decimal.Decimal(text), target)
        case logical.Date():
            return pa.array([int(text)], pa.int32()).view(target)[0]
        case logical.Time() | logical.Timestamp() | logical.Nanos():
            return pa.array([int(text)], pa.int64()).view(target)[0]
        case logical.Binary() | logical.Uuid() | logical.Interval():
            return pa.scalar(bytes.fromhex(text), target)
        case logical.Numeric():
            return numeric_bytes.from_text(pa.array([text]))[0]
        case logical.String() | logical.Json() | logical.Enum():
            return pa.scalar(text, target)
        case _:
            raise ValueError("the type has no constants")
