"""Implicit casts of Spark's analyser where types differ.

Soundness: a pair of types without a rule here is refused.
Source: Catalyst's `TypeCoercion`, `AnsiTypeCoercion` and `DecimalPrecision` (Spark 4.3).
"""

from __future__ import annotations

import decimal

from rowsieve.bridges.constant_values import text_of, value_of
from rowsieve.bridges.sql.spark.types.typed_values import Value
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import Cast, Literal, Operand
from rowsieve.predicate.literal_values import int_range
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Timestamp,
)

_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
INSTANT = Timestamp(utc=True)
# Operators whose function depends on the types of the operands, which the text does not contain.
QUOTIENT, WHOLE_QUOTIENT, AMONG = "/", "div", "in"


def common_type(left: LogicalType, right: LogicalType, *, ansi: bool) -> LogicalType | None:
    """Return the common type of two values in Spark; None without a rule here."""
    if left == right:
        return left
    match left, right:
        case Int(), Int():
            return left if left.bits >= right.bits else right
        case (Float(bits=32), Int()) | (Int(), Float(bits=32)):
            return Float(64 if ansi else 32)
        case (Float(), Int() | Float() | Decimal()) | (Int() | Decimal(), Float()):
            return Float(64)
        case (Decimal() | Int(), Decimal() | Int()):
            a, b = as_decimal(left), as_decimal(right)
            scale = max(a.scale, b.scale)
            precision = max(a.precision - a.scale, b.precision - b.scale) + scale
            return Decimal(precision, scale) if precision <= 38 else None
        case (Date(), Timestamp()):
            return right
        case (Timestamp(), Date()):
            return left
        case (Timestamp(), Timestamp()):
            return INSTANT
    return None


def as_decimal(type_: LogicalType) -> Decimal:
    """Return the decimal type to which Spark casts an integer next to a decimal."""
    assert isinstance(type_, Int | Decimal)
    return Decimal(_INTEGER_DIGITS[type_.bits], 0) if isinstance(type_, Int) else type_


def check_whole_numbers(*sides: Value) -> None:
    """Raise for a whole number that is ordered against a constant outside of 64 bits.

    Spark's analyser replaces such a comparison by TRUE or FALSE, also where the number is NULL.
    """
    least, most = int_range(Int(64))
    values = [value_of(side.operand) for side in sides]
    beyond = any(isinstance(v, decimal.Decimal) and not least <= v <= most for v in values)
    if beyond and any(isinstance(side.type, Int) for side in sides):
        raise UnsupportedOperation(
            "an integer compared with a constant outside of 64 bits, which spark replaces by TRUE "
            "or FALSE, also for NULL; write CAST(x AS DECIMAL(38, 0)) for the integer"
        )


def text_of_bytes(node: Cast) -> Literal | None:
    """Return the text of `CAST(X'…' AS STRING)`; None for other casts and for invalid UTF-8."""
    value = value_of(node.operand)
    if not isinstance(value, bytes) or node.type != String():
        return None
    try:
        return Literal(value.decode(), String())
    except UnicodeDecodeError:
        return None


def is_text(value: Value) -> bool:
    """Whether the value is text, constant or not."""
    if isinstance(value.type, String):
        return True
    return value.type is None and text_of(value.operand) is not None


def constant_of(operand: Operand, type_: LogicalType) -> Literal | None:
    """Convert a constant number to a wider integer type or the nearest double; None for others."""
    value = value_of(operand)
    if not isinstance(value, int | decimal.Decimal) or isinstance(value, bool):
        return None
    if isinstance(type_, Int) and isinstance(value, int):
        return Literal(value, type_)
    return Literal(float(value), type_) if type_ == Float(64) else None


def literal_of(node: Literal) -> Value:
    """Give a constant its type in Spark: a bare integer has 32 bits if they hold it."""
    if node.type == Int(64) and isinstance(node.value, int):
        low, high = int_range(Int(32))
        type_ = Int(32) if low <= node.value <= high else Int(64)
        return Value(Literal(node.value, type_), type_)
    if node.type is None and isinstance(node.value, int | decimal.Decimal | float):
        raise UnsupportedOperation(f"the number {node.value} has no type")
    return Value(node, node.type)


def in_digits(value: Value, type_: Decimal) -> Operand:
    """Cast the value to a decimal type."""
    if value.type == type_:
        return value.exact
    literal = value.operand
    if isinstance(literal, Literal) and isinstance(literal.value, int):
        return Literal(decimal.Decimal(literal.value), type_)
    return Cast(value.exact, type_)
