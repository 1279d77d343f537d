"""The oracle: for each version a dictionary of rows by key, changed one row at a time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa

from rowsieve.storage.log.floors import floors_of
from rowsieve.storage.log.log_entry import LogEntry

Cell = int | None
Row = dict[str, Cell]
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])


@dataclass(frozen=True)
class State:
    """The rows of one version, and the defaults of its columns other than k and v."""

    rows: Mapping[int, Row] = field(default_factory=dict)
    defaults: Mapping[str, Cell] = field(default_factory=dict)

    def row(self, key: int, value: Cell) -> Row:
        """Make a row as a writer does that knows k and v alone."""
        return {"k": key, "v": value, **self.defaults}

    def with_rows(self, rows: Iterable[tuple[int, Cell]]) -> State:
        """Insert rows, or replace those of the same key."""
        return State({**self.rows, **{k: self.row(k, v) for k, v in rows}}, self.defaults)

    def without(self, keys: Iterable[int]) -> State:
        """Remove the rows of some keys."""
        gone = set(keys)
        return State({k: row for k, row in self.rows.items() if k not in gone}, self.defaults)

    def matching(self, condition: Condition | None) -> list[int]:
        """Return the keys of the rows for which a condition is true; None is true for all."""
        return [k for k, row in self.rows.items() if condition is None or condition.holds(row)]


class Condition(NamedTuple):
    """A condition on one column, as text and as a function of a row."""

    column: str
    operator: str
    value: int

    def __str__(self) -> str:
        return f"{self.column} {self.operator} {self.value}"

    def holds(self, row: Row) -> bool:
        """Return whether it is true; NULL is not."""
        cell = row[self.column]
        return cell is not None and _OPERATORS[self.operator](cell, self.value)


EXPIRED: Final = Condition("v", "<", 4)
_OPERATORS: Mapping[str, Callable[[int, int], bool]] = {
    "<": lambda cell, value: cell < value,
    ">=": lambda cell, value: cell >= value,
    "=": lambda cell, value: cell == value,
    "% 3 =": lambda cell, value: cell % 3 == value,
}


def draw_condition(draws: random.Random, keys: range) -> Condition:
    """Draw a condition that often holds for some rows and not for others."""
    if draws.random() < 0.4:
        return Condition("k", draws.choice(["<", ">=", "="]), draws.choice(keys))
    operator = draws.choice(["<", ">=", "=", "% 3 ="])
    return Condition("v", operator, draws.randrange(3 if operator == "% 3 =" else 20))


def table_of(rows: Iterable[tuple[int, Cell]]) -> pa.Table:
    """Make data of k and v."""
    keys, values = zip(*rows, strict=True)
    return pa.table({"k": keys, "v": values}, schema=SCHEMA)


class Version(NamedTuple):
    """A version of the table as the judge rebuilds it."""

    state: State
    effect: Effect | None
    time_us: int = 0
    """When it was committed."""
    operation: str = ""
    floor: int = 0
    """The oldest version that retention has left."""


Effect = Callable[[State, Mapping[int, Version], LogEntry], State]
"""The state after a commit: of the state before it, the earlier versions and its entry."""


def floor_of(entry: LogEntry) -> int:
    """The oldest version that a commit leaves; 0 for a commit that keeps the floor."""
    return 0 if entry.info is None else floors_of(entry.info.properties).oldest_version


def as_bag(rows: Iterable[Mapping[str, Any]]) -> list[tuple[tuple[str, Any], ...]]:
    """Return rows in an order of their own, for comparison."""
    return sorted((tuple(sorted(row.items())) for row in rows), key=repr)
