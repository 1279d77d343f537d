"""Constants of Iceberg's expressions: JSON values of a column's type, and back.

The forms are those of the table specification (appendix D, single values as JSON). As the clients
of Java and pyiceberg send them, integers also stand for days and microseconds.

Soundness: a value that is not one of its type is rejected, and never rounded, except that a number
for a float column becomes the nearest float.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal as Number
from typing import Any, Final
from uuid import UUID

from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types import logical
from rowsieve.types.logical import LogicalType, type_name

_EPOCH: Final = datetime(1970, 1, 1)
_DAY: Final = timedelta(days=1)
_MICRO: Final = timedelta(microseconds=1)
_EXACT_DOUBLE: Final = 2**53
_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_TIME: Final = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")
_OFFSET: Final = re.compile(r"Z|([+-])(\d\d):(\d\d)(?::(\d\d))?")
_DIGITS: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_FARTHEST: Final = 80  # decimal digits from the point, beyond those of every decimal
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2})*")
_NAMES: Final[Mapping[str, LogicalType]] = {
    "boolean": logical.Bool(),
    "int": logical.Int(32),
    "long": logical.Int(64),
    "float": logical.Float(32),
    "double": logical.Float(64),
    "date": logical.Date(),
    "time": logical.Time(),
    "timestamp": logical.Timestamp(),
    "timestamptz": logical.Timestamp(utc=True),
    "timestamp_ns": logical.Nanos(),
    "timestamptz_ns": logical.Nanos(utc=True),
    "string": logical.String(),
    "uuid": logical.Uuid(),
    "binary": logical.Binary(),
}
_DECIMAL: Final = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_FIXED: Final = re.compile(r"fixed\[\s*\d+\s*\]")


def type_named(name: object) -> LogicalType:
    """Return the type with a name of Iceberg's; `UnsupportedOperation` for any other."""
    if isinstance(name, str):
        if (type_ := _NAMES.get(name)) is not None:
            return type_
        if (match := _DECIMAL.fullmatch(name)) is not None:
            return logical.Decimal(int(match[1]), int(match[2]))
        if _FIXED.fullmatch(name):
            return logical.Binary()
    raise UnsupportedOperation(f"constants of the type {name!r} are not compared")


def as_constant(value: Any, type_: LogicalType) -> ir.Literal:
    """Return a JSON value as a constant to compare with a column of the type.

    `InvalidPredicate` for a value that is not one of the type.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise InvalidPredicate(
            "a constant is null, NaN or infinite, which JSON expressions cannot have; use is-null "
            "or is-nan"
        )
    for kind, read in _READERS.items():
        if isinstance(type_, kind):
            return read(value, type_)
    raise UnsupportedOperation(f"Iceberg has no constants of the type {type_name(type_)}")


def check_compared(type_: LogicalType | None) -> None:
    """Raise `UnsupportedOperation` for a type whose values Iceberg does not compare."""
    if not isinstance(type_, tuple(_READERS)):
        raise UnsupportedOperation("Iceberg does not compare columns of this type")


def typed_constant(value: Any, stated_type: LogicalType, type_: LogicalType) -> ir.Literal:
    """Return a JSON value of a given type to compare with a column of another or the same type."""
    constant = as_constant(value, stated_type)
    if stated_type == type_ or (
        isinstance(stated_type, logical.Int) and isinstance(type_, logical.Int)
    ):
        return constant
    match stated_type, type_:
        case logical.Float(), logical.Float():
            return ir.Literal(constant.value, logical.Float(64))
        case logical.Decimal(), logical.Decimal():
            return constant
        case logical.Int(), logical.Float() | logical.Decimal():
            return as_constant(value, type_)
        case logical.Float(), logical.Int():
            return as_constant(value, type_)
    raise UnsupportedOperation(
        f"a constant of type {type_name(stated_type)} cannot be compared with {type_name(type_)}"
    )


def as_json(value: Any, type_: LogicalType | None) -> Any:
    """Return a stored value as a JSON value, or raise `UnsupportedOperation`."""
    match type_:
        case logical.Int() if value >= 2**63:
            raise UnsupportedOperation("Iceberg has no integers beyond 64 signed bits")
        case logical.Bool() | logical.Int() | logical.String():
            return value
        case logical.Float():
            if not math.isfinite(value):
                raise UnsupportedOperation("JSON has no infinite numbers")
            return value
        case logical.Decimal(scale=scale):
            if -value.as_tuple().exponent != scale:
                raise UnsupportedOperation(f"{value!r} is not a valid {type_name(type_)}")
            return f"{value:f}"
        case logical.Binary():
            return bytes(value).hex()
        case logical.Uuid():
            return str(UUID(bytes=bytes(value)))
        case logical.Date():
            return _moment(value, _DAY).date().isoformat()
        case logical.Time():
            return _moment(value, _MICRO).time().isoformat("microseconds")
        case logical.Timestamp(utc=utc):
            return _moment(value, _MICRO).isoformat(timespec="microseconds") + "+00:00" * utc
        case logical.Nanos(utc=utc):
            micros, rest = divmod(value, 1_000)
            text = _moment(micros, _MICRO).isoformat(timespec="microseconds")
            return f"{text}{rest:03}" + "+00:00" * utc
    raise UnsupportedOperation(f"Iceberg has no constants of the type {type_!r}")


def _moment(ticks: int, unit: timedelta) -> datetime:
    try:
        return _EPOCH + ticks * unit
    except OverflowError as error:
        raise UnsupportedOperation("a year before 1 or after 9999 has no text here") from error


def _rejected(value: Any, type_: LogicalType, wanted: str) -> InvalidPredicate:
    return InvalidPredicate(
        f"{value!r} is not a constant for a column of type {type_name(type_)}: it takes {wanted}"
    )


def _bool(value: Any, type_: LogicalType) -> ir.Literal:
    if not isinstance(value, bool):
        raise _rejected(value, type_, "true or false")
    return ir.Literal(value, type_)


def _int(value: Any, type_: LogicalType) -> ir.Literal:
    if _whole(value):
        return ir.Literal(value)
    if isinstance(value, float | Number) and abs(float(value)) < _EXACT_DOUBLE:
        number = _exact(value)  # below it, integers as floats keep their order
        return ir.Literal(int(number) if number == int(number) else number)
    raise _rejected(value, type_, "a JSON integer")


def _float(value: Any, type_: LogicalType) -> ir.Literal:
    if isinstance(value, bool) or not isinstance(value, int | float | Number):
        raise _rejected(value, type_, "a JSON number")
    try:
        double = float(value)
        if isinstance(type_, logical.Float) and type_.bits == 32:
            double = struct.unpack("f", struct.pack("f", double))[0]
    except OverflowError as error:
        raise _rejected(value, type_, "a number of its range") from error
    if math.isinf(double):
        raise _rejected(value, type_, "a number of its range")
    return ir.Literal(double, type_)


def _decimal(value: Any, type_: LogicalType) -> ir.Literal:
    if isinstance(value, bool) or not isinstance(value, str | int | float | Number):
        raise _rejected(value, type_, "a JSON string of decimal digits")
    if isinstance(value, str) and not _DIGITS.fullmatch(value):
        raise _rejected(value, type_, "decimal digits")
    number = _exact(value)
    if abs(number.adjusted()) > _FARTHEST:
        raise _rejected(value, type_, "at most 38 digits")
    return ir.Literal(number)


def _exact(value: str | float | Number) -> Number:
    """Return a number as it was written; of a float, its shortest digits."""
    return Number(repr(value)) if isinstance(value, float) else Number(value)


def _string(value: Any, type_: LogicalType) -> ir.Literal:
    if not isinstance(value, str):
        raise _rejected(value, type_, "a JSON string")
    return ir.Literal(value, type_)


def _binary(value: Any, type_: LogicalType) -> ir.Literal:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise _rejected(value, type_, "a JSON string of hexadecimal digits")
    return ir.Literal(bytes.fromhex(value), type_)


def _uuid(value: Any, type_: LogicalType) -> ir.Literal:
    try:
        if not isinstance(value, str) or len(value) != 36:
            raise ValueError(value)
        return ir.Literal(UUID(value).bytes, type_)
    except ValueError as error:
        raise _rejected(value, type_, "a JSON string of 36 characters") from error


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _date(value: Any, type_: LogicalType) -> ir.Literal:
    if _whole(value):
        return ir.Literal(value, type_)
    if not isinstance(value, str) or (days := _days(value)) is None:
        raise _rejected(value, type_, "a date such as '2017-11-16'")
    return ir.Literal(days, type_)


def _time(value: Any, type_: LogicalType) -> ir.Literal:
    nanos = value * 1_000 if _whole(value) else _nanos_of_day(value)
    if nanos is None or nanos % 1_000 or not 0 <= nanos < 86_400 * 10**9:
        raise _rejected(value, type_, "a time such as '22:31:08.123456'")
    return ir.Literal(nanos // 1_000, type_)


def _timestamp(value: Any, type_: LogicalType) -> ir.Literal:
    assert isinstance(type_, logical.Timestamp)
    if _whole(value):
        return ir.Literal(value, type_)
    nanos = _nanos(value, utc=type_.utc)
    if nanos is None or nanos % 1_000:
        raise _rejected(value, type_, _SAMPLES[type_.utc])
    return ir.Literal(nanos // 1_000, type_)


def _nanoseconds(value: Any, type_: LogicalType) -> ir.Literal:
    assert isinstance(type_, logical.Nanos)
    nanos = value * 1_000 if _whole(value) else _nanos(value, utc=type_.utc)
    if nanos is None or not -(2**63) <= nanos < 2**63:
        raise _rejected(value, type_, _SAMPLES[type_.utc])
    return ir.Literal(nanos, type_)


_SAMPLES: Final = (
    "a time without offset, such as '2017-11-16T22:31:08.123456'",
    "a time with offset, such as '2017-11-16T22:31:08.123456+00:00'",
)


def _days(text: str) -> int | None:
    if (match := _DATE.fullmatch(text)) is None or not text.isascii():
        return None
    try:
        return (date(*map(int, match.groups())) - _EPOCH.date()).days
    except ValueError:
        return None


def _nanos_of_day(text: Any) -> int | None:
    if not isinstance(text, str) or not text.isascii():
        return None
    if (match := _TIME.fullmatch(text)) is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[:3])
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return ((hours * 60 + minutes) * 60 + seconds) * 10**9 + int((match[4] or "").ljust(9, "0"))


def _nanos(text: Any, *, utc: bool) -> int | None:
    """Return nanoseconds since 1970 of an ISO text, with an offset exactly if `utc`."""
    if not isinstance(text, str):
        return None
    day, _, rest = text.partition("T")
    cut = re.search(r"[Z+-]", rest)
    clock, offset = (rest, "") if cut is None else (rest[: cut.start()], rest[cut.start() :])
    days, nanos = _days(day), _nanos_of_day(clock)
    if days is None or nanos is None or bool(offset) is not utc:
        return None
    shift = 0
    if offset:
        if (match := _OFFSET.fullmatch(offset)) is None:
            return None
        if match[1]:
            hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
            shift = ((hours * 60 + minutes) * 60 + seconds) * (1 if match[1] == "+" else -1)
    return (days * 86_400 - shift) * 10**9 + nanos


_READERS: Final[Mapping[type[LogicalType], Callable[[Any, LogicalType], ir.Literal]]] = {
    logical.Bool: _bool,
    logical.Int: _int,
    logical.Float: _float,
    logical.Decimal: _decimal,
    logical.String: _string,
    logical.Binary: _binary,
    logical.Uuid: _uuid,
    logical.Date: _date,
    logical.Time: _time,
    logical.Timestamp: _timestamp,
    logical.Nanos: _nanoseconds,
}
