"""Spark's arithmetic and functions of numbers as calls of ours.

Soundness: whole numbers that overflow are read where that is an error in Spark, or where the
predicate is meant by rules under which they wrap; division by zero has a guard where it is NULL;
decimals are read only where 38 digits hold the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rowsieve.bridges.spark_columns import table
from rowsieve.bridges.spark_columns.read import Handler, Reader
from rowsieve.bridges.spark_columns.tree import Node
from rowsieve.bridges.spark_columns.values import Value, constant_of, one_type
from rowsieve.bridges.sql import spark_rules
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import (
    Decimal,
    Float,
    Int,
    LogicalType,
    type_name,
)

_WRAPS = "whole numbers that overflow wrap around where ANSI mode is off"


def _arithmetic(reader: Reader, node: Node) -> Value:
    name = table.ARITHMETIC[node.kind]
    left, right = (reader.value(child) for child in node.children)
    if left.type is None or right.type is None:
        raise UnsupportedOperation(f"{name} of NULL")
    if isinstance(left.type, Decimal) and isinstance(right.type, Decimal):
        return _decimals(node, name, left, right)
    if left.type != right.type or not isinstance(left.type, Int | Float):
        shown = f"{type_name(left.type)} and {type_name(right.type)}"
        raise UnsupportedOperation(f"{name} of {shown} has no counterpart here")
    mode = node.mode()
    if isinstance(left.type, Int) and mode != "ANSI" and not (reader.wraps and mode == "LEGACY"):
        harmless = name == "modulo" or (
            name == "divide" and constant_of(right) not in (None, 0, -1)
        )
        if not harmless:
            raise UnsupportedOperation(_WRAPS)
    made = ir.Call(name, (left.exact, right.exact))
    type_ = Int(64) if node.kind == "IntegralDivide" else left.type
    if name in ("divide", "modulo") and mode != "ANSI":
        return Value(_unless_zero(right, made, type_), type_)
    return Value(made, type_)


def _decimals(node: Node, name: str, left: Value, right: Value) -> Value:
    a, b = left.type, right.type
    assert isinstance(a, Decimal)
    assert isinstance(b, Decimal)
    result = spark_rules.decimal_result(name, a, b)
    if result is None or node.kind == "IntegralDivide":
        raise UnsupportedOperation(f"{name} of decimals with more than 38 digits in the result")
    if name == "divide" and not _loses_digits(node):
        raise UnsupportedOperation("division of decimals follows a setting of the session")
    made = ir.Call(name, (left.exact, right.exact))
    if name in ("divide", "modulo") and node.mode() != "ANSI":
        return Value(_unless_zero(right, made, result), result)
    return Value(made, result)


def _loses_digits(node: Node) -> bool:
    return node.source is None or bool(node.source().evalContext().allowDecimalPrecisionLoss())


def _unless_zero(divisor: Value, made: ir.Operand, type_: LogicalType) -> ir.Operand:
    zero = ir.Comparison(ir.ComparisonOp.EQ, divisor.operand, ir.Literal(0, Int(32)))
    return ir.Case(((zero, ir.Literal(None, type_)),), made)


def _one_number(name: str) -> Handler:
    def handler(reader: Reader, node: Node) -> Value:
        value = reader.value(node.children[0])
        if not isinstance(value.type, Int | Float | Decimal):
            raise UnsupportedOperation(f"{name} of something that is no number")
        spark_rules.check_sign(value.type)
        if isinstance(value.type, Int) and not node.option("failOnError"):
            if not reader.wraps:
                raise UnsupportedOperation(_WRAPS)
            if name == "abs":  # the least value wraps there, as negating it does
                below = ir.Comparison(ir.ComparisonOp.LT, value.operand, ir.Literal(0, value.type))
                made = ir.Case(((below, ir.Call("negate", (value.exact,))),), value.exact)
                return Value(made, value.type)
        return Value(ir.Call(name, (value.exact,)), value.type)

    return handler


def _to_whole(name: str) -> Handler:
    def handler(reader: Reader, node: Node) -> Value:
        value = reader.value(node.children[0])
        match value.type:
            case Int():
                return value
            case Decimal(precision=precision, scale=scale):
                if not scale:
                    return value
                result = Decimal(min(38, precision - scale + 1), 0)
                return Value(ir.Call(name, (value.exact,)), result, loose=True)
            case Float() if node.option("failOnError"):
                return Value(ir.Cast(ir.Call(name, (value.exact,)), Int(64)), Int(64))
            case _:
                raise UnsupportedOperation(f"{node.kind} gives bigints where ANSI mode is off")

    return handler


def _round(reader: Reader, node: Node) -> Value:
    value = reader.value(node.children[0])
    digits = constant_of(reader.value(node.children[1]))
    match value.type:
        case Float() if digits == 0:
            return Value(ir.Call("round", (value.exact,)), value.type)
        case Float(bits=64) if isinstance(digits, int) and 0 < digits <= 15:
            made = ir.Call("round", (value.exact, ir.Literal(digits, Int(32))))
            return Value(made, value.type)
        case Int() if isinstance(digits, int) and digits >= 0:
            return value
        case Decimal(precision=precision, scale=scale) if isinstance(digits, int) and digits >= 0:
            kept = min(digits, scale)
            result = Decimal(min(38, precision - scale + 1 + kept), kept)
            made = ir.Call("round", (value.exact, ir.Literal(kept, Int(32))))
            return Value(made, result, loose=True)
    raise UnsupportedOperation("round of a float32 to digits, or before the point")


def _is_nan(reader: Reader, node: Node) -> ir.Predicate:
    return _nan(reader.value(node.children[0]))


def _nan(value: Value) -> ir.Predicate:
    if not isinstance(value.type, Float):
        raise UnsupportedOperation("NaN of something that is no float")
    return ir.Comparison(
        ir.ComparisonOp.NOT_DISTINCT, value.operand, ir.Literal(math.nan, value.type)
    )


def _nanvl(reader: Reader, node: Node) -> Value:
    value, other = (reader.value(child) for child in node.children)
    type_ = one_type("nanvl", [value, other])
    return Value(ir.Case(((_nan(value), other.exact),), value.exact), type_)


def _of_double(name: str) -> Handler:
    def handler(reader: Reader, node: Node) -> Value:
        value = reader.value(node.children[0])
        if value.type != Float(64):
            raise UnsupportedOperation(f"{node.kind} of something that is no double")
        return Value(ir.Call(name, (value.exact,)), value.type)

    return handler


def _bits(name: str) -> Handler:
    def handler(reader: Reader, node: Node) -> Value:
        left, right = (reader.value(child) for child in node.children)
        if left.type != right.type or not isinstance(left.type, Int):
            raise UnsupportedOperation("bits of something that is no whole number")
        return Value(ir.Call(name, (left.exact, right.exact)), left.type)

    return handler


def _shift(name: str) -> Handler:
    def handler(reader: Reader, node: Node) -> Value:
        value, count = (reader.value(child) for child in node.children)
        places = constant_of(count)
        wide = (64,) if name == "shift_left" else (32, 64)
        if not isinstance(value.type, Int) or value.type.bits not in wide:
            raise UnsupportedOperation("a shift of few bits")
        if not isinstance(places, int) or not 0 <= places < value.type.bits:
            raise UnsupportedOperation("a shift takes a bigint and a constant count below 64 here")
        return Value(ir.Call(name, (value.exact, ir.Literal(places, Int(64)))), value.type)

    return handler


NUMBERS: Mapping[str, Handler] = {
    **dict.fromkeys(table.ARITHMETIC, _arithmetic),
    "UnaryMinus": _one_number("negate"),
    "Abs": _one_number("abs"),
    "Floor": _to_whole("floor"),
    "Ceil": _to_whole("ceil"),
    "Round": _round,
    "IsNaN": _is_nan,
    "NaNvl": _nanvl,
    "Sqrt": _of_double("sqrt"),
    "ToDegrees": _of_double("degrees"),
    "ToRadians": _of_double("radians"),
    "Signum": _of_double("sign"),
    "BitwiseAnd": _bits("bit_and"),
    "BitwiseOr": _bits("bit_or"),
    "BitwiseXor": _bits("bit_xor"),
    "ShiftRight": _shift("shift_right"),
    "ShiftLeft": _shift("shift_left"),
}
