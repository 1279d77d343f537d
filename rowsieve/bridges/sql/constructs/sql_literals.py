"""Convert constants of SQL text to literals and back: numbers, typed strings, IN lists.

Parsing is strict: a constant that is not exactly a value of its type is rejected, never rounded or
guessed (`DATE '2013-1-1'`, a TIMESTAMP with nanoseconds, unless the engine's has them). Written
text reads back as the same literal.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
from collections.abc import Sequence
from typing import assert_never

import numpy as np
import pyarrow as pa

from rowsieve.bridges.sql.dialects import BinaryText, Dialect
from rowsieve.bridges.ticks import from_ticks
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.functions.casting.casts import cast
from rowsieve.predicate.functions.casting.far_texts import far_constant
from rowsieve.predicate.ir import Literal, Operand, PhysicalValue, ValueSet
from rowsieve.predicate.literal_values import array_of, fine_moment, int_range, parse_text
from rowsieve.types.days import DAY_US, FIRST_DAY, LAST_DAY, NANOS_OF_MICRO
from rowsieve.types.encodings import arrow_type
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
    type_name,
)
from rowsieve.types.numeric_bytes import encoded, spelled
from rowsieve.types.time_zones import zone

INT64 = Int(64)
MAX_DIGITS = 38

_EPOCH = datetime.date(1970, 1, 1).toordinal()
WITH_OFFSET = re.compile(r".*\d\d:.*(?:Z|[+-]\d\d(?::?\d\d)?)\s*", re.ASCII)
_NAMED_MOMENT = re.compile(r"(?P<local>.*\d\d:.*\d)\s+(?P<zone>[A-Za-z_]+/[A-Za-z_/+-]+|UTC)\s*")
_BLOB = re.compile(r"(?:\\x[0-9a-fA-F]{2}|[ -\[\]-~])*")


def number(text: str, dialect: Dialect) -> Literal:
    """Parse an unsigned number: int64 if integral and it fits, else exact decimal or double.

    A decimal of more than 38 digits is of the engine's type for it: a double, or of any size.
    """
    exponent = "e" in text.lower()
    if not exponent and "." not in text:
        return _whole(text, dialect)
    if dialect.point_is_float or (exponent and dialect.exponent_is_float):
        return _double(text, dialect)
    if dialect.zeros_count and len(text.replace(".", "")) > MAX_DIGITS:
        return _double(text, dialect)
    return _of_any_size(text) if dialect.bare_decimal == Numeric() else exact(text)


def negated(value: Literal, dialect: Dialect) -> Literal:
    """Negate a number as written."""
    match value.value:
        case int(whole):
            return Literal(-whole, INT64)
        case decimal.Decimal() as scaled:
            if scaled == 2**63 and value.type == Decimal(19, 0):
                return Literal(-(2**63), INT64)  # its absolute value does not fit in int64
            if dialect.exact_below:
                return Literal(-float(scaled), Float(64))
            return Literal(scaled.copy_negate(), value.type)
        case float(real):
            return Literal(-real, value.type)
        case bytes(unbounded):
            return Literal(encoded(f"-{spelled(unbounded)}"), value.type)
        case _:
            raise AssertionError(value)


def exact(text: str) -> Literal:
    """Parse a decimal with the digits written.

    A number with more than 38 digits is a double if no decimal is nearer, otherwise rejected.
    """
    value = _number(text)
    if (scaled := _scaled(value)) is not None:
        return scaled
    if len(value.as_tuple().digits) <= 17 and abs(value.adjusted()) > MAX_DIGITS:
        return Literal(_finite(text), Float(64))
    raise _too_long(text)


def _scaled(value: decimal.Decimal) -> Literal | None:
    """Return a decimal of at most 38 digits; None for other numbers."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # no text of a number is NaN
    scale = max(0, -exponent)
    whole = len(digits) + max(0, exponent) if value else 1
    precision = max(whole, scale, 1)
    if precision > MAX_DIGITS:
        return None
    with decimal.localcontext(prec=2 * MAX_DIGITS):
        return Literal(value.quantize(decimal.Decimal(1).scaleb(-scale)), Decimal(precision, scale))


def _number(text: str) -> decimal.Decimal:
    """Parse a number; InvalidPredicate for exponents of more than 18 digits."""
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise _too_long(text) from None


def typed(text: str, type_: LogicalType, dialect: Dialect) -> PhysicalValue:
    """Parse a quoted constant of this type to its physical value.

    InvalidPredicate says what is wrong; LookupError: it depends on the session's time zone.
    """
    match type_:
        case String() | Json():
            return text
        case Timestamp(utc=True) if (moment := _named_moment(text, dialect)) is not None:
            return moment
        case Timestamp(utc=True) if not WITH_OFFSET.fullmatch(text):
            raise LookupError("its time zone is the session's")
        case Timestamp() if (nanos := fine_moment(text, type_)) is not None:
            return _whole_micros(text, nanos, dialect)
        case Bool() | Date() | Time() | Timestamp() | Uuid():
            far = far_constant(text, type_, dialect.semantics.text_reading)
            return parse_text(text, type_) if far is None else far
        case Int(bits=bits, signed=signed):
            return _integer(text, bits, signed=signed)
        case Float(bits=bits):
            return _float(text, type_, bits)
        case Decimal():
            return _decimal(text, type_)
        case Binary():
            return _bytes(text, type_, dialect)
        case Interval() | Numeric() | Enum() | Nanos(utc=False):
            return parse_text(text, type_)
        case Nanos():
            if not WITH_OFFSET.fullmatch(text):
                raise LookupError("its time zone is the session's")
            return parse_text(text, type_)
        case List() | Struct() | Map():
            raise InvalidPredicate(f"a constant cannot be a {type_name(type_)}")
        case _:
            assert_never(type_)


def _whole_micros(text: str, nanos: int, dialect: Dialect) -> int:
    """Convert a TIMESTAMP constant with nine digits; engines cut or round what is left over."""
    if nanos % NANOS_OF_MICRO:
        name = dialect.types.get(Nanos(utc=False))
        finer = f" or {name} {text!r}" if name is not None and "(" not in name else ""
        raise InvalidPredicate(
            f"a TIMESTAMP of {dialect.name} has microseconds, and {text!r} has nanoseconds; next "
            f"to a column of nanoseconds write the plain text {text!r}{finer}"
        )
    return nanos // NANOS_OF_MICRO


def finer_constant(operand: Operand, type_: LogicalType) -> Literal | None:
    """Read quoted text as a TIMESTAMP of DataFusion, with nanoseconds; None for other constants.

    An instant needs an offset.
    """
    if not isinstance(operand, Literal) or operand.type is not None:
        return None
    text = operand.value
    if not isinstance(text, str) or not isinstance(type_, Timestamp):
        return None
    if type_.utc and not WITH_OFFSET.fullmatch(text):
        return None
    nanos = fine_moment(text, type_)
    if nanos is None or not nanos % NANOS_OF_MICRO:
        return None
    return Literal(nanos, Nanos(type_.utc))


def _named_moment(text: str, dialect: Dialect) -> int | None:
    """Parse `2024-01-01 12:00 Europe/Berlin` to microseconds; None if the text names no zone."""
    match = _NAMED_MOMENT.fullmatch(text)
    if match is None or not dialect.times.named_zone_texts:
        return None
    local, rules = parse_text(match["local"], Timestamp(utc=False)), dialect.semantics
    assert isinstance(local, int)
    instants, failed, null = zone(match["zone"]).instants(
        np.array([local]), rules.repeated_time, rules.skipped_time
    )
    if (failed | null)[0]:
        raise InvalidPredicate(f"the text {text!r} is not an instant of 64 bits")
    return int(instants[0])


def spelt(value: PhysicalValue, type_: LogicalType, dialect: Dialect) -> str:
    """Return the text between quotes that `typed` parses to this value; ValueError if none."""
    match type_:
        case Bool():
            return "true" if value else "false"
        case Binary() if isinstance(value, bytes):
            if dialect.binary_text is BinaryText.ESCAPED:
                return "".join(f"\\x{byte:02x}" for byte in value)
            return "\\x" + value.hex()
        case Date() | Timestamp() if (far := _far_text(value, type_, dialect)) is not None:
            return far
        case Date() if isinstance(value, int):
            return _date_text(value)
        case Time() if isinstance(value, int):
            return _clock_text(value)
        case Timestamp(utc=utc) if isinstance(value, int):
            days, clock = divmod(value, DAY_US)
            return f"{_date_text(days)} {_clock_text(clock)}{'+00:00' if utc else ''}"
        case Numeric() if isinstance(value, bytes):
            return spelled(value)
        case Uuid() if isinstance(value, bytes):
            return str(uuid.UUID(bytes=value))
        case Decimal(scale=scale) if isinstance(value, decimal.Decimal):
            return f"{value:.{scale}f}"
        case Float() if isinstance(value, float):
            named = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, repr(value))
            return "NaN" if math.isnan(value) else named
        case Nanos(utc=utc) if isinstance(value, int):
            micros, rest = divmod(value, NANOS_OF_MICRO)
            days, clock = divmod(micros, DAY_US)
            whole = _clock_text(clock - clock % 1_000_000)
            fraction = f".{clock % 1_000_000:06d}{rest:03d}"
            return f"{_date_text(days)} {whole}{fraction}{'+00:00' if utc else ''}"
        case _:
            return str(value)


def _far_text(value: PhysicalValue, type_: Date | Timestamp, dialect: Dialect) -> str | None:
    """Return the engine's text of a day or local time outside the years 1 to 9999; None if none."""
    if not isinstance(value, int):
        return None
    day = value if isinstance(type_, Date) else value // DAY_US
    if FIRST_DAY <= day <= LAST_DAY or not dialect.times.far_texts:
        return None
    written = cast(from_ticks([value], type_), type_, String(), dialect.semantics)
    text = written.values[0].as_py() if written.failed is None else None
    known = text is not None and far_constant(text, type_, dialect.semantics.text_reading) == value
    return str(text) if known else None


def value_set(members: Sequence[Literal]) -> ValueSet | None:
    """Build an Arrow array of an IN list's members; None if they have several types."""
    types = {member.type for member in members if member.value is not None}
    if None in types:
        untyped = {type(member.value) for member in members if member.type is None}
        if untyped - {str, type(None)}:
            return None
    if len(types) > 1:
        joined = _joined_numbers(types)
        if joined is None:
            return None
        types = {joined}
    if not types:
        types = {member.type for member in members if member.type is not None} or {None}
        if len(types) > 1:
            return None
    (type_,) = types
    values = [member.value for member in members]
    if type_ is None:
        quoted = any(value is not None for value in values)
        return ValueSet(pa.array(values, pa.string() if quoted else pa.null()))
    if isinstance(type_, Numeric):
        return ValueSet(array_of(values, type_), type_)
    return ValueSet(pa.array(values, arrow_type(type_)), type_)


def _joined_numbers(types: set[LogicalType | None]) -> LogicalType | None:
    whole = scale = 0
    for type_ in types:
        if type_ == INT64:
            whole = max(whole, 19)
        elif isinstance(type_, Decimal):
            whole, scale = max(whole, type_.precision - type_.scale), max(scale, type_.scale)
        else:
            return None
    return Decimal(whole + scale, scale) if whole + scale <= MAX_DIGITS else None


def _whole(text: str, dialect: Dialect) -> Literal:
    digits = text.lstrip("0") or "0"
    if len(digits) <= 19 and int(digits) < 2**63:
        return Literal(int(digits), INT64)
    if dialect.exact_below and (len(digits) > 20 or int(digits) >= dialect.exact_below):
        return _double(digits, dialect)
    return _of_any_size(digits) if dialect.bare_decimal == Numeric() else exact(digits)


def _of_any_size(text: str) -> Literal:
    """Parse a number; beyond 38 digits it is an unbounded number."""
    value = _number(text)
    if (scaled := _scaled(value)) is not None:
        return scaled
    try:
        return Literal(encoded(value), Numeric())
    except ValueError:  # more digits than numeric holds
        raise _too_long(text) from None


def _too_long(text: str) -> InvalidPredicate:
    return InvalidPredicate(
        f"the number {text[:40]} needs more than {MAX_DIGITS} digits; quote it in a CAST to the "
        "type that it is to have"
    )


def _double(text: str, dialect: Dialect) -> Literal:
    """Parse a double; one that is too large or too small is infinite or 0 in some engines."""
    return Literal(float(text) if dialect.floats_saturate else _finite(text), Float(64))


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value) or (value == 0 and re.search("[1-9]", text.lower().split("e")[0])):
        raise InvalidPredicate(f"the number {text[:40]} is beyond what a double can hold")
    return value


def _integer(text: str, bits: int, *, signed: bool) -> int:
    type_ = Int(bits, signed)
    value = parse_text(text, type_)
    low, high = int_range(type_)
    if not isinstance(value, int) or not low <= value <= high:
        raise InvalidPredicate(f"the number {text[:40]} lies outside {low} to {high}")
    return value


def _float(text: str, type_: Float, bits: int) -> float:
    value = parse_text(text[:400], type_)
    if bits == 32 and isinstance(value, float) and math.isfinite(value):
        value = float(pa.scalar(text.strip()).cast(pa.float32()).as_py())
        if math.isinf(value):
            raise InvalidPredicate(f"the number {text[:40]} is beyond the range of float32")
    return float(str(value or 0.0)) if not isinstance(value, float) else value


def _decimal(text: str, type_: Decimal) -> decimal.Decimal:
    value = parse_text(text[:100], type_)
    if isinstance(value, decimal.Decimal) and abs(value.adjusted()) <= 2 * MAX_DIGITS:
        with decimal.localcontext(prec=400):
            scaled = value.quantize(decimal.Decimal(1).scaleb(-type_.scale))
            if scaled == value and abs(scaled.scaleb(type_.scale)) < 10**type_.precision:
                return scaled
    raise InvalidPredicate(f"the number {text[:40]} does not fit {type_name(type_)}")


def _bytes(text: str, type_: Binary, dialect: Dialect) -> PhysicalValue:
    match dialect.binary_text:
        case BinaryText.UTF8:
            return text.encode()
        case BinaryText.HEX:
            return parse_text(text, type_)
        case BinaryText.ESCAPED:
            if not _BLOB.fullmatch(text):
                raise InvalidPredicate("write each byte of a BLOB as \\x and two digits")
            return text.encode().decode("unicode_escape").encode("latin-1")
        case _:
            assert_never(dialect.binary_text)


def _date_text(days: int) -> str:
    try:
        return datetime.date.fromordinal(days + _EPOCH).isoformat()
    except (ValueError, OverflowError):
        raise ValueError("it lies outside the years 1 to 9999") from None


def _clock_text(clock: int) -> str:
    seconds, micros = divmod(clock, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    if not 0 <= hour < 24:
        raise ValueError("it is not a time of day")
    fraction = f".{micros:06d}" if micros else ""
    return f"{hour:02d}:{minute:02d}:{second:02d}{fraction}"
