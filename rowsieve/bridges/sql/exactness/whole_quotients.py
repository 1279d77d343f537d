"""Raise for `/` of integers here that are fractions in the engine.

PostgreSQL has numeric for `extract`; here it stays whole. All operations but division then give
equal values. Soundness: a quotient of two whole numbers passes only if neither comes from such a
function without a cast.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.sql.exactness.unbound_types import UnboundTyper
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import Int

_FRACTIONS: Mapping[str, frozenset[str]] = {"postgres": frozenset({"extract"})}
_KEEP_TYPES = frozenset(
    {"add", "subtract", "multiply", "divide", "modulo", "negate", "abs", "coalesce", "nullif"}
    | {"greatest", "least"}
)


def check_quotients(root: ir.Node, typer: UnboundTyper, engine: str) -> None:
    """Raise for integer division whose operands are fractions in the engine; `root` is unbound."""
    names = _FRACTIONS.get(engine)
    if names is None:
        return
    for node in ir.walk(root):
        if not isinstance(node, ir.Call) or node.function != "divide":
            continue
        labels = [name for side in node.arguments if (name := _fraction(side, names)) is not None]
        if labels and isinstance(typer.of_known(node), Int):
            raise UnsupportedOperation(
                f"/ of {labels[0]}: {engine} divides it as a fraction, and here it is a whole "
                "number; cast it to bigint, or to double precision for the fraction"
            )


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
