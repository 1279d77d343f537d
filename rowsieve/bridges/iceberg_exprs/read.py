"""Read pyiceberg's expressions as our tree.

Each leaf is bound by pyiceberg, which converts its constants.

Soundness: the result for NULL is written out, as in a scan or in the evaluator.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.base import TreeReader, supported
from rowsieve.bridges.chains import flattened
from rowsieve.bridges.extras import imported
from rowsieve.bridges.iceberg_exprs import function_table
from rowsieve.bridges.iceberg_exprs.columns import Columns
from rowsieve.bridges.iceberg_exprs.long_lists import LONG, bound_values
from rowsieve.bridges.ticks import from_ticks
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Decimal, Float, Int, LogicalType, String
from rowsieve.types.schema import Schema

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

_SHOWN = 20  # leaves of an expression that a note still shows


def chain(expression: BooleanExpression, kind: str) -> list[BooleanExpression]:
    """Return the terms of an AND or OR, in the order written."""

    def terms_of(item: Any) -> tuple[Any, Any] | None:
        return (item.left, item.right) if type(item).__name__ == kind else None

    return flattened(expression, terms_of)


def joined(terms: Sequence[BooleanExpression]) -> BooleanExpression:
    """Return the AND of conditions."""
    module: Any = imported("pyiceberg.expressions", "iceberg")
    whole: BooleanExpression = terms[0] if len(terms) == 1 else module.And(*terms)
    return whole


def shown(expression: BooleanExpression) -> str:
    """Return pyiceberg's text of the expression, if short."""
    leaves, stack = 0, [expression]
    while stack and leaves <= _SHOWN:
        item: Any = stack.pop()
        below = [getattr(item, name, None) for name in ("left", "right", "child")]
        stack.extend(part for part in below if part is not None)
        leaves += 1 + len(getattr(item, "literals", ()))
    return str(expression) if leaves <= _SHOWN else f"a long {type(expression).__name__}"


class Reader(TreeReader[Any]):
    """Reads expressions over the columns of one schema."""

    max_depth = 150

    def __init__(self, schema: Schema, *, two_valued: bool) -> None:
        super().__init__(schema, Semantics.ICEBERG)
        self._columns = Columns(schema)
        self._two_valued = two_valued

    def read(self, node: Any) -> ir.Predicate:
        """Read one expression by its class."""
        kind = type(node).__name__
        supported(function_table.ROWS.get(kind), f"the expression {kind}", "unknown to Rowsieve")
        match kind:
            case "AlwaysTrue":
                return ir.TRUE
            case "AlwaysFalse":
                return ir.FALSE
            case "And":
                return ir.And(tuple(self.predicate(term) for term in chain(node, kind)))
            case "Or":
                return ir.Or(tuple(self.predicate(term) for term in chain(node, kind)))
            case "Not":
                return ir.Not(self.predicate(node.child))
        if kind.startswith("Bound"):
            return self._leaf(node, *self._columns.named(node.term))
        if kind in ("In", "NotIn") and len(node.literals) >= LONG:
            bound = self._attempt(node, node.term.bind)
            operand, type_ = self._columns.bound(bound.ref().field.field_id)
            if (values := bound_values(node.literals, type_)) is not None:
                return _in(kind, operand, self._members(values, type_))
        bound = self._bound(node)
        if not type(bound).__name__.startswith("Bound"):
            return self.read(bound)  # decided by the type alone
        return self._leaf(bound, *self._columns.bound(bound.term.ref().field.field_id))

    def _bound(self, expression: Any) -> Any:
        return self._attempt(expression, expression.bind)

    def _attempt(self, expression: Any, bind: Callable[..., Any]) -> Any:
        self.schema.field(expression.term.name.partition(".")[0])
        try:
            return bind(self._columns.foreign, case_sensitive=True)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise UnsupportedOperation(f"pyiceberg cannot bind it: {error}") from error

    def _leaf(self, bound: Any, operand: ir.Operand, type_: LogicalType) -> ir.Predicate:
        kind = type(bound).__name__.removeprefix("Bound")
        known = ir.Not(ir.IsNull(operand))
        match kind:
            case "IsNull":
                return ir.IsNull(operand)
            case "NotNull":
                return known
            case "IsNaN":
                return self._found(operand, ir.Comparison(ir.ComparisonOp.NE, operand, operand))
            case "NotNaN":
                return self._other(operand, ir.Comparison(ir.ComparisonOp.EQ, operand, operand))
            case "In" | "NotIn":
                return _in(kind, operand, self._bound_members(bound, type_))
            case "StartsWith" | "NotStartsWith":
                prefix = ir.Literal(bound.literal.value, String())
                starts = ir.BooleanOperand(ir.Call("starts_with", (operand, prefix)))
                if kind == "StartsWith":
                    return self._found(operand, starts)
                return self._other(operand, ir.Not(starts))
        op = function_table.COMPARISONS[kind]
        compared = ir.Comparison(op, operand, self._constant(bound.literal, type_))
        wrap = self._other if op is ir.ComparisonOp.NE else self._found
        return wrap(operand, compared)

    def _found(self, operand: ir.Operand, leaf: ir.Predicate) -> ir.Predicate:
        """Return a leaf that is FALSE for NULL in the evaluator."""
        return ir.And((ir.Not(ir.IsNull(operand)), leaf)) if self._two_valued else leaf

    def _other(self, operand: ir.Operand, leaf: ir.Predicate) -> ir.Predicate:
        """Return a leaf that is TRUE for NULL in the evaluator."""
        return ir.Or((ir.IsNull(operand), leaf)) if self._two_valued else leaf

    def _constant(self, literal: Any, type_: LogicalType) -> ir.Literal:
        row = function_table.ROWS.get(type(literal).__name__)
        if row is None or row.reads is not Exactness.EXACT:
            raise UnsupportedOperation(f"the constant {literal!r} has no counterpart in Rowsieve")
        value: Any = literal.value
        match type_:
            case Int():
                return ir.Literal(int(value))
            case Float(bits=32) if not self._two_valued:  # a scan compares in the column's type
                return ir.Literal(pa.scalar(value, pa.float32()).as_py(), type_)
            case Float():
                return ir.Literal(float(value), Float(64))
            case Decimal():
                return ir.Literal(decimal.Decimal(value))
            case _:
                return ir.Literal(value, type_)

    def _bound_members(self, bound: Any, type_: LogicalType) -> ir.ValueSet:
        kinds = set(map(type, bound.literals))
        if any(kind.__name__.endswith(("AboveMax", "BelowMin")) for kind in kinds):
            raise UnsupportedOperation("a member of the list is beyond the column's type")
        return self._members([item.value for item in bound.literals], type_)

    def _members(self, values: list[Any], type_: LogicalType) -> ir.ValueSet:
        wide = isinstance(type_, Float) and self._two_valued
        members: LogicalType = Float(64) if wide else Int(64) if isinstance(type_, Int) else type_
        try:
            array = from_ticks(values, members)
        except (pa.ArrowException, OverflowError, TypeError) as error:
            raise UnsupportedOperation(f"a member of IN is of another type: {error}") from error
        if wide and pc.any(pc.equal(array, 0.0)).as_py():
            array = pa.concat_arrays([array, pa.array([0.0, -0.0])])
        return ir.ValueSet(array, members)


def _in(kind: str, operand: ir.Operand, members: ir.ValueSet) -> ir.Predicate:
    """Return the list; In is FALSE for NULL, NotIn is TRUE."""
    if kind == "In":
        return ir.And((ir.Not(ir.IsNull(operand)), ir.InList(operand, members)))
    return ir.Or((ir.IsNull(operand), ir.Not(ir.InList(operand, members))))
