"""Give integers the widths in which PostgreSQL, DuckDB and Trino compute them.

An integer constant has 64 bits in our tree. There it has 32 bits if they hold it, and in DuckDB
next to a column the column's type if that holds it. So `n + 1` of a 32-bit column overflows there,
which is an error. A column whose type the engine lacks has the next longer one: one byte is a
smallint in PostgreSQL. The result has the constants and casts that give each operation its width
there; comparisons need none.

Soundness: only widths change, never values; an operation without a rule here keeps 64 bits. Spark's
rules, which also concern other types, are in `spark_types`.

Source: PostgreSQL 18 (4.1.2.6 of its manual, run), DuckDB 2.0 (`typeof`, run), Trino's
documentation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from rowsieve.bridges.constant_values import whole_of
from rowsieve.bridges.sql.dialects import Dialect, IntegerWidths
from rowsieve.bridges.sql.exactness.engine_formulas import EngineFormulas
from rowsieve.bridges.sql.exactness.unbound_types import UnboundTyper
from rowsieve.bridges.sql.exactness.whole_quotients import check_quotients
from rowsieve.predicate import ir
from rowsieve.predicate.literal_values import int_range
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int
from rowsieve.types.schema import Schema

# Functions of integers of one type, which is also the result type.
_OF_ONE_TYPE: Final = frozenset(
    {"add", "subtract", "multiply", "divide", "modulo", "negate", "abs"}
    | {"coalesce", "greatest", "least", "bit_and", "bit_or", "bit_xor"}
)
# Counts have 32 bits in PostgreSQL, 64 elsewhere; a field of a time is a numeric there.
COUNTS: Final = frozenset(
    {"length", "octet_length", "bit_length", "position", "list_length", "days_between", "ascii"}
    | {"regex_count", "regex_position", "list_position"}
)
_SHIFTS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "shift_left": operator.lshift,
    "shift_right": operator.rshift,
}
_WIDE: Final = Int(64)
_COMPUTING: Final = frozenset({ir.Call, ir.Case, ir.Cast})


def with_widths(predicate: ir.Predicate, schema: Schema, dialect: Dialect) -> ir.Predicate:
    """Return the condition with the dialect's width for each integer operation."""
    if _COMPUTING.isdisjoint(map(type, ir.walk(predicate))):
        return predicate
    typer = UnboundTyper(_stored_by(dialect, schema), dialect.semantics)
    predicate = EngineFormulas(dialect.name, typer).predicate(predicate)
    check_quotients(predicate, typer, dialect.name)
    if dialect.widths is IntegerWidths.WIDE:
        return predicate
    return _Widths(UnboundTyper(schema, Semantics.SQL), dialect).predicate(predicate)


def _stored_by(dialect: Dialect, schema: Schema) -> Schema:
    """Return the schema with the engine's integers; formulas ask what an operation of them gives.

    `a & 3` of a uint8 has no type here, and is a number of 32 bits in PostgreSQL.
    """
    if not any(field.type in dialect.borrowed for field in schema):
        return schema
    return Schema(
        schema.id,
        tuple(
            replace(field, type=_nearest(field.type, dialect))
            if isinstance(field.type, Int)
            else field
            for field in schema
        ),
    )


def _nearest(type_: Int, dialect: Dialect) -> Int:
    """Return the type in which the engine holds an integer: a longer one if it lacks ours."""
    if type_ not in dialect.borrowed or type_.bits == _WIDE.bits:
        return type_
    return Int(2 * type_.bits)


@dataclass(frozen=True, slots=True)
class _Value:
    """An operand, its integer type there if it has one, and whether it is a bare constant."""

    operand: ir.Operand
    type: Int | None = None
    bare: bool = False
    loose: bool = False  # the operand's own type differs

    @property
    def exact(self) -> ir.Operand:
        """Return the operand in its type there."""
        return ir.Cast(self.operand, self.type) if self.loose and self.type else self.operand


@dataclass(frozen=True, slots=True)
class _Widths:
    typer: UnboundTyper
    dialect: Dialect

    def predicate(self, node: ir.Predicate) -> ir.Predicate:
        return ir.map_children(node, self.predicate, self.side)

    def side(self, node: ir.Operand) -> ir.Operand:
        """Rewrite a compared operand; a constant is unchanged."""
        return node if isinstance(node, ir.Literal) else self.value(node).operand

    def value(self, node: ir.Operand) -> _Value:
        match node:
            case ir.Literal(value=int() as whole, type=type_) if type_ == _WIDE:
                return _Value(node, _own_width(whole), bare=True)
            case ir.Column() | ir.BoundColumn() | ir.FieldAccess() | ir.Literal() | ir.Now():
                type_ = self.integer_type(node)
                there = self.nearest(type_)
                return _Value(node, there, loose=there != type_)
            case ir.Cast(operand=operand, type=type_):
                cast = ir.Cast(self.side(operand), type_, node.try_)
                return _Value(cast, type_ if isinstance(type_, Int) else None)
            case ir.Condition(predicate=predicate):
                return _Value(ir.Condition(self.predicate(predicate)))
            case ir.Case(branches=branches, otherwise=otherwise):
                values = [*(self.value(then) for _, then in branches), self.value(otherwise)]
                results, type_ = self.together(values)
                conditions = [self.predicate(when) for when, _ in branches]
                pairs = tuple(zip(conditions, results[:-1], strict=True))
                return _Value(ir.Case(pairs, results[-1]), type_)
            case ir.Call():
                return self.call(node)
            case _:
                assert_never(node)

    def integer_type(self, node: ir.Operand) -> Int | None:
        """Return the type of a stored or constant integer; None for other values."""
        type_ = self.typer.of_known(node)
        return type_ if isinstance(type_, Int) else None

    def nearest(self, type_: Int | None) -> Int | None:
        """Return the type in which the engine holds an integer; None for other values."""
        return None if type_ is None else _nearest(type_, self.dialect)

    def call(self, node: ir.Call) -> _Value:
        name = node.function
        if name not in _OF_ONE_TYPE and name != "nullif":
            if name in _SHIFTS and (constant := self.value(node.arguments[0])).bare:
                return self.shifted_constant(node, constant)
            rewritten = ir.Call(name, tuple(self.side(argument) for argument in node.arguments))
            type_ = width = self.integer_type(rewritten)
            if width is not None and (name in COUNTS or name == "extract"):
                type_ = Int(32) if self.dialect.counts_are_narrow and name in COUNTS else _WIDE
            return _Value(rewritten, type_, loose=type_ != width)
        values = [self.value(argument) for argument in node.arguments]
        if name == "nullif":
            first, second = values[0], node.arguments[1]
            typed = _constant(first, first.type) if first.bare and first.type else first.exact
            return _Value(ir.Call(name, (typed, self.side(second))), first.type)
        arguments, type_ = self.together(values)
        return _Value(ir.Call(name, tuple(arguments)), type_)

    def shifted_constant(self, node: ir.Call, constant: _Value) -> _Value:
        """Return a shift with the width of its constant.

        If bits leave that width, engines wrap or fail: the constant has its own type, for which
        binding has no such shift.
        """
        type_, number = constant.type, whole_of(constant.operand)
        places = whole_of(node.arguments[1])
        assert type_ is not None
        if number is None or places is None or places < 0 or type_ == _WIDE:
            return _Value(node, self.integer_type(node))
        low, high = int_range(type_)
        if places < type_.bits and low <= _SHIFTS[node.function](number, places) <= high:
            return _Value(node, type_, loose=True)
        return _Value(ir.Call(node.function, (_constant(constant, type_), *node.arguments[1:])))

    def together(self, values: Sequence[_Value]) -> tuple[list[ir.Operand], Int | None]:
        """Convert the operands to their common width; unchanged if one is not an integer.

        A bare NULL and a text in quotes adapt to any type.
        """
        present = [value for value in values if not _adapts(value.operand)]
        if not present or any(value.type is None for value in present):
            return [value.operand for value in values], None
        widths = [self.beside(value, present) for value in present]
        common = widths[0]
        for type_ in widths[1:]:
            if (wider := self.wider(common, type_)) is None:
                return [value.operand for value in values], None
            common = wider
        if any(value.bare or value.type == common for value in present):
            return [_constant(v, common) if v.bare else v.exact for v in values], common
        exact = [value.exact for value in values]
        return [each if _adapts(each) else ir.Cast(each, common) for each in exact], common

    def beside(self, value: _Value, others: Sequence[_Value]) -> Int:
        """Return the type of a value: in DuckDB a constant adapts to a column that holds it."""
        assert value.type is not None
        if not value.bare or self.dialect.widths is not IntegerWidths.ADAPTED:
            return value.type
        types = [other.type for other in others if not other.bare and other.type is not None]
        number = whole_of(value.operand)
        if types and number is not None:
            low, high = int_range(types[0])
            if low <= number <= high:
                return types[0]
        return value.type

    def wider(self, left: Int, right: Int) -> Int | None:
        """Return the common type of two integers; None beyond 64 bits: both keep their types."""
        if left.signed == right.signed:
            return left if left.bits >= right.bits else right
        signed, unsigned = (left, right) if left.signed else (right, left)
        if unsigned.bits == 64:
            return None
        return (
            signed if signed.bits > unsigned.bits else _WIDE
        )  # as DuckDB: not the next wider type


def _own_width(value: int) -> Int:
    low, high = int_range(Int(32))
    return Int(32) if low <= value <= high else _WIDE


def _adapts(operand: ir.Operand) -> bool:
    """Whether it is NULL, or text in quotes that is read as the type of its neighbours."""
    if not isinstance(operand, ir.Literal):
        return False
    return operand.value is None or (operand.type is None and isinstance(operand.value, str))


def _constant(value: _Value, type_: Int) -> ir.Operand:
    """Return a bare constant in a type that holds it; other values unchanged."""
    literal = value.operand
    return (
        ir.Literal(literal.value, type_)
        if value.bare and isinstance(literal, ir.Literal)
        else literal
    )
