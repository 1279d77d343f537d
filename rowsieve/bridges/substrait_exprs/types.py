"""Convert Substrait's types and constants to ours and back, by their field numbers.

Time constants are read with a precision and in the older form of microseconds, and written in the
older form.
"""

from __future__ import annotations

import decimal
import importlib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

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
from rowsieve.predicate.ir import Literal
from rowsieve.predicate.literal_values import int_range
from rowsieve.types import logical
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import arrow_type

_LOCAL, _INSTANT = logical.Timestamp(), logical.Timestamp(utc=True)
_PLAIN: Mapping[int, logical.LogicalType] = {  # one field number for the type and its constants
    1: logical.Bool(),
    2: logical.Int(8),
    3: logical.Int(16),
    5: logical.Int(32),
    7: logical.Int(64),
    10: logical.Float(32),
    11: logical.Float(64),
    12: logical.String(),
    13: logical.Binary(),
    16: logical.Date(),
}
_TIMES: Mapping[int, logical.LogicalType] = {14: _LOCAL, 17: logical.Time(), 27: _INSTANT}
_PRECISE: Mapping[int, logical.LogicalType] = {34: _LOCAL, 35: _INSTANT, 37: logical.Time()}
_TYPES: Mapping[int, logical.LogicalType] = {
    **_PLAIN,
    14: _LOCAL,
    17: logical.Time(),
    21: logical.String(),
    22: logical.String(),
    29: _INSTANT,
    32: logical.Uuid(),
    33: _LOCAL,
    34: _INSTANT,
    36: logical.Time(),
}
_SIMPLE = {**_PLAIN, **_TIMES}
CONSTANTS = {type_: at for at, type_ in _SIMPLE.items()}
RANGES: Mapping[logical.LogicalType, tuple[int, int]] = {
    **{type_: int_range(type_) for type_ in _PLAIN.values() if isinstance(type_, logical.Int)},
    logical.Date(): int_range(logical.Int(32)),
    logical.Time(): (0, DAY_US - 1),
    **{type_: int_range(logical.Int(64)) for type_ in (_LOCAL, _INSTANT)},
}
_FORMS = {logical.Float(32): "<f", logical.Float(64): "<d"}
_UUID, _DECIMAL, _STRUCT, _NULL = 23, 24, 25, 29
_DIGITS = 6  # of a microsecond
_MAX_DIGITS, _DECIMAL_BYTES = 38, 16


def type_of_message(message: Message) -> tuple[logical.LogicalType | None, list[Message]]:
    """Return the type, None without a counterpart, and the types of a struct's fields."""
    kind, content = _only(message)
    inner = fields(content)
    if kind == _DECIMAL:
        return _decimal_type(*(signed(one(inner, at, 0)) for at in (2, 1))), []
    if kind == _UUID and inner.get(1) == [16]:
        return logical.Uuid(), []
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
            return Literal(text(content), logical.String())
        case 22:
            return Literal(text(one(fields(content), 1, b"")), logical.String())
        case 23 | 28 if isinstance(content, bytes) and len(content) == 16:
            return Literal(content, logical.Uuid())
        case 24:
            return _decimal(fields(content))
        case 34 | 35 | 37:
            digits, ticks = (signed(one(fields(content), at, 0)) for at in (1, 2))
            return _within(_microseconds(ticks, digits), _PRECISE[kind])
    raise UnsupportedOperation(f"a constant of kind {kind} has no counterpart in Rowsieve")


def columns_message(columns: Iterable[logical.Field]) -> Message:
    """Write names and types of columns, as pyarrow does: a message without an expression.

    Unsigned integers are extension types of pyarrow's, which the message declares.
    """
    substrait = importlib.import_module("pyarrow.substrait")
    arrow_fields = [
        pa.field(each.name, _bare(arrow_type(each.type)), each.nullable) for each in columns
    ]
    return fields(bytes(substrait.serialize_schema(pa.schema(arrow_fields)).expression))


@lru_cache(maxsize=1024)
def type_message(type_: logical.LogicalType, columns: tuple[logical.Field, ...] = ()) -> bytes:
    """Write a type of nullable values; unsigned ones refer to the declarations for `columns`."""
    base = fields(one(columns_message([*columns, logical.Field(0, "", type_)]), 4))
    return raw(fields(one(base, 2))[1][-1])


def _bare(type_: pa.DataType) -> pa.DataType:
    """Return the type without metadata of its fields, for which Substrait has no place."""
    if pa.types.is_timestamp(type_) and type_.unit == "ns":
        raise UnsupportedOperation(
            f"Substrait has no {logical.type_name(logical.Nanos(type_.tz is not None))}"
        )

    def below(field: pa.Field) -> pa.Field:
        return pa.field(field.name, _bare(field.type), field.nullable)

    if pa.types.is_struct(type_):
        return pa.struct(map(below, type_))
    if pa.types.is_list(type_):
        return pa.list_(below(type_.value_field))
    is_map = pa.types.is_map(type_)
    return pa.map_(below(type_.key_field), below(type_.item_field)) if is_map else type_


def literal_message(literal: Literal) -> bytes:
    """Write a constant as the content of a `Literal` message."""
    assert literal.type is not None
    encode = encoder_of(literal.type)
    if literal.value is None:
        return part(_NULL, type_message(literal.type))
    return encode(literal.value)


def encoder_of(type_: logical.LogicalType) -> Callable[[Any], bytes]:
    """Return the encoder of values of a type that are not NULL."""
    at = CONSTANTS.get(type_, 0)
    match type_:
        case logical.Float():
            form = _FORMS[type_]
            return lambda value: fixed(at, form, value)
        case logical.String():
            return lambda value: part(at, value.encode())
        case logical.Binary():
            return lambda value: part(at, value)
        case logical.Uuid():
            return lambda value: part(_UUID, value)
        case logical.Decimal(precision=precision, scale=scale):
            end = number(2, precision) + number(3, scale)
            return lambda value: part(_DECIMAL, part(1, _digits(value, scale)), end)
        case _ if at:
            return numbers(at)
        case logical.Int():
            raise UnsupportedOperation(
                "Substrait has no unsigned constants; cast the column to a signed type"
            )
    raise UnsupportedOperation(f"Substrait has no constants of the type {logical.type_name(type_)}")


def _digits(value: decimal.Decimal, scale: int) -> bytes:
    with decimal.localcontext(prec=60):
        return int(value.scaleb(scale)).to_bytes(_DECIMAL_BYTES, "little", signed=True)


def _only(message: Message) -> tuple[int, Value]:
    if len(message) != 1:
        raise InvalidPredicate("a Substrait message does not have its one required field")
    kind = next(iter(message))
    return kind, one(message, kind)


def _value(content: Value, type_: logical.LogicalType) -> Any:
    match type_:
        case logical.Bool():
            return bool(signed(content))
        case logical.Float():
            return real(content, _FORMS[type_])
        case logical.String():
            return text(content)
        case logical.Binary():
            return raw(content)
    return signed(content)


def _within(value: Any, type_: logical.LogicalType) -> Literal:
    """Return the constant; raise if its value is out of the type's range."""
    if (known := RANGES.get(type_)) is not None and not known[0] <= value <= known[1]:
        raise InvalidPredicate(f"a Substrait message holds {value} as {logical.type_name(type_)}")
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


def _decimal_type(precision: int, scale: int) -> logical.Decimal:
    if not (1 <= precision <= _MAX_DIGITS and 0 <= scale <= precision):
        raise InvalidPredicate(
            f"a Substrait decimal({precision}, {scale}): there are 1 to {_MAX_DIGITS} digits, as "
            "many of them at most after the point"
        )
    return logical.Decimal(precision, scale)


def _microseconds(ticks: int, digits: int) -> int:
    if not 0 <= digits <= 2 * _DIGITS:
        raise InvalidPredicate(f"a Substrait time with {digits} digits of a second")
    whole, rest = divmod(ticks * 10**_DIGITS, 10**digits)
    if rest:
        raise UnsupportedOperation("a time of less than a microsecond")
    return int(whole)
