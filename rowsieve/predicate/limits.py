"""The size of a predicate is bounded before anything recursive meets it."""

from __future__ import annotations

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.ir import InList, Node, children

MAX_DEPTH = 200
MAX_NODES = 200_000
MAX_IN_VALUES = 10_000_000


def check_limits(root: Node) -> None:
    """Refuse a tree that is too deep, too large, or holds too many IN values; iterative."""
    node_count = value_count = 0
    level: list[Node] = [root]
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
        below: list[Node] = []
        for node in level:
            if isinstance(node, InList):
                value_count += len(node.values)
            below.extend(children(node))
        level = below
    if value_count > MAX_IN_VALUES:
        raise InvalidPredicate(
            f"the IN lists of the predicate hold {value_count:,} values, more than "
            f"{MAX_IN_VALUES:,}; join with a table of the values instead"
        )
