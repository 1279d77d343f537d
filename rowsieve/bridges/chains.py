"""Chains of operators as lists of terms, and lists of terms as balanced trees.

Both are iterative: a chain of AND or OR may have thousands of terms, and engines and Python recurse
over the depth of a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

N = TypeVar("N")


def flattened(node: N, terms_of: Callable[[N], Sequence[N] | None]) -> list[N]:
    """Return the terms of a chain in the order written.

    `terms_of` returns the operands of a node of the chain, and None for any other node.
    """
    leaves: list[N] = []
    stack = [node]
    while stack:
        item = stack.pop()
        if (terms := terms_of(item)) is None:
            leaves.append(item)
        else:
            stack.extend(reversed(terms))
    return leaves


def balanced(terms: Sequence[N], join: Callable[[N, N], N]) -> N:
    """Join one or more terms in a balanced tree."""
    left = list(terms)
    while len(left) > 1:
        pairs = [join(a, b) for a, b in zip(left[::2], left[1::2], strict=False)]
        left = pairs + left[len(pairs) * 2 :]
    return left[0]
