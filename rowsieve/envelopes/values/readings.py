"""How values of JSON become values of a column: a function for each pair of both.

A reading takes an Arrow array of one JSON kind and returns an array that `conform_values` brings to
the column's type without loss, or raises ValueError or SchemaMismatch. Soundness: a value that
could mean two things is refused, such as a number in a column of times whose unit nobody named, or
text in a column of numbers that may be decimal digits or base64.
"""

from __future__ import annotations

import binascii
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.envelopes.values import durations
from rowsieve.envelopes.values.semantic_types import LARGEST_SCALE, Declared, WrittenValues
from rowsieve.envelopes.values.text_rules import TextRules
from rowsieve.types import interval_bytes, logical
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Field

EXACT: Final = Context(prec=200_000, Emax=999_999, Emin=-999_999)
"""Scales integers of up to 131,072 digits without rounding."""

WITH_FRACTIONS: Final = (
    "and the column has integers. If the source has fractions, declare the column before the first "
    "event (double, decimal), or widen_column it to a decimal"
)
_NUMBER: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
_SINGLE: Final = 32
_LONG_WHOLE: Final = r"^[+-]?[0-9]{16,}$"  # may be beyond 2^53
_SPECIAL: Final = ("NaN", "Infinity", "-Infinity")


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column of the table, the rules for its values, and what the schema declares of it."""

    field: Field
    rules: TextRules
    declared: Declared | None = None
    declared_text: bool = False


Reading: TypeAlias = Callable[[pa.Array, TargetColumn], Any]


def plain(values: pa.Array, _target: TargetColumn) -> pa.Array:
    """The value itself."""
    return values


# Numbers


def number_text(values: pa.Array, target: TargetColumn) -> pa.Array:
    """Text of decimal digits, with all of them."""
    if isinstance(target.field.type, logical.String | logical.Numeric):
        return values
    special = pc.is_in(values, value_set=pa.array(_SPECIAL))
    if isinstance(target.field.type, logical.Float):
        if not _all(pc.or_(special, pc.match_substring_regex(values, _NUMBER))):
            raise ValueError("text is not a number")
        return _nearest(values, target.field.type, special)
    if not _all(pc.match_substring_regex(values, _NUMBER)):
        raise ValueError("text is not a number")
    if isinstance(target.field.type, logical.Int):
        return _whole(values).cast(arrow_type(target.field.type))
    return values.cast(arrow_type(target.field.type))


def _whole(texts: pa.Array) -> pa.Array:
    try:
        return pc.replace_substring_regex(texts, r"^\+", "").cast(pa.decimal128(38, 0))
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"it is not a whole number of at most 38 digits, {WITH_FRACTIONS}"
        ) from error


def nearest_single(values: pa.Array) -> pa.Array:
    """Numbers of Python, which has no floats of 32 bits, as the nearest of these."""
    single = values.cast(pa.float32(), safe=False)
    return _in_range(single, pc.or_(pc.is_inf(values), pc.is_nan(values)), pc.equal(values, 0))


def is_single(type_: logical.LogicalType) -> bool:
    """Whether a column has floats of 32 bits, of which sources write the shortest digits."""
    return isinstance(type_, logical.Float) and type_.bits == _SINGLE


def _nearest(texts: pa.Array, type_: logical.Float, special: pa.Array) -> pa.Array:
    """Decimal digits as the nearest float of the column's size.

    ValueError for a whole number that a float of 64 bits neither equals nor is written as.
    """
    zero = pc.match_substring_regex(texts, r"^[+-]?[0.]+([eE].*)?$")
    floats = _in_range(texts.cast(arrow_type(type_)), special, zero)
    if type_.bits != _SINGLE:
        _check_whole(texts, floats)
    return floats


def _check_whole(texts: pa.Array, floats: pa.Array) -> None:
    """Digits of a whole number are all of it, or the shortest of its float (JavaScript, Go)."""
    long = pc.match_substring_regex(texts, _LONG_WHOLE)
    for text, number in zip(texts.filter(long), floats.filter(long), strict=True):
        digits = int(text.as_py())
        if digits not in (int(number.as_py()), int(Decimal(repr(number.as_py())))):
            raise ValueError("a float64 does not hold this whole number without loss")


def whole_float(values: pa.Array, target: TargetColumn) -> pa.Array:
    """Whole numbers in a column of floats. Those of Arrow are not rounded to 32 bits."""
    if is_single(target.field.type):
        return values
    try:
        return values.cast(pa.float64())
    except pa.ArrowInvalid:  # one is beyond 2^53
        return number_text(values.cast(pa.string()), target)


def _in_range(values: pa.Array, special: Any, zero: Any) -> pa.Array:
    """The values; ValueError for a number that became infinite or zero."""
    lost = pc.or_(
        pc.and_(pc.is_inf(values), pc.invert(special)),
        pc.and_(pc.equal(values, 0), pc.invert(zero)),
    )
    if pc.any(lost).as_py():
        raise ValueError("a number is out of the range of the column's floats")
    return values


def text_of_number(values: pa.Array, target: TargetColumn) -> pa.Array:
    """Text in a column of numbers: digits or base64, as the schema or the caller says."""
    if isinstance(target.field.type, logical.Float) and _all(
        pc.is_in(values, value_set=pa.array(_SPECIAL))
    ):
        return number_text(values, target)
    if target.declared_text or target.rules.decimals == "string":
        return number_text(values, target)
    if target.rules.decimals == "base64":
        scale = getattr(target.field.type, "scale", 0)
        if isinstance(target.field.type, logical.Numeric):
            raise ValueError(
                "base64 without a schema has no scale, and the column has none either; send the "
                "schema, or use decimal.handling.mode=string"
            )
        return _scaled(values, scale, target)
    raise ValueError(
        "text in a column of numbers is digits or base64, by the connector's "
        "decimal.handling.mode; pass decimals='string' or decimals='base64'"
    )


def scaled_integer(values: pa.Array, target: TargetColumn) -> pa.Array:
    """Base64 of a big-endian integer, whose scale the schema has."""
    assert target.declared is not None
    if target.declared.scale is None:
        raise ValueError("the schema declares a decimal without the number 'scale' in parameters")
    return _scaled(values, target.declared.scale, target)


def _scaled(values: pa.Array, scale: int, target: TargetColumn) -> pa.Array:
    unscaled = map(_signed, _decoded(values))
    texts = [_digits(number, scale) for number in unscaled]
    return number_text(_with_nulls(texts, values, pa.string()), target)


def variable_scale(values: list[Any], target: TargetColumn) -> pa.Array:
    """A struct of a scale and base64."""
    texts = []
    for value in values:
        if not (
            isinstance(value, Mapping)
            and type(value.get("scale")) is int
            and abs(value["scale"]) <= LARGEST_SCALE
            and isinstance(value.get("value"), str | bytes)
        ):
            raise ValueError("a number is a struct only with the fields 'scale' and 'value'")
        raw = value["value"]
        data = raw if isinstance(raw, bytes) else _base64(raw)
        texts.append(_digits(_signed(data), value["scale"]))
    return number_text(pa.array(texts, pa.string()), target)


def _digits(unscaled: int, scale: int) -> str:
    return format(EXACT.scaleb(EXACT.create_decimal(unscaled), -scale), "f")


_signed: Final = partial(int.from_bytes, byteorder="big", signed=True)
_base64: Final = partial(binascii.a2b_base64, strict_mode=True)


def _decoded(values: pa.Array) -> Any:
    """The bytes of each base64 text that is not NULL; ValueError if one is not base64."""
    return map(_base64, values.drop_null().to_pylist())


def _with_nulls(items: list[Any], like: pa.Array, type_: pa.DataType) -> pa.Array:
    if not like.null_count:
        return pa.array(items, type_)
    places = np.cumsum(~np.asarray(like.is_null())) - 1
    taken = pa.array(np.maximum(places, 0), mask=np.asarray(like.is_null()))
    return pa.array(items, type_).take(taken) if items else pa.nulls(len(like), type_)


def zero_or_one(values: pa.Array, _target: TargetColumn) -> pa.Array:
    """0 and 1 for false and true."""
    if not _all(pc.is_in(values, value_set=pa.array([0, 1]))):
        raise ValueError("a boolean is true, false, 0 or 1")
    return pc.equal(values, 1)


def boolean_text(values: pa.Array, target: TargetColumn) -> pa.Array:
    """Text of a boolean, in formats that write every value as text."""
    words = {"true": True, "false": False, "1": True, "0": False, "t": True, "f": False}
    places = pc.index_in(pc.utf8_lower(values), value_set=pa.array(list(words)))
    if not target.rules.booleans_in_text or places.null_count > values.null_count:
        raise ValueError("a boolean is true, false, 0 or 1")
    return pa.array(list(words.values())).take(places)


# Bytes and text


def bytes_text(values: pa.Array, target: TargetColumn) -> pa.Array:
    """Bytes as the format writes them."""
    items = values.drop_null().to_pylist()
    match target.rules.bytes_:
        case "base64":
            decoded = list(map(_base64, items))
        case "hex":
            decoded = [bytes.fromhex(item.removeprefix("\\x").removeprefix("0x")) for item in items]
        case "latin-1":
            decoded = [item.encode("latin-1") for item in items]
    return _with_nulls(decoded, values, pa.binary())


def base64_text(values: pa.Array, _target: TargetColumn) -> pa.Array:
    """Base64, whatever the format's rule is."""
    return _with_nulls(list(_decoded(values)), values, pa.binary())


def bits_text(values: pa.Array, target: TargetColumn) -> pa.Array:
    """Base64 of bits, the lowest byte first; in a column of integers, their number."""
    data = list(_decoded(values))
    if isinstance(target.field.type, logical.Int):
        texts = [str(int.from_bytes(each, "little")) for each in data]
        return number_text(_with_nulls(texts, values, pa.string()), target)
    return _with_nulls(data, values, pa.binary())


def uuid_text(values: pa.Array, _target: TargetColumn) -> pa.Array:
    """A UUID as text."""
    items = [uuid.UUID(item).bytes for item in values.drop_null().to_pylist()]
    return _with_nulls(items, values, pa.binary(16))


def wkb_struct(values: list[Any], _target: TargetColumn) -> pa.Array:
    """The WKB of a geometry; the other fields repeat what it has."""
    items = []
    for value in values:
        wkb = value.get("wkb") if isinstance(value, Mapping) else None
        if not isinstance(wkb, str | bytes):
            raise ValueError("a geometry is a struct with the field 'wkb'")
        items.append(wkb if isinstance(wkb, bytes) else _base64(wkb))
    return pa.array(items, pa.binary())


# Dates and times


def days(values: pa.Array, _target: TargetColumn) -> pa.Array:
    """Days since 1970-01-01."""
    return values.cast(pa.int32()).cast(pa.date32())


def epoch(unit: str, values: pa.Array, target: TargetColumn) -> pa.Array:
    """A number of units since 1970-01-01, in the local time of the source."""
    if getattr(target.field.type, "utc", False):
        raise ValueError(
            "the source has a local time, and the column has instants; use a column of the type "
            "timestamp"
        )
    return _timestamps(values, unit, None)


def instant(unit: str, values: pa.Array, target: TargetColumn) -> pa.Array:
    """A number of units since 1970-01-01 UTC."""
    return _timestamps(values, unit, "UTC" if getattr(target.field.type, "utc", False) else None)


def _timestamps(values: pa.Array, unit: str, zone: str | None) -> pa.Array:
    return values.cast(pa.int64()).cast(pa.timestamp(unit, zone))


def time_of_day(unit: str, values: pa.Array, _target: TargetColumn) -> pa.Array:
    """A number of units since midnight."""
    if unit == "ms":
        return values.cast(pa.int32()).cast(pa.time32("ms"))
    return values.cast(pa.int64()).cast(pa.time64(unit))


def number_of_unit(values: pa.Array, target: TargetColumn) -> pa.Array:
    """A number in a column of times, in the unit that the caller names."""
    unit = target.rules.unit(target.field.name) if target.rules.epochs else None
    if unit is None:
        raise ValueError(
            "a number of unknown unit in a column of times"
            + (
                f"; pass times={{{target.field.name!r}: 'ms'}} ('us', 'ns')"
                if target.rules.epochs
                else ""
            )
        )
    if isinstance(target.field.type, logical.Time):
        return time_of_day(unit, values, target)
    return instant(unit, values, target)


def number_of_days(values: pa.Array, target: TargetColumn) -> pa.Array:
    """A number in a column of dates."""
    if not target.rules.epochs:
        raise ValueError("a number in a column of dates")
    return days(values, target)


def iso_date(values: pa.Array, _target: TargetColumn) -> pa.Array:
    """`2024-01-31`."""
    return values.cast(pa.date32())


def iso_timestamp(values: pa.Array, target: TargetColumn) -> pa.Array:
    """`2024-01-31 12:00:00.5`; with an offset in a column of instants, and without in others."""
    zone = "UTC" if getattr(target.field.type, "utc", False) else None
    try:
        return values.cast(pa.timestamp("us", zone))
    except pa.ArrowInvalid:
        return values.cast(pa.timestamp("ns", zone))


def iso_time(values: pa.Array, _target: TargetColumn) -> pa.Array:
    """`12:00:00.5`."""
    dated = pc.binary_join_element_wise("1970-01-01 ", values, "")
    if not _all(pc.match_substring_regex(values, r"^[0-9]{2}:[0-9]{2}")):
        raise ValueError("text is not a time of day")
    try:
        return dated.cast(pa.timestamp("us")).cast(pa.time64("us"))
    except pa.ArrowInvalid:
        return dated.cast(pa.timestamp("ns")).cast(pa.time64("ns"))


def iso_utc(values: pa.Array, target: TargetColumn) -> pa.Array:
    """ISO text of a date, a local time or a local timestamp, which ends in Z."""
    if not _all(pc.ends_with(values, "Z")):
        raise ValueError("text of this type ends in Z")
    local = pc.utf8_slice_codeunits(values, 0, -1)
    match target.field.type:
        case logical.Date():
            return iso_date(local, target)
        case logical.Time():
            return iso_time(local, target)
        case logical.Timestamp(utc=False) | logical.Nanos(utc=False):
            return iso_timestamp(local, target)
        case _:
            raise ValueError("the source has a local time, and the column has not")


def zoned_time(values: pa.Array, target: TargetColumn) -> pa.Array:
    """A time of day with an offset; in a column of times only at UTC."""
    if not _all(pc.match_substring_regex(values, r"(Z|\+00:?(00)?)$")):
        raise ValueError("a time of day with another offset than UTC needs a column of text")
    return iso_time(pc.replace_substring_regex(values, r"(Z|\+00:?(00)?)$", ""), target)


def micros(values: pa.Array, _target: TargetColumn) -> pa.Array:
    """An interval of microseconds."""
    return interval_bytes.from_arrow(values.cast(pa.int64()).cast(pa.duration("us")))


def duration_text(values: pa.Array, _target: TargetColumn) -> pa.Array:
    """An interval as ISO 8601 or PostgreSQL writes it."""
    items = [durations.stored(text) for text in values.drop_null().to_pylist()]
    return _with_nulls(items, values, interval_bytes.STORAGE)


def _all(mask: Any) -> bool:
    return bool(pc.all(mask, min_count=0).as_py())


DECLARED: Final[Mapping[WrittenValues, Mapping[str, Reading]]] = {
    WrittenValues.DAYS: {"int": days},
    WrittenValues.TIMESTAMP_MS: {"int": partial(epoch, "ms")},
    WrittenValues.TIMESTAMP_US: {"int": partial(epoch, "us")},
    WrittenValues.TIMESTAMP_NS: {"int": partial(epoch, "ns")},
    WrittenValues.INSTANT_MS: {"int": partial(instant, "ms")},
    WrittenValues.TIME_MS: {"int": partial(time_of_day, "ms")},
    WrittenValues.TIME_US: {"int": partial(time_of_day, "us")},
    WrittenValues.TIME_NS: {"int": partial(time_of_day, "ns")},
    WrittenValues.ISO_UTC: {"str": iso_utc},
    WrittenValues.ZONED_TIMESTAMP: {"str": iso_timestamp},
    WrittenValues.ZONED_TIME: {"str": zoned_time},
    WrittenValues.DURATION_US: {"int": micros},
    WrittenValues.ISO_DURATION: {"str": duration_text},
    WrittenValues.DECIMAL: {"str": scaled_integer},
    WrittenValues.VARIABLE_DECIMAL: {"dict": variable_scale},
    WrittenValues.BYTES: {"str": base64_text},
    WrittenValues.BITS: {"str": bits_text},
    WrittenValues.WKB: {"dict": wkb_struct},
}
"""The readings of values whose semantic type the schema declares, by JSON kind."""

_NUMBERS: Final[Mapping[str, Reading]] = {
    "int": plain,
    "number": number_text,
    "str": text_of_number,
    "decimal": plain,
}
_TIMES: Final[Mapping[str, Reading]] = {"int": number_of_unit, "time": plain}

BY_TYPE: Final[Mapping[type[logical.LogicalType], Mapping[str, Reading]]] = {
    logical.Bool: {"bool": plain, "int": zero_or_one, "str": boolean_text},
    logical.Int: _NUMBERS,
    logical.Float: {**_NUMBERS, "int": whole_float, "float": plain},
    logical.Decimal: {**_NUMBERS, "dict": variable_scale},
    logical.Numeric: {**_NUMBERS, "dict": variable_scale},
    logical.String: {"str": plain},
    logical.Enum: {"str": plain},
    logical.Binary: {"str": bytes_text, "bytes": plain, "dict": wkb_struct},
    logical.Uuid: {"str": uuid_text, "bytes": plain},
    logical.Date: {"int": number_of_days, "str": iso_date, "date": plain},
    logical.Time: {**_TIMES, "str": iso_time},
    logical.Timestamp: {**_TIMES, "str": iso_timestamp},
    logical.Nanos: {**_TIMES, "str": iso_timestamp},
    logical.Interval: {"int": micros, "str": duration_text, "time": plain},
}
"""The readings of values by the column's type and JSON kind, where nothing is declared."""


def reading_of(kind: str, target: TargetColumn) -> Reading | None:
    """The reading of values of a JSON kind in a column, None if there is none.

    Columns of text and of integers keep what the source wrote of a date or time.
    """
    type_ = type(target.field.type)
    written = None if target.declared is None else target.declared.written
    if written is not None and not (
        (type_ is logical.Int and kind == "int")
        or (type_ is logical.String and kind == "str" and written not in _NEVER_TEXT)
    ):
        return DECLARED[written].get(kind)
    return BY_TYPE.get(type_, {}).get(kind)


_NEVER_TEXT: Final = frozenset({WrittenValues.DECIMAL, WrittenValues.BITS, WrittenValues.BYTES})
