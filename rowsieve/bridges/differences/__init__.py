"""One list of the constructs that engines interpret differently from our semantics.

Readers and writers reject a condition with one of them, as a whole. Soundness: what passes gave the
same rows in the engine on awkward data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from rowsieve.bridges.differences import (
    differing_numbers,
    differing_texts,
    ends_of_time,
    folded_nulls,
    merged_lists,
    postgres,
    repeated_times,
)
from rowsieve.bridges.differences.engine_difference import Difference, Direction, Kind, kind_of
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir

DIFFERENCES: tuple[Difference, ...] = (
    *postgres.ROWS,
    *differing_numbers.ROWS,
    *merged_lists.ROWS,
    *folded_nulls.ROWS,
    *differing_texts.ROWS,
    *repeated_times.ROWS,
    *ends_of_time.ROWS,
)


def check(root: ir.Predicate, engine: str, direction: Direction) -> None:
    """Raise for a bound condition with a construct that the engine interprets differently."""
    rows = _by_kind(engine, direction)
    for node in ir.walk(root) if rows else ():
        for row in rows.get(kind_of(node), ()):
            if row.finds(node):
                raise UnsupportedOperation(row.text)


@lru_cache(maxsize=64)
def differences(engine: str, direction: Direction) -> tuple[Difference, ...]:
    """Return the rows of an engine for a direction."""
    return tuple(row for row in DIFFERENCES if row.engine == engine and row.direction & direction)


@lru_cache(maxsize=64)
def _by_kind(engine: str, direction: Direction) -> Mapping[Kind, Sequence[Difference]]:
    """Return these rows by the kinds of nodes that they are about."""
    rows: dict[Kind, list[Difference]] = {}
    for row in differences(engine, direction):
        for kind in row.on:
            rows.setdefault(kind, []).append(row)
    return rows


__all__ = ["DIFFERENCES", "Difference", "Direction", "check", "differences"]
