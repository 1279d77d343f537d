"""One list of the constructs that engines interpret differently from our semantics.

Readers and writers reject a condition with one of them, as a whole. Soundness: what passes gave the
same rows in the engine on awkward data.
"""

from __future__ import annotations

from functools import lru_cache

from rowsieve.bridges.differences import (
    ends_of_time,
    merged_lists,
    numbers,
    postgres,
    repeated_times,
    texts,
)
from rowsieve.bridges.differences.row import Difference, Direction
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir

DIFFERENCES: tuple[Difference, ...] = (
    *postgres.ROWS,
    *numbers.ROWS,
    *merged_lists.ROWS,
    *texts.ROWS,
    *repeated_times.ROWS,
    *ends_of_time.ROWS,
)


def check(root: ir.Predicate, engine: str, direction: Direction) -> None:
    """Raise for a bound condition with a construct that the engine interprets differently."""
    rows = differences(engine, direction)
    for node in ir.walk(root) if rows else ():
        for row in rows:
            if row.finds(node):
                raise UnsupportedOperation(row.text)


@lru_cache(maxsize=64)
def differences(engine: str, direction: Direction) -> tuple[Difference, ...]:
    """Return the rows of an engine for a direction."""
    return tuple(row for row in DIFFERENCES if row.engine == engine and row.direction & direction)


def matrix() -> str:
    """Return the list as Markdown for the documentation."""
    lines = ["| engine | found when | difference | write instead |", "|---|---|---|---|"]
    for row in DIFFERENCES:
        where = ", ".join(_SHOWN[each] for each in Direction if each in row.direction)
        lines.append(f"| {row.engine} | {where} | it {row.reason} | {row.remedy} |")
    return "\n".join(lines)


_SHOWN = {
    Direction.ANSWERS: "text is read",
    Direction.READS: "translated from it",
    Direction.IN_CONJUNCTION: "translated from it together with other conditions",
    Direction.WRITES: "written for it",
}

__all__ = ["DIFFERENCES", "Difference", "Direction", "check", "differences", "matrix"]
