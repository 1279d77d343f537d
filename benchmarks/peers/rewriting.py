"""Rewriting a whole table: by our procedure, and as mere decoding and encoding of its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import rowsieve as rs
from benchmarks import data
from benchmarks.peers.rowsieve_table import Rowsieve
from rowsieve.storage.parts.part_file import ROW_GROUP_ROWS, FileOptions

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


class RewritingWithoutKey(Rewriting):
    """A table without a key; changed rows are deleted and appended."""

    def load(self, chunks: Iterator[pa.Table]) -> None:
        """One commit and one part per chunk."""
        self.table = rs.create_table(self.uri, next(chunks))
        for chunk in chunks:
            self.table.append(chunk)

    def upsert(self, rows: pa.Table) -> None:
        """Two commits."""
        self.table.delete(pc.field(data.KEY).isin(rows.column(data.KEY).combine_chunks()))
        self.table.append(rows)


class Recoding:
    """pyarrow reads the first table's files and writes them again with its settings, one thread."""

    def __init__(self, folder: Path) -> None:
        self._uri = str(folder / "lake" / "db" / "table")
        self._out = folder / "recoded.parquet"

    def open(self) -> None:
        """Read the list of files."""
        self._table = rs.open_table(self._uri)
        snapshot = self._table.handle.pinned
        self._schema = snapshot.schema
        paths = snapshot.parts.select("data.path").table.column("data.path").to_pylist()
        self._paths = [Path(self._uri) / path for path in paths]
        first = pq.ParquetFile(self._paths[0]).read_row_group(0)
        key = [field for field in self._schema if field.name == data.KEY]
        self._options = FileOptions.choose(self._schema, key, first, ())

    def compact(self) -> None:
        """Decode and encode each row group."""
        with self._options.open(self._out, self._options.file_schema(self._schema)) as writer:
            for path in self._paths:
                with pq.ParquetFile(path) as file:
                    for group in range(file.num_row_groups):
                        rows = file.read_row_group(group, use_threads=False)
                        writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
