"""Types of function calls in Spark's text: the casts of their arguments, and their results.

Soundness: a function that may fail is read only if ANSI mode is on, or if it fails as arithmetic or
a cast does, which the semantics describe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from rowsieve.bridges.constant_values import value_of
from rowsieve.bridges.sql.constructs.nested_access import ELEMENT, SUBSCRIPT, TRIED_ELEMENT
from rowsieve.bridges.sql.spark.read.calls_by_name import TRIED, TRUNC
from rowsieve.bridges.sql.spark.types.numbers_and_times import INSTANT, is_text
from rowsieve.bridges.sql.spark.types.typed_values import Value, typed_value
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.functions.registry import known_of, resolve
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    Int,
    List,
    LogicalType,
    Map,
    String,
    Timestamp,
    type_name,
)


class Types(Protocol):
    """Gives operands Spark's types; implemented in `types/typer.py`."""

    @property
    def ansi(self) -> bool:
        """Whether the session is in ANSI mode."""

    def of_text(self, value: Value, other: LogicalType | None) -> Value:
        """Cast text as Spark does next to a value of the other type."""

    def as_type(self, value: Value, type_: LogicalType | None) -> ir.Operand:
        """Apply an implicit cast."""

    def tried(self, name: str, left: Value, right: Value) -> Value:
        """Type an operator that is NULL where it would fail."""


def plain(typer: Types, node: ir.Call, values: Sequence[Value]) -> Value:
    """Type a call whose arguments Spark does not cast; its counts have 32 bits."""
    types = [value.type for value in values]
    arguments = [value.operand for value in values]
    row, signature = resolve(node.function, known_of(arguments, types))
    if not typer.ansi and row.can_fail(signature) and node.function not in _OF_ZONES:
        raise UnsupportedOperation(f"{node.function} may fail otherwise where ANSI mode is off")
    if signature.result == Int(64) and node.function not in _LONGS:
        return Value(node, Int(32), loose=True)
    return typed_value(node, signature.result)


_OF_ZONES = frozenset({"local_time", "instant", "timezone"})  # they fail on overflow of 64 bits
_LOCAL = Timestamp()
_BITS = ("bit_and", "bit_or", "bit_xor", "shift_left", "shift_right")
_LONGS = frozenset({"epoch_us", *_BITS})


def is_part(name: str) -> bool:
    """Whether it is a function of one part of a date or timestamp, such as `extract_year`."""
    return name.startswith("extract_")


def _signed(typer: Types, node: ir.Call, values: list[Value]) -> Value:
    """Type `negate` and `abs`; `abs` of integers wraps if negation does."""
    value = _number(typer, values[0])
    if not isinstance(value.type, Int | Float | Decimal):
        raise UnsupportedOperation(f"{node.function} of a value that is not a number")
    if node.function == "abs" and isinstance(value.type, Int) and not typer.ansi:
        negative = ir.Comparison(ir.ComparisonOp.LT, value.operand, ir.Literal(0, value.type))
        absolute: ir.Operand = ir.Case(
            ((negative, ir.Call("negate", (value.exact,))),), value.exact
        )
        return Value(absolute, value.type)
    return Value(ir.Call(node.function, (value.exact,)), value.type)


def _bits(typer: Types, node: ir.Call, values: list[Value]) -> Value:
    """Type an operation on bits: unsigned columns are of the longer types that Spark reads."""
    sides = [
        Value(value.exact, value.type)
        if isinstance(value.operand, ir.Column | ir.BoundColumn)
        else value
        for value in values
    ]
    return plain(typer, ir.Call(node.function, tuple(side.operand for side in sides)), sides)


def _length(typer: Types, node: ir.Call, values: list[Value]) -> Value:
    """Type `size` and `cardinality`, which are -1 for NULL if ANSI mode is off."""
    length = plain(typer, node, values)
    if typer.ansi:
        return length
    return Value(ir.Call("coalesce", (length.exact, ir.Literal(-1, Int(32)))), Int(32))


def _to_whole(typer: Types, node: ir.Call, values: list[Value]) -> Value:
    value = _number(typer, values[0])
    match value.type:
        case Int():
            return Value(value.exact, Int(64), loose=True)
        case Decimal(precision=precision, scale=scale):
            result = Decimal(min(38, precision - scale + 1), 0)
            return Value(ir.Call(node.function, (value.exact,)), result, loose=True)
        case Float() if typer.ansi:
            wide = typer.as_type(value, Float(64))
            return Value(ir.Cast(ir.Call(node.function, (wide,)), Int(64)), Int(64))
    raise UnsupportedOperation(f"{node.function} gives bigints, cut where ANSI mode is off")


def _rounded(typer: Types, __: ir.Call, values: list[Value]) -> Value:
    value, *digits = values
    value = _number(typer, value)
    count = digits[0].operand.value if digits and isinstance(digits[0].operand, ir.Literal) else 0
    if not isinstance(count, int) or (digits and not isinstance(digits[0].operand, ir.Literal)):
        raise UnsupportedOperation("round takes a constant count of digits")
    rounded = ir.Call("round", (value.exact, *(ir.Literal(count, Int(32)) for _ in digits)))
    match value.type:
        case Int() if count >= 0:
            return value
        case Float(bits=32) if count == 0:
            return Value(ir.Call("round", (value.exact,)), value.type)
        case Float(bits=64) if count >= 0:
            return Value(rounded, value.type)
        case Decimal(precision=precision, scale=scale) if count >= 0:
            digit_count = min(count, scale)
            result = Decimal(min(38, precision - scale + 1 + digit_count), digit_count)
            rounded = ir.Call("round", (value.exact, ir.Literal(digit_count, Int(32))))
            return Value(rounded, result, loose=True)
    raise UnsupportedOperation("round of a float32 to digits, or before the point")


def _number(typer: Types, value: Value) -> Value:
    """Cast text to double; other values are unchanged."""
    return typer.of_text(value, Float(64))


def _real(typer: Types, node: ir.Call, values: list[Value]) -> Value:
    """Type a function of doubles."""
    value = _number(typer, values[0])
    if not isinstance(value.type, Int | Float):
        raise UnsupportedOperation(f"{node.function} of a value that is not a float")
    operand = value.exact if value.type == Float(64) else ir.Cast(value.exact, Float(64))
    return Value(ir.Call(node.function, (operand,)), Float(64))


def _day_of(typer: Types, value: Value) -> Value:
    """Cast text to a date; raise for values that are neither dates nor timestamps."""
    value = typer.of_text(value, Date()) if is_text(value) else value
    if not isinstance(value.type, Date | Timestamp | None):
        raise UnsupportedOperation(f"{type_name(value.type)} is not a date")
    return value


def _field(typer: Types, node: ir.Call, values: list[Value]) -> Value:
    if is_part(node.function):
        part = node.function.removeprefix("extract_")
        (value,) = values
    else:
        literal = values[0].operand
        part = str(literal.value) if isinstance(literal, ir.Literal) else ""
        value = values[1]
    clock = part in _CLOCK_PARTS
    if is_text(value):
        value = typer.of_text(value, INSTANT if clock else Date())
    if clock and isinstance(value.type, Date):
        value = Value(ir.Cast(value.exact, INSTANT), INSTANT)
    if not isinstance(value.type, Date | Timestamp):
        raise UnsupportedOperation(f"{part} of a value that is not a date or timestamp")
    component = ir.Call("extract", (ir.Literal(part, String()), value.exact))
    if part == "second":
        return Value(component, Decimal(8, 6))
    return Value(component, Int(32), loose=True)


_CLOCK_PARTS = frozenset({"hour", "minute", "second", "whole_second"})


def _truncated(typer: Types, node: ir.Call, values: list[Value]) -> Value:
    """Type `date_trunc`, whose result is always an instant."""
    unit, value = values
    if is_text(value):
        value = typer.of_text(value, INSTANT)
    if not isinstance(value.type, Date | Timestamp):
        raise UnsupportedOperation("date_trunc of a value that is not a date or timestamp")
    instant = typer.as_type(value, INSTANT)
    return Value(ir.Call(node.function, (unit.operand, instant)), INSTANT)


def _truncated_date(typer: Types, _: ir.Call, values: list[Value]) -> Value:
    """Type `trunc`, whose result is a date."""
    unit, value = values[0], _day_of(typer, values[1])
    day = typer.as_type(value, Date())
    return Value(ir.Cast(ir.Call("date_trunc", (unit.operand, day)), Date()), Date())


def _element(typer: Types, node: ir.Call, values: list[Value]) -> Value:
    """Type an element of a list at a constant index, or of a map at a constant key."""
    value, key = values
    constant = value_of(key.operand)
    if isinstance(value.type, Map):
        if constant is None:
            raise UnsupportedOperation("a map's value is read at a constant key only")
        return typed_value(
            ir.Call("map_value", (value.operand, key.operand)), value.type.value.type
        )
    first = 0 if node.function == SUBSCRIPT else 1
    if not isinstance(value.type, List) or not isinstance(constant, int) or constant < first:
        raise UnsupportedOperation(f"an element of a list takes a constant place from {first}")
    if node.function != TRIED_ELEMENT and typer.ansi:
        raise UnsupportedOperation(
            "spark fails where a list has no such element; write get(list, place) or try_element_at"
        )
    element = ir.Call("list_element", (value.operand, ir.Literal(constant + 1 - first, Int(64))))
    return typed_value(element, value.type.element.type)


def _tried(typer: Types, node: ir.Call, values: list[Value]) -> Value:
    if len(values) != 2:
        raise UnsupportedOperation(f"{node.function} takes two arguments, not {len(values)}")
    return typer.tried(TRIED[node.function], *values)


def _shifted(_: Types, __: ir.Call, values: list[Value]) -> Value:
    value, *parts = values
    steps = tuple(
        ir.Literal(part.operand.value, Int(64))
        for part in parts
        if isinstance(part.operand, ir.Literal)
    )
    if not isinstance(value.type, Date | Timestamp) or len(steps) != 3:
        raise UnsupportedOperation("only a constant interval is added to a date or a timestamp")
    operand, type_ = value.exact, value.type
    if isinstance(type_, Date) and steps[2].value:
        operand, type_ = ir.Cast(operand, INSTANT), INSTANT
    return Value(ir.Call("shift", (operand, *steps)), type_)


def _formatted(typer: Types, node: ir.Call, values: list[Value]) -> Value:
    """Type `date_format`; Spark casts dates and local times to instants first."""
    value = typer.of_text(values[0], INSTANT)
    if not isinstance(value.type, Date | Timestamp):
        raise UnsupportedOperation("date_format of a value that is not a date or timestamp")
    shown = ir.Cast(typer.as_type(value, INSTANT), Timestamp())
    return Value(ir.Call(node.function, (shown, values[1].operand)), String())


def _since_1970(typer: Types, node: ir.Call, values: list[Value]) -> Value:
    """Type a count since 1970 of an instant, a local time, or midnight of a date.

    A second argument is the other side of a difference: Spark subtracts local times.
    """
    value, *others = values
    types = [each.type for each in values]
    if not all(isinstance(each, Date | Timestamp) for each in types):
        raise UnsupportedOperation(f"{node.function} of a value that is not a date or timestamp")
    if not others and value.type != _LOCAL:
        counted = typer.as_type(value, INSTANT)
    elif INSTANT in types:
        counted = typer.as_type(Value(typer.as_type(value, INSTANT), INSTANT), _LOCAL)
    else:
        counted = typer.as_type(value, _LOCAL)
    return Value(ir.Call(node.function, (counted,)), Int(64))


def _of_days(type_: LogicalType) -> Handler:
    def handler(typer: Types, node: ir.Call, values: list[Value]) -> Value:
        days = [typer.as_type(_day_of(typer, value), Date()) for value in values]
        return Value(ir.Call(node.function, tuple(days)), type_, loose=isinstance(type_, Int))

    return handler


Handler = Callable[[Types, ir.Call, list[Value]], Value]
_FIELDS = (
    "extract year isoyear quarter month week day doy dow isodow hour minute second whole_second"
)
HANDLERS: Mapping[str, Handler] = {
    "negate": _signed,
    "abs": _signed,
    "list_length": _length,
    **dict.fromkeys(_BITS, _bits),
    "floor": _to_whole,
    "ceil": _to_whole,
    "round": _rounded,
    **dict.fromkeys(("sqrt", "degrees", "radians", "sign"), _real),
    **dict.fromkeys(_FIELDS.split(), _field),
    "date_trunc": _truncated,
    "shift": _shifted,
    "format_time": _formatted,
    "epoch_us": _since_1970,
    "epoch_seconds": _since_1970,
    TRUNC: _truncated_date,
    **dict.fromkeys((ELEMENT, SUBSCRIPT, TRIED_ELEMENT), _element),
    **dict.fromkeys(TRIED, _tried),
    "last_day": _of_days(Date()),
    "days_between": _of_days(Int(32)),
}
