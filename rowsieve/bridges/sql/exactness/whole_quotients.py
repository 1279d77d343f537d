"""Raise for operations on integers here that are fractions in the engine.

PostgreSQL has numeric for `extract`; here it stays whole. Sums and products then give equal values;
a quotient is a fraction there, and signs, roots, powers and logarithms are numerics.
Soundness: such an operation passes only if no operand comes from such a function without a cast.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.sql.exactness.unbound_types import UnboundTyper
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import Int

_FRACTIONS: Mapping[str, frozenset[str]] = {"postgres": frozenset({"extract"})}
_OF_NUMERIC = frozenset({"sqrt", "exp", "ln", "power", "sign"})
_KEEP_TYPES = frozenset(
    {"add", "subtract", "multiply", "divide", "modulo", "negate", "abs", "coalesce", "nullif"}
    | {"greatest", "least"}
)


def check_quotients(root: ir.Node, typer: UnboundTyper, engine: str) -> None:
    """Raise for operations whose whole operands are fractions in the engine; `root` is unbound."""
    if engine not in _FRACTIONS:
        return
    for node in ir.walk(root):
        if not isinstance(node, ir.Call) or node.function not in {"divide", *_OF_NUMERIC}:
            continue
        labels = [name for side in node.arguments if (name := fraction_in(side, engine))]
        if not labels:
            continue
        if node.function in _OF_NUMERIC:
            raise UnsupportedOperation(
                f"{node.function} of {labels[0]}: {engine} computes it as a numeric with other "
                "digits; cast it to double precision"
            )
        if isinstance(typer.of_known(node), Int):
            raise UnsupportedOperation(
                f"/ of {labels[0]}: {engine} divides it as a fraction, and here it is a whole "
                "number; cast it to bigint, or to double precision for the fraction"
            )


def fraction_in(operand: ir.Operand, engine: str) -> str | None:
    """Return the function whose result the value includes and which is a fraction in the engine."""
    names = _FRACTIONS.get(engine, frozenset())
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
