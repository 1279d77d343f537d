"""The support matrix of a bridge, as the Markdown that the documents show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rowsieve.bridges.translation import Row


def matrix(groups: Mapping[str, Sequence[Row]]) -> str:
    """A line per construct: its name there and here, how it reads, how it writes, and why not."""
    lines = ["| | there | here | reads | writes | note |", "|---|---|---|---|---|---|"]
    for group, rows in groups.items():
        for row in rows:
            there, ours = _code(row.foreign), _code(row.ours)
            cells = (group, there, ours, row.reads.value, row.writes.value, row.note)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
