"""Calls on a database of a simulation, as plans: what runs on tables also runs on dictionaries.

A plan is a list of steps over one or several tables. A transaction runs it on its tables, and the
oracle on the rows that were there right before its entry: both must have seen the same.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from rowsieve import Scan, Table
from tests.simulation.model import Condition, draw_condition, table_of

NAMES: Final = ("a", "b", "c")
KEYS: Final = range(6)
INGESTED: Final = 100
"""Keys from here on are those of the writer with a log of its own."""
Rows = Mapping[int, int]
States = Mapping[str, Rows]
"""The rows of each table."""
Seen = list[object]
"""What the steps of a plan have read."""


class Step(Protocol):
    """One step of a plan."""

    def on_tables(self, tables: Mapping[str, Any]) -> object:
        """Make it on tables; what it has read."""
        ...

    def on_rows(self, states: dict[str, Rows]) -> object:
        """Make it on dictionaries, in place; what it has read."""
        ...


@dataclass(frozen=True)
class Count:
    """Count rows of a table."""

    table: str
    condition: Condition

    def on_tables(self, tables: Mapping[str, Any]) -> object:
        """Count them."""
        return tables[self.table].count(f"({self.condition}) AND k < {INGESTED}")

    def on_rows(self, states: dict[str, Rows]) -> object:
        """Count them."""
        return len(_matching(states[self.table], self.condition))


@dataclass(frozen=True)
class Copy:
    """Read a value of one table, 0 if it is absent, and write the next one into another."""

    source: str
    target: str
    key: int
    put: int

    def on_tables(self, tables: Mapping[str, Any]) -> object:
        """Read and write it."""
        rows = tables[self.source].scan(f"k = {self.key}").to_arrow().to_pylist()
        value: int = rows[0]["v"] if rows else 0
        tables[self.target].upsert(table_of([(self.put, value + 1)]))
        return value

    def on_rows(self, states: dict[str, Rows]) -> object:
        """Read and write it."""
        value = states[self.source].get(self.key, 0)
        states[self.target] = {**states[self.target], self.put: value + 1}
        return value


@dataclass(frozen=True)
class Put:
    """Write rows."""

    table: str
    pairs: Sequence[tuple[int, int]]

    def on_tables(self, tables: Mapping[str, Any]) -> object:
        """Write them."""
        tables[self.table].upsert(table_of(self.pairs))
        return None

    def on_rows(self, states: dict[str, Rows]) -> object:
        """Write them."""
        states[self.table] = {**states[self.table], **dict(self.pairs)}
        return None


@dataclass(frozen=True)
class Raise:
    """Add to the values of a condition's rows."""

    table: str
    condition: Condition
    by: int

    def on_tables(self, tables: Mapping[str, Any]) -> object:
        """Update the rows."""
        where = f"({self.condition}) AND k < {INGESTED}"
        tables[self.table].update({"v": f"v + {self.by}"}, where=where)
        return None

    def on_rows(self, states: dict[str, Rows]) -> object:
        """Update the rows."""
        rows = states[self.table]
        more = {k: rows[k] + self.by for k in _matching(rows, self.condition)}
        states[self.table] = {**rows, **more}
        return None


@dataclass(frozen=True)
class Remove:
    """Delete the rows of a condition."""

    table: str
    condition: Condition

    def on_tables(self, tables: Mapping[str, Any]) -> object:
        """Delete them."""
        tables[self.table].delete(f"({self.condition}) AND k < {INGESTED}")
        return None

    def on_rows(self, states: dict[str, Rows]) -> object:
        """Delete them."""
        rows = states[self.table]
        gone = set(_matching(rows, self.condition))
        states[self.table] = {k: v for k, v in rows.items() if k not in gone}
        return None


@dataclass
class Plan:
    """The steps of one commit, and what each attempt at it has read."""

    steps: Sequence[Step]
    attempts: list[Seen] = field(default_factory=list)

    def run(self, tables: Mapping[str, Any]) -> None:
        """Make the steps on tables."""
        seen: Seen = []
        self.attempts.append(seen)
        seen += [each.on_tables(tables) for each in self.steps]

    def effect(self, states: States) -> tuple[States, Seen]:
        """The rows after the plan, and what it has read."""
        after = dict(states)
        seen = [each.on_rows(after) for each in self.steps]
        return after, seen

    def may_have_seen(self, seen: Seen) -> bool:
        """Whether an attempt has read this; one statement may commit and die without answer."""
        has_no_answer = len(self.steps) == 1 and [] in self.attempts
        return has_no_answer or seen in self.attempts


def drawn_transaction(draws: random.Random) -> tuple[Sequence[str], Plan]:
    """Two or three tables, and steps over all of them."""
    tables = draws.sample(NAMES, draws.choice((2, 2, 3)))
    source, target, *others = tables
    steps: list[Step] = [
        Count(source, draw_condition(draws, KEYS)),
        Copy(source, target, draws.choice(KEYS), draws.choice(KEYS)),
        *(drawn_step(draws, each) for each in tables if draws.random() < 0.5),
        *(Count(each, draw_condition(draws, KEYS)) for each in others),
    ]
    return tables, Plan(steps)


def drawn_step(draws: random.Random, table: str) -> Step:
    """One change of a table."""
    match draws.randrange(4):
        case 0:
            return Raise(table, draw_condition(draws, KEYS), draws.randint(1, 3))
        case 1:
            return Remove(table, draw_condition(draws, KEYS))
        case _:
            keys = draws.sample(KEYS, draws.randint(1, 2))
            return Put(table, [(key, draws.randrange(20)) for key in keys])


def pinned(table: Table) -> Scan:
    """A scan of the version that the table was opened with, as an engine reads it in a join."""
    return Scan(table.handle.store, table.handle.pinned)


def rows_of(scan: Scan) -> dict[int, int]:
    """All rows of a scan."""
    return {row["k"]: row["v"] for row in scan.to_arrow().to_pylist()}


def not_ingested(rows: Rows) -> dict[int, int]:
    """The rows that calls of plans have written."""
    return {key: value for key, value in rows.items() if key < INGESTED}


def _matching(rows: Rows, condition: Condition) -> list[int]:
    return [k for k, v in rows.items() if condition.holds({"k": k, "v": v})]
