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
        if not isinstance(node, ir.Cast) or not _is_text(node.operand):
            continue
        if isinstance(node.type, String | Json) or reads_every_text(node.type, semantics):
            continue
        raise UnsupportedOperation(
            f"{semantics.text_reading.value} reads some texts as {type_name(node.type)} by rules "
            "of its own, which are unknown to Rowsieve"
        )


def orders_text(root: ir.Predicate) -> bool:
    """Whether a bound condition depends on the order of texts."""
    for node in ir.walk(root):
        match node:
            case ir.Comparison(op=op, left=left) if op.is_order and _is_text(left):
                return True
            case ir.Call(function="greatest" | "least") if _is_text(node):
                return True
    return False


def check_order(root: ir.Predicate, dialect: str) -> None:
    """Raise for a bound condition that depends on the order of texts without a collation."""
    if orders_text(root):
        raise UnsupportedOperation(
            f'{dialect} orders text by the collation of its database; write text COLLATE "C" < …'
        )


def _is_text(operand: ir.Operand) -> bool:
    return isinstance(type_of(operand), String)
