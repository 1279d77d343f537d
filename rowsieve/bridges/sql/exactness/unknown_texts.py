"""Conditions on text whose meaning depends on the engine: casts of text, an unknown collation.

Soundness: a condition that is refused here stays in the residual as a whole.
"""

from __future__ import annotations

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.functions.casting.casts import reads_every_text
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Json, String, type_name


def check_texts(root: ir.Predicate, semantics: Semantics) -> None:
    """Raise for a cast of text whose result for some texts is unknown to Rowsieve."""
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
    """Whether a bound condition depends on the order of texts."""
    return any(_is_text_range(node) for node in ir.walk(root))


def check_order(root: ir.Predicate, dialect: str) -> None:
    """Raise for a bound condition that depends on the order of texts without a collation."""
    if orders_text(root):
        raise UnsupportedOperation(
            f'{dialect} orders text by the collation of its database; write text COLLATE "C" < …'
        )


def _is_text_range(node: ir.Node) -> bool:
    """Whether the node compares texts by their order."""
    if isinstance(node, ir.Comparison):
        return node.op.is_order and isinstance(type_of(node.left), String)
    if isinstance(node, ir.Call) and node.function in ("greatest", "least"):
        return isinstance(type_of(node), String)
    return False
