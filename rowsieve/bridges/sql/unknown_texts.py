"""Conditions on text whose meaning depends on the engine: casts of text, an unknown collation.

Soundness: what is refused here is left in its own words, as a whole condition.
"""

from __future__ import annotations

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.functions.casts import reads_every_text
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Json, String, type_name

_RANGES = (ir.ComparisonOp.LT, ir.ComparisonOp.LE, ir.ComparisonOp.GT, ir.ComparisonOp.GE)


def check_texts(root: ir.Predicate, semantics: Semantics) -> None:
    """Refuse a cast of text that may meet one whose value is unknown to Rowsieve."""
    for node in ir.walk(root):
        if not isinstance(node, ir.Cast) or not isinstance(type_of(node.operand), String):
            continue
        if isinstance(node.type, String | Json) or reads_every_text(node.type, semantics):
            continue
        raise UnsupportedOperation(
            f"{semantics.text_reading.value} reads some texts as {type_name(node.type)} by rules "
            "of its own, which are unknown to Rowsieve"
        )


def orders_text(root: ir.Predicate) -> bool:
    """Whether the order of texts decides somewhere in a bound condition."""
    return any(_is_text_range(node) for node in ir.walk(root))


def check_order(root: ir.Predicate, dialect: str) -> None:
    """Refuse a bound condition in which it does, where no collation is named."""
    if orders_text(root):
        raise UnsupportedOperation(
            f'{dialect} orders text by the collation of its database; write text COLLATE "C" < …'
        )


def _is_text_range(node: ir.Node) -> bool:
    """Whether the order of texts decides."""
    if isinstance(node, ir.Comparison):
        return node.op in _RANGES and isinstance(type_of(node.left), String)
    if isinstance(node, ir.Call) and node.function in ("greatest", "least"):
        return isinstance(type_of(node), String)
    return False
