"""Write predicates in languages of conditions on single columns that keep TRUE rows.

Such languages have no NULL result, or treat it inconsistently. So NOT is pushed into the leaves,
and each `Leaf` defines its result for NULL and NaN.

Soundness: AND and OR of leaves keep the rows on which the predicate is TRUE, because they depend
only on whether each term is TRUE.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.like import parse_pattern
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.logical import Bool, Float, LogicalType, String

E = TypeVar("E")

_POSITIVES = ("IN", "STARTS WITH")
_OPPOSITES = (
    {op.value: op.negated.value for op in ir.ComparisonOp}
    | {name: f"NOT {name}" for name in _POSITIVES}
    | {f"NOT {name}": name for name in _POSITIVES}
)


@dataclass(frozen=True, slots=True)
class Members:
    """The members of a list, without NULL and NaN; `bitwise`: -0.0 and 0.0 differ."""

    array: pa.Array
    type: LogicalType
    bitwise: bool


Test: TypeAlias = tuple[str, ir.Literal | Members]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A condition on one column: results for NULL, NaN (None: irrelevant) and all other values.

    `on_null` is None for NULL. `others` is a test (`=` `<>` `<` `<=` `>` `>=` with a constant, `IN`
    and `NOT IN` with members, `STARTS WITH` and its negation with text), or one result for all
    other values.
    """

    operand: ir.Operand
    others: Test | bool | None
    on_null: bool | None = None
    on_nan: bool | None = None

    def negated(self) -> Leaf:
        """Return the negated leaf; NULL stays NULL."""
        others = self.others
        if isinstance(others, tuple):
            others = (_OPPOSITES[others[0]], others[1])
        else:
            others = None if others is None else not others
        nan, null = self.on_nan, self.on_null
        return replace(
            self,
            others=others,
            on_null=None if null is None else not null,
            on_nan=None if nan is None else not nan,
        )


class KeptRows(ABC, Generic[E]):
    """Writes bound trees with the given semantics as filters that keep their TRUE rows."""

    def __init__(self, semantics: Semantics) -> None:
        self.semantics = semantics

    def rows(self, node: ir.Predicate, *, negated: bool = False) -> E:
        """Write the rows on which the condition, or its negation, is TRUE."""
        match node:
            case ir.TruePredicate() | ir.FalsePredicate():
                return self.always(value=isinstance(node, ir.TruePredicate) is not negated)
            case ir.Not(term=term):
                return self.rows(term, negated=not negated)
            case ir.And(terms=terms) | ir.Or(terms=terms):
                term_rows = [self.rows(term, negated=negated) for term in terms]
                return self.junction(term_rows, all_of=isinstance(node, ir.And) is not negated)
            case ir.BooleanOperand(operand=ir.Condition(predicate=inner)):
                return self.rows(inner, negated=negated)
            case ir.BooleanOperand(operand=ir.Literal(value=value)):
                return self.always(value=value is (not negated))
            case ir.InList() if negated and node.values.array.null_count:
                return self.always(value=False)  # NOT IN with NULL is FALSE or NULL
        leaf = self._leaf(node)
        return self.leaf(leaf.negated() if negated else leaf)

    @abstractmethod
    def always(self, *, value: bool) -> E:
        """Return a filter of all rows, or of none."""

    @abstractmethod
    def junction(self, terms: Sequence[E], *, all_of: bool) -> E:
        """Return the rows of all of the terms, or of any."""

    @abstractmethod
    def leaf(self, leaf: Leaf) -> E:
        """Return the rows for which a leaf is TRUE, or raise `UnsupportedOperation`."""

    def _leaf(self, node: ir.Predicate) -> Leaf:
        match node:
            case ir.Comparison(op=op, left=left, right=ir.Literal() as right):
                return self._compared(op, left, right)
            case ir.Comparison(op=op, left=left, right=right) if left == right:
                return self._with_itself(op, left)
            case ir.InList(operand=operand):
                return self._listed(node, operand)
            case ir.IsNull(operand=operand):
                return Leaf(operand, others=False, on_null=True, on_nan=False)
            case ir.BooleanOperand(operand=ir.BoundColumn() | ir.FieldAccess() as operand):
                return Leaf(operand, ("=", ir.Literal(value=True, type=Bool())))
            case ir.BooleanOperand(
                operand=ir.Call(function="starts_with", arguments=(text, ir.Literal() as part))
            ) if isinstance(part.value, str):
                return Leaf(text, ("STARTS WITH", part))
            case ir.Like(operand=operand, ignore_case=False):
                pattern = parse_pattern(node.pattern, node.escape)
                if pattern.is_exact or pattern.is_prefix:
                    test = "=" if pattern.is_exact else "STARTS WITH"
                    return Leaf(operand, (test, ir.Literal(pattern.prefix, String())))
        raise UnsupportedOperation(
            "the engine has no expression of this form; compare columns with constants"
        )

    def _compared(self, op: ir.ComparisonOp, operand: ir.Operand, constant: ir.Literal) -> Leaf:
        value, type_ = constant.value, type_of(operand)
        null: bool | None = None
        if op.is_null_safe:
            null = (value is None) is (op is ir.ComparisonOp.NOT_DISTINCT)
            op = ir.ComparisonOp.EQ if op is ir.ComparisonOp.NOT_DISTINCT else ir.ComparisonOp.NE
            if value is None:
                rest = op is ir.ComparisonOp.NE
                return Leaf(operand, rest, null, rest)
        if value is None:
            return Leaf(operand, None)
        if not isinstance(type_, Float):
            return Leaf(operand, (op.value, constant), null)
        assert isinstance(value, float)
        ieee = self.semantics.nan is NanOrder.IEEE
        if not math.isnan(value):
            above = op.holds_if_greater and (not ieee or not op.is_order)
            return Leaf(operand, (op.value, constant), null, above)
        if ieee:
            never = op is ir.ComparisonOp.NE
            return Leaf(operand, never, null, never)
        return Leaf(operand, op.holds_if_less, null, op.holds_if_equal)

    def _with_itself(self, op: ir.ComparisonOp, operand: ir.Operand) -> Leaf:
        same = op.holds_if_equal
        nan: bool | None = None
        if isinstance(type_of(operand), Float):
            unequal = not op.is_order and not same
            nan = unequal if self.semantics.nan is NanOrder.IEEE else same
        return Leaf(operand, same, same if op.is_null_safe else None, nan)

    def _listed(self, node: ir.InList, operand: ir.Operand) -> Leaf:
        members, type_ = node.values.array, type_of(operand)
        if node.values.type not in (type_, None):
            raise UnsupportedOperation(
                "the members of the list are of another type than the column; cast them to its type"
            )
        known, nan = members.drop_null(), None
        if isinstance(type_, Float):
            marked = pc.is_nan(known)
            nan = self.semantics.nan is not NanOrder.IEEE and bool(pc.any(marked).as_py())
            known = known.filter(pc.invert(marked))
        if not len(known):
            return Leaf(operand, others=False, on_nan=nan)
        bitwise = self.semantics.compares_bits(len(members))
        return Leaf(operand, ("IN", Members(known, type_, bitwise)), on_nan=nan)


def zeros_apart(members: Members) -> tuple[pa.Array, frozenset[float]]:
    """Return the float members without zeros, and the signs of the zeros among them."""
    if not isinstance(members.type, Float):
        return members.array, frozenset()
    zeros = members.array.filter(pc.equal(members.array, 0.0))
    signs = frozenset(math.copysign(1.0, value) for value in zeros.to_pylist())
    return members.array.filter(pc.not_equal(members.array, 0.0)), signs
