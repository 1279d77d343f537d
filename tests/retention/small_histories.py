"""Small tables with a history, and views of their files, for the tests of retention."""

from __future__ import annotations

import uuid
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa

import rowsieve
from rowsieve import Table
from rowsieve.objects import ObjectStore
from tests.faults.ages import aged

Row = dict[str, Any]


def rows_of(table: Any) -> list[Row]:
    """The rows of a table or a scan, in order of id."""
    return sorted(table.to_arrow().to_pylist(), key=lambda row: (row["id"], row["v"]))


def table_of(*pairs: tuple[int, int]) -> pa.Table:
    return pa.table({"id": [i for i, _ in pairs], "v": [v for _, v in pairs]}, ROWS)


ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])


def with_history(uri: str | Path = "", versions: int = 6, **properties: str) -> Table:
    """Make a table whose version n has the rows (0, n) and (n, n)."""
    uri = uri or f"memory:///{uuid.uuid4().hex}"
    table = rowsieve.create_table(uri, table_of((0, 0)), key=["id"], properties=properties)
    for version in range(1, versions):
        table.upsert(table_of((0, version), (version, version)))
    return table


def expected(version: int) -> list[Row]:
    return [{"id": i, "v": i or version} for i in range(version + 1)]


def paths(store: ObjectStore, *folders: str) -> set[str]:
    return {path for folder in folders or ("data", "_rowsieve") for path in store.details(folder)}


def later_by(store: ObjectStore, seconds: float, *but: str) -> AbstractContextManager[None]:
    """Let every object but those whose path has one of these texts be older by some seconds."""
    return aged(store, lambda path: not any(text in path for text in but), seconds)
