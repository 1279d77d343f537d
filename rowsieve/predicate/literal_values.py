"""Constants: their natural types, parsing from text, and conversion to Arrow scalars.

Parsing is strict: text that is not exactly a value of the type is `InvalidPredicate`.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import re
import uuid
from collections.abc import Sequence
from typing import NoReturn

import pyarrow as pa

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.ir import Literal, PhysicalValue
from rowsieve.predicate.semantics import TextReading
from rowsieve.types import numeric_bytes
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import arrow_type
from rowsieve.types.interval_bytes import encoded
from rowsieve.types.interval_texts import parse_interval
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    Interval,
    Json,
    List,
    LogicalType,
    Map,
    Nanos,
    Numeric,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
    is_nested,
    type_name,
)

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,6})?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_CLOCK = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?"
_TIME = re.compile(_CLOCK)
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]" + _CLOCK + r")?\s*(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_OFFSET = re.compile(r":[0-9]{2}(?:\.[0-9]+)?\s*(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)\s*$")
_NINE_DIGITS = re.compile(r":[0-9]{2}(\.[0-9]{6})([0-9]{1,3})(?![0-9])")
UUID_TEXT = r"(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})"
_UUID = re.compile(f"{UUID_TEXT}|\\{{{UUID_TEXT}\\}}")
_FLOAT_NAMES = {"nan": "nan", "inf": "inf", "infinity": "inf"}
_TRUE = frozenset({"t", "true", "y", "yes", "on", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "off", "0"})


def int_range(type_: Int) -> tuple[int, int]:
    """Return the least and the greatest value."""
    if type_.signed:
        return -(1 << (type_.bits - 1)), (1 << (type_.bits - 1)) - 1
    return 0, (1 << type_.bits) - 1


def natural_type(value: PhysicalValue) -> LogicalType | None:
    """Return the type of an untyped constant; None for NULL and text, which adapt."""
    match value:
        case None | str():
            return None
        case tuple():
            raise InvalidPredicate(
                "a list or struct without a type is not supported in a predicate; give the literal "
                "its type"
            )
        case bool():
            return Bool()
        case int():
            for bits in (32, 64):
                low, high = int_range(Int(bits))
                if low <= value <= high:
                    return Int(bits)
            return decimal_type(decimal.Decimal(value))
        case float():
            return Float(64)
        case decimal.Decimal():
            return decimal_type(value)
        case bytes():
            return Binary()


def constant_type(value: PhysicalValue) -> LogicalType | None:
    """Return the natural type; for a number with more than 38 digits the widest decimal.

    Such a number can be compared with others, but cannot become an Arrow scalar.
    """
    try:
        return natural_type(value)
    except InvalidPredicate:
        if isinstance(value, decimal.Decimal) and not value.is_finite():
            raise
        return Decimal(38, 0)


def decimal_type(value: decimal.Decimal) -> Decimal:
    """Return the narrowest decimal type that holds the value exactly."""
    if not value.is_finite():
        raise InvalidPredicate(f"{value} is not a finite decimal; use a float")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > 38:
        raise InvalidPredicate(f"the number {value} has more than 38 digits; use a float")
    return Decimal(precision, scale)


def parse_text(text: str, type_: LogicalType) -> PhysicalValue:
    """Parse text to the physical value of the type."""
    stripped = text.strip()
    match type_:
        case String() | Json():
            return text
        case Bool():
            return _parse_bool(stripped, text, type_)
        case Int():
            return _parse_int(stripped, text, type_)
        case Float():
            return _parse_float(stripped, text, type_)
        case Decimal():
            if not _NUMBER.fullmatch(stripped):
                _refuse(text, type_)
            return decimal.Decimal(stripped)
        case Binary():
            return _parse_bytes(text, type_)
        case Uuid():
            if not _UUID.fullmatch(stripped.lower()):
                _refuse(text, type_)
            return uuid.UUID(stripped).bytes
        case Interval():
            return _interval(stripped, text)
        case Numeric():
            return _exact_number(stripped, text)
        case Enum(labels=labels):
            return text if text in labels else _refuse(text, type_)
        case Date():
            return _days(stripped, text, type_)
        case Time():
            if not (match := _TIME.fullmatch(stripped)):
                _refuse(text, type_)
            return _clock_us(match.groups(), text, type_)
        case Timestamp():
            return _parse_timestamp(stripped, text, type_)
        case Nanos():
            return _parse_nanos(stripped, text, type_)
        case _:
            raise InvalidPredicate(
                f"the text {text!r} cannot become a {type_name(type_)}, which has no "
                "literal; compare one of its fields instead"
            )


def compared_text(text: str, type_: LogicalType, reading: TextReading) -> PhysicalValue:
    r"""Parse text that is compared with values of this type, as an engine reads it.

    DataFusion compares binary values with the bytes of the text, in which `\x61` is four bytes.
    Trino compares binary values with binary values only.
    """
    if isinstance(type_, Binary) and reading is TextReading.DATAFUSION:
        return text.encode()
    if isinstance(type_, Binary) and reading is TextReading.TRINO:
        raise InvalidPredicate(
            f"trino does not compare binary values with the text {text!r}; write the bytes, as in "
            f"X'{_parse_bytes(text, type_).hex()}'"
        )
    return parse_text(text, type_)


def _interval(stripped: str, text: str) -> bytes:
    try:
        parts = parse_interval(stripped)
        return encoded(parts.months, parts.days, parts.micros)
    except (ValueError, OverflowError) as error:
        raise InvalidPredicate(f"the text {text!r} is not an interval: {error}") from error


def _exact_number(stripped: str, text: str) -> bytes:
    try:
        return numeric_bytes.encoded(stripped)
    except ValueError as error:
        raise InvalidPredicate(f"the text {text!r} is not a numeric: {error}") from error


def scalar(literal: Literal) -> pa.Scalar:
    """Return the Arrow scalar of a bound literal."""
    assert literal.type is not None
    storage, value = arrow_type(literal.type), literal.value
    try:
        if is_nested(literal.type) or isinstance(literal.type, Numeric):
            return array_of((value,), literal.type)[0]
        if value is not None and pa.types.is_temporal(storage):
            plain = pa.int32() if pa.types.is_date32(storage) else pa.int64()
            return pa.array([value], plain).view(storage)[0]
        return pa.scalar(value, storage)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidPredicate(
            f"the constant {value!r} is not a valid {type_name(literal.type)}"
        ) from error


def array_of(values: Sequence[PhysicalValue], type_: LogicalType) -> pa.Array:
    """Convert physical values of the type, lists and structs included, to an Arrow array."""
    storage = arrow_type(type_)
    missing = pa.array([value is None for value in values], pa.bool_())
    match type_:
        case List(element=element):
            rows = [_members(value, None) for value in values]
            ends = list(itertools.accumulate(map(len, rows), initial=0))
            items = array_of(tuple(itertools.chain.from_iterable(rows)), element.type)
            offsets = pa.array(ends, pa.int32())
            return pa.ListArray.from_arrays(offsets, items, type=storage, mask=missing)
        case Struct(fields=fields):
            rows = [_members(value, len(fields)) for value in values]
            columns = [
                array_of([row[place] if row else None for row in rows], field.type)
                for place, field in enumerate(fields)
            ]
            return pa.StructArray.from_arrays(columns, fields=list(storage), mask=missing)
        case Numeric():
            exact = pa.array(values, pa.binary()).to_pylist()  # TypeError for other values
            return numeric_bytes.from_exact(exact)
        case Map():
            raise InvalidPredicate(
                f"a {type_name(type_)} has no constants; compare one of its values"
            )
    if pa.types.is_temporal(storage):
        plain = pa.int32() if pa.types.is_date32(storage) else pa.int64()
        return pa.array(values, plain).view(storage)
    return pa.array(values, storage)


def _members(value: PhysicalValue, count: int | None) -> tuple[PhysicalValue, ...]:
    """Return the items of a list or the fields of a struct; () for NULL."""
    if value is None:
        return ()
    if not isinstance(value, tuple) or count not in (None, len(value)):
        raise TypeError(f"{value!r} does not have the fields of its type")
    return value


def check_literal(literal: Literal) -> None:
    """Raise if the value does not belong to the literal's type."""
    value = literal.value
    match literal.type:
        case Int() as type_ if type(value) is int:
            low, high = int_range(type_)
            fits = low <= value <= high
        case Float(bits=64):
            fits = type(value) is float
        case String():
            fits = type(value) is str and value.isascii()
        case Bool():
            fits = type(value) is bool
        case _:
            fits = False
    if not fits:
        scalar(literal)


def from_scalar(value: pa.Scalar, type_: LogicalType) -> Literal:
    """Return the bound literal of an Arrow scalar of the type."""
    if not value.is_valid:
        return Literal(None, type_)
    match type_:
        case Date() | Time() | Timestamp() | Nanos():
            return Literal(int(value.value), type_)
        case Numeric():
            return Literal(value["exact"].as_py(), type_)
        case List(element=element):
            items = tuple(from_scalar(item, element.type).value for item in value.values)
            return Literal(items, type_)
        case Struct(fields=fields):
            members = (
                from_scalar(value[place], field.type).value for place, field in enumerate(fields)
            )
            return Literal(tuple(members), type_)
        case _:
            return Literal(value.as_py(), type_)


def _refuse(text: str, type_: LogicalType) -> NoReturn:
    raise InvalidPredicate(
        f"the text {text!r} is not a valid {type_name(type_)}; write a value of that type, or cast "
        "the other side to text"
    )


def _parse_bool(stripped: str, text: str, type_: LogicalType) -> bool:
    folded = stripped.lower()
    if folded not in _TRUE and folded not in _FALSE:
        _refuse(text, type_)
    return folded in _TRUE


def _parse_int(stripped: str, text: str, type_: Int) -> int:
    if not _INTEGER.fullmatch(stripped) or len(stripped) > 60:
        _refuse(text, type_)
    return int(stripped)


def _parse_float(stripped: str, text: str, type_: Float) -> float:
    sign = "-" if stripped.startswith("-") else ""
    bare = stripped.lstrip("+-").lower()
    if bare in _FLOAT_NAMES and len(stripped) - len(bare) <= 1:
        return float(sign + _FLOAT_NAMES[bare])
    if not _NUMBER.fullmatch(stripped):
        _refuse(text, type_)
    value = float(stripped)
    if value in (float("inf"), float("-inf")):
        _refuse(text, type_)
    return value


def _parse_bytes(text: str, type_: LogicalType) -> bytes:
    if text.startswith("\\x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            _refuse(text, type_)
    if "\\" in text:
        raise InvalidPredicate(
            f"the text {text!r} holds a backslash, which binary text does not; write it as '\\x…' "
            "in hexadecimal"
        )
    return text.encode()


def _days(stripped: str, text: str, type_: LogicalType) -> int:
    if not (match := _DATE.fullmatch(stripped)):
        _refuse(text, type_)
    try:
        return datetime.date(*(int(part) for part in match.groups())).toordinal() - _EPOCH_DAY
    except ValueError:
        _refuse(text, type_)


def _clock_us(groups: tuple[str | None, ...], text: str, type_: LogicalType) -> int:
    hour, minute, second = (int(part or 0) for part in groups[:3])
    fraction = int((groups[3] or "").ljust(6, "0"))
    if hour > 23 or minute > 59 or second > 59:
        _refuse(text, type_)
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction


def _parse_timestamp(stripped: str, text: str, type_: Timestamp) -> int:
    if not (match := _TIMESTAMP.fullmatch(stripped)):
        _refuse(text, type_)
    date, hour, minute, second, fraction, offset = match.groups()
    value = _days(date, text, type_) * DAY_US
    if hour is not None:
        value += _clock_us((hour, minute, second, fraction), text, type_)
    if offset is None or offset == "Z":
        if offset and not type_.utc:
            _refuse_offset(text)
        return value
    if not type_.utc:
        _refuse_offset(text)
    digits = offset[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    if minutes > 15 * 60 + 59 or int(digits[2:]) > 59:
        _refuse(text, type_)
    return value - (-1 if offset[0] == "-" else 1) * minutes * 60_000_000


def check_offset(text: str, zone: str) -> None:
    """InvalidPredicate for an instant without an offset, which is a local time of the session."""
    if _OFFSET.search(text) is None:
        raise InvalidPredicate(
            f"the text {text!r} is a local time of the time zone {zone!r}, and local times are not "
            "converted to nanoseconds; write it with an offset, such as +00:00"
        )


def _parse_nanos(stripped: str, text: str, type_: Nanos) -> int:
    """Parse a timestamp with up to nine digits of seconds; those after the sixth are added."""
    rest = 0
    if (fraction := _NINE_DIGITS.search(stripped)) is not None:
        rest = int(fraction[2].ljust(3, "0"))
        stripped = stripped[: fraction.start(2)] + stripped[fraction.end(2) :]
    value = _parse_timestamp(stripped, text, Timestamp(type_.utc)) * 1_000 + rest
    low, high = int_range(Int(64))
    if not low <= value <= high:
        raise InvalidPredicate(
            f"the text {text!r} is not a {type_name(type_)}, which has the times from 1677-09-21 "
            "to 2262-04-11"
        )
    return value


def fine_moment(text: str, type_: Timestamp) -> int | None:
    """Parse text with seven to nine digits of seconds to nanoseconds; None for any other text."""
    if _NINE_DIGITS.search(text) is None:
        return None
    try:
        return _parse_nanos(text.strip(), text, Nanos(type_.utc))
    except InvalidPredicate:
        return None


def _refuse_offset(text: str) -> NoReturn:
    raise InvalidPredicate(
        f"the timestamp {text!r} has an offset but is compared with a timestamp without a zone; "
        "leave the offset out, or cast the column to timestamptz"
    )
