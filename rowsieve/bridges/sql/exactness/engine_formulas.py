"""Rewrite a condition or a value of text to one that computes what the dialect's engine computes.

One walk from the leaves up: calls and casts by `own_formulas`, then comparisons of quotients by
`compared_quotients`. A call below another operation is cast to the type of its result in the
engine, which decides how that operation computes; what is compared needs no cast, because the value
is the same. Soundness: a rewritten node has the engine's value for every row.
"""

from __future__ import annotations

from dataclasses import dataclass

from rowsieve.bridges.sql.exactness.compared_quotients import product_comparison, product_list
from rowsieve.bridges.sql.exactness.own_formulas import (
    AS_IT_IS,
    CASES,
    FLOATS,
    FORMULAS,
    RESULTS,
    Formula,
)
from rowsieve.bridges.sql.exactness.unbound_types import UnboundTyper
from rowsieve.predicate import ir
from rowsieve.types.logical import Decimal, Float

_FLOAT64 = Float(64)


@dataclass(frozen=True, slots=True)
class EngineFormulas:
    """Rewrites trees so that their calls, casts and comparisons have the engine's values."""

    engine: str
    typer: UnboundTyper

    def predicate(self, node: ir.Predicate) -> ir.Predicate:
        """Rewrite a condition."""
        if not any(map(self.differs, ir.walk(node))):
            return node
        if self.engine in AS_IT_IS and AS_IT_IS[self.engine](node):
            return node
        rewritten = ir.map_children(node, self.predicate, self.side)
        match rewritten:
            case ir.Comparison():
                return product_comparison(rewritten, self.typer.of_known, self.engine)
            case ir.InList():
                return product_list(rewritten, self.typer.of_known, self.engine)
            case _:
                return rewritten

    def operand(self, node: ir.Operand) -> ir.Operand:
        """Rewrite a value that another operation takes."""
        rewritten = self.side(node)
        if not isinstance(node, ir.Call):
            return rewritten
        result = RESULTS.get(self.engine, {}).get(node.function)
        return rewritten if result is None else ir.Cast(rewritten, result)

    def side(self, node: ir.Operand) -> ir.Operand:
        """Rewrite a value that a condition compares."""
        rewritten = ir.map_children(node, self.predicate, self.operand)
        if isinstance(rewritten, ir.Cast) and self.is_float_cast(rewritten):
            type_ = self.typer.of_known(rewritten.operand)
            if not isinstance(type_, Decimal):
                return rewritten
            return FLOATS[self.engine](rewritten.operand, type_)
        if isinstance(rewritten, ir.Case) and self.engine in CASES:
            return CASES[self.engine](rewritten, self.typer.of_known)
        if isinstance(rewritten, ir.Call) and (formula := self.formula(rewritten)) is not None:
            return formula(rewritten, self.typer.of_known)
        return rewritten

    def differs(self, node: ir.Node) -> bool:
        """Whether the engine may compute a node by another formula or from another type."""
        if isinstance(node, ir.Call) and node.function in RESULTS.get(self.engine, {}):
            return True
        if isinstance(node, ir.Case) and self.engine in CASES:
            return True
        return self.is_float_cast(node) or self.formula(node) is not None

    def is_float_cast(self, node: ir.Node) -> bool:
        """Whether it is a cast to float64 for which the engine has a formula."""
        return isinstance(node, ir.Cast) and node.type == _FLOAT64 and self.engine in FLOATS

    def formula(self, node: ir.Node) -> Formula | None:
        """Return the engine's formula for a call; None for other nodes."""
        formulas = FORMULAS.get(self.engine, {})
        return formulas.get(node.function) if isinstance(node, ir.Call) else None
