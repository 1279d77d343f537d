"""Convert Substrait's types and constants to ours and back, by their field numbers.

Time constants are read with a precision and in the older form of microseconds, and written in the
older form.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from typing import Any

from rowsieve.bridges.substrait_exprs.wire import (
    Message,
    Value,
    fields,
    fixed,
    number,
    numbers,
    one,
    part,
    raw,
    real,
    signed,
    text,
)
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.functions.casting.unbounded_numbers import NUMERIC_PARTS
from rowsieve.predicate.ir import Literal
from rowsieve.predicate.literal_values import int_range
from rowsieve.types.days import DAY_US
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
    Numeric,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
    type_name,
)

_LOCAL, _INSTANT = Timestamp(), Timestamp(utc=True)
_PLAIN: Mapping[int, LogicalType] = {  # one field number for the type and its constants
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
_TIMES: Mapping[int, LogicalType] = {14: _LOCAL, 17: Time(), 27: _INSTANT}
_PRECISE: Mapping[int, LogicalType] = {34: _LOCAL, 35: _INSTANT, 37: Time()}
_TYPES: Mapping[int, LogicalType] = {
    **_PLAIN,
    14: _LOCAL,
    17: Time(),
    21: String(),
    22: String(),
    29: _INSTANT,
    32: Uuid(),
    33: _LOCAL,
    34: _INSTANT,
    36: Time(),
}
_SIMPLE = {**_PLAIN, **_TIMES}
CONSTANTS = {type_: at for at, type_ in _SIMPLE.items()}
RANGES: Mapping[LogicalType, tuple[int, int]] = {
    **{type_: int_range(type_) for type_ in _PLAIN.values() if isinstance(type_, Int)},
    Date(): int_range(Int(32)),
    Time(): (0, DAY_US - 1),
    **{type_: int_range(Int(64)) for type_ in (_LOCAL, _INSTANT)},
}
_FORMS = {Float(32): "<f", Float(64): "<d"}
_UUID, _DECIMAL, _NULL, _STRUCT, _LIST, _MAP, _USER = 23, 24, 29, 25, 27, 28, 30
_NULLABLE, _REQUIRED = 1, 2
_DIGITS = 6  # of a microsecond
_MOST_DIGITS, _DECIMAL_BYTES = 38, 16


def type_of_message(message: Message) -> tuple[LogicalType | None, list[Message]]:
    """Return the type, None without a counterpart, and the types of a struct's fields."""
    kind, content = _only(message)
    inner = fields(content)
    if kind == _DECIMAL:
        return _decimal_type(*(signed(one(inner, at, 0)) for at in (2, 1))), []
    if kind == _UUID and inner.get(1) == [16]:
        return Uuid(), []
    members = [fields(item) for item in inner.get(1, [])] if kind == _STRUCT else []
    return _TYPES.get(kind), members


def literal_of_message(message: Message) -> Literal:
    """Read a constant; its nullability is ignored."""
    if len(message) > 1:
        message = {at: values for at, values in message.items() if at not in (50, 51)}
    kind, content = _only(message)
    if (type_ := _SIMPLE.get(kind)) is not None:
        return _within(_value(content, type_), type_)
    match kind:
        case 29:
            type_or_none, members = type_of_message(fields(content))
            if type_or_none is None or members:
                raise UnsupportedOperation("a NULL of a type that has no counterpart in Rowsieve")
            return Literal(None, type_or_none)
        case 21:
            return Literal(text(content), String())
        case 22:
            return Literal(text(one(fields(content), 1, b"")), String())
        case 23 | 28 if isinstance(content, bytes) and len(content) == 16:
            return Literal(content, Uuid())
        case 24:
            return _decimal(fields(content))
        case 34 | 35 | 37:
            digits, ticks = (signed(one(fields(content), at, 0)) for at in (1, 2))
            return _within(_microseconds(ticks, digits), _PRECISE[kind])
    raise UnsupportedOperation(f"a constant of kind {kind} has no counterpart in Rowsieve")


def stored(type_: LogicalType) -> LogicalType:
    """Return the type of a column of our tables as an engine sees it, at the top level."""
    match type_:
        case Json() | Enum():
            return String()
        case Interval():
            return Uuid()  # both are 16 bytes
        case Numeric():
            return NUMERIC_PARTS
        case _:
            return type_


def type_message(type_: LogicalType, *, nullable: bool, user_types: dict[str, int]) -> bytes:
    """Write a type and its nullability; unsigned integers are extension types of pyarrow."""
    bits = _NULLABLE if nullable else _REQUIRED
    plain = stored(type_)

    def below(field: int, inner: LogicalType, *, nullable: bool) -> bytes:
        return part(field, type_message(inner, nullable=nullable, user_types=user_types))

    match plain:
        case Decimal(precision=precision, scale=scale):
            return part(_DECIMAL, number(1, scale), number(2, precision), number(4, bits))
        case Timestamp(utc=utc):
            return part(34 if utc else 33, number(1, _DIGITS), number(3, bits))
        case Uuid():
            return part(_UUID, number(1, 16), number(3, bits))
        case Int(bits=width, signed=False):
            anchor = user_types.setdefault(f"u{width}", len(user_types))
            return part(_USER, number(1, anchor), number(3, bits))
        case Struct(fields=members):
            made = [below(1, item.type, nullable=item.nullable) for item in members]
            return part(_STRUCT, *made, number(3, bits))
        case List(element=item):
            return part(_LIST, below(1, item.type, nullable=item.nullable), number(3, bits))
        case Map(key=key, value=value):
            keys = below(1, key.type, nullable=False)
            values = below(2, value.type, nullable=value.nullable)
            return part(_MAP, keys, values, number(4, bits))
    if plain not in CONSTANTS:
        raise UnsupportedOperation(f"Substrait has no {type_name(type_)}")
    return part(CONSTANTS[plain], number(2, bits))


def literal_message(literal: Literal) -> bytes:
    """Write a constant as the content of a `Literal` message."""
    assert literal.type is not None
    encode = encoder_of(literal.type)
    if literal.value is None:
        return part(_NULL, type_message(literal.type, nullable=True, user_types={}))
    return encode(literal.value)


def encoder_of(type_: LogicalType) -> Callable[[Any], bytes]:
    """Return the encoder of values of a type that are not NULL."""
    at = CONSTANTS.get(type_, 0)
    match type_:
        case Float():
            form = _FORMS[type_]
            return lambda value: fixed(at, form, value)
        case String():
            return lambda value: part(at, value.encode())
        case Binary():
            return lambda value: part(at, value)
        case Uuid():
            return lambda value: part(_UUID, value)
        case Decimal(precision=precision, scale=scale):
            end = number(2, precision) + number(3, scale)
            return lambda value: part(_DECIMAL, part(1, _digits(value, scale)), end)
        case _ if at:
            return numbers(at)
        case Int():
            raise UnsupportedOperation("Substrait has no unsigned constants")
    raise UnsupportedOperation(f"Substrait has no constants of the type {type_name(type_)}")


def _digits(value: decimal.Decimal, scale: int) -> bytes:
    with decimal.localcontext(prec=60):
        return int(value.scaleb(scale)).to_bytes(_DECIMAL_BYTES, "little", signed=True)


def _only(message: Message) -> tuple[int, Value]:
    if len(message) != 1:
        raise InvalidPredicate("a Substrait message does not have its one required field")
    kind = next(iter(message))
    return kind, one(message, kind)


def _value(content: Value, type_: LogicalType) -> Any:
    match type_:
        case Bool():
            return bool(signed(content))
        case Float():
            return real(content, _FORMS[type_])
        case String():
            return text(content)
        case Binary():
            return raw(content)
    return signed(content)


def _within(value: Any, type_: LogicalType) -> Literal:
    """Return the constant; raise if its value is out of the type's range."""
    if (known := RANGES.get(type_)) is not None and not known[0] <= value <= known[1]:
        raise InvalidPredicate(f"a Substrait message holds {value} as {type_name(type_)}")
    return Literal(value, type_)


def _decimal(inner: Message) -> Literal:
    content = raw(one(inner, 1, b""))
    type_ = _decimal_type(*(signed(one(inner, at, 0)) for at in (2, 3)))
    if len(content) != _DECIMAL_BYTES:
        raise InvalidPredicate("a Substrait decimal does not have 16 bytes")
    digits = int.from_bytes(content, "little", signed=True)
    if abs(digits) >= 10**type_.precision:
        raise InvalidPredicate(f"a Substrait decimal of more than {type_.precision} digits")
    with decimal.localcontext(prec=60):
        return Literal(decimal.Decimal(digits).scaleb(-type_.scale), type_)


def _decimal_type(precision: int, scale: int) -> Decimal:
    if not (1 <= precision <= _MOST_DIGITS and 0 <= scale <= precision):
        raise InvalidPredicate(
            f"a Substrait decimal({precision}, {scale}): there are 1 to {_MOST_DIGITS} digits, as "
            "many of them at most after the point"
        )
    return Decimal(precision, scale)


def _microseconds(ticks: int, digits: int) -> int:
    if not 0 <= digits <= 2 * _DIGITS:
        raise InvalidPredicate(f"a Substrait time with {digits} digits of a second")
    whole, rest = divmod(ticks * 10**_DIGITS, 10**digits)
    if rest:
        raise UnsupportedOperation("a time of less than a microsecond")
    return int(whole)
