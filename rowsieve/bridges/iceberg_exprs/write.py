"""Our tree as pyiceberg's expressions: the rows on which it is TRUE, and only those.

pyiceberg's scan and its evaluator differ where a value is NULL, and neither has our third value.
So NOT goes into the leaves, and each leaf says for itself what it is of NULL and of NaN: both then
keep the rows for which the predicate is TRUE. Soundness: AND and OR of such leaves keep them too,
for they never ask of a term more than whether it is TRUE.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.extras import imported
from rowsieve.bridges.iceberg_exprs import table
from rowsieve.bridges.iceberg_exprs.columns import check_known, path_of
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import (
    And,
    BooleanOperand,
    BoundColumn,
    Call,
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
    Operand,
    Or,
    PhysicalValue,
    Predicate,
    TruePredicate,
)
from rowsieve.predicate.like import parse_pattern
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Float,
    LogicalType,
    Time,
    Timestamp,
    Uuid,
    type_name,
)

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

_NAMES = {op: name for name, op in table.COMPARISONS.items()}
_OPPOSITES = {
    "EqualTo": "NotEqualTo",
    "LessThan": "GreaterThanOrEqual",
    "GreaterThan": "LessThanOrEqual",
    "In": "NotIn",
    "StartsWith": "NotStartsWith",
}
_OPPOSITES |= {other: name for name, other in _OPPOSITES.items()}
_NEGATIVE = ("NotEqualTo", "NotIn", "NotStartsWith")
_DISTINCT = (ComparisonOp.DISTINCT, ComparisonOp.NOT_DISTINCT)
_REFLEXIVE = (ComparisonOp.EQ, ComparisonOp.LE, ComparisonOp.GE, ComparisonOp.NOT_DISTINCT)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """What a condition on one column is of NULL (None for NULL), of NaN, and of other values.

    `others` is the name of a class and its constant, or one answer for all of them.
    """

    operand: Operand
    on_null: bool | None
    on_nan: bool | None
    others: tuple[str, Any] | bool | None

    def negated(self) -> _Leaf:
        others = self.others
        if isinstance(others, tuple):
            others = (_OPPOSITES[others[0]], others[1])
        elif others is not None:
            others = not others
        nan, null = self.on_nan, self.on_null
        return replace(
            self,
            on_null=None if null is None else not null,
            on_nan=None if nan is None else not nan,
            others=others,
        )


class Writer:
    """Writes bound trees that are meant under the semantics given."""

    def __init__(self, semantics: Semantics) -> None:
        self._expressions: Any = imported("pyiceberg.expressions", "iceberg")
        self._literals: Any = imported("pyiceberg.expressions.literals", "iceberg")
        self._semantics = semantics

    def condition(self, node: Predicate) -> BooleanExpression:
        """The rows on which the condition is TRUE."""
        return self._rows(node, negated=False)

    def conjunction(self, terms: Sequence[BooleanExpression]) -> BooleanExpression:
        """AND of expressions."""
        return self._junction("And", terms)

    def _rows(self, node: Predicate, *, negated: bool) -> BooleanExpression:
        """The rows on which the condition, or its NOT, is TRUE."""
        match node:
            case TruePredicate() | FalsePredicate():
                always = isinstance(node, TruePredicate) is not negated
                return self._made("AlwaysTrue" if always else "AlwaysFalse")
            case Not(term=term):
                return self._rows(term, negated=not negated)
            case And(terms=terms) | Or(terms=terms):
                kind = "And" if isinstance(node, And) is not negated else "Or"
                return self._junction(kind, [self._rows(t, negated=negated) for t in terms])
            case BooleanOperand(operand=Condition(predicate=inner)):
                return self._rows(inner, negated=negated)
            case InList() if node.values.array.null_count and negated:
                path_of(node.operand)
                return self._made("AlwaysFalse")  # NULL or FALSE, and so is its NOT
            case BooleanOperand(operand=Literal(value=value)):
                return self._made("AlwaysTrue" if value is (not negated) else "AlwaysFalse")
        leaf = self._leaf(node)
        return self._written(leaf.negated() if negated else leaf)

    # Leaves

    def _leaf(self, node: Predicate) -> _Leaf:
        match node:
            case Comparison(op=op, left=left, right=Literal() as right):
                return self._compared(op, left, right)
            case Comparison(op=op, left=left, right=right) if left == right:
                return self._with_itself(op, left)
            case InList(operand=operand):
                return self._listed(node, operand)
            case IsNull(operand=operand):
                return _Leaf(operand, True, False, False)  # noqa: FBT003 - of NULL, NaN, others
            case BooleanOperand(operand=BoundColumn() | FieldAccess() as operand):
                return _Leaf(operand, None, None, ("EqualTo", self._constant(True, Bool())))  # noqa: FBT003
            case BooleanOperand(operand=Call(function="starts_with", arguments=(text, part))):
                if isinstance(part, Literal) and isinstance(part.value, str):
                    return _Leaf(text, None, None, ("StartsWith", part.value))
            case Like(operand=operand, ignore_case=False):
                pattern = parse_pattern(node.pattern, node.escape)
                if pattern.is_exact:
                    return _Leaf(operand, None, None, ("EqualTo", pattern.prefix))
                if pattern.is_prefix:
                    return _Leaf(operand, None, None, ("StartsWith", pattern.prefix))
        raise UnsupportedOperation("pyiceberg has no expression of this form")

    def _compared(self, op: ComparisonOp, operand: Operand, constant: Literal) -> _Leaf:
        value, type_ = constant.value, type_of(operand)
        null: bool | None = None
        if op in _DISTINCT:
            null = (value is None) is (op is ComparisonOp.NOT_DISTINCT)
            op = ComparisonOp.EQ if op is ComparisonOp.NOT_DISTINCT else ComparisonOp.NE
            if value is None:
                rest = op is ComparisonOp.NE
                return _Leaf(operand, null, rest, rest)
        if value is None:
            return _Leaf(operand, None, None, None)
        if not isinstance(type_, Float):
            return _Leaf(operand, null, None, (_NAMES[op], self._constant(value, type_)))
        assert isinstance(value, float)
        ieee = self._semantics.nan is NanOrder.IEEE
        if not math.isnan(value):
            above = op in (ComparisonOp.GT, ComparisonOp.GE) and not ieee
            nan = op is ComparisonOp.NE or above
            return _Leaf(operand, null, nan, (_NAMES[op], self._constant(value, type_)))
        if ieee:
            never = op is ComparisonOp.NE
            return _Leaf(operand, null, never, never)
        below = op in (ComparisonOp.NE, ComparisonOp.LT, ComparisonOp.LE)
        return _Leaf(operand, null, op in _REFLEXIVE, below)

    def _with_itself(self, op: ComparisonOp, operand: Operand) -> _Leaf:
        same = op in _REFLEXIVE
        nan: bool | None = None
        if isinstance(type_of(operand), Float):
            unequal = op in (ComparisonOp.NE, ComparisonOp.DISTINCT)
            nan = unequal if self._semantics.nan is NanOrder.IEEE else same
        return _Leaf(operand, same if op in _DISTINCT else None, nan, same)

    def _listed(self, node: InList, operand: Operand) -> _Leaf:
        members, type_ = node.values.array, type_of(operand)
        if node.values.type not in (type_, None):
            raise UnsupportedOperation("the members of the list are of another type")
        known, nan = members.drop_null(), None
        if isinstance(type_, Float):
            marked = pc.is_nan(known)
            nan = self._semantics.nan is NanOrder.GREATEST and bool(pc.any(marked).as_py())
            known = known.filter(pc.invert(marked))
        if not len(known):
            return _Leaf(operand, None, nan, False)  # noqa: FBT003 - of NULL, NaN, others
        return _Leaf(operand, None, nan, ("In", (known, type_, len(members))))

    # Writing of leaves

    def _written(self, leaf: _Leaf) -> BooleanExpression:
        path, type_ = path_of(leaf.operand), type_of(leaf.operand)
        check_known(type_)
        others = leaf.others
        if not isinstance(others, tuple):
            made = self._all_or_none(path, type_, leaf)
        else:
            name, constant = others
            made = self._in(name, path, *constant) if name in ("In", "NotIn") else None
            made = self._made(name, path, constant) if made is None else made
            made = self._guarded(made, path, type_, leaf, negative=name in _NEGATIVE)
        if leaf.on_null:
            return self._junction("Or", [self._made("IsNull", path), made])
        return made

    def _all_or_none(self, path: str, type_: LogicalType, leaf: _Leaf) -> BooleanExpression:
        floats = isinstance(type_, Float)
        if leaf.others:
            if floats and not leaf.on_nan:
                return self._junction(
                    "And", [self._made("NotNull", path), self._made("NotNaN", path)]
                )
            return self._made("NotNull", path)
        return self._made("IsNaN", path) if floats and leaf.on_nan else self._made("AlwaysFalse")

    def _guarded(
        self, made: Any, path: str, type_: LogicalType, leaf: _Leaf, *, negative: bool
    ) -> BooleanExpression:
        """The leaf with what it would be of NULL and of NaN put right."""
        floats = isinstance(type_, Float)
        if not negative:
            if floats and leaf.on_nan:
                return self._junction("Or", [made, self._made("IsNaN", path)])
            expression: BooleanExpression = made
            return expression
        guards = [self._made("NotNull", path)]
        if floats and not leaf.on_nan:
            guards.append(self._made("NotNaN", path))
        return self._junction("And", [*guards, made])

    def _in(
        self, name: str, path: str, members: pa.Array, type_: LogicalType, count: int
    ) -> BooleanExpression:
        """A list; zeros of floats are compared apart, for a scan knows them by their bits."""
        zero = None
        if isinstance(type_, Float):
            zeros = members.filter(pc.equal(members, 0.0))
            signs = {math.copysign(1.0, value) for value in zeros.to_pylist()}
            if signs and len(signs) < 2 and self._semantics.compares_bits(count):
                raise UnsupportedOperation("a list that tells -0.0 from 0.0 does so only in scans")
            zero = 0.0 if signs else None
            members = members.filter(pc.not_equal(members, 0.0))
        if isinstance(type_, Date | Time | Timestamp):
            members = members.view(pa.int32() if isinstance(type_, Date) else pa.int64())
        constants = [self._constant(value, type_) for value in members.to_pylist()]
        made = [self._made(name, path, constants)] if constants else []
        if zero is not None:
            made.append(self._made("EqualTo" if name == "In" else "NotEqualTo", path, zero))
        return self._junction("Or" if name == "In" else "And", made)

    def _constant(self, value: PhysicalValue, type_: LogicalType) -> Any:
        """The constant such that pyiceberg binds it to the column's type unchanged."""
        match type_:
            case Date():
                return self._literals.DateLiteral(value)
            case Time():
                return self._literals.TimeLiteral(value)
            case Timestamp():
                return self._literals.TimestampLiteral(value)
            case Uuid():
                return self._literals.UUIDLiteral(value)
            case Float(bits=32) if isinstance(value, float) and math.isinf(value):
                raise UnsupportedOperation("pyiceberg has no infinite float32")
            case Decimal(scale=scale):
                exponent = getattr(value, "as_tuple", lambda: None)()
                if exponent is None or -exponent.exponent != scale:
                    raise UnsupportedOperation(f"the constant {value!r} is no {type_name(type_)}")
        return self._literals.literal(value)

    # Making

    def _junction(self, kind: str, terms: Sequence[Any]) -> BooleanExpression:
        if not terms:
            return self._made("AlwaysTrue" if kind == "And" else "AlwaysFalse")
        whole: BooleanExpression = terms[0] if len(terms) == 1 else self._made(kind, *terms)
        return whole

    def _made(self, name: str, *arguments: Any) -> BooleanExpression:
        expression: BooleanExpression = getattr(self._expressions, name)(*arguments)
        return expression
