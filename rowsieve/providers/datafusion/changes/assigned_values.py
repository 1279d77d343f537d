"""Casts values that DataFusion computed to the types of the columns that they are assigned to.

DataFusion casts assigned values silently: 3.5 becomes 3 in an integer column. Here a cast that
changes a value is an error; an integer that overflows is an EvaluationError, whatever its width.

Soundness: a cast value is cast back and compared with the original. In a float column, a fraction
may be rounded to the nearest float, and a decimal stays within 1: its whole digits are not lost.
DataFusion parses text and refuses malformed text; digits that the column cannot hold are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import datafusion
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datafusion import col

from rowsieve.errors import EvaluationError, InvalidData, SchemaMismatch
from rowsieve.types import logical
from rowsieve.types.encodings import zoned_schema
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema

_PARSED: Final = (
    logical.Bool,
    logical.Int,
    logical.Float,
    logical.Decimal,
    logical.Date,
    logical.Timestamp,
    logical.Time,
)
_WHOLE_DATE: Final = r"^\s*[+-]?\d+-\d+-\d+\s*$"
_BELOW_MICROSECONDS: Final = r"\.\d{6}\d*[1-9]"
_MAX_DIGITS: Final = 76
_DECIMAL_BITS: Final = 128
_FLOAT_DIGITS: Final = {16: 11, 32: 24, 64: 53}  # binary digits of each width


def assigned(rows: pa.Table, fields: Sequence[Field]) -> pa.Table:
    """Cast columns by position to these fields, and give them the fields' names.

    SchemaMismatch if DataFusion cannot cast between the types, EvaluationError if a number is
    beyond an integer column's, InvalidData if the cast changes a value otherwise.
    """
    types = zoned_schema(Schema(0, tuple(fields))).types  # text is local time in the column's zone
    columns = [
        _assigned(column.combine_chunks(), field, target)
        for column, field, target in zip(rows.columns, fields, types, strict=True)
    ]
    return pa.table(columns, names=[field.name for field in fields])


def without_views(rows: pa.Table) -> pa.Table:
    """Convert `string_view` and `binary_view` columns to `string` and `binary`."""
    columns = [_without_views(column.combine_chunks()) for column in rows.columns]
    return pa.table(columns, names=rows.column_names)


def _assigned(values: Any, field: Field, target: pa.DataType) -> Any:
    values = _wide(_without_views(values))
    _check_digits(values, field.name)
    if values.type == target or pa.types.is_null(values.type) or logical.is_nested(field.type):
        return values
    if isinstance(field.type, logical.Int):
        _check_range(values, field.type, field.name)
    if not _is_cast(values.type, field.type):
        return values  # `conform` converts it without loss, or refuses it
    converted = _cast(values, target, field)
    lossless = pc.fill_null(_is_lossless(values, converted, field), True)  # noqa: FBT003 - pyarrow's argument
    if (place := int(pc.index(lossless, False).as_py())) >= 0:
        raise InvalidData(
            f"sql: column {field.name!r} is {logical.type_name(field.type)}, which does not hold "
            f"{values[place]} without loss; round it or cast it in the statement"
        )
    return converted


def _check_digits(values: pa.Array, name: str) -> None:
    """EvaluationError for a decimal of more digits than its type, which DataFusion computes."""
    if not (pa.types.is_decimal(values.type) or pa.types.is_nested(values.type)):
        return
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise EvaluationError(
            f"sql: a value for column {name!r} has more digits than its type: {error}; nothing was "
            "changed. Cast the operands to fewer digits, or exclude such rows"
        ) from error


def _check_range(values: pa.Array, type_: logical.Int, name: str) -> None:
    """EvaluationError for a number whose whole part is beyond an integer column's."""
    if not _is_number(values.type):
        return
    stop = 2 ** (type_.bits - type_.signed)
    first = -stop if type_.signed else 0
    ends = pc.min_max(values).as_py()
    for end in (ends["min"], ends["max"]):
        if end is not None and (end <= first - 1 or end >= stop):
            raise EvaluationError(
                f"sql: column {name!r} is {logical.type_name(type_)}, which does not hold {end}; "
                "nothing was changed. Widen the column, or exclude such rows"
            )


def _without_views(values: pa.Array) -> pa.Array:
    if pa.types.is_string_view(values.type):
        return values.cast(pa.string())
    if pa.types.is_binary_view(values.type):
        return values.cast(pa.binary())
    return values


def _wide(values: pa.Array) -> pa.Array:
    """The same numbers in types that Arrow has kernels for: wider floats and decimals."""
    if pa.types.is_float16(values.type):
        return values.cast(pa.float32())
    if pa.types.is_decimal(values.type) and values.type.bit_width < _DECIMAL_BITS:
        return values.cast(pa.decimal128(values.type.precision, values.type.scale))
    return values


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _is_number(type_: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_))


def _is_cast(source: pa.DataType, type_: logical.LogicalType) -> bool:
    """Return whether to use DataFusion's cast; `conform` handles all other types."""
    types = pa.types
    is_plain = _is_number(source) or types.is_boolean(source) or types.is_date(source)
    match type_:
        case logical.Int() | logical.Decimal():
            return bool(types.is_floating(source) or types.is_decimal(source) or _is_text(source))
        case logical.Float():
            return bool(types.is_floating(source) or types.is_decimal(source) or _is_text(source))
        case logical.String():
            return bool(is_plain or types.is_time(source))
        case logical.Date():
            return bool(_is_text(source) or (types.is_timestamp(source) and source.tz is None))
        case logical.Timestamp(utc=utc):
            return bool(_is_text(source) or (types.is_date(source) and not utc))
        case _:
            return _is_text(source) and isinstance(type_, _PARSED)


def _cast(values: pa.Array, target: pa.DataType, field: Field) -> pa.Array:
    """Cast with DataFusion; text to decimals with pyarrow, because DataFusion rounds there."""
    try:
        if _is_text(values.type) and pa.types.is_decimal(target):
            return pc.utf8_trim_whitespace(values).cast(target)
        frame = datafusion.SessionContext().from_arrow(pa.table({"v": values}))
        table = frame.select(col("v").cast(target).alias("v")).to_arrow_table()
    except Exception as error:
        raise SchemaMismatch(
            f"sql: column {field.name!r} is {logical.type_name(field.type)}: "
            f"{str(error).removeprefix('DataFusion error: ')}"
        ) from error
    column = _without_views(table.column("v").combine_chunks())
    return column if column.type == target else column.cast(target)


def _is_lossless(values: pa.Array, converted: pa.Array, field: Field) -> pa.Array:
    """A boolean array: TRUE where the cast kept the value."""
    source = values.type
    if _is_text(source):
        return _kept_text(values, converted, field)
    match field.type:
        case logical.String():
            return converted.is_valid()  # all digits of a number, the ISO form of a date or time
        case logical.Float() if pa.types.is_decimal(source):
            return _within_one(values, converted, field.type.bits)
        case logical.Float():  # only fractions are rounded: no finite number becomes infinite
            finite = pc.is_finite(values.cast(pa.float64(), safe=False))
            return pc.or_(pc.invert(finite), pc.is_finite(converted))
        case _ if pa.types.is_decimal(source):
            scale = max(source.scale, getattr(converted.type, "scale", 0))
            wide = pa.decimal256(_MAX_DIGITS, scale)
            return pc.equal(values.cast(wide), converted.cast(wide))
        case _:
            return pc.equal(values, converted.cast(source, safe=False))


def _within_one(values: pa.Array, converted: pa.Array, bits: int) -> pa.Array:
    """A boolean array: TRUE where a float lies less than 1 from the decimal it was made of.

    Below a float's digits this always holds. Beyond them, exact numbers of Python compare the rows:
    Arrow's own cast of a float to a decimal rounds there.
    """
    sizes = np.abs(converted.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False))
    is_within = np.ones(len(values), dtype=np.bool_)
    for row in np.flatnonzero(sizes >= 2.0 ** _FLOAT_DIGITS[bits]):
        number = converted[row].as_py()
        is_within[row] = math.isfinite(number) and (
            abs(Fraction(values[row].as_py()) - Fraction(number)) < 1
        )
    return pa.array(is_within)


def _kept_text(values: pa.Array, converted: pa.Array, field: Field) -> pa.Array:
    """A boolean array: TRUE where parsing the text lost no digit; all texts were parsed."""
    match field.type:
        case logical.Date():
            return pc.match_substring_regex(values, _WHOLE_DATE)
        case logical.Timestamp() | logical.Time():
            return pc.invert(pc.match_substring_regex(values, _BELOW_MICROSECONDS))
        case logical.Float():
            named = pc.match_substring_regex(values, "inf", ignore_case=True)
            return pc.or_(named, pc.invert(pc.is_inf(converted)))
        case _:
            return converted.is_valid()
