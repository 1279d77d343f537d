"""Calls that an engine computes from another type, or by another formula, than we do.

PostgreSQL, DuckDB and DataFusion take `floor` and `ceil` of a whole number, and PostgreSQL `round`,
as those of a float64: 2^53 + 1 becomes 2^53, and a quotient of it a fraction. PostgreSQL rounds a
whole number to digits as a numeric, and divides for `degrees`. Soundness: the result has the casts
and operations that give the engine's values.

Source: PostgreSQL 18 (`pg_proc`, `RADIANS_PER_DEGREE` in its float.h), DuckDB 2.0, DataFusion 55;
all of it run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Decimal, Float, Int, LogicalType
from rowsieve.types.schema import Schema

_FLOAT64: Final = Float(64)
_RADIANS_PER_DEGREE: Final = ir.Literal(0.017453292519943295, _FLOAT64)
_THOUSAND: Final = ir.Literal(1000, Int(64))

# The call with its arguments, and the type of the first one; the same call if nothing differs.
_Formula: TypeAlias = Callable[[ir.Call, LogicalType | None], ir.Operand]


def _of_a_float(call: ir.Call, type_: LogicalType | None) -> ir.Operand:
    if len(call.arguments) != 1 or not isinstance(type_, Int):
        return call
    return ir.Call(call.function, (ir.Cast(call.arguments[0], _FLOAT64),))


def _rounded(call: ir.Call, type_: LogicalType | None) -> ir.Operand:
    if len(call.arguments) == 1 or not isinstance(type_, Int):
        return _of_a_float(call, type_)
    return ir.Call("round", (ir.Cast(call.arguments[0], Decimal(38, 0)), *call.arguments[1:]))


def _by_angle(operation: str) -> _Formula:
    def made(call: ir.Call, type_: LogicalType | None) -> ir.Operand:
        (angle,) = call.arguments
        if type_ != _FLOAT64:
            angle = ir.Cast(angle, _FLOAT64)
        return ir.Call(operation, (angle, _RADIANS_PER_DEGREE))

    return made


def _milliseconds(call: ir.Call, _type: LogicalType | None) -> ir.Operand:
    """Return 1000 times the seconds, which have a fraction."""
    return ir.Call("multiply", (ir.Call("extract_second", call.arguments), _THOUSAND))


_FORMULAS: Mapping[str, Mapping[str, _Formula]] = {
    "postgres": {
        "floor": _of_a_float,
        "ceil": _of_a_float,
        "round": _rounded,
        "degrees": _by_angle("divide"),
        "radians": _by_angle("multiply"),
        "extract_millisecond": _milliseconds,
    },
    "datafusion": {"floor": _of_a_float, "ceil": _of_a_float},
    "duckdb": {"floor": _of_a_float, "ceil": _of_a_float},
}


def with_own_formulas(
    predicate: ir.Predicate, schema: Schema, semantics: Semantics, engine: str
) -> ir.Predicate:
    """Return a condition whose calls have the engine's values."""
    return _Rewriter(_FORMULAS.get(engine, {}), schema, semantics).predicate(predicate)


def operand_with_own_formulas(
    operand: ir.Operand, schema: Schema, semantics: Semantics, engine: str
) -> ir.Operand:
    """Return a value whose calls have the engine's values."""
    return _Rewriter(_FORMULAS.get(engine, {}), schema, semantics).operand(operand)


@dataclass(frozen=True, slots=True)
class _Rewriter:
    formulas: Mapping[str, _Formula]
    schema: Schema
    semantics: Semantics

    def predicate(self, node: ir.Predicate) -> ir.Predicate:
        if not any(self.differs(each) for each in ir.walk(node)):
            return node
        return ir.map_children(node, self.predicate, self.operand)

    def operand(self, node: ir.Operand) -> ir.Operand:
        made = ir.map_children(node, self.predicate, self.operand)
        if not isinstance(made, ir.Call) or not self.differs(made):
            return made
        return self.formulas[made.function](made, self.type_of(made.arguments[0]))

    def differs(self, node: ir.Node) -> bool:
        return isinstance(node, ir.Call) and node.function in self.formulas

    def type_of(self, operand: ir.Operand) -> LogicalType | None:
        try:
            return bind_operand(operand, self.schema, self.semantics).type
        except InvalidPredicate:  # what has no type is refused where it is bound
            return None
