"""The data files of a table of ours as plain Parquet, for those who read them without us.

`parts.json` in the table's folder lists them with the version that committed each: rows of a newer
file replace rows of older ones by key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

PARTS = "parts.json"


class PartFiles:
    """The files, oldest first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files: list[tuple[str, int]] = []

    def open(self) -> None:
        """Read the list."""
        listed = json.loads((self._folder / PARTS).read_text())
        self.files = [(path, age) for path, age in listed]


def drained(batches: Iterable[pa.RecordBatch]) -> int:
    """Count the rows of a stream and keep none."""
    return sum(batch.num_rows for batch in batches)


def summed(batches: Iterable[pa.RecordBatch]) -> dict[str, int]:
    """Count the rows of a stream and sum `id` and `quantity`."""
    total = {"n": 0, "ids": 0, "quantities": 0}
    for batch in batches:
        total["n"] += batch.num_rows
        total["ids"] += pc.sum(batch.column("id")).as_py() or 0
        total["quantities"] += pc.sum(batch.column("quantity")).as_py() or 0
    return total


def newest_sql(files: Iterable[tuple[str, int]], columns: Iterable[str], from_file: str) -> str:
    """The union of all files with their ages; `from_file` makes a relation of a `{path}`."""
    names = ", ".join(f'"{name}"' for name in columns)
    return " UNION ALL ".join(
        f"SELECT {names}, {age} AS age FROM {from_file.format(path=path)}" for path, age in files
    )
