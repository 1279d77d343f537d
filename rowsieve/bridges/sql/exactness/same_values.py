"""The check of every text that is read: its engine computes the values that we do.

Reading for a scan, for a change and for a translation pass it; a translation passes `exact` too.
Soundness: an allow-list. What passes gave the engine's values on edge values of every type.
"""

from __future__ import annotations

from rowsieve.bridges.functions import TypedCall, other_answer
from rowsieve.bridges.functions.casts import is_answered
from rowsieve.bridges.sql.exactness.unbound_types import UnboundTyper
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.operand_types import type_of
from rowsieve.types.logical import LogicalType, type_name


def check_answers(predicate: ir.Predicate, root: ir.Predicate, typer: UnboundTyper) -> None:
    """Raise for a call or a written cast that the engine computes differently; `root` is bound."""
    engine = typer.semantics.name
    for node in ir.walk(root):
        if isinstance(node, ir.Call):
            call = TypedCall(
                node, [type_of(argument) for argument in node.arguments], type_of(node)
            )
            if reason := other_answer(call, engine):
                raise UnsupportedOperation(reason)
    for node in ir.walk(predicate):
        if isinstance(node, ir.Cast):
            _check_cast(node, typer.of(node.operand), engine)


def _check_cast(node: ir.Cast, source: LogicalType, engine: str) -> None:
    if source == node.type or is_answered(source, node.type, engine):
        return
    raise UnsupportedOperation(
        f"a cast of {type_name(source)} to {type_name(node.type)} gives other values in {engine}"
    )
