"""Types of operands in polars: of two columns, and of constants without a type.

Soundness: a constant takes the type of the other operand if polars keeps its value; any other
mixture of types is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rowsieve.bridges.base import TreeReader
from rowsieve.bridges.constant_values import value_of
from rowsieve.bridges.polars_exprs import function_table
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.literal_values import int_range
from rowsieve.types.logical import (
    Binary,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Uuid,
    type_name,
)


class Operands(TreeReader[Any]):
    """Types operands over the columns of one schema."""

    def expect(
        self, what: str, operands: Sequence[ir.Operand], *kinds: type[LogicalType]
    ) -> LogicalType:
        """Return the first operand's type; raise unless each is NULL or of one of the kinds."""
        for operand in operands:
            type_ = self.type_of(operand)
            bare_null = isinstance(operand, ir.Literal) and operand.value is None
            if not isinstance(type_, kinds) and not bare_null:
                wanted = " or ".join(kind.__name__.lower() for kind in kinds)
                found = "a plain number" if type_ is None else type_name(type_)
                raise UnsupportedOperation(f"{what} is of {wanted} here, not of {found}")
        return self.type_of(operands[0]) or String()

    def met(self, left: ir.Operand, right: ir.Operand) -> tuple[ir.Operand, ir.Operand]:
        """Return both sides of a comparison, a constant with its value in polars."""
        types = self.type_of(left), self.type_of(right)
        match types:
            case (None, None):
                if all(
                    isinstance(side, ir.Literal) and side.value is None for side in (left, right)
                ):
                    return left, right
                raise UnsupportedOperation("a comparison of plain constants")
            case (None, type_) if type_ is not None:
                return self._beside(left, type_), right
            case (type_, None) if type_ is not None:
                return left, self._beside(right, type_)
            case (Int(), Int()) | (Decimal(), Decimal()) | (Float(), Float()):
                return left, right
            case (Binary() | Uuid(), Binary() | Uuid()):
                return left, right
            case (a, b) if a == b:
                return left, right
            case (a, b):
                assert a is not None
                assert b is not None
                raise UnsupportedOperation(
                    f"a comparison of {type_name(a)} with {type_name(b)}: cast one to the type of "
                    "the other"
                )

    def aligned(self, what: str, operands: Sequence[ir.Operand]) -> list[ir.Operand]:
        """Return the operands in one type: that of the typed ones, which constants take."""
        types = {type_ for operand in operands if (type_ := self.type_of(operand)) is not None}
        if len(types) != 1:
            shown = ", ".join(sorted(map(type_name, types))) or "plain constants"
            raise UnsupportedOperation(f"{what} of {shown}: cast all to one type")
        (type_,) = types
        return [self._typed(what, operand, type_) for operand in operands]

    def arithmetic(self, operator: str, left: ir.Operand, right: ir.Operand) -> ir.Operand:
        """Return arithmetic of numbers, or + of text."""
        name = function_table.ARITHMETIC[operator]
        types = [type_ for side in (left, right) if (type_ := self.type_of(side)) is not None]
        if operator == "Plus" and types and all(isinstance(type_, String) for type_ in types):
            return ir.Call("concat_strict", (left, right))
        if operator == "TrueDivide" and types and all(isinstance(type_, Int) for type_ in types):
            left, right = self._as_float(left), self._as_float(right)
        if types and all(isinstance(t, Int) and t.bits >= 32 for t in types):
            if isinstance(left, ir.Literal) and isinstance(left.value, float) and left.type is None:
                right = self._as_float(right)
            elif isinstance(right, ir.Literal) and isinstance(right.value, float):
                left = self._as_float(left) if right.type is None else left
        left, right = self.aligned(operator, (left, right))
        type_ = self.expect(operator, (left, right), Int, Float)
        if isinstance(type_, Float):
            if operator in ("TruncDivide", "FloorDivide", "Modulus"):
                raise UnsupportedOperation(f"{operator} of floats has no counterpart in Rowsieve")
        elif operator in ("FloorDivide", "Modulus"):
            return self._floored(operator, left, right, type_)
        return ir.Call(name, (left, right))

    def _floored(
        self, operator: str, left: ir.Operand, right: ir.Operand, type_: LogicalType
    ) -> ir.Operand:
        """Return division that rounds down, written with division that truncates."""
        whole, rest = ir.Call("divide", (left, right)), ir.Call("modulo", (left, right))
        if isinstance(type_, Int) and not type_.signed:
            return whole if operator == "FloorDivide" else rest
        if not (isinstance(right, ir.Literal) and isinstance(right.value, int) and right.value > 0):
            raise UnsupportedOperation(f"{operator} of signed numbers by no constant above 0")
        below = ir.Comparison(ir.ComparisonOp.LT, rest, ir.Literal(0, type_))
        if operator == "Modulus":
            return ir.Case(((below, ir.Call("add", (rest, right))),), rest)
        return ir.Case(((below, ir.Call("subtract", (whole, ir.Literal(1, type_)))),), whole)

    def _typed(self, what: str, operand: ir.Operand, type_: LogicalType) -> ir.Operand:
        if not isinstance(operand, ir.Literal) or operand.type is not None:
            return operand
        if operand.value is None:
            return ir.Literal(None, type_)
        value = operand.value
        if isinstance(type_, Int) and isinstance(value, int):
            low, high = int_range(type_)
            if low <= value <= high:
                return ir.Literal(value, type_)
        elif isinstance(type_, Float) and isinstance(value, int | float):
            return as_float(value, type_)
        raise UnsupportedOperation(f"{what} of a {type_name(type_)} and {value!r}: cast one side")

    def _beside(self, operand: ir.Operand, type_: LogicalType) -> ir.Operand:
        """Return a constant without a type, as compared with a value of the type."""
        value = value_of(operand)
        if isinstance(value, bool) or value is None:
            return operand
        if isinstance(type_, Float) and isinstance(value, int | float):
            return as_float(value, type_)
        if isinstance(type_, Int) and isinstance(value, int | float):
            return operand if isinstance(value, int) else ir.Literal(value, Float(64))
        raise UnsupportedOperation(f"a comparison of {type_name(type_)} with {value!r}")

    def _as_float(self, operand: ir.Operand) -> ir.Operand:
        if isinstance(operand, ir.Literal) and operand.type is None and operand.value is not None:
            assert isinstance(operand.value, int | float)
            return as_float(operand.value, Float(64))
        return ir.Cast(operand, Float(64))


def as_float(value: float, type_: Float) -> ir.Literal:
    """Return a bare number as polars' float."""
    if isinstance(value, int) and abs(value) > 2 ** (24 if type_.bits == 32 else 53):
        raise UnsupportedOperation(f"the integer {value} compared with a float; write a float")
    made = float(value)
    if type_.bits == 32:
        made = pa.scalar(made, pa.float64()).cast(pa.float32()).as_py()
        if math.isinf(made) and not math.isinf(value):
            raise UnsupportedOperation(f"the number {value!r} is beyond float32")
    return ir.Literal(made, type_)
