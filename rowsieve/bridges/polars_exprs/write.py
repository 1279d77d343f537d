"""Our tree as a `polars.Expr`: bound first, so that both sides have one type in every engine.

What polars would do otherwise is guarded where it can say what we mean (NULL in lists, NaN that is
unequal to itself, whole numbers that may not wrap around) and refused where it cannot. A refusal
takes its whole condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.extras import imported
from rowsieve.bridges.float32 import REASON, may_be_infinite
from rowsieve.bridges.polars_exprs import table
from rowsieve.errors import UnsupportedOperation
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
)
from rowsieve.predicate.like import parse_pattern
from rowsieve.predicate.literals import scalar
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import NanOrder, OnFailure, Semantics
from rowsieve.types.days import DAY_US, FIRST_DAY, LAST_DAY
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    LogicalType,
    Time,
    Timestamp,
    is_nested,
    type_name,
)

if TYPE_CHECKING:
    from polars import Expr

_COMPARE: dict[ComparisonOp, Callable[[Any, Any], Any]] = {
    ComparisonOp.EQ: lambda a, b: a == b,
    ComparisonOp.NE: lambda a, b: a != b,
    ComparisonOp.LT: lambda a, b: a < b,
    ComparisonOp.LE: lambda a, b: a <= b,
    ComparisonOp.GT: lambda a, b: a > b,
    ComparisonOp.GE: lambda a, b: a >= b,
    ComparisonOp.DISTINCT: lambda a, b: a.ne_missing(b),
    ComparisonOp.NOT_DISTINCT: lambda a, b: a.eq_missing(b),
}


# What of other engines' rules is said or refused here; the rest is seen to before (`meanings`).
SAID_BY_THE_WRITER = (
    "nan",
    "bitwise_lists_from",
    "integer_overflow",
    "integer_division_by_zero",
    "float_division_by_zero",
    "failed_cast",
    "rounds_half_to_even",
    "full_case",
)


class Writer:
    """Writes bound trees that are meant under the semantics given; `call` writes its calls."""

    def __init__(self, semantics: Semantics, call: Callable[[Writer, Call], Expr]) -> None:
        self.semantics = semantics
        self._call = call
        self.polars: Any = imported("polars", "polars")

    def predicate(self, node: Predicate) -> Expr:
        """The condition, or `UnsupportedOperation` with the reason."""
        match node:
            case TruePredicate():
                return self.truth(value=True)
            case FalsePredicate():
                return self.truth(value=False)
            case And(terms=terms):
                return self.conjunction([self.predicate(term) for term in terms])
            case Or(terms=terms):
                return self._balanced([self.predicate(term) for term in terms], all_of=False)
            case Not(term=term):
                return ~self.predicate(term)
            case Comparison(op=op, left=left, right=right):
                return self._comparison(op, left, right)
            case InList():
                return self._in_list(node)
            case IsNull(operand=operand):
                return self.operand(operand).is_null()
            case Like():
                return self._like(node)
            case BooleanOperand(operand=operand):
                return self.operand(operand)
            case Opaque(description=description):
                raise UnsupportedOperation(f"{description} is another engine's condition")
            case _:
                assert_never(node)

    def conjunction(self, terms: list[Expr]) -> Expr:
        """AND of expressions."""
        return self._balanced(terms, all_of=True)

    def operand(self, node: Operand) -> Expr:
        """The value, or `UnsupportedOperation` with the reason."""
        match node:
            case BoundColumn(name=name):
                return self._named(name)
            case Column(name=name):
                raise AssertionError(f"the column {name!r} is not bound")
            case Literal():
                return self.constant(node)
            case Call():
                return self._call(self, node)
            case Cast():
                return self._cast(node)
            case FieldAccess(operand=operand, name=name):
                if any(mark in name for mark in "*^"):
                    raise UnsupportedOperation(f"the member {name!r} would be a pattern there")
                return self._made(self.operand(operand).struct.field(name))
            case Case(branches=branches, otherwise=otherwise):
                made = self.operand(otherwise)
                for when, then in reversed(branches):
                    made = self.choose(self.predicate(when), self.operand(then), made)
                return made
            case Now():
                raise UnsupportedOperation("polars has no now(); bind with a time first")
            case Condition(predicate=predicate):
                return self.predicate(predicate)
            case _:
                assert_never(node)

    def constant(self, literal: Literal) -> Expr:
        """A constant of its type."""
        assert literal.type is not None
        value, type_ = literal.value, literal.type
        if isinstance(type_, Float) and isinstance(value, float) and math.isnan(value):
            value = math.nan
        days = value if isinstance(type_, Date) else None
        if isinstance(type_, Timestamp) and isinstance(value, int):
            days = value // DAY_US
        if isinstance(days, int) and not FIRST_DAY <= days <= LAST_DAY:
            raise UnsupportedOperation(
                "a day beyond polars' calendar in Python, which has the years 1 to 9999"
            )
        if value is not None and isinstance(type_, Date | Time | Timestamp | Decimal):
            made = self.polars.Series(pa.array([scalar(literal)], arrow_type(type_)))
            return self._made(self.polars.lit(made.item(), dtype=made.dtype))
        return self._made(self.polars.lit(value, dtype=self.dtype(type_)))

    def dtype(self, type_: LogicalType) -> Any:
        """Polars' type of a column that holds the values."""
        return self.polars.Series(pa.array([], arrow_type(type_))).dtype

    def truth(self, *, value: bool | None) -> Expr:
        """TRUE, FALSE or NULL."""
        return self._made(self.polars.lit(value, dtype=self.polars.Boolean))

    def choose(self, when: Expr, then: Expr, otherwise: Expr) -> Expr:
        """CASE WHEN … THEN … ELSE … END."""
        return self._made(self.polars.when(when).then(then).otherwise(otherwise))

    def _comparison(self, op: ComparisonOp, left: Operand, right: Operand) -> Expr:
        types = type_of(left), type_of(right)
        if any(is_nested(type_) for type_ in types):
            raise UnsupportedOperation("lists, structs and maps are not compared")
        sides = self.operand(left), self.operand(right)
        made: Expr = _COMPARE[op](*sides)
        if not isinstance(types[0], Float) or self.semantics.nan is not NanOrder.IEEE:
            return made
        if op in (ComparisonOp.DISTINCT, ComparisonOp.NOT_DISTINCT):
            raise UnsupportedOperation("NaN is equal to itself in eq_missing")
        nan = sides[0].is_nan() | sides[1].is_nan()
        unequal = self.truth(value=op is ComparisonOp.NE)
        known = self.choose(nan, unequal, made)
        missing = sides[0].is_null() | sides[1].is_null()
        return self.choose(missing, self.truth(value=None), known)

    def _in_list(self, node: InList) -> Expr:
        operand, members = self.operand(node.operand), node.values.array
        known = members.drop_null()
        if pa.types.is_floating(members.type):
            if self.semantics.compares_bits(len(members)) and _has_zero(known):
                raise UnsupportedOperation("polars' is_in finds zeros of both signs")
            if self.semantics.nan is NanOrder.IEEE:
                known = known.filter(pc.invert(pc.is_nan(known)))
        type_ = node.values.type or type_of(node.operand)
        found = operand.is_in(self.polars.Series(known.cast(arrow_type(type_))).implode())
        if not members.null_count:
            return found
        return self.choose(found, self.truth(value=True), self.truth(value=None))

    def _like(self, node: Like) -> Expr:
        text = self.operand(node.operand)
        pattern = parse_pattern(node.pattern, node.escape)
        if not node.ignore_case and (plain := self._plain_pattern(node, text)) is not None:
            return plain
        body = pattern.regex.removeprefix("(?s)^").removesuffix("$")
        for space in " \t\n\r\v\f":  # Python escapes them in a way that Rust does not know
            body = body.replace(f"\\{space}", f"\\x{ord(space):02x}")
        flags = "si" if node.ignore_case else "s"
        return self._made(text.str.contains(rf"(?{flags})\A{body}\z"))

    def _plain_pattern(self, node: Like, text: Any) -> Expr | None:
        """A pattern with a function of its own, which is read back; the others are regular."""
        whole = parse_pattern(node.pattern, node.escape)
        if whole.is_exact:
            return self._made(text == self.polars.lit(whole.prefix))
        if whole.is_prefix:
            return self._made(text.str.starts_with(whole.prefix))
        if node.pattern[0] != "%":
            return None
        rest = parse_pattern(node.pattern.lstrip("%"), node.escape)
        if rest.is_exact:
            return self._made(text.str.ends_with(rest.prefix))
        return self._made(text.str.contains(rest.prefix, literal=True)) if rest.is_prefix else None

    def _cast(self, node: Cast) -> Expr:
        source, target = type_of(node.operand), node.type
        operand = self.operand(node.operand)
        if source == target:
            return operand
        if (type(source).__name__, type(target).__name__) not in table.CASTS:
            raise UnsupportedOperation(
                f"a cast of {type_name(source)} to {type_name(target)} may give other values there"
            )
        if may_be_infinite(node.operand, source, target):
            raise UnsupportedOperation(REASON)
        zoned = isinstance(source, Timestamp) or isinstance(target, Timestamp)
        if zoned and self.semantics.time_zone != "UTC":
            raise UnsupportedOperation("a time zone other than UTC")
        may_fail = node.try_ or self.semantics.failed_cast is OnFailure.NULL
        return self._made(operand.cast(self.dtype(target), strict=not may_fail))

    def _named(self, name: str) -> Expr:
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise UnsupportedOperation(f"the name {name!r} would be a pattern there")
        return self._made(self.polars.col(name))

    def _balanced(self, terms: list[Expr], *, all_of: bool) -> Expr:
        """The terms joined two by two: the tree is as shallow as it can be."""
        while len(terms) > 1:
            pairs = zip(terms[::2], terms[1::2], strict=False)
            made = [a & b if all_of else a | b for a, b in pairs]
            terms = made + terms[len(made) * 2 :]
        return terms[0] if terms else self.truth(value=all_of)

    def _made(self, made: Any) -> Expr:
        expression: Expr = made
        return expression


def _has_zero(members: pa.Array) -> bool:
    return bool(pc.any(pc.equal(members, 0.0)).as_py())
