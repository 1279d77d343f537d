"""The support matrix of a bridge, as Markdown for the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rowsieve.bridges.translation import Row


def matrix(groups: Mapping[str, Sequence[Row]]) -> str:
    """Return a line per construct: its name there and here, how it is read and written, and why.

    Rejected constructs without a counterpart share a line if they have one reason.
    """
    lines = ["| | engine | Rowsieve | reads | writes | note |", "|---|---|---|---|---|---|"]
    for group, rows in groups.items():
        for alike in _alike(rows):
            row = alike[0]
            there = " ".join(_code(each.foreign) for each in alike)
            cells = (group, there, _code(row.ours), row.reads.value, row.writes.value, row.note)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _alike(rows: Sequence[Row]) -> Iterator[list[Row]]:
    for (ours, note), group in groupby(rows, lambda row: (row.ours, row.note)):
        if ours or not note:
            yield from ([row] for row in group)
        else:
            yield list(group)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
