"""Rewrite a bound condition so that a dialect's engine gives it the same meaning.

Some constructs need guards for the engine: a field of a NULL struct, zeros that an optimiser would
collect in a list, names of types that the engine lacks. If the engine is not known to agree,
`UnsupportedOperation` says why.

Soundness: an allow-list. The result keeps TRUE, FALSE and NULL on every row, and every function and
cast in it is a row of `rowsieve.bridges.functions` that the engine's answers have verified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.constant_values import whole_of
from rowsieve.bridges.functions import TypedCall, refusal
from rowsieve.bridges.functions.casts import CASTS, kinds_of
from rowsieve.bridges.sql.constructs.named_zones import (
    ZONE_FUNCTIONS,
    is_proved,
    truncated_in_utc,
)
from rowsieve.bridges.sql.constructs.pattern_calls import FOUND, in_flavour
from rowsieve.bridges.sql.constructs.regexes import Flavour, from_re2
from rowsieve.bridges.sql.constructs.templates import Templated, is_bare_trim
from rowsieve.bridges.sql.dialects import Dialect, IntegerWidths
from rowsieve.bridges.sql.exactness.integer_widths import COUNTS
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.functions.casting.casts import cast_rule
from rowsieve.predicate.interpretation.nan_signs import may_be_negative_nan
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import NanOrder
from rowsieve.types.logical import (
    Bool,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Timestamp,
    is_nested,
    type_name,
)

_SHIFTS = frozenset({"shift_left", "shift_right"})
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "modulo", "negate", "abs"})
_BYTE_ORDER = '{0} COLLATE "C"'  # PostgreSQL's order by code points
_UNSIGNED = "nanvl({0}, {1})"  # DataFusion's NaN without its sign: the second argument
_MOVES = frozenset({"add_interval", "shift", "shift_timestamp"})
_INT64, _INSTANT = Int(64), Timestamp(utc=True)
# Casts that never fail, so TRY_CAST and CAST are equivalent.
_NEVER_FAIL = frozenset(
    {("Int", "Float"), ("Int", "String"), ("Float", "Float"), ("Date", "String")}
)


# Functions of 64 bits here, for which engines return 32.
_NARROW = COUNTS | {"extract", "floor", "ceil"}
_FLAVOURS = frozenset(flavour.value for flavour in Flavour)
_NO_PATTERN = (
    " may match other texts with this regular expression; write plain letters and classes such as "
    "[a-z], or LIKE"
)
UNKNOWN = ir.BooleanOperand(ir.Literal(None, Bool()))


def _has_32_bits(operand: ir.Operand) -> bool:
    """Whether it only has constants, which an engine would compute in 32 bits."""
    match operand:
        case ir.Literal(value=int() as value, type=Int(bits=64)):
            return -(2**31) <= value < 2**31
        case ir.Call(function="coalesce" | "greatest" | "least", arguments=arguments):
            return all(map(_has_32_bits, arguments))
        case ir.Call(function="nullif", arguments=(first, _)):
            return _has_32_bits(first)
        case ir.Case(branches=branches, otherwise=otherwise):
            return all(map(_has_32_bits, (*(then for _, then in branches), otherwise)))
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Exact:
    """Rewrites conditions, bound under a dialect's rules, to ones that its engine reads alike."""

    dialect: Dialect

    def predicate(self, node: ir.Predicate) -> ir.Predicate:
        """Rewrite a condition."""
        match node:
            case ir.Comparison():
                return self.comparison(node)
            case ir.InList():
                return self.in_list(node)
            case ir.Like():
                return self.like(node)
            case ir.Opaque(description=description):
                raise UnsupportedOperation(
                    f"the condition {description} of another engine has no counterpart in SQL"
                )
            case _:
                return ir.map_children(node, self.predicate, self.operand)

    def operand(self, node: ir.Operand) -> ir.Operand:
        """Rewrite a value."""
        match node:
            case ir.Now():
                return ir.Cast(node, _INSTANT) if self.dialect.times.now_in_session_zone else node
            case ir.Literal():
                return self.literal(node)
            case ir.Call():
                return self.call(node)
            case ir.Cast():
                return self.cast(node)
            case ir.FieldAccess():
                return self.field_access(node)
            case _:
                return ir.map_children(node, self.predicate, self.operand)

    # Conditions

    def comparison(self, node: ir.Comparison) -> ir.Predicate:
        """Rewrite a comparison of two values."""
        type_ = type_of(node.left)
        self.check_order(type_)
        ieee = self.dialect.semantics.nan is NanOrder.IEEE and isinstance(type_, Float)
        if ieee and node.op.is_null_safe:
            raise UnsupportedOperation(
                f"IS [NOT] DISTINCT FROM between floats: {self.dialect.name} takes NaN for equal "
                "to NaN there; write = or <> with a test for NULL"
            )
        left, right = self.operand(node.left), self.operand(node.right)
        collated = self.dialect.texts.orders_by_collation and isinstance(type_, String)
        if collated and node.op.is_order:
            return ir.Comparison(node.op, Templated(_BYTE_ORDER, (left,)), _plain(right, left))
        zero = isinstance(right, ir.Literal) and isinstance(right.value, float) and not right.value
        listed = self.dialect.semantics.bitwise_lists_from is not None
        if zero and listed and node.op in (ir.ComparisonOp.EQ, ir.ComparisonOp.NE):
            terms = tuple(
                ir.Comparison(node.op, left, ir.Literal(value, type_)) for value in (0.0, -0.0)
            )
            return ir.Or(terms) if node.op is ir.ComparisonOp.EQ else ir.And(terms)
        return ir.Comparison(node.op, left, right)

    def in_list(self, node: ir.InList) -> ir.Predicate:
        """Rewrite IN with constants; NULL outside of the list, where an optimiser forgets it."""
        self.check_order(type_of(node.operand))
        operand, values = self.operand(node.operand), node.values
        if self.dialect.lists.forgets_null_members and values.array.null_count:
            if not len(known := values.array.drop_null()):
                return UNKNOWN
            counts = map(self.dialect.semantics.compares_bits, (len(known), len(values)))
            if pa.types.is_floating(known.type) and len(set(counts)) > 1:
                known = values.array.fill_null(known[0])  # as long, so that bits are compared
            listed = ir.InList(node.operand, ir.ValueSet(known, values.type))
            return ir.Or((self.in_list(listed), UNKNOWN))
        if values.type is not None and not self.has(values.type):
            self.renamed(values.type)
            try:
                values = ir.ValueSet(values.array.cast(pa.int64()), _INT64)
            except pa.ArrowInvalid as error:
                raise self.lacks(node.values.type) from error
        return ir.InList(operand, self.with_zeros(values))

    def with_zeros(self, values: ir.ValueSet) -> ir.ValueSet:
        """Add a guard: DataFusion may merge short lists to a long one, which compares bits."""
        members, semantics = values.array, self.dialect.semantics
        if semantics.bitwise_lists_from is None or not pa.types.is_floating(members.type):
            return values
        if semantics.compares_bits(len(values)) or not pc.any(pc.equal(members, 0.0)).as_py():
            return values
        zeros = pa.array([0.0, -0.0], members.type)
        return ir.ValueSet(pa.concat_arrays([members, zeros]), values.type)

    def like(self, node: ir.Like) -> ir.Predicate:
        """Rewrite LIKE with a constant pattern."""
        return replace(node, operand=self.operand(node.operand))

    def check_order(self, type_: LogicalType) -> None:
        """Raise for values that cannot be compared there."""
        if is_nested(type_) or isinstance(type_, Json):
            raise UnsupportedOperation(
                f"{self.dialect.name} compares values of {type_name(type_)} otherwise; compare "
                "their items or fields"
            )

    # Values

    def literal(self, node: ir.Literal) -> ir.Operand:
        """Rewrite a constant."""
        type_ = node.type
        assert type_ is not None
        if self.has(type_):
            return node
        self.renamed(type_)
        if isinstance(node.value, int) and node.value >= 2**63:
            raise self.lacks(type_)
        return ir.Literal(node.value, _INT64)

    def call(self, node: ir.Call) -> ir.Operand:
        """Rewrite a function call."""
        types, result = [type_of(argument) for argument in node.arguments], type_of(node)
        if reason := _doubt(TypedCall(node, types, result), self.dialect.name):
            raise UnsupportedOperation(reason)
        for type_ in (*types, result):
            if isinstance(type_, Int) and not self.has(type_):
                raise self.lacks(type_)
        arguments = self.arguments(node)
        if self.dialect.texts.trims_all_spaces and is_bare_trim(node):
            arguments.append(ir.Literal(" ", String()))
        rewritten = replace(node, arguments=tuple(arguments))
        if node.function == "date_trunc" and types[1] == _INSTANT:
            return truncated_in_utc(rewritten, self.dialect)
        moves, is_move = self.dialect.times.moves, node.function in _MOVES
        if moves is not None and moves.differ and is_move and isinstance(types[0], Timestamp):
            return ir.Call(moves.of(whole_of(arguments[-1]) or 0), tuple(arguments))
        signed = isinstance(result, Float) and node.function in _ARITHMETIC
        if self.dialect.semantics.nan is NanOrder.SIGNED and signed and may_be_negative_nan(node):
            return Templated(_UNSIGNED, (rewritten, self.literal(ir.Literal(math.nan, result))))
        return rewritten

    def arguments(self, node: ir.Call) -> list[ir.Operand]:
        """Rewrite the arguments of a call; integers in arithmetic keep our widths."""
        arguments = [self.operand(argument) for argument in node.arguments]
        if node.function in _ARITHMETIC:
            types = [type_of(argument) for argument in node.arguments]
            arguments = [
                ir.Cast(item, type_) if _is_narrow(item) else item
                for item, type_ in zip(arguments, types, strict=True)
            ]
        narrow = self.dialect.gives_types or self.dialect.widths is not IntegerWidths.WIDE
        # A shift is as wide as its first operand.
        sides = arguments[: 1 if node.function in _SHIFTS else None]
        computes = node.function in _ARITHMETIC | _SHIFTS and type_of(node) == _INT64
        if narrow and computes and all(map(_has_32_bits, sides)):
            arguments[0] = ir.Cast(arguments[0], _INT64)
        if node.function == "multiply" and (wide := self._wide_factor(node)) is not None:
            arguments[0] = ir.Cast(arguments[0], wide)
        return arguments

    def _wide_factor(self, node: ir.Call) -> Decimal | None:
        """Return the type for the first factor of a product that would overflow a word there."""
        most = self.dialect.word_digits
        first, second = (type_of(argument) for argument in node.arguments)
        if most is None or not isinstance(first, Decimal) or not isinstance(second, Decimal):
            return None
        fits = first.precision + second.precision < most  # a type of ours has one digit more
        if fits or max(first.precision, second.precision) > most:
            return None
        return Decimal(most + 1, first.scale)

    def cast(self, node: ir.Cast) -> ir.Operand:
        """Rewrite a cast."""
        source, target = type_of(node.operand), node.type
        if source == target:
            return self.operand(node.operand)
        shown = f"a cast of {type_name(source)} to {type_name(target)}"
        kinds = kinds_of(source, target)
        fails_as_null = node.try_ and isinstance(source, String)  # others never fail
        if node.try_ and not self._tries(source, target):
            raise UnsupportedOperation(
                f"{shown} may fail on other values in {self.dialect.name} than here, and TRY_CAST "
                "would be NULL there; write CAST"
            )
        zoned = any(isinstance(type_, Timestamp) and type_.utc for type_ in (source, target))
        if zoned and not self.dialect.times.declared_zones:
            raise UnsupportedOperation(
                f"{shown} depends on the time zone of {self.dialect.name}'s session, which is not "
                "known; name it, as in x AT TIME ZONE 'UTC'"
            )
        if kinds not in CASTS[self.dialect.name]:
            raise UnsupportedOperation(
                f"{shown} may give other values in {self.dialect.name}; compare the value itself"
            )
        if not self.has(target):
            raise self.lacks(target)
        return ir.Cast(self.operand(node.operand), target, fails_as_null)

    def _tries(self, source: LogicalType, target: LogicalType) -> bool:
        """Whether TRY_CAST gives NULL there for the same values as here.

        DataFusion replaces a comparison of a TRY_CAST between numbers by one of its operand, and
        finds rows where the cast would be NULL: such a cast must never fail.
        """
        if isinstance(source, String):
            return self.dialect.tries_text
        rule, kinds = cast_rule(source, target), kinds_of(source, target)
        certain = kinds in _NEVER_FAIL or (rule is not None and not rule.can_fail)
        return self.dialect.tries_certain and certain

    def field_access(self, node: ir.FieldAccess) -> ir.Operand:
        """Rewrite a field access; with a guard where values below a NULL struct show."""
        inner, type_ = self.operand(node.operand), type_of(node)
        access = ir.FieldAccess(inner, node.name)
        if not self.dialect.lists.shows_members_of_null:
            return access
        if is_nested(type_):
            raise UnsupportedOperation(
                f"{self.dialect.name} shows a list or a struct inside a struct that is NULL; name "
                "a field of the innermost struct"
            )
        return ir.Case(((ir.IsNull(inner), self.literal(ir.Literal(None, type_))),), access)

    # Types

    def has(self, type_: LogicalType) -> bool:
        """Whether the engine itself has the type, and not only our text for it."""
        if isinstance(type_, Decimal | Float):
            return True
        if type_ in self.dialect.borrowed:
            return False
        return type_ in self.dialect.types or type_ in self.dialect.arrow_types

    def renamed(self, type_: LogicalType) -> None:
        """Raise for a type without an equivalent in the engine."""
        if not isinstance(type_, Int):
            raise self.lacks(type_)

    def lacks(self, type_: LogicalType | None) -> UnsupportedOperation:
        """Build the error for a type."""
        shown = "that" if type_ is None else type_name(type_)
        return UnsupportedOperation(
            f"{self.dialect.name} has no type for {shown}; cast the value to a type that it has"
        )


def _doubt(call: TypedCall, dialect: str) -> str:
    """Return why the dialect may compute other values for the call; empty if it does not."""
    name = call.call.function
    if name in ZONE_FUNCTIONS:
        return "" if is_proved(call.call, dialect) else f"{name} may give other values in {dialect}"
    if name == "regex_matches":
        return "" if _reads_back(call, dialect) else f"{dialect}{_NO_PATTERN}"
    if name in FOUND and in_flavour(call.call, dialect) is None:
        return f"{dialect}{_NO_PATTERN}"
    return refusal(call, dialect)


def _reads_back(call: TypedCall, dialect: str) -> bool:
    """Whether the dialect has a pattern that is read back as this one."""
    if dialect not in _FLAVOURS or len(call.constants) != 1:
        return False
    try:
        from_re2(str(call.constants[0]), Flavour(dialect))
    except ValueError:
        return False
    return True


def _is_narrow(operand: ir.Operand) -> bool:
    """Whether it is such a function, or a CASE with one."""
    if isinstance(operand, ir.Case):
        return any(map(_is_narrow, (*(then for _, then in operand.branches), operand.otherwise)))
    return isinstance(operand, ir.Call) and operand.function in _NARROW


def _plain(literal: ir.Operand, other: ir.Operand) -> ir.Operand:
    """Write text compared with a column without a type."""
    if (
        isinstance(other, ir.BoundColumn)
        and isinstance(literal, ir.Literal)
        and literal.value is not None
    ):
        return ir.Literal(literal.value)
    return literal
