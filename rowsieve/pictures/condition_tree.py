"""A condition as a tree: at each node how many parts it refutes, keeps whole, or cannot decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rowsieve.pictures.markup import Markup, element, join, percent, text
from rowsieve.pictures.outcomes import swatches

_KINDS: Final = ("read", "stored", "key")  # classes of the verdicts ALL, SOME and NONE


@dataclass(frozen=True, slots=True)
class ConditionNode:
    """A node and the verdicts of the parts: none, some, or all of their rows can match it."""

    text: str
    none: int
    some: int
    all: int
    terms: tuple[ConditionNode, ...] = ()
    omitted: int = 0
    """The number of its terms that are not listed."""


def tree(root: ConditionNode) -> Markup:
    """Draw the tree as nested lists, with a bar and words at each node."""
    meanings = zip(_KINDS, ("all rows match", "some may match", "no row can match"), strict=True)
    listed = element("ul", _item(root), class_="tree", aria_label="The condition as a tree")
    return join((swatches(meanings), listed))


def _item(node: ConditionNode) -> Markup:
    more = f"and {node.omitted:,} more" if node.omitted else ""
    below = [_item(term) for term in node.terms]
    if more:
        below.append(element("li", text(more)))
    return element(
        "li",
        element("code", element("bdi", text(node.text))),
        element("div", text(_verdict(node)), class_="verdict"),
        _bar(node),
        *([element("ul", *below)] if below else []),
    )


def _verdict(node: ConditionNode) -> str:
    total = node.none + node.some + node.all
    return (
        f"of {total:,} parts: all rows match in {node.all:,}, some may in {node.some:,}, none can "
        f"in {node.none:,}"
    )


def _bar(node: ConditionNode) -> Markup:
    total = node.none + node.some + node.all or 1
    marks, at = [], 0.0
    for kind, count in zip(_KINDS, (node.all, node.some, node.none), strict=True):
        if count:
            share = count / total
            marks.append(
                element(
                    "rect",
                    x=percent(at),
                    width=percent(share),
                    y=1,
                    height=7,
                    class_=f"mark {kind}",
                )
            )
            at += share
    return element("svg", *marks, height=9, aria_hidden="true")
