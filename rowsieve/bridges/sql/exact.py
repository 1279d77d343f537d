"""A bound condition as one that means the same in a dialect's engine when it is written there.

Where the engine needs telling (a member of a struct that is NULL, zeros that its optimiser would
make a list of, names of types that it lacks), the tree is put so; where nothing vouches for the
engine, `UnsupportedOperation` says why. Soundness: the result keeps TRUE, FALSE and NULL of every
row, and nothing passes that `vouched` does not list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.float32 import REASON, may_be_infinite
from rowsieve.bridges.functions import Use
from rowsieve.bridges.sql.dialects import DATAFUSION_TYPES, Dialect, IntegerWidths
from rowsieve.bridges.sql.merged_lists import checked
from rowsieve.bridges.sql.render_calls import BYTE_ORDER, UNSIGNED_NAN
from rowsieve.bridges.sql.templates import is_bare_trim
from rowsieve.bridges.sql.vouched import CASTS, doubt, is_narrow
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.functions.casts import cast_rule
from rowsieve.predicate.ir import (
    And,
    BooleanOperand,
    BoundColumn,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    ComparisonOp,
    Condition,
    FalsePredicate,
    FieldAccess,
    InList,
    IsNull,
    Like,
    Literal,
    Not,
    Now,
    Opaque,
    Operand,
    Or,
    Predicate,
    TruePredicate,
    ValueSet,
)
from rowsieve.predicate.nan_signs import may_be_negative_nan
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import NanOrder
from rowsieve.types.logical import (
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
    is_nested,
    type_name,
)

_RANGES = (ComparisonOp.LT, ComparisonOp.LE, ComparisonOp.GT, ComparisonOp.GE)
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "modulo", "negate", "abs"})
_MOVES = frozenset({"add_interval", "shift", "shift_timestamp"})
_INT64, _INSTANT = Int(64), Timestamp(utc=True)
# Casts that give a value for every value, and so do the same as TRY_CAST.
_NEVER_FAIL = frozenset(
    {("Int", "Float"), ("Int", "String"), ("Float", "Float"), ("Date", "String")}
)


def said_exactly(root: Predicate, dialect: Dialect) -> Predicate:
    """The bound condition, meant by the dialect's rules, in a form that its engine means alike."""
    if dialect.name == "datafusion":
        checked(root)
    return Exact(dialect).predicate(root)


def _has_32_bits(operand: Operand) -> bool:
    """Whether it is of constants alone that an engine would compute with in 32 bits."""
    match operand:
        case Literal(value=int() as value, type=Int(bits=64)):
            return -(2**31) <= value < 2**31
        case Call(function="coalesce" | "greatest" | "least", arguments=arguments):
            return all(map(_has_32_bits, arguments))
        case Call(function="nullif", arguments=(first, _)):
            return _has_32_bits(first)
        case Case(branches=branches, otherwise=otherwise):
            return all(map(_has_32_bits, (*(then for _, then in branches), otherwise)))
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Exact:
    """Puts conditions so for one dialect."""

    dialect: Dialect

    def predicate(self, node: Predicate) -> Predicate:
        """A condition."""
        match node:
            case TruePredicate() | FalsePredicate():
                return node
            case And(terms=terms):
                return And(tuple(self.predicate(term) for term in terms))
            case Or(terms=terms):
                return Or(tuple(self.predicate(term) for term in terms))
            case Not(term=term):
                return Not(self.predicate(term))
            case Comparison():
                return self.comparison(node)
            case InList():
                return self.in_list(node)
            case IsNull(operand=operand):
                return self.is_null(operand)
            case Like():
                return self.like(node)
            case BooleanOperand(operand=operand):
                return BooleanOperand(self.operand(operand))
            case Opaque(description=description):
                raise UnsupportedOperation(f"{description} is another engine's condition")
            case _:
                assert_never(node)

    def operand(self, node: Operand) -> Operand:
        """A value."""
        match node:
            case BoundColumn():
                return node
            case Now():  # of the session's zone there
                return Cast(node, _INSTANT) if self.is_datafusion else node
            case Column(name=name):
                raise AssertionError(f"the column {name!r} is not bound")
            case Literal():
                return self.literal(node)
            case Call():
                return self.call(node)
            case Cast():
                return self.cast(node)
            case FieldAccess():
                return self.member(node)
            case Case(branches=branches, otherwise=otherwise):
                kept = tuple((self.predicate(w), self.operand(t)) for w, t in branches)
                return Case(kept, self.operand(otherwise))
            case Condition(predicate=predicate):
                return Condition(self.predicate(predicate))
            case _:
                assert_never(node)

    # Conditions

    def comparison(self, node: Comparison) -> Predicate:
        """A comparison of two values."""
        type_ = type_of(node.left)
        self.check_order(type_)
        ieee = self.dialect.semantics.nan is NanOrder.IEEE and isinstance(type_, Float)
        if ieee and node.op in (ComparisonOp.DISTINCT, ComparisonOp.NOT_DISTINCT):
            raise UnsupportedOperation(f"{self.dialect.name} takes NaN for no other than NaN here")
        if self.dialect.name == "duckdb" and node.op in _RANGES:
            _check_nan_and_sign(node)
        left, right = self.operand(node.left), self.operand(node.right)
        collated = self.dialect.orders_by_collation and isinstance(type_, String)
        if collated and node.op in _RANGES:
            return Comparison(node.op, Call(BYTE_ORDER, (left,)), _plain(right, left))
        zero = isinstance(right, Literal) and isinstance(right.value, float) and not right.value
        listed = self.dialect.semantics.bitwise_lists_from is not None
        if zero and listed and node.op in (ComparisonOp.EQ, ComparisonOp.NE):
            terms = tuple(Comparison(node.op, left, Literal(value, type_)) for value in (0.0, -0.0))
            return Or(terms) if node.op is ComparisonOp.EQ else And(terms)
        return Comparison(node.op, left, right)

    def is_null(self, operand: Operand) -> Predicate:
        """IS NULL of a value."""
        if self.dialect.name == "postgres" and isinstance(type_of(operand), Struct):
            raise UnsupportedOperation("postgres takes a row of NULLs for NULL")
        return IsNull(self.operand(operand))

    def in_list(self, node: InList) -> Predicate:
        """IN of constants."""
        self.check_order(type_of(node.operand))
        operand, values = self.operand(node.operand), node.values
        if values.type is not None and not self.has(values.type):
            self.renamed(values.type)
            try:
                values = ValueSet(values.array.cast(pa.int64()), _INT64)
            except pa.ArrowInvalid as error:
                raise self.lacks(node.values.type) from error
        return InList(operand, self.with_zeros(values))

    def with_zeros(self, values: ValueSet) -> ValueSet:
        """DataFusion compares bits in short lists, too, of which it may make a long one."""
        members, semantics = values.array, self.dialect.semantics
        short = not semantics.compares_bits(len(values))
        if semantics.bitwise_lists_from is None or not short:
            return values
        if not pa.types.is_floating(members.type) or not pc.any(pc.equal(members, 0.0)).as_py():
            return values
        zeros = pa.array([0.0, -0.0], members.type)
        return ValueSet(pa.concat_arrays([members, zeros]), values.type)

    def like(self, node: Like) -> Predicate:
        """LIKE with a constant pattern."""
        if node.ignore_case and not self.is_datafusion:
            raise UnsupportedOperation(
                f"{self.dialect.name} may fold other letters than we do when ignoring their case"
            )
        return replace(node, operand=self.operand(node.operand))

    def check_order(self, type_: LogicalType) -> None:
        """Refuse values that are not compared there."""
        if is_nested(type_) or isinstance(type_, Json):
            raise UnsupportedOperation(f"values of {type_name(type_)} are not compared")
        if isinstance(type_, Time | Uuid) and self.dialect.name == "spark":
            raise self.lacks(type_)

    # Values

    def literal(self, node: Literal) -> Operand:
        """A constant."""
        type_ = node.type
        assert type_ is not None
        if self.has(type_):
            return node
        self.renamed(type_)
        if isinstance(node.value, int) and node.value >= 2**63:
            raise self.lacks(type_)
        return Literal(node.value, _INT64)

    def call(self, node: Call) -> Operand:
        """A call of a function."""
        types, result = [type_of(argument) for argument in node.arguments], type_of(node)
        if reason := doubt(Use(node, types, result), self.dialect.name):
            raise UnsupportedOperation(reason)
        for type_ in (*types, result):
            if isinstance(type_, Int) and not self.has(type_):
                raise self.lacks(type_)
        arguments = self.arguments(node)
        if self.dialect.trims_all_spaces and is_bare_trim(node):
            arguments.append(Literal(" ", String()))
        made = replace(node, arguments=tuple(arguments))
        if self.is_datafusion and node.function in _MOVES and isinstance(types[0], Timestamp):
            exact = isinstance(arguments[-1], Literal) and arguments[-1].value
            return Call("shift_timestamp" if exact else "shift", tuple(arguments))
        signed = isinstance(result, Float) and node.function in _ARITHMETIC
        if self.is_datafusion and signed and may_be_negative_nan(node):
            return Call(UNSIGNED_NAN, (made, self.literal(Literal(math.nan, result))))
        return made

    def arguments(self, node: Call) -> list[Operand]:
        """The arguments of a call; those of arithmetic as wide there as they are here."""
        arguments = [self.operand(argument) for argument in node.arguments]
        if node.function in _ARITHMETIC:
            types = [type_of(argument) for argument in node.arguments]
            arguments = [
                Cast(item, type_) if is_narrow(item) else item
                for item, type_ in zip(arguments, types, strict=True)
            ]
            narrow = self.dialect.gives_types or self.dialect.widths is not IntegerWidths.WIDE
            if narrow and type_of(node) == _INT64 and all(map(_has_32_bits, arguments)):
                arguments[0] = Cast(arguments[0], _INT64)
        return arguments

    def cast(self, node: Cast) -> Operand:
        """A cast."""
        source, target = type_of(node.operand), node.type
        if source == target:
            return self.operand(node.operand)
        shown = f"a cast of {type_name(source)} to {type_name(target)}"
        kinds = type(source).__name__, type(target).__name__
        kept = node.try_ and isinstance(source, String)  # others never fail
        if node.try_ and not self._tries(source, target):
            raise UnsupportedOperation(f"{shown} may fail on other values in {self.dialect.name}")
        zoned = any(isinstance(type_, Timestamp) and type_.utc for type_ in (source, target))
        if zoned and not self.is_datafusion:  # it goes by the zone of the column
            raise UnsupportedOperation(f"{shown} depends on the time zone of the session there")
        if kinds not in CASTS[self.dialect.name]:
            raise UnsupportedOperation(f"{shown} may give other values in {self.dialect.name}")
        if not self.has(target):
            raise self.lacks(target)
        if self.is_datafusion and may_be_infinite(node.operand, source, target):
            raise UnsupportedOperation(REASON)
        if self.dialect.name == "postgres" and (source, target) == (Float(64), Float(32)):
            raise UnsupportedOperation(f"{shown} fails in postgres where it gives 0 or infinity")
        return Cast(self.operand(node.operand), target, kept)

    def _tries(self, source: LogicalType, target: LogicalType) -> bool:
        """Whether TRY_CAST is NULL there on the values on which it is here.

        DataFusion compares the operand instead of a TRY_CAST between numbers, and finds rows on
        which that would be NULL: such a cast must never fail.
        """
        if isinstance(source, String):
            return self.dialect.name != "postgres"
        rule, kinds = cast_rule(source, target), (type(source).__name__, type(target).__name__)
        certain = kinds in _NEVER_FAIL or (rule is not None and not rule.can_fail)
        return self.is_datafusion and certain

    def member(self, node: FieldAccess) -> Operand:
        """A member; DataFusion shows what lies hidden under a struct that is NULL."""
        inner, type_ = self.operand(node.operand), type_of(node)
        found = FieldAccess(inner, node.name)
        if not self.is_datafusion:
            return found
        if is_nested(type_):
            raise UnsupportedOperation("a nested member shows through a struct that is NULL")
        return Case(((IsNull(inner), self.literal(Literal(None, type_))),), found)

    # Types

    @property
    def is_datafusion(self) -> bool:
        """Whether it puts them so for DataFusion."""
        return self.dialect.name == "datafusion"

    def has(self, type_: LogicalType) -> bool:
        """Whether the engine itself, and not only our text for it, has the type."""
        if isinstance(type_, Decimal | Float):
            return True
        if type_ in self.dialect.borrowed:
            return False
        return type_ in self.dialect.types or (self.is_datafusion and type_ in DATAFUSION_TYPES)

    def renamed(self, type_: LogicalType) -> None:
        """Refuse a type that no other of the engine can stand in for."""
        if not isinstance(type_, Int):
            raise self.lacks(type_)

    def lacks(self, type_: LogicalType | None) -> UnsupportedOperation:
        """The refusal of a type."""
        shown = "that" if type_ is None else type_name(type_)
        return UnsupportedOperation(f"{self.dialect.name} has no type for {shown}")


def _check_nan_and_sign(node: Comparison) -> None:
    """DuckDB's optimiser makes `x > -NaN` of `-x < NaN`: nothing, as no number is above NaN."""
    for one, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(one, Call) and one.function == "negate" and _is_nan(other):
            raise UnsupportedOperation("duckdb takes -x < NaN for x > NaN")


def _is_nan(operand: Operand) -> bool:
    while isinstance(operand, Cast):
        operand = operand.operand
    value = operand.value if isinstance(operand, Literal) else None
    return isinstance(value, float) and math.isnan(value)


def _plain(literal: Operand, other: Operand) -> Operand:
    """Text beside a column needs no type."""
    if (
        isinstance(other, BoundColumn)
        and isinstance(literal, Literal)
        and literal.value is not None
    ):
        return Literal(literal.value)
    return literal
