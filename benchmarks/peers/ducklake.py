"""DuckLake: Parquet files under a catalog in a DuckDB file, changed by MERGE with delete files.

Rows always go to files: small commits that it keeps in the catalog came back with the last digit of
some floats changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import duckdb_extension_ducklake as extension
import pyarrow as pa

from benchmarks import data
from benchmarks.peers.protocol import Keys


class DuckLake:
    """One attached lake."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, chunks: Iterator[pa.Table]) -> None:
        """Insert chunk after chunk."""
        self.open()
        self._connection.execute("CALL dl.set_option('parquet_compression', 'zstd')")
        rows = data.ROW_GROUP_ROWS
        self._connection.execute(f"CALL dl.set_option('parquet_row_group_size', '{rows}')")
        for i, chunk in enumerate(chunks):
            self._connection.register("given", chunk)
            if i == 0:
                self._connection.execute("CREATE TABLE t AS SELECT * FROM given LIMIT 0")
            self._connection.execute("INSERT INTO t SELECT * FROM given")
            self._connection.unregister("given")

    def open(self) -> None:
        """Attach it; the extension comes from its own package, not from the network."""
        self._connection = duckdb.connect()
        (path,) = Path(str(extension.__file__)).parent.rglob("*.duckdb_extension")
        self._connection.execute(f"LOAD '{path}'")
        catalog, files = self._folder / "catalog.db", self._folder / "files"
        self._connection.execute(
            f"ATTACH 'ducklake:{catalog}' AS dl (DATA_PATH '{files}', DATA_INLINING_ROW_LIMIT 0)"
        )
        self._connection.execute("USE dl")

    def select(self, keys: Keys) -> pa.Table:
        """Read by SQL."""
        return self._connection.sql(f"SELECT * FROM t{keys.where}").to_arrow_table()

    def count(self, keys: Keys) -> int:
        """Count by SQL."""
        found = self._connection.execute(f"SELECT count(*) FROM t{keys.where}").fetchone()
        assert found is not None
        return int(found[0])

    def upsert(self, rows: pa.Table) -> None:
        """Merge by key."""
        self._connection.register("given", rows)
        self._connection.execute(
            "MERGE INTO t USING given ON t.id = given.id "
            "WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT"
        )
        self._connection.unregister("given")

    def compact(self) -> None:
        """Rewrite files with deleted rows, then join small ones."""
        self._connection.execute("CALL ducklake_rewrite_data_files('dl', delete_threshold => 0)")
        self._connection.execute("CALL ducklake_merge_adjacent_files('dl')")
