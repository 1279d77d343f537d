"""Rewriting a whole table: by our procedure, and as mere decoding and encoding of its files."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

import rowsieve as rs
from benchmarks import data
from benchmarks.peers.rowsieve_table import Rowsieve
from rowsieve.storage.part_file import ROW_GROUP_ROWS, FileOptions

_REWRITE = """
    CALL system.rewrite_data_files('db', 'table', options => map('rewrite-all', 'true'))
"""


class Rewriting(Rowsieve):
    """A table of a catalog, whose parts are all rewritten."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "lake" / "db")
        self._catalog = folder / "lake"

    def compact(self) -> None:
        """One commit."""
        rs.Catalog(self._catalog).call(_REWRITE)


class Recoding:
    """pyarrow reads the files of that table and writes them again with its settings, one thread."""

    def __init__(self, folder: Path) -> None:
        self._uri = str(folder / "lake" / "db" / "table")
        self._out = folder / "recoded.parquet"

    def open(self) -> None:
        """Read the list of files."""
        self._table = rs.open_table(self._uri)
        snapshot = self._table.snapshot_for_engines()
        self._schema = snapshot.schema
        paths = snapshot.parts.select("data.path").table.column("data.path").to_pylist()
        self._paths = [Path(self._uri) / path for path in paths]
        first = pq.ParquetFile(self._paths[0]).read_row_group(0)
        key = [field for field in self._schema if field.name == data.KEY]
        self._options = FileOptions.choose(self._schema, key, first, ())

    def compact(self) -> None:
        """Decode and encode each row group."""
        with self._options.open(self._out, self._schema) as writer:
            for path in self._paths:
                with pq.ParquetFile(path) as file:
                    for group in range(file.num_row_groups):
                        rows = file.read_row_group(group, use_threads=False)
                        writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
