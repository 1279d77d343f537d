"""Tables of a picture: what is drawn, as text, for screen readers and for close looks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from rowsieve.pictures.markup import Markup, element, join, named, text
from rowsieve.shown import size_text

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
    wide: Collection[str] = (),
) -> Markup:
    """Return a table of the first rows; the caption says how many there are if not all are shown.

    `total` counts the rows if some are not given. The first cell of a row is its heading. The
    columns named in `wide` are left out where the picture is narrow. Rows with `ids` take the focus
    of a link to them.
    """
    count = len(rows) if total is None else total
    shown = rows[:most]
    if count > len(shown):
        caption = f"{caption}; the first {len(shown):,} of {count:,}"
    styles = [
        ("number" if _is_numeric([row[place] for row in shown]) else "")
        + (" wide" if name in wide else "")
        for place, name in enumerate(headings)
    ]
    head = join(
        element("th", text(name), scope="col", class_=style.strip() or None)
        for name, style in zip(headings, styles, strict=True)
    )
    are_wide = [name in wide for name in headings]
    body = join(
        _row(row, are_wide, None if ids is None else ids[number])
        for number, row in enumerate(shown)
    )
    return element(
        "table",
        element("caption", text(caption, 400)),
        element("thead", element("tr", head)),
        element("tbody", body),
    )


def _row(cells: Sequence[Cell], are_wide: Sequence[bool], id_: str | None) -> Markup:
    """A row; one with an id takes the focus."""
    return element(
        "tr",
        *(
            _cell(cell, is_first=not place, is_wide=is_wide)
            for place, (cell, is_wide) in enumerate(zip(cells, are_wide, strict=True))
        ),
        id=id_,
        tabindex=None if id_ is None else "-1",
    )


def scrolled(
    label: str, table: Markup, *, titled: bool = False, ident: str | None = None
) -> Markup:
    """A table that scrolls by itself, also by the keyboard; `titled` below a heading like it."""
    return element(
        "div",
        table,
        id=ident,
        class_="scroll titled" if titled else "scroll",
        role="region",
        tabindex="0",
        aria_label=label,
    )


def folded(label: str, table: Markup) -> Markup:
    """A table behind its label, until it is opened."""
    return element("details", element("summary", text(label)), scrolled(label, table))


def size_cell(size_bytes: int | None) -> Cell:
    """The cell of a size in bytes, aligned like a number; empty where it is not known."""
    return None if size_bytes is None else Raw(text(size_text(size_bytes)), "number")


def code_cell(code: str) -> Cell:
    """The cell of a call or a condition, which may break anywhere to fit."""
    return Raw(element("code", text(code, 400)), "code")


def _cell(cell: Cell, *, is_first: bool, is_wide: bool) -> Markup:
    wide = "wide" if is_wide else ""
    if isinstance(cell, Raw):
        return element("td", cell.markup, class_=f"{cell.kind or ''} {wide}".strip() or None)
    if _is_number(cell):
        return element("td", text(f"{cell:,}"), class_=f"number {wide}".strip())
    shown = named("" if cell is None else cell)
    if is_first:
        return element("th", shown, scope="row")
    return element("td", shown, class_=wide or None)


def _is_numeric(cells: Sequence[Cell]) -> bool:
    return bool(cells) and all(
        cell is None or _is_number(cell) or (isinstance(cell, Raw) and cell.kind == "number")
        for cell in cells
    )


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)
