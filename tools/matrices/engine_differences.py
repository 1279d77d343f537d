"""The list of what engines interpret differently, as Markdown."""

from __future__ import annotations

from rowsieve.bridges.differences import DIFFERENCES, Direction

_SHOWN = {
    Direction.ANSWERS: "text is read",
    Direction.READS: "translated from it",
    Direction.IN_CONJUNCTION: "translated from it together with other conditions",
    Direction.WRITES: "written for it",
    Direction.TRANSLATES: "written for it from a condition of another engine",
}


def matrix() -> str:
    """Return a line per difference."""
    lines = ["| engine | found when | difference | write instead |", "|---|---|---|---|"]
    for row in DIFFERENCES:
        where = ", ".join(_SHOWN[each] for each in Direction if each in row.direction)
        lines.append(f"| {row.engine} | {where} | it {row.reason} | {row.remedy} |")
    return "\n".join(lines)
