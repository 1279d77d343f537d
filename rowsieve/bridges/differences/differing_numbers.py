"""Arithmetic, casts and comparisons of numbers that an engine evaluates differently."""

from __future__ import annotations

import math

import numpy as np

from rowsieve.bridges.constant_values import value_of
from rowsieve.bridges.differences.engine_difference import Difference, Direction
from rowsieve.predicate import ir
from rowsieve.predicate.literal_values import int_range
from rowsieve.predicate.operand_types import type_of
from rowsieve.types.logical import Decimal, Float, Int, LogicalType

_BOTH = Direction.READS | Direction.WRITES
_COMPARED = frozenset({ir.Comparison, ir.InList})
_SIGNED_DIGITS = 34
_WORD_DIGITS = 18
_MAX_DIGITS = 38


def _may_be_infinite(node: ir.Cast) -> bool:
    """A cast of float64 that may overflow float32; constants are checked exactly."""
    if node.type != Float(32):
        return False
    if type_of(operand := node.operand) != Float(64):
        return False
    if not isinstance(operand, ir.Literal) or not isinstance(operand.value, float):
        return not (isinstance(operand, ir.Literal) and operand.value is None)
    with np.errstate(over="ignore"):
        return bool(np.isinf(np.float32(operand.value)) and not np.isinf(operand.value))


def _inexact_reciprocal(node: ir.Call) -> bool:
    """A float divided by a constant that is not a power of 2, whose reciprocal is not exact."""
    if not isinstance(type_ := type_of(node), Float):
        return False
    divisor = node.arguments[1]
    if any(isinstance(part, ir.BoundColumn) for part in ir.walk(divisor)):
        return False
    value = divisor.value if isinstance(divisor, ir.Literal) else math.pi
    return value is not None and not (isinstance(value, float) and _has_reciprocal(value, type_))


def _has_reciprocal(value: float, type_: Float) -> bool:
    if value == 0 or not math.isfinite(value):
        return True
    mantissa, exponent = math.frexp(value)
    return abs(mantissa) == 0.5 and exponent > (-126 if type_.bits == 32 else -1022)


def _long_sign(node: ir.Call) -> bool:
    type_ = type_of(node.arguments[0])
    return isinstance(type_, Decimal) and type_.precision > _SIGNED_DIGITS


def _long_decimals(node: ir.Comparison) -> bool:
    """A comparison of decimals that no type of 38 digits holds all of."""
    left, right = type_of(node.left), type_of(node.right)
    if not isinstance(left, Decimal) or not isinstance(right, Decimal):
        return False
    (whole, scale), (wholes, scales) = _digits(left), _digits(right)
    return max(whole, wholes) + max(scale, scales) > _MAX_DIGITS


def _negative_beside_nan(node: ir.Comparison) -> bool:
    """`-x < NaN`, which DuckDB's optimiser rewrites to `x > -NaN`: no number is above NaN."""
    if not node.op.is_order:
        return False
    return any(
        isinstance(one, ir.Call) and one.function == "negate" and _is_nan(other)
        for one, other in ((node.left, node.right), (node.right, node.left))
    )


def _is_nan(operand: ir.Operand) -> bool:
    while isinstance(operand, ir.Cast):
        operand = operand.operand
    value = value_of(operand)
    return isinstance(value, float) and math.isnan(value)


def _compares_lossy_cast(node: ir.Comparison | ir.InList) -> bool:
    """A constant compared with a cast of a number that may lose digits, or fail."""
    match node:
        case ir.Comparison(left=left, right=right):
            sides = (left, right)
            return any(map(_is_constant, sides)) and any(map(_is_lossy_cast, sides))
        case ir.InList(operand=operand):
            return _is_lossy_cast(operand)


def _is_lossy_cast(operand: ir.Operand) -> bool:
    """Whether one of the outermost casts may lose digits."""
    while isinstance(operand, ir.Cast):
        if _loses_digits(type_of(operand.operand), operand.type):
            return True
        operand = operand.operand
    return False


def _is_constant(operand: ir.Operand) -> bool:
    return not any(isinstance(node, ir.BoundColumn) for node in ir.walk(operand))


def _loses_digits(source: LogicalType, target: LogicalType) -> bool:
    """Whether a whole number or decimal may not fit in another such type."""
    match source, target:
        case Int(), Int():
            low, high = int_range(source)
            least, most = int_range(target)
            return not least <= low <= high <= most
        case ((Int() | Decimal()), (Int() | Decimal())):
            (whole, scale), (wholes, scales) = map(_digits, (source, target))
            return scale > scales or whole > wholes
        case _:
            return False


def _rounds_twice(node: ir.Cast) -> bool:
    """A float of a decimal without places that has more digits than 64 bits hold."""
    source = type_of(node.operand)
    if not isinstance(node.type, Float) or isinstance(node.operand, ir.Literal):
        return False
    return isinstance(source, Decimal) and source.scale == 0 and source.precision > _WORD_DIGITS


def _digits(type_: LogicalType) -> tuple[int, int]:
    """Return the digits before and after the point."""
    if isinstance(type_, Decimal):
        return type_.precision - type_.scale, type_.scale
    assert isinstance(type_, Int)
    return len(str(int_range(type_)[1])), 0


ROWS = (
    Difference(
        *("datafusion", Direction.ANSWERS | _BOTH, _COMPARED, _compares_lossy_cast),
        "compares a number without its cast, which the optimiser removes",
        "compare the number itself",
        "CAST(i64 AS INT) = 7",
    ),
    *(
        Difference(
            *(engine, _BOTH, frozenset({ir.Cast}), _may_be_infinite),
            "overflows to infinity if a float64 is too large for float32; Rowsieve raises",
        )
        for engine in ("polars", "datafusion")
    ),
    Difference(
        *("polars", _BOTH, frozenset({"divide"}), _inexact_reciprocal),
        "multiplies by the reciprocal of a constant divisor, unless the frame has one row",
        "divide by a power of 2",
    ),
    Difference(
        *("spark", Direction.ANSWERS, frozenset({"negate", "abs"}), _long_sign),
        f"keeps {_SIGNED_DIGITS} digits in the negative or absolute value of a decimal",
    ),
    *(
        Difference(
            *(engine, Direction.WRITES, frozenset({ir.Comparison}), _long_decimals),
            f"compares decimals in one type of {_MAX_DIGITS} digits, which some do not fit",
            "cast the longer one to a type with fewer digits",
        )
        for engine in ("duckdb", "datafusion", "trino", "spark")
    ),
    Difference(
        *("duckdb", Direction.ANSWERS | _BOTH, frozenset({ir.Cast}), _rounds_twice),
        f"makes a float of a decimal of more than {_WORD_DIGITS} digits without places by two "
        "roundings",
        f"cast it to DECIMAL({_WORD_DIGITS}, 0), or compare it without a float",
        "CAST(CAST(i64 AS DECIMAL(20,0)) AS double precision) = 1",
    ),
    Difference(
        *("duckdb", _BOTH, frozenset({ir.Comparison}), _negative_beside_nan),
        "rewrites -x < NaN to x > NaN",
    ),
)
