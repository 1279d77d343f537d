"""Raise for `/` of integers here that are fractions in the engine.

PostgreSQL has numeric for `extract`; here it stays whole. All operations but division then give
equal values. Soundness: a quotient of two whole numbers passes only if neither comes from such a
function without a cast.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int
from rowsieve.types.schema import Schema

_FRACTIONS: Mapping[str, frozenset[str]] = {"postgres": frozenset({"extract"})}
_KEEP_TYPES = frozenset(
    {"add", "subtract", "multiply", "divide", "modulo", "negate", "abs", "coalesce", "nullif"}
    | {"greatest", "least"}
)


def check_quotients(root: ir.Node, schema: Schema, semantics: Semantics, engine: str) -> None:
    """Raise for integer division whose operands are fractions in the engine; `root` is unbound."""
    names = _FRACTIONS.get(engine)
    if names is None:
        return
    for node in ir.walk(root):
        if not isinstance(node, ir.Call) or node.function != "divide":
            continue
        found = [name for side in node.arguments if (name := _fraction(side, names)) is not None]
        if found and _is_whole(node, schema, semantics):
            raise UnsupportedOperation(
                f"/ of {found[0]}: {engine} divides it as a fraction, and here it is a whole "
                "number; cast it to bigint, or to double precision for the fraction"
            )


def _is_whole(node: ir.Operand, schema: Schema, semantics: Semantics) -> bool:
    try:
        return isinstance(bind_operand(node, schema, semantics).type, Int)
    except InvalidPredicate:  # what has no type is refused where it is bound
        return False


def _fraction(operand: ir.Operand, names: frozenset[str]) -> str | None:
    """Return the function whose result the value includes and which is a fraction in the engine."""
    stack: list[ir.Operand] = [operand]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Call):
            name = node.function.partition("_")[0]  # a field has a function of its own
            if name in names:
                return name
        if isinstance(node, ir.Call) and node.function in _KEEP_TYPES:
            stack += node.arguments
        elif isinstance(node, ir.Case):
            stack += [*(then for _, then in node.branches), node.otherwise]
    return None
