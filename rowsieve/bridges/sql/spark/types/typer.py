"""Add the implicit casts of Spark's analyser to the tree of Spark's text.

An integer constant has 32 bits if they hold it, arithmetic the width of its operands, `/` gives
doubles or decimals, and a float with an integer is a float or a double, by ANSI mode.

Soundness: a mixture of types without a rule here is rejected, and so is decimal arithmetic in which
Spark drops digits.
Source: Catalyst's `TypeCoercion`, `AnsiTypeCoercion` and `DecimalPrecision` (Spark 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from rowsieve.bridges.constant_values import value_of
from rowsieve.bridges.sql.spark.read.formatted_times import HANDLERS as FORMATS
from rowsieve.bridges.sql.spark.rules import decimal_result
from rowsieve.bridges.sql.spark.types.numbers_and_times import (
    AMONG,
    INSTANT,
    QUOTIENT,
    WHOLE_QUOTIENT,
    as_decimal,
    check_whole_numbers,
    common_type,
    constant_of,
    in_digits,
    is_text,
    literal_of,
    text_of_bytes,
)
from rowsieve.bridges.sql.spark.types.text_coercion import (
    among,
    as_text,
    check_spelling,
    in_arithmetic,
    in_comparison,
    text_as,
)
from rowsieve.bridges.sql.spark.types.typed_calls import HANDLERS, is_part, plain
from rowsieve.bridges.sql.spark.types.typed_values import Value, typed_value, widens
from rowsieve.errors import UnknownColumn, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.binding.dated import later_by
from rowsieve.predicate.binding.nested_types import are_comparable
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Map,
    Nanos,
    String,
    Struct,
    Timestamp,
    is_nested,
    type_name,
)
from rowsieve.types.schema import Schema

_MAX_MEMBERS = 1000  # of a list that is expanded to comparisons
_NULL = Value(ir.Literal(None), None)
_ZERO = ir.Literal(0, Int(64))
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "modulo"})


def spark_typed(operand: ir.Operand, schema: Schema, *, ansi: bool) -> ir.Operand:
    """Return the value, cast to its type in Spark."""
    return _Typer(schema, ansi).value(operand).exact


def with_spark_types(predicate: ir.Predicate, schema: Schema, *, ansi: bool) -> ir.Predicate:
    """Return the condition with Spark's casts; `ansi`: `spark.sql.ansi.enabled` of the session."""
    return _Typer(schema, ansi).predicate(predicate)


@dataclass(frozen=True, slots=True)
class _Typer:
    schema: Schema
    ansi: bool

    def predicate(self, node: ir.Predicate) -> ir.Predicate:
        match node:
            case ir.Comparison(op=op, left=left, right=right):
                if op.is_order:
                    check_whole_numbers(self.value(left), self.value(right))
                return ir.Comparison(op, *map(_any_width, self.sides(left, right)))
            case ir.InList(operand=operand, values=values):
                return self.in_list(self.value(operand), values)
            case ir.IsNull(operand=operand):
                return ir.IsNull(self.stored(self.value(operand).operand))
            case ir.Like(operand=operand):
                value = self.value(operand)
                if not isinstance(value.type, String | None):
                    raise UnsupportedOperation(
                        f"LIKE of {type_name(value.type)}; cast the operand to STRING"
                    )
                if node.ignore_case:
                    return _folded_like(value.exact, node)
                return ir.Like(value.operand, node.pattern, node.escape)
            case ir.BooleanOperand(operand=ir.Call(function="in", arguments=(operand, *members))):
                return self.alike(self.value(operand), [self.value(member) for member in members])
            case _:
                return ir.map_children(node, self.predicate, lambda item: self.value(item).operand)

    # Comparisons

    def compared(self, left: Value, right: Value) -> tuple[ir.Operand, ir.Operand]:
        """Return both sides, in types that compare as in Spark."""
        if _are_nested(left, right):
            return left.operand, right.operand
        left, right = self.of_text(left, right.type), self.of_text(right, left.type)
        if left.type is None or right.type is None or left.type == right.type:
            return left.operand, right.operand
        if is_nested(left.type) and is_nested(right.type):
            return left.operand, right.operand  # binding compares them, member by member
        common = self.common(left, right)
        if isinstance(common, Float):
            return self.as_type(left, common), self.as_type(right, common)
        return left.operand, right.operand

    def sides(self, left: ir.Operand, right: ir.Operand) -> tuple[ir.Operand, ir.Operand]:
        """Return both sides of a comparison; columns of nanoseconds next to constants as stored."""
        values = self.value(left), self.value(right)
        sides = self.compared(*values)
        return self.beside_constants(*sides) if _same_clock(*values) else sides

    def beside_constants(
        self, left: ir.Operand, right: ir.Operand
    ) -> tuple[ir.Operand, ir.Operand]:
        """Return both sides; a column of nanoseconds as stored if the other side has no column.

        Binding places a constant among the nanoseconds.
        """
        if _is_constant(right):
            return self.stored(left), right
        return (left, self.stored(right)) if _is_constant(left) else (left, right)

    def stored(self, operand: ir.Operand) -> ir.Operand:
        """Return a column of nanoseconds without its cast; any other operand unchanged."""
        match operand:
            case ir.Cast(operand=ir.Column(name=name) as column, type=Timestamp()):
                is_fine = isinstance(self.schema.field(name).type, Nanos)
            case ir.Cast(operand=ir.BoundColumn(type=type_) as column, type=Timestamp()):
                is_fine = isinstance(type_, Nanos)
            case _:
                return operand
        return column if is_fine else operand

    def of_text(self, value: Value, other: LogicalType | None) -> Value:
        """Cast the text in a comparison with another type as Spark casts it."""
        if not is_text(value) or other is None or isinstance(other, String):
            return value
        return text_as(value, in_comparison(other, ansi=self.ansi), ansi=self.ansi)

    def common(self, *values: Value) -> LogicalType | None:
        """Return the common type of the values; None if all are NULL."""
        types = [self.narrowest(value, values) for value in values if value.type is not None]
        common: LogicalType | None = None
        for type_ in types:
            joined = type_ if common is None else common_type(common, type_, ansi=self.ansi)
            if joined is None:
                shown = " and ".join(dict.fromkeys(map(type_name, types)))
                raise UnsupportedOperation(f"{shown} have no common type in spark; cast one side")
            common = joined
        return common

    def narrowest(self, value: Value, others: Sequence[Value]) -> LogicalType:
        """Return the type of a value; next to a decimal, an integer constant has its own digits."""
        assert value.type is not None
        number = value_of(value.operand)
        beside = len(others) == 2 and any(isinstance(other.type, Decimal) for other in others)
        if beside and isinstance(value.type, Int) and isinstance(number, int):
            return Decimal(len(str(abs(number))), 0)
        return value.type

    def in_list(self, value: Value, values: ir.ValueSet) -> ir.Predicate:
        """Type IN with a set of constants."""
        if values.type is None and isinstance(value.type, String | None):
            return ir.InList(value.operand, values)
        if values.type == value.type or not len(values) or self.binds(value.type, values.type):
            return ir.InList(self.stored(value.operand), values)
        if is_text(value) and isinstance(values.type, Int):
            return self.text_in_list(value, values)
        if len(values) > _MAX_MEMBERS:
            raise UnsupportedOperation("a long list of another type than its operand; cast one")
        members = [ir.Literal(member, values.type) for member in values.array.to_pylist()]
        return self.alike(value, [self.value(member) for member in members])

    def text_in_list(self, value: Value, values: ir.ValueSet) -> ir.Predicate:
        """Type text IN integers, which are cast to text if ANSI mode is off."""
        type_ = Int(64) if self.ansi else String()
        members = ir.ValueSet(values.array.cast(arrow_type(type_)), type_)
        return ir.InList(
            self.of_text(value, Int(64)).operand if self.ansi else value.exact, members
        )

    def binds(self, type_: LogicalType | None, listed: LogicalType | None) -> bool:
        """Whether binding compares numbers of both types as Spark does."""
        numbers = isinstance(type_, Int | Float | Decimal) and isinstance(
            listed, Int | Float | Decimal
        )
        if not numbers or type_ is None or listed is None:
            return False
        common = common_type(type_, listed, ansi=self.ansi)
        return common is not None and (common != Float(32))

    def alike(self, value: Value, members: list[Value]) -> ir.Predicate:
        if all(_are_nested(value, member) for member in members):
            equal = (
                ir.Comparison(ir.ComparisonOp.EQ, value.operand, each.operand) for each in members
            )
            return ir.disjoin(equal)
        sides = [value, *members]
        common = self.with_text(sides)
        if common is not None or isinstance(common := self.common(*sides), Float):
            sides = [Value(self.as_type(side, common), common) for side in sides]
        pairs = [(sides[0].operand, side.operand) for side in sides[1:]]
        if all(_same_clock(sides[0], side) for side in sides[1:]):
            pairs = [self.beside_constants(*pair) for pair in pairs]
        terms = tuple(ir.Comparison(ir.ComparisonOp.EQ, *pair) for pair in pairs)
        return terms[0] if len(terms) == 1 else ir.Or(terms)

    def with_text(self, values: Sequence[Value]) -> LogicalType | None:
        """Return the common type of texts and other values; None unless there are both."""
        others = [value.type for value in values if value.type is not None and not is_text(value)]
        if not others or not any(map(is_text, values)):
            return None
        return among(others, ansi=self.ansi)

    # Values

    def value(self, node: ir.Operand) -> Value:
        """Return the operand with its type in Spark."""
        match node:
            case ir.Column(name=name):
                field = self.schema.field(name)
                return typed_value(ir.Column(field.name), field.type)
            case ir.BoundColumn(type=type_):
                return typed_value(node, type_)
            case ir.Literal():
                return literal_of(node)
            case ir.Now():
                return Value(node, INSTANT)
            case ir.Condition(predicate=predicate):
                return Value(ir.Condition(self.predicate(predicate)), Bool())
            case ir.Case(branches=branches, otherwise=otherwise):
                return self.case(branches, otherwise)
            case ir.Cast():
                return self.cast(node)
            case ir.FieldAccess(operand=operand, name=name):
                return self.field_access(self.value(operand), name)
            case ir.Call():
                return self.call(node)
            case _:
                assert_never(node)

    def field_access(self, value: Value, name: str) -> Value:
        if isinstance(value.type, Map):
            return typed_value(ir.FieldAccess(value.operand, name), value.type.value.type)
        if not isinstance(value.type, Struct):
            access = ir.FieldAccess(value.operand, name)
            raise UnsupportedOperation(f"a member of a value that is not a struct: {access}")
        alike = [field for field in value.type.fields if field.name.lower() == name.lower()]
        if len(alike) != 1:
            raise UnknownColumn(f"no single member {name!r} in the struct", name=name)
        return typed_value(ir.FieldAccess(value.operand, alike[0].name), alike[0].type)

    def case(
        self, branches: Sequence[tuple[ir.Predicate, ir.Operand]], otherwise: ir.Operand
    ) -> Value:
        conditions = [self.predicate(when) for when, _ in branches]
        results, type_ = self.one_type([*(then for _, then in branches), otherwise])
        if type_ is None:
            return _NULL
        return Value(ir.Case(tuple(zip(conditions, results[:-1], strict=True)), results[-1]), type_)

    def one_type(
        self, operands: Sequence[ir.Operand], *, mixed: bool = True
    ) -> tuple[list[ir.Operand], LogicalType | None]:
        """Return the operands, cast to their common type, and that type; None if all are NULL."""
        values = [self.value(operand) for operand in operands]
        common = self.with_text(values)
        if common is not None and not mixed:
            raise UnsupportedOperation(
                "spark has no common type of text and other values; cast one"
            )
        if common is None:
            common = self.common(*values)
        if common is None and any(map(is_text, values)):
            common = String()  # constants alone, which have no type yet
        return [self.as_type(value, common) for value in values], common

    def as_type(self, value: Value, type_: LogicalType | None) -> ir.Operand:
        """Apply an implicit cast."""
        if type_ is None or value.type == type_:
            return value.exact
        if isinstance(type_, String):
            return as_text(value, ansi=self.ansi)
        if is_text(value):
            return text_as(value, type_, ansi=self.ansi).exact
        if value.type is None:
            literal = value.operand
            assert isinstance(literal, ir.Literal)
            return ir.Literal(None, type_) if literal.value is None else literal
        if (constant := constant_of(value.operand, type_)) is not None:
            return constant
        if widens(value.type, type_) and isinstance(value.operand, ir.BoundColumn | ir.Column):
            return ir.Cast(value.operand, type_)
        return ir.Cast(value.exact, type_)

    def cast(self, node: ir.Cast) -> Value:
        if isinstance(node.operand, ir.Literal) and node.operand.type == Int(64):
            literal = node.operand  # 1L, 1S, 1.5F: a number with its type behind it
            inner = Value(literal, Int(64))
        else:
            inner = self.value(node.operand)
        target = node.type
        if (text := text_of_bytes(node)) is not None:
            return Value(text, target)
        if is_text(inner) and not isinstance(target, String | Binary):
            return self.cast_text(inner, node)
        if inner.type is None and is_text(inner) and isinstance(inner.operand, ir.Literal):
            plain = str(inner.operand.value)
            constant = ir.Literal(plain.encode() if target == Binary() else plain, target)
            return Value(constant, target)
        if inner.type is None:
            return Value(ir.Literal(None, target), target)
        if inner.type == target:
            return Value(inner.operand, target, inner.loose)
        if isinstance(target, String):
            check_spelling(inner.type, ansi=self.ansi)
        return Value(ir.Cast(inner.exact, target, node.try_), target)

    def cast_text(self, value: Value, node: ir.Cast) -> Value:
        """Type an explicit cast of text; a constant, as in `DATE '…'`, must be valid."""
        cast = text_as(value, node.type, ansi=self.ansi, try_=node.try_)
        literal = value.operand
        if (
            isinstance(literal, ir.Literal)
            and literal.value is not None
            and not node.try_
            and isinstance(node.type, Date | Timestamp)
            and _is_unread(cast.operand)
        ):
            raise UnsupportedOperation(
                f"{literal.value!r} is not a valid {type_name(node.type)} in spark"
            )
        return cast

    # Calls

    def call(self, node: ir.Call) -> Value:
        name = node.function
        if name in _ARITHMETIC or name in (QUOTIENT, WHOLE_QUOTIENT, "divide"):
            return self.arithmetic(name, *map(self.value, node.arguments))
        if name in ("coalesce", "greatest", "least"):
            operands, type_ = self.one_type(node.arguments, mixed=name == "coalesce")
            return _NULL if type_ is None else Value(ir.Call(name, tuple(operands)), type_)
        if name == "nullif" and len(node.arguments) == 2:
            return self.null_if(*map(self.value, node.arguments))
        if name == AMONG:
            predicate = self.predicate(ir.BooleanOperand(node))
            return Value(ir.Condition(predicate), Bool())
        values = [self.value(argument) for argument in node.arguments]
        bare = name.removeprefix("extract_") if is_part(name) else name
        if handler := HANDLERS.get(bare) or FORMATS.get(bare):
            return handler(self, node, values)
        return plain(self, ir.Call(name, tuple(value.operand for value in values)), values)

    def null_if(self, value: Value, other: Value) -> Value:
        type_ = String() if is_text(value) else value.type  # a quoted text has no type yet
        if type_ is None:
            return value
        equal = ir.Comparison(ir.ComparisonOp.EQ, *self.compared(value, other))
        return Value(ir.Case(((equal, ir.Literal(None, type_)),), value.exact), type_)

    def tried(self, name: str, left: Value, right: Value) -> Value:
        """Return a quotient or remainder that is NULL for a divisor of zero, or text of no number.

        Spark catches every error of such a call if one side is text, otherwise only the operator's.
        """
        left, right = self.numbers(name, left, right, try_=True)
        result = self.arithmetic(name, left, right)
        zero = ir.Comparison(ir.ComparisonOp.EQ, *self.compared(right, literal_of(_ZERO)))
        null = ir.Literal(None, result.type)
        return Value(ir.Case(((zero, null),), result.exact), result.type)

    def numbers(
        self, name: str, left: Value, right: Value, *, try_: bool = False
    ) -> tuple[Value, Value]:
        """Return both sides of an operator; if one is text, both are cast to a type of numbers.

        `try_`: text that is not a number is NULL in every session.
        """
        if not (is_text(left) or is_text(right)):
            return left, right
        other = left if is_text(right) else right
        type_ = in_arithmetic(name, String() if is_text(other) else other.type, ansi=self.ansi)
        first, second = (
            text_as(side, type_, ansi=self.ansi, try_=try_)
            if is_text(side)
            else Value(self.as_type(side, type_), type_)
            for side in (left, right)
        )
        return first, second

    def arithmetic(self, name: str, left: Value, right: Value) -> Value:
        left, right = self.numbers(name, left, right)
        if left.type is None or right.type is None:
            left, right = (Value(s.operand, s.type or _other(left, right)) for s in (left, right))
        dated = name in ("add", "subtract") and isinstance(left.type, Date)
        if dated and isinstance(right.type, Int) and right.type.bits <= 32:
            return Value(later_by(left.exact, right.exact, negate=name == "subtract"), Date())
        whole = isinstance(left.type, Int) and isinstance(right.type, Int)
        if name == WHOLE_QUOTIENT:
            if not whole:
                raise UnsupportedOperation("div of values that are not integers; cast both sides")
            sides = (self.as_type(left, Int(64)), self.as_type(right, Int(64)))
            return Value(ir.Call("divide", sides), Int(64))
        if name in (QUOTIENT, "divide") and (whole or Float(32) in (left.type, right.type)):
            sides = (self.as_type(left, Float(64)), self.as_type(right, Float(64)))
            return Value(ir.Call("divide", sides), Float(64))
        name = "divide" if name == QUOTIENT else name
        types = [self.narrowest(side, (left, right)) for side in (left, right)]
        if all(isinstance(type_, Int | Decimal) for type_ in types) and not whole:
            return self.decimals(name, left, right, types)
        common = self.common(left, right)
        if not isinstance(common, Int | Float):
            raise UnsupportedOperation(
                f"{name} of {' and '.join(map(type_name, types))} is not supported; cast both "
                "sides to numbers"
            )
        return Value(
            ir.Call(name, (self.as_type(left, common), self.as_type(right, common))), common
        )

    def decimals(self, name: str, left: Value, right: Value, types: Sequence[LogicalType]) -> Value:
        a, b = map(as_decimal, types)
        result = decimal_result(name, a, b)
        if result is None:
            raise UnsupportedOperation(
                f"{name} of {type_name(a)} and {type_name(b)} has more than 38 digits in spark, "
                "which drops some; cast a side to fewer digits"
            )
        return Value(ir.Call(name, (in_digits(left, a), in_digits(right, b))), result)


def _folded_like(operand: ir.Operand, node: ir.Like) -> ir.Like:
    """Return ILIKE as in Spark: LIKE of both sides in lower case."""
    if node.escape is not None and node.escape.isalpha():
        raise UnsupportedOperation("a letter as the escape of a pattern of any case")
    return ir.Like(ir.Call("lower", (operand,)), node.pattern.lower(), node.escape)


def _is_unread(operand: ir.Operand) -> bool:
    """Whether a constant text was not converted: NULL, or a cast that will fail."""
    if isinstance(operand, ir.Cast):
        return isinstance(operand.operand, ir.Literal) and operand.operand.type == String()
    return isinstance(operand, ir.Literal) and operand.value is None


def _same_clock(left: Value, right: Value) -> bool:
    """Whether the values are not both local times and instants."""
    clocks = {value.type for value in (left, right) if isinstance(value.type, Timestamp)}
    return len(clocks) < 2


def _is_constant(operand: ir.Operand) -> bool:
    return not any(isinstance(node, ir.Column | ir.BoundColumn) for node in ir.walk(operand))


def _any_width(operand: ir.Operand) -> ir.Operand:
    """Return an integer constant with 64 bits: in a comparison its width has no effect."""
    if isinstance(operand, ir.Literal) and operand.type == Int(32):
        return ir.Literal(operand.value, Int(64))
    return operand


def _other(left: Value, right: Value) -> LogicalType:
    return left.type or right.type or Float(64)


def _are_nested(left: Value, right: Value) -> bool:
    """Whether both are lists or structs with comparable items."""
    if left.type is None or right.type is None or not is_nested(left.type):
        return False
    return are_comparable(left.type, right.type)
