"""The protocols of measured systems; a system implements only what it supports.

Nothing but pyarrow is imported here, because children in other environments read this too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Keys:
    """The requested rows: those with a key in [lower, upper]; None means no bound."""

    lower: int | None = None
    upper: int | None = None

    @property
    def everything(self) -> bool:
        """Whether all rows are asked for."""
        return self.lower is None and self.upper is None

    @property
    def sql(self) -> str:
        """The condition as every SQL dialect reads it."""
        if self.everything:
            return "TRUE"
        if self.lower == self.upper:
            return f"id = {self.lower}"
        bounds = [f"id >= {self.lower}"] if self.lower is not None else []
        bounds += [f"id <= {self.upper}"] if self.upper is not None else []
        return " AND ".join(bounds)

    @property
    def where(self) -> str:
        """The WHERE clause, or nothing."""
        return "" if self.everything else f" WHERE {self.sql}"


class Reader(Protocol):
    """An opened table."""

    def open(self) -> None:
        """Open what another process has loaded."""

    def select(self, keys: Keys) -> pa.Table:
        """All columns of these rows, in Arrow."""

    def count(self, keys: Keys) -> int:
        """How many there are."""


class Changer(Reader, Protocol):
    """A table that can be filled and changed."""

    def load(self, chunks: Iterator[pa.Table]) -> None:
        """Make the table from chunks in key order, each a commit; leaves it open."""

    def upsert(self, rows: pa.Table) -> None:
        """Write rows by key, durably, in one commit."""


class Compacter(Protocol):
    """A table whose files can be rewritten, so that reads have less to do."""

    def compact(self) -> None:
        """Rewrite what has been changed."""


class Logged(Protocol):
    """A table with a log of commits that is read when it is opened."""

    def reopen(self) -> int:
        """Open the table anew; how many commits it has had since it was made."""


class Planner(Protocol):
    """Metadata of many parts that do not exist: part i holds the keys [10,000 i, 10,000 i + 9,999].

    What is measured is finding out which parts `id = k` needs, without reading any.
    """

    def build(self, parts: int) -> None:
        """Write the metadata."""

    def open(self) -> None:
        """Read it as a fresh reader does."""

    def plan(self, key: int) -> int:
        """How many parts may hold the key."""


KEYS_PER_PART = 10_000
