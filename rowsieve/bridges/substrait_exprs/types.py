"""Substrait's types and constants as ours, and back, by the numbers of their fields.

Both the constants with a precision and the older ones in microseconds are read.
"""

from __future__ import annotations

import decimal

from rowsieve.bridges.substrait_exprs.wire import (
    Message,
    Value,
    fields,
    fixed,
    number,
    one,
    part,
    real,
    signed,
    text,
)
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.ir import Literal, PhysicalValue
from rowsieve.predicate.literals import int_range
from rowsieve.types.days import DAY_US
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    List,
    LogicalType,
    Map,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
    type_name,
)

_PLAIN: dict[int, LogicalType] = {
    1: Bool(),
    2: Int(8),
    3: Int(16),
    5: Int(32),
    7: Int(64),
    10: Float(32),
    11: Float(64),
    12: String(),
    13: Binary(),
    16: Date(),
}
_NUMBERS = {type_: number_ for number_, type_ in _PLAIN.items()}
_KINDS: dict[int, LogicalType] = {
    **_PLAIN,
    14: Timestamp(),
    17: Time(),
    21: String(),
    22: String(),
    29: Timestamp(utc=True),
    32: Uuid(),
    33: Timestamp(),
    34: Timestamp(utc=True),
    36: Time(),
}
_DECIMAL, _FIXED, _STRUCT, _LIST, _MAP, _USER = 24, 23, 25, 27, 28, 30
_NULLABLE, _REQUIRED = 1, 2
_PER_SECOND = 6  # digits of a microsecond
_MOST_PER_SECOND = 12
_MOST_DIGITS = 38
_NESTED = {_STRUCT, _LIST, _MAP}


def type_of_message(message: Message) -> tuple[LogicalType | None, list[Message]]:
    """The type, None of one that has no counterpart; and the types of a struct's members."""
    kind, content = _only(message)
    inner = fields(content)
    if kind in _KINDS:
        return _KINDS[kind], []
    if kind == _DECIMAL:
        scale, precision = (signed(one(inner, at, 0)) for at in (1, 2))
        return _decimal_type(precision, scale), []
    if kind == _FIXED:
        return (Uuid() if inner.get(1) == [16] else None), []
    if kind == _STRUCT:
        return None, [fields(item) for item in inner.get(1, [])]
    return None, []


def literal_of_message(message: Message) -> Literal:
    """The constant, or `UnsupportedOperation`; whether it is nullable does not matter."""
    found = {at: values for at, values in message.items() if at not in (50, 51)}
    if not found:
        raise InvalidPredicate("a Substrait constant has no value")
    kind, content = _only(found)
    if kind == 29:
        type_, members = type_of_message(fields(content))
        if type_ is None or members:
            raise UnsupportedOperation("a NULL of a type that has no counterpart here")
        return Literal(None, type_)
    if kind in _PLAIN:
        return _within(_plain(kind, content), _PLAIN[kind])
    match kind:
        case 14 | 27:
            return Literal(signed(content), Timestamp(utc=kind == 27))
        case 17:
            return _within(signed(content), Time())
        case 21:
            return Literal(text(content), String())
        case 22:
            return Literal(text(one(fields(content), 1, b"")), String())
        case 23 | 28 if isinstance(content, bytes) and len(content) == 16:
            return Literal(content, Uuid())
        case 24:
            return _decimal(fields(content))
        case 34 | 35 | 37:
            inner = fields(content)
            digits, ticks = (signed(one(inner, at, 0)) for at in (1, 2))
            made = _microseconds(ticks, digits)
            return _within(made, Time() if kind == 37 else Timestamp(utc=kind == 35))
    raise UnsupportedOperation(f"a constant of Substrait's kind {kind} has no counterpart here")


def type_message(type_: LogicalType, *, nullable: bool, user_types: dict[str, int]) -> bytes:
    """The type with whether NULLs may stand in it; unsigned numbers are pyarrow's extensions."""
    bits = _NULLABLE if nullable else _REQUIRED
    if isinstance(type_, Json):
        type_ = String()
    if (kind := _NUMBERS.get(type_)) is not None:
        return part(kind, number(2, bits))
    match type_:
        case Decimal(precision=precision, scale=scale):
            return part(_DECIMAL, number(1, scale), number(2, precision), number(4, bits))
        case Timestamp(utc=utc):
            return part(34 if utc else 33, number(1, _PER_SECOND), number(3, bits))
        case Time():
            return part(17, number(2, bits))
        case Uuid():
            return part(_FIXED, number(1, 16), number(3, bits))
        case Int(bits=width):
            anchor = user_types.setdefault(f"u{width}", len(user_types))
            return part(_USER, number(1, anchor), number(3, bits))
        case Struct(fields=members):
            made = [
                part(1, type_message(item.type, nullable=item.nullable, user_types=user_types))
                for item in members
            ]
            return part(_STRUCT, *made, number(3, bits))
        case List(element=element):
            of = type_message(element.type, nullable=element.nullable, user_types=user_types)
            return part(_LIST, part(1, of), number(3, bits))
        case Map(key=key, value=value):
            keys = type_message(key.type, nullable=False, user_types=user_types)
            values = type_message(value.type, nullable=value.nullable, user_types=user_types)
            return part(_MAP, part(1, keys), part(2, values), number(4, bits))
    raise UnsupportedOperation(f"Substrait has no {type_name(type_)}")


def literal_message(literal: Literal) -> bytes:
    """The constant as a `Literal` message's content."""
    value, type_ = literal.value, literal.type
    assert type_ is not None
    if isinstance(type_, Int) and not type_.signed:
        raise UnsupportedOperation("Substrait has no constants without a sign")
    if value is None:
        return part(29, type_message(type_, nullable=True, user_types={}))
    if type_ in _NUMBERS:
        return _plain_message(_NUMBERS[type_], value)
    match type_:
        case Decimal(precision=precision, scale=scale):
            assert isinstance(value, decimal.Decimal)
            with decimal.localcontext(prec=60):
                digits = int(value.scaleb(scale))
            raw = digits.to_bytes(16, "little", signed=True)
            return part(24, part(1, raw), number(2, precision), number(3, scale))
        case Timestamp(utc=utc):
            assert isinstance(value, int)
            return number(27 if utc else 14, value)
        case Time():
            assert isinstance(value, int)
            return number(17, value)
        case Uuid():
            assert isinstance(value, bytes)
            return part(23, value)
    raise UnsupportedOperation(f"Substrait has no constants of the type {type_name(type_)}")


def _only(message: Message) -> tuple[int, Value]:
    if len(message) != 1:
        raise InvalidPredicate("a Substrait message has not the one field that it must have")
    kind = next(iter(message))
    return kind, one(message, kind)


def _within(value: PhysicalValue, type_: LogicalType) -> Literal:
    """The constant, whose value must be one of the type: numbers are wider on the wire."""
    low, high = _range(type_)
    if isinstance(value, int) and not low <= value <= high:
        raise InvalidPredicate(f"a Substrait message holds {value} as {type_name(type_)}")
    return Literal(value, type_)


def _range(type_: LogicalType) -> tuple[int, int]:
    match type_:
        case Int():
            return int_range(type_)
        case Date():
            return int_range(Int(32))
        case Time():
            return 0, DAY_US - 1
        case _:
            return int_range(Int(64))


def _plain(kind: int, content: Value) -> PhysicalValue:
    if kind == 1:
        return bool(signed(content))
    if kind in (10, 11):
        return real(content, "<f" if kind == 10 else "<d")
    if kind == 12:
        return text(content)
    if kind == 13:
        if not isinstance(content, bytes):
            raise InvalidPredicate("a Substrait message holds a number where bytes are wanted")
        return content
    return signed(content)


def _plain_message(kind: int, value: PhysicalValue) -> bytes:
    if kind in (10, 11):
        assert isinstance(value, int | float)
        return fixed(kind, "<f" if kind == 10 else "<d", value)
    if isinstance(value, str):
        return part(kind, value.encode())
    if isinstance(value, bytes):
        return part(kind, value)
    assert isinstance(value, int)
    return number(kind, int(value))


def _decimal(inner: Message) -> Literal:
    raw = one(inner, 1, b"")
    precision, scale = (signed(one(inner, at, 0)) for at in (2, 3))
    if not isinstance(raw, bytes) or len(raw) != 16:
        raise InvalidPredicate("a Substrait decimal has not 16 bytes")
    with decimal.localcontext(prec=60):
        digits = int.from_bytes(raw, "little", signed=True)
        type_ = _decimal_type(precision, scale)
        if abs(digits) >= 10**precision:
            raise InvalidPredicate(f"a Substrait decimal of more than {precision} digits")
        return Literal(decimal.Decimal(digits).scaleb(-scale), type_)


def _decimal_type(precision: int, scale: int) -> Decimal:
    if not (1 <= precision <= _MOST_DIGITS and 0 <= scale <= precision):
        raise InvalidPredicate(
            f"a Substrait decimal({precision}, {scale}): there are 1 to {_MOST_DIGITS} digits, as "
            "many of them at most after the point"
        )
    return Decimal(precision, scale)


def _microseconds(ticks: int, digits: int) -> int:
    if not 0 <= digits <= _MOST_PER_SECOND:
        raise InvalidPredicate(f"a Substrait time with {digits} digits of a second")
    if digits <= _PER_SECOND:
        return int(ticks * 10 ** (_PER_SECOND - digits))
    whole, rest = divmod(ticks, 10 ** (digits - _PER_SECOND))
    if rest:
        raise UnsupportedOperation("a time of less than a microsecond")
    return int(whole)
