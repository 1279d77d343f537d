"""DuckDB's own file with a primary key: a database, not files that others can read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.peers.protocol import Keys


class DuckDb:
    """One table in one file."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "duck.db")

    def load(self, chunks: Iterator[pa.Table]) -> None:
        """Insert chunk after chunk."""
        self.open()
        for i, chunk in enumerate(chunks):
            if i == 0:
                columns = ", ".join(f'"{f.name}" {_type(f.type)}' for f in chunk.schema)
                self._connection.execute(f"CREATE TABLE t ({columns}, PRIMARY KEY (id))")
            self._insert("INSERT", chunk)
        self._connection.execute("CHECKPOINT")

    def open(self) -> None:
        """Connect."""
        self._connection = duckdb.connect(self._path)

    def select(self, keys: Keys) -> pa.Table:
        """Read by SQL."""
        return self._connection.sql(f"SELECT * FROM t{keys.where}").to_arrow_table()

    def count(self, keys: Keys) -> int:
        """Count by SQL."""
        found = self._connection.execute(f"SELECT count(*) FROM t{keys.where}").fetchone()
        assert found is not None
        return int(found[0])

    def upsert(self, rows: pa.Table) -> None:
        """Insert or replace."""
        self._insert("INSERT OR REPLACE", rows)

    def _insert(self, how: str, rows: pa.Table) -> None:
        self._connection.register("given", rows)
        self._connection.execute(f"{how} INTO t SELECT * FROM given")
        self._connection.unregister("given")


def _type(kind: pa.DataType) -> str:
    if pa.types.is_floating(kind):
        return "DOUBLE"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    if pa.types.is_boolean(kind):
        return "BOOLEAN"
    return "BIGINT" if pa.types.is_integer(kind) else "VARCHAR"
