"""Rewrite a condition or a value of text to one that computes what the dialect's engine computes.

One walk from the leaves up: calls and casts by `own_formulas`, then comparisons of quotients by
`compared_quotients`. Soundness: a rewritten node has the engine's value for every row.
"""

from __future__ import annotations

from dataclasses import dataclass

from rowsieve.bridges.sql.exactness.compared_quotients import product_comparison, product_list
from rowsieve.bridges.sql.exactness.own_formulas import FLOATS, FORMULAS, Formula
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Decimal, Float, LogicalType
from rowsieve.types.schema import Schema

_FLOAT64 = Float(64)


def with_engine_formulas(
    predicate: ir.Predicate, schema: Schema, semantics: Semantics, engine: str
) -> ir.Predicate:
    """Return a condition whose calls, casts and comparisons have the engine's values."""
    return _Rewriter(engine, schema, semantics).predicate(predicate)


def operand_with_engine_formulas(
    operand: ir.Operand, schema: Schema, semantics: Semantics, engine: str
) -> ir.Operand:
    """Return a value whose calls, casts and comparisons have the engine's values."""
    return _Rewriter(engine, schema, semantics).operand(operand)


@dataclass(frozen=True, slots=True)
class _Rewriter:
    engine: str
    schema: Schema
    semantics: Semantics

    def predicate(self, node: ir.Predicate) -> ir.Predicate:
        if not any(self.is_float_cast(each) or self.formula(each) for each in ir.walk(node)):
            return node
        rewritten = ir.map_children(node, self.predicate, self.operand)
        match rewritten:
            case ir.Comparison():
                return product_comparison(rewritten, self.type_of, self.engine)
            case ir.InList():
                return product_list(rewritten, self.type_of, self.engine)
            case _:
                return rewritten

    def operand(self, node: ir.Operand) -> ir.Operand:
        rewritten = ir.map_children(node, self.predicate, self.operand)
        if isinstance(rewritten, ir.Cast) and self.is_float_cast(rewritten):
            type_ = self.type_of(rewritten.operand)
            if not isinstance(type_, Decimal):
                return rewritten
            return FLOATS[self.engine](rewritten.operand, type_)
        if isinstance(rewritten, ir.Call) and (formula := self.formula(rewritten)) is not None:
            return formula(rewritten, self.type_of)
        return rewritten

    def is_float_cast(self, node: ir.Node) -> bool:
        return isinstance(node, ir.Cast) and node.type == _FLOAT64 and self.engine in FLOATS

    def formula(self, node: ir.Node) -> Formula | None:
        formulas = FORMULAS.get(self.engine, {})
        return formulas.get(node.function) if isinstance(node, ir.Call) else None

    def type_of(self, operand: ir.Operand) -> LogicalType | None:
        try:
            return bind_operand(operand, self.schema, self.semantics).type
        except InvalidPredicate:  # what has no type is refused where it is bound
            return None
