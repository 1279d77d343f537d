"""Formats rows as a text table with complete values; omits columns that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.cells import cell_len

from rowsieve.shown import printable
from rowsieve.types.cell_text import cell, is_number

GAP: Final = "  "
LEFT_OUT: Final = "..."


def text_table(
    names: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None
) -> tuple[list[str], int]:
    """The lines, and the number of columns that they show: the first and last that fit `width`.

    A single column may be wider than `width`. None for `width` shows all columns.
    """
    heads = [printable(name) for name in names]
    cells = [[cell(value) for value in row] for row in rows]
    numbers = [bool(rows) and all(is_number(row[i]) for row in rows) for i in range(len(names))]
    widths = [
        max([cell_len(head), *(cell_len(row[i]) for row in cells)]) for i, head in enumerate(heads)
    ]
    shown = _fitting(widths, width)
    lines = []
    for row in (heads, *cells):
        pieces = []
        for place, i in enumerate(shown):
            if place and i > shown[place - 1] + 1:
                pieces.append(LEFT_OUT)
            pad = " " * (widths[i] - cell_len(row[i]))
            pieces.append(pad + row[i] if numbers[i] else row[i] + pad)
        lines.append(GAP.join(pieces).rstrip())
    rule = sum(widths[i] for i in shown) + len(GAP) * max(0, len(shown) - 1)
    if len(shown) < len(names):
        rule += len(GAP + LEFT_OUT)
    lines.insert(1, "─" * rule)
    return lines, len(shown)


def _fitting(widths: Sequence[int], width: int | None) -> list[int]:
    """Columns from both ends that fit; at least the first."""
    count = len(widths)
    if width is None or sum(widths) + len(GAP) * (count - 1) <= width:
        return list(range(count))
    left: list[int] = [0]
    right: list[int] = []
    used = widths[0] + len(GAP + LEFT_OUT)
    while len(left) + len(right) < count:
        at_end = len(right) < len(left)
        place = count - 1 - len(right) if at_end else len(left)
        used += len(GAP) + widths[place]
        if used > width:
            break
        (right if at_end else left).append(place)
    return left + right[::-1]
