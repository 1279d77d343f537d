"""Limits on the size of a predicate, checked before any recursive function sees the tree."""

from __future__ import annotations

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir

MAX_DEPTH = 200
MAX_NODES = 200_000
MAX_IN_VALUES = 10_000_000


def check_limits(root: ir.Node) -> list[ir.Node]:
    """Return the nodes of the tree; raise if it is too deep, too large, or has too many IN values.

    Iterative.
    """
    nodes: list[ir.Node] = []
    node_count = value_count = 0
    level: list[ir.Node] = [root]
    depth = 0
    while level:
        depth += 1
        node_count += len(level)
        if depth > MAX_DEPTH:
            raise InvalidPredicate(
                f"the predicate nests deeper than {MAX_DEPTH} levels; flatten chains of AND and OR "
                "into one node each, or split the predicate"
            )
        if node_count > MAX_NODES:
            raise InvalidPredicate(
                f"the predicate has more than {MAX_NODES:,} nodes; write long lists as IN"
            )
        nodes += level
        below: list[ir.Node] = []
        for node in level:
            if isinstance(node, ir.InList):
                value_count += len(node.values)
            elif isinstance(node, ir.Like):
                check_text(node.pattern)
            elif isinstance(node, ir.Literal) and isinstance(node.value, str):
                check_text(node.value)
            below.extend(ir.children(node))
        level = below
    if value_count > MAX_IN_VALUES:
        raise InvalidPredicate(
            f"the IN lists of the predicate hold {value_count:,} values, more than "
            f"{MAX_IN_VALUES:,}; join with a table of the values instead"
        )
    return nodes


def check_text(text: str) -> None:
    """Raise for an unpaired surrogate, which text columns cannot hold."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidPredicate(
            f"text has an unpaired surrogate ({text[error.start]!r}) at offset {error.start}; "
            "write whole characters"
        ) from error
