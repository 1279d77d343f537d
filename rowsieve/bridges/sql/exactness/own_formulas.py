"""Calls that an engine computes from another type, or by another formula, than we do.

PostgreSQL, DuckDB and DataFusion take `floor` and `ceil` of a whole number, and PostgreSQL `round`,
as those of a float64: 2^53 + 1 becomes 2^53, and a quotient of it a fraction. PostgreSQL rounds a
whole number to digits as a numeric, and divides for `degrees`. DataFusion computes a decimal with a
float64 as floats, and makes a float of a decimal by a division, which rounds once more if it has
more than 15 digits. DuckDB rounds an unsigned number as a
longer signed one. `nullif` has its first type in PostgreSQL and DuckDB. Soundness: the result has
the casts and operations that give the engine's values.

Source: PostgreSQL 18 (`pg_proc`, `RADIANS_PER_DEGREE` in its float.h), DuckDB 2.0, DataFusion 55;
all of it run.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
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

_MOST_DIGITS: Final = 38
_EXACT_DIGITS: Final = 15  # of a decimal whose digits a float64 holds
_IN_FLOATS: Final = 2**24  # whole numbers below it are float32
_EXACT_POWER: Final = 22  # the largest power of ten that a float64 holds

_Types: TypeAlias = Sequence[LogicalType | None]
# The call with its arguments, and their types; the same call if nothing differs.
_Formula: TypeAlias = Callable[[ir.Call, _Types], ir.Operand]


def _of_a_float(call: ir.Call, types: _Types) -> ir.Operand:
    if len(call.arguments) != 1 or not isinstance(types[0], Int):
        return call
    return ir.Call(call.function, (ir.Cast(call.arguments[0], _FLOAT64),))


def _rounded(call: ir.Call, types: _Types) -> ir.Operand:
    if len(call.arguments) == 1 or not isinstance(types[0], Int):
        return _of_a_float(call, types)
    return ir.Call("round", (ir.Cast(call.arguments[0], Decimal(38, 0)), *call.arguments[1:]))


def _of_a_longer_type(call: ir.Call, types: _Types) -> ir.Operand:
    """Return the call of an unsigned number as one of the signed type that the result has."""
    type_ = types[0]
    if not isinstance(type_, Int) or type_.signed:
        return call
    longer = Int(64) if type_.bits < 64 else Decimal(_MOST_DIGITS, 0)
    return ir.Call("round", (ir.Cast(call.arguments[0], longer), *call.arguments[1:]))


def _by_angle(operation: str) -> _Formula:
    def made(call: ir.Call, types: _Types) -> ir.Operand:
        (angle,) = call.arguments
        if types[0] != _FLOAT64:
            angle = ir.Cast(angle, _FLOAT64)
        return ir.Call(operation, (angle, _RADIANS_PER_DEGREE))

    return made


def _milliseconds(call: ir.Call, _types: _Types) -> ir.Operand:
    """Return 1000 times the seconds, which have a fraction."""
    return ir.Call("multiply", (ir.Call("extract_second", call.arguments), _THOUSAND))


def _nullif(call: ir.Call, types: _Types) -> ir.Operand:
    """Return the call with a whole constant in the type of the value, which the result has."""
    value, constant = call.arguments
    number = constant.value if isinstance(constant, ir.Literal) else None
    if isinstance(number, bool) or not isinstance(number, int | decimal.Decimal):
        return call
    exact = decimal.Decimal(number)
    if abs(exact) >= _IN_FLOATS or exact != int(exact):
        return call
    match types[0]:
        case Float() as type_:
            return ir.Call("nullif", (value, ir.Literal(float(exact), type_)))
        case Decimal(precision=digits, scale=scale) as type_:
            if isinstance(number, int) and exact.adjusted() < digits - scale:
                return ir.Call("nullif", (value, ir.Literal(exact, type_)))
    return call


def _beside_floats(call: ir.Call, types: _Types) -> ir.Operand:
    """Return the call with a decimal next to a float64 as one."""
    if _FLOAT64 not in types or not any(isinstance(type_, Decimal) for type_ in types):
        return call
    sides = zip(call.arguments, types, strict=True)
    return ir.Call(
        call.function,
        tuple(
            _divided(side, type_) if isinstance(type_, Decimal) else side for side, type_ in sides
        ),
    )


def _divided(value: ir.Operand, type_: Decimal) -> ir.Operand:
    """Return a decimal as a float64: its digits as one, divided by a power of ten."""
    if type_.precision <= _EXACT_DIGITS or not 0 < type_.scale <= _EXACT_POWER:
        return ir.Cast(value, _FLOAT64)
    if type_.precision + type_.scale + 1 > _MOST_DIGITS:
        return ir.Cast(value, _FLOAT64)  # refused: its digits do not make a decimal
    power = 10**type_.scale
    factor = ir.Literal(decimal.Decimal(power), Decimal(type_.scale + 1, 0))
    digits = ir.Cast(
        ir.Cast(ir.Call("multiply", (value, factor)), Decimal(type_.precision, 0)), _FLOAT64
    )
    return ir.Call("divide", (digits, ir.Literal(float(power), _FLOAT64)))


_FORMULAS: Mapping[str, Mapping[str, _Formula]] = {
    "postgres": {
        "floor": _of_a_float,
        "ceil": _of_a_float,
        "round": _rounded,
        "nullif": _nullif,
        "degrees": _by_angle("divide"),
        "radians": _by_angle("multiply"),
        "extract_millisecond": _milliseconds,
    },
    "datafusion": {
        "floor": _of_a_float,
        "ceil": _of_a_float,
        **dict.fromkeys(("add", "subtract", "multiply", "divide", "modulo"), _beside_floats),
    },
    "duckdb": {
        "floor": _of_a_float,
        "ceil": _of_a_float,
        "round": _of_a_longer_type,
        "nullif": _nullif,
    },
}


# Casts of decimals to float64.
_FLOATS: Mapping[str, Callable[[ir.Operand, Decimal], ir.Operand]] = {"datafusion": _divided}


def with_own_formulas(
    predicate: ir.Predicate, schema: Schema, semantics: Semantics, engine: str
) -> ir.Predicate:
    """Return a condition whose calls and casts have the engine's values."""
    return _Rewriter(engine, schema, semantics).predicate(predicate)


def operand_with_own_formulas(
    operand: ir.Operand, schema: Schema, semantics: Semantics, engine: str
) -> ir.Operand:
    """Return a value whose calls and casts have the engine's values."""
    return _Rewriter(engine, schema, semantics).operand(operand)


@dataclass(frozen=True, slots=True)
class _Rewriter:
    engine: str
    schema: Schema
    semantics: Semantics

    def predicate(self, node: ir.Predicate) -> ir.Predicate:
        if not any(self.is_cast(each) or self.formula(each) for each in ir.walk(node)):
            return node
        return ir.map_children(node, self.predicate, self.operand)

    def operand(self, node: ir.Operand) -> ir.Operand:
        made = ir.map_children(node, self.predicate, self.operand)
        if isinstance(made, ir.Cast) and self.is_cast(made):
            type_ = self.type_of(made.operand)
            divided = _FLOATS[self.engine]
            return divided(made.operand, type_) if isinstance(type_, Decimal) else made
        if not isinstance(made, ir.Call) or (formula := self.formula(made)) is None:
            return made
        return formula(made, [self.type_of(each) for each in made.arguments])

    def is_cast(self, node: ir.Node) -> bool:
        return isinstance(node, ir.Cast) and node.type == _FLOAT64 and self.engine in _FLOATS

    def formula(self, node: ir.Node) -> _Formula | None:
        formulas = _FORMULAS.get(self.engine, {})
        return formulas.get(node.function) if isinstance(node, ir.Call) else None

    def type_of(self, operand: ir.Operand) -> LogicalType | None:
        try:
            return bind_operand(operand, self.schema, self.semantics).type
        except InvalidPredicate:  # what has no type is refused where it is bound
            return None
