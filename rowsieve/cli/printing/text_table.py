"""Formats rows as a text table, or each as lines; a terminal's width shortens and omits.

Without a width, all columns have complete values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from rich.cells import cell_len, set_cell_size

from rowsieve.shown import printable
from rowsieve.types.cell_text import cell, is_number

GAP: Final = "  "
LEFT_OUT: Final = "..."
CELL_CAPS: Final = (40, 30, 20)  # cells of one value in a table: the first by which all fit
MAX_CELL: Final = CELL_CAPS[0]
MIN_CELL: Final = 10  # cells of one value in a line of its own, however narrow the terminal
_CUT: Final = "…"


def text_table(
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    width: int | None,
    first: Sequence[str] = (),
) -> tuple[list[str], int]:
    """The lines, and the number of columns that they show: those of `first` and others that fit.

    Values are shortened before columns are left out, numbers last. A single column may be wider
    than `width`. None for `width` shows all columns and whole values.
    """
    heads = [printable(name) for name in names]
    cells = [[cell(value) for value in row] for row in rows]
    numbers = [bool(rows) and all(is_number(row[i]) for row in rows) for i in range(len(names))]
    widths = _widths(heads, cells)
    for most in CELL_CAPS if width is not None else ():
        caps = [max(cell_len(head), most) for head in heads]
        caps = [MAX_CELL if number else cap for cap, number in zip(caps, numbers, strict=True)]
        cells = [[_shortened(*each) for each in zip(row, caps, strict=True)] for row in cells]
        widths = _widths(heads, cells)
        if _fits(widths, width):
            break
    shown = _fitting(widths, width, [names.index(name) for name in first if name in names])
    lines = []
    for row in (heads, *cells):
        pieces = []
        for place, i in enumerate(shown):
            if place and i > shown[place - 1] + 1:
                pieces.append(LEFT_OUT)
            pad = " " * (widths[i] - cell_len(row[i]))
            pieces.append(pad + row[i] if numbers[i] else row[i] + pad)
        lines.append(GAP.join(pieces).rstrip())
    lines.insert(1, "─" * _line_width(widths, shown))
    return lines, len(shown)


def vertical_lines(
    names: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None
) -> Iterator[str]:
    """Each row as a headline and a line for each column."""
    heads = [printable(name) for name in names]
    longest = max(map(cell_len, heads), default=0)
    for number, row in enumerate(rows, 1):
        yield f"── row {number:,} ──"
        for head, value in zip(heads, row, strict=True):
            text = cell(value)
            if width is not None:
                text = _shortened(text, max(MIN_CELL, width - longest - len(GAP)))
            yield f"{head}{' ' * (longest - cell_len(head))}{GAP}{text}"


def _shortened(text: str, most: int) -> str:
    """The text in `most` cells of a terminal; a wide character has two."""
    if cell_len(text) <= most:
        return text
    return set_cell_size(text, most - 1).rstrip() + _CUT


def _widths(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    columns = enumerate(heads)
    return [max([cell_len(head), *(cell_len(row[i]) for row in cells)]) for i, head in columns]


def _fits(widths: Sequence[int], width: int | None) -> bool:
    return width is None or sum(widths) + len(GAP) * (len(widths) - 1) <= width


def _fitting(widths: Sequence[int], width: int | None, first: Sequence[int]) -> list[int]:
    """The columns that fit: those of `first`, then from both ends; at least one.

    A column that is too wide leaves its place to narrower ones.
    """
    count = len(widths)
    if width is None or _fits(widths, width):
        return list(range(count))
    others = [place for place in _from_both_ends(count) if place not in first]
    by_worth = [*first, *others]
    chosen: list[int] = []
    for place in by_worth:
        more = sorted([*chosen, place])
        if not chosen or _line_width(widths, more) <= width:
            chosen = more
    return chosen


def _line_width(widths: Sequence[int], shown: Sequence[int]) -> int:
    """The width of a line with these columns, and a mark where columns between are left out."""
    gaps = sum(after > before + 1 for before, after in pairwise(shown))
    pieces = len(shown) + gaps
    return sum(widths[i] for i in shown) + len(LEFT_OUT) * gaps + len(GAP) * max(0, pieces - 1)


def _from_both_ends(count: int) -> Iterator[int]:
    """First, last, second, last but one and so on."""
    for place in range((count + 1) // 2):
        yield place
        if count - 1 - place != place:
            yield count - 1 - place
