"""What a feature of the matrix is, and the rows that most of them have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import rowsieve
from rowsieve import Table

Row = dict[str, Any]


@dataclass(frozen=True)
class Feature:
    """A table in a folder, its rows, conditions with the ids that they keep, and more checks."""

    make: Callable[[str], object]
    rows: Sequence[Row]
    schema: pa.Schema | None = None  # of the rows, where their values do not say it
    questions: Mapping[str, Callable[[Row], bool]] = field(default_factory=dict)
    more: Callable[[Table], None] = lambda _: None
    key: str = "id"
    refused: frozenset[str] = frozenset()  # ways that the table does not go, by name
    typed: pa.Table | None = None  # the rows, where Python's values do not make them again

    @property
    def data(self) -> pa.Table:
        """The rows as Arrow data."""
        if self.typed is not None:
            return self.typed
        return pa.Table.from_pylist(list(self.rows), schema=self.schema)


COUNT = 24
FIRST: list[Row] = [{"id": i, "v": i * 10, "s": f"a{i}"} for i in range(COUNT)]
SECOND: list[Row] = [{"id": i, "v": -i, "s": None} for i in range(3, COUNT, 3)]
LAST = {**{row["id"]: row for row in FIRST}, **{row["id"]: row for row in SECOND}}
QUESTIONS: Mapping[str, Callable[[Row], bool]] = {
    "v > 100": lambda row: row["v"] > 100,
    "v < 0 OR s = 'a7'": lambda row: row["v"] < 0 or row["s"] == "a7",
    "s IS NULL": lambda row: row["s"] is None,
}
TINY = {"target_part_bytes": "1"}


def keyed(folder: str, **properties: str) -> Table:
    """Rows; a later commit hides some."""
    table = rowsieve.create_table(
        folder, pa.Table.from_pylist(FIRST), key=["id"], properties=properties
    )
    table.upsert(pa.Table.from_pylist(SECOND, schema=table.schema))
    return table
