"""DuckDB picking the newest version of every key out of our data files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from benchmarks.peers.part_files import PartFiles, drained, newest_sql

MEMORY = "8GB"


class Qualify(PartFiles):
    """`QUALIFY row_number() OVER (PARTITION BY id ORDER BY age DESC) = 1`, its fastest way."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._connection = duckdb.connect(
            config={"memory_limit": MEMORY, "temp_directory": str(folder / "duckdb-spill")}
        )

    def stream(self, columns: Sequence[str]) -> int:
        """Rows that came."""
        return drained(self._connection.sql(self._query(columns)).to_arrow_reader(65_536))

    def digest(self) -> dict[str, int]:
        """Count and sums."""
        query = self._query(["id", "quantity"])
        found = self._connection.execute(
            f"SELECT count(*), sum(id), sum(quantity) FROM ({query})"
        ).fetchone()
        assert found is not None
        return dict(zip(("n", "ids", "quantities"), map(int, found), strict=True))

    def _query(self, columns: Sequence[str]) -> str:
        names = ", ".join(f'"{name}"' for name in columns)
        files = newest_sql(self.files, columns, "read_parquet('{path}')")
        return (
            f"SELECT {names} FROM ({files}) "
            "QUALIFY row_number() OVER (PARTITION BY id ORDER BY age DESC) = 1"
        )
