"""The types to which pyarrow converts the two sides of a comparison or of arithmetic.

A constant has the smallest type that holds its value, so that `int8 + 2` is an int8 and `float32 *
1.5` a float32; a uint64 next to a signed number is an int64. pyarrow makes a float64 of a decimal
by a product that rounds (-2.55 becomes -2.5500000000000003). Soundness: sides that we would convert
otherwise are cast to pyarrow's type, or rejected.

Source: Arrow C++ 26, `SmallestTypeFor` and `CommonNumeric` (compute/expression.cc, codegen_internal
.cc); all of it run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal as Number
from decimal import localcontext
from typing import Final

import numpy as np
import pyarrow as pa

from rowsieve.bridges.constant_values import value_of
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Timestamp,
    type_name,
)

TypeOf = Callable[[ir.Operand], LogicalType | None]

_FLOAT32: Final = Float(32)
_FLOAT64: Final = Float(64)
_EXACT_IN_FLOAT32: Final = 2**24
_EXACT_DIGITS: Final = 15  # of a decimal whose neighbours are different float64 values
_NEIGHBOURS: Final = 3


def compared(name: str, operands: Sequence[ir.Operand], type_of: TypeOf) -> tuple[ir.Operand, ...]:
    """Return the sides of a comparison; raise if pyarrow compares them as another type."""
    left, right = types = [type_of(operand) for operand in operands]
    if left is None or right is None or left == right:
        return tuple(operands)
    kinds = {type(left), type(right)}
    whole = kinds == {Int}
    decimals = kinds <= {Int, Decimal}
    double = _FLOAT64 in types and kinds <= {Int, Float}
    days = kinds == {Date, Timestamp} and Timestamp() in types
    if whole or decimals or double or days or _are_apart(operands, types):
        return tuple(operands)
    small = [value for value in map(value_of, operands) if type(value) is int]
    if kinds == {Int, Float} and small and abs(small[0]) <= _EXACT_IN_FLOAT32:
        return tuple(operands)
    raise _refusal(name, types)


def computed(name: str, operands: Sequence[ir.Operand], type_of: TypeOf) -> tuple[ir.Operand, ...]:
    """Return the operands of arithmetic in the type in which pyarrow computes it."""
    sides = tuple(map(_smallest, operands))
    left, right = types = [type_of(side) for side in sides]
    if left is None or right is None or left == right:
        return sides
    kinds = {type(left), type(right)}
    if kinds == {Int}:
        return _signed(name, sides, types)
    if kinds <= {Int, Decimal}:
        return sides
    if kinds <= {Int, Float}:
        target = _FLOAT64 if _FLOAT64 in types else _FLOAT32
        return tuple(_cast(side, target, type_of) for side in sides)
    raise _refusal(name, types)


def _refusal(name: str, types: Sequence[LogicalType | None]) -> UnsupportedOperation:
    left, right = ("NULL" if type_ is None else type_name(type_) for type_ in types)
    return UnsupportedOperation(f"{name} of {left} and {right}: cast one to the other's type")


def _smallest(side: ir.Operand) -> ir.Operand:
    """Return a constant in the smallest type that holds it; other operands as they are."""
    match side:
        case ir.Literal(value=int() as value, type=Int(signed=True)):
            bits = next(
                bits for bits in (8, 16, 32, 64) if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
            )
            return ir.Literal(value, Int(bits))
        case ir.Literal(value=int() as value, type=Int(signed=False)):
            bits = next(bits for bits in (8, 16, 32, 64) if value < 2**bits)
            return ir.Literal(value, Int(bits, signed=False))
        case ir.Literal(value=float() as value, type=Float(bits=64)):
            with np.errstate(over="ignore"):
                short = float(np.float32(value))
            return ir.Literal(value, _FLOAT32) if short == value or math.isnan(value) else side
        case _:
            return side


def _signed(
    name: str, sides: tuple[ir.Operand, ...], types: Sequence[LogicalType | None]
) -> tuple[ir.Operand, ...]:
    """Return whole numbers, a uint64 next to a signed one as an int64."""
    wide = Int(64, signed=False)
    if wide not in types or all(isinstance(type_, Int) and not type_.signed for type_ in types):
        return sides
    if any(isinstance(side, ir.Literal) and side.type == wide for side in sides):
        raise _refusal(name, types)
    return tuple(
        ir.Cast(side, Int(64)) if type_ == wide else side
        for side, type_ in zip(sides, types, strict=True)
    )


def _cast(side: ir.Operand, target: Float, type_of: TypeOf) -> ir.Operand:
    if isinstance(side, ir.Literal) and isinstance(side.value, int | float):
        return ir.Literal(float(side.value), target)
    return side if type_of(side) == target else ir.Cast(side, target)


def _are_apart(operands: Sequence[ir.Operand], types: Sequence[LogicalType | None]) -> bool:
    """Whether a decimal compares with a constant float64 as pyarrow's cast of it does.

    Both casts keep the order of decimals, so only the nearest decimals can compare otherwise.
    """
    decimal = next((type_ for type_ in types if isinstance(type_, Decimal)), None)
    value = next((each for each in map(value_of, operands) if isinstance(each, float)), None)
    if decimal is None or value is None or _FLOAT64 not in types:
        return False
    if not math.isfinite(value):
        return True
    if decimal.precision > _EXACT_DIGITS or decimal.scale < 0:
        return False
    digits = Number(10) ** decimal.precision
    with localcontext(prec=400):
        nearest = max(min(Number(value).scaleb(decimal.scale), digits), -digits).to_integral_value()
        steps = [nearest + step for step in range(-_NEIGHBOURS, _NEIGHBOURS + 1)]
        near = [step.scaleb(-decimal.scale) for step in steps if abs(step) < digits]
    column = pa.array(near, pa.decimal128(decimal.precision, decimal.scale))
    theirs = column.cast(pa.float64()).to_pylist()
    ours = [float(number) for number in near]
    return [_order(each, value) for each in theirs] == [_order(each, value) for each in ours]


def _order(one: float, other: float) -> int:
    return (one > other) - (one < other)
