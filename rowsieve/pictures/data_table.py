"""Tables of a picture: what is drawn, as text, for screen readers and for close looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rowsieve.pictures.markup import Markup, element, join, named, text

MAX_ROWS: Final = 200
Cell = object
"""A number is formatted and aligned, `Markup` stands as it is, other values are escaped."""


class Raw:
    """A cell of markup, with a class for its style."""

    __slots__ = ("kind", "markup")

    def __init__(self, markup: Markup, kind: str | None = None) -> None:
        self.markup = markup
        self.kind = kind


def data_table(
    caption: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    total: int | None = None,
    ids: Sequence[str] | None = None,
    most: int = MAX_ROWS,
) -> Markup:
    """Return a table of the first rows; the caption says how many there are if not all are shown.

    `total` counts the rows if some are not given. The first cell of a row is its heading.
    """
    count = len(rows) if total is None else total
    shown = rows[:most]
    if count > len(shown):
        caption = f"{caption}; the first {len(shown):,} of {count:,}"
    numeric = [
        bool(shown) and all(_is_number(row[place]) or row[place] is None for row in shown)
        for place in range(len(headings))
    ]
    head = join(
        element("th", text(name), scope="col", class_="number" if is_number else None)
        for name, is_number in zip(headings, numeric, strict=True)
    )
    body = join(
        element(
            "tr",
            *(_cell(cell, is_first=not place) for place, cell in enumerate(row)),
            id=None if ids is None else ids[number],
        )
        for number, row in enumerate(shown)
    )
    return element(
        "table",
        element("caption", text(caption, 400)),
        element("thead", element("tr", head)),
        element("tbody", body),
    )


def scrolled(label: str, table: Markup, *, titled: bool = False) -> Markup:
    """A table that scrolls by itself, also by the keyboard; `titled` below a heading like it."""
    kind = "scroll titled" if titled else "scroll"
    return element("div", table, class_=kind, role="region", tabindex="0", aria_label=label)


def folded(label: str, table: Markup) -> Markup:
    """A table behind its label, until it is opened."""
    return element("details", element("summary", text(label)), scrolled(label, table))


def _cell(cell: Cell, *, is_first: bool) -> Markup:
    if isinstance(cell, Raw):
        return element("td", cell.markup, class_=cell.kind)
    if _is_number(cell):
        return element("td", text(f"{cell:,}"), class_="number")
    shown = named("" if cell is None else cell)
    return element("th", shown, scope="row") if is_first else element("td", shown)


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)
