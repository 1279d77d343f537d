"""No table format: sorted Parquet files in a folder, the newest last; nothing is atomic.

What the readers of such files have in common; each picks the newest version of a key itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import data


class ParquetFiles:
    """The files: `base` ones hold no key twice, `changed` ones replace rows of earlier ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "files"
        self.base: list[str] = []
        self.changed: list[str] = []

    def load(self, chunks: Iterator[pa.Table]) -> None:
        """A file per chunk."""
        self._folder.mkdir()
        for i, chunk in enumerate(chunks):
            self._write(chunk, f"base-{i:04d}")
        self.open()

    def open(self) -> None:
        """List the files."""
        names = sorted(str(path) for path in self._folder.iterdir())
        self.base = [name for name in names if Path(name).name.startswith("base")]
        self.changed = [name for name in names if name not in self.base]

    def upsert(self, rows: pa.Table) -> None:
        """A sorted file more, with fsync."""
        self._write(rows.sort_by(data.KEY), f"changed-{len(self.changed):04d}")
        self.open()

    def _write(self, rows: pa.Table, name: str) -> None:
        path = self._folder / f"{name}.parquet"
        pq.write_table(rows, path, compression="zstd", row_group_size=data.ROW_GROUP_ROWS)
        with path.open("rb") as file:
            os.fsync(file.fileno())
