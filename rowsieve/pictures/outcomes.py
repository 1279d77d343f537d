"""What a read does with a part: the kinds, their names in legends and their order in a stack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rowsieve.pictures.markup import Markup, element, text

OUTCOMES: Final = {
    "read": "read",
    "merged": "read and merged",
    "hides": "opened because they may hide rows",
    "stored": "part",
    "key": "skipped by key ranges",
    "statistics": "skipped by statistics",
    "limit": "skipped by the limit",
    "visibility": "skipped, only deletes",
    "constraint": "skipped by constraints",
}
"""Kinds in the order of a stack; each is a class of the style."""


def legend(kinds: Iterable[str], *, hidden_in: str | None = None) -> Markup:
    """Explain the colours that a drawing uses; `hidden_in` is the ident of its hatching."""
    present = set(kinds)
    items = [(kind, label) for kind, label in OUTCOMES.items() if kind in present]
    if hidden_in is None:
        return swatches(items)
    return swatches([*items, (f"url(#{hidden_in}-hatch)", "hatched: share of hidden rows")])


def swatches(items: Iterable[tuple[str, str]]) -> Markup:
    """A list of colours, by class or as a pattern, with their meanings."""
    return element(
        "ul",
        *(
            element("li", element("svg", *_swatch(kind), aria_hidden="true"), text(label))
            for kind, label in items
        ),
        class_="legend",
    )


def _swatch(kind: str) -> Iterator[Markup]:
    square = {"x": 1, "y": 1, "width": 12, "height": 12}
    is_pattern = kind.startswith("url(")
    yield element("rect", **square, class_="mark stored" if is_pattern else f"mark {kind}")
    if is_pattern:
        yield element("rect", **square, fill=kind)


def hatching(ident: str) -> Markup:
    """Define the hatching of hidden rows, once in a drawing."""
    line = element("path", d="M-1 1 l2 -2 M0 7 L7 0 M6 8 l2 -2", class_="hatch")
    pattern = element(
        "pattern", line, id=f"{ident}-hatch", width=7, height=7, patternUnits="userSpaceOnUse"
    )
    return element("defs", pattern)
