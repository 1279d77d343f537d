"""DataFusion picking the newest version of every key out of our data files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from datafusion import RuntimeEnvBuilder, SessionContext

from benchmarks.peers.part_files import PartFiles, drained, newest_sql

MEMORY_BYTES = 8_000_000_000


class Window(PartFiles):
    """`row_number() OVER (PARTITION BY id ORDER BY age DESC)`, and those with number 1."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        runtime = RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(MEMORY_BYTES)
        self._context = SessionContext(runtime=runtime)

    def open(self) -> None:
        """Register each file."""
        super().open()
        for i, (path, _) in enumerate(self.files):
            self._context.register_parquet(f"f{i}", path)

    def stream(self, columns: Sequence[str]) -> int:
        """Rows that came."""
        stream = self._context.sql(self._query(columns)).execute_stream()
        return drained(batch.to_pyarrow() for batch in stream)

    def digest(self) -> dict[str, int]:
        """Count and sums."""
        query = self._query(["id", "quantity"])
        (found,) = self._context.sql(
            f"SELECT count(*) AS n, sum(id) AS ids, sum(quantity) AS quantities FROM ({query})"
        ).to_pylist()
        return {name: int(value) for name, value in found.items()}

    def _query(self, columns: Sequence[str]) -> str:
        names = ", ".join(f'"{name}"' for name in columns)
        tables = [(f"f{i}", age) for i, (_, age) in enumerate(self.files)]
        files = newest_sql(tables, columns, "{path}")
        return (
            f"SELECT {names} FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY age DESC) "
            f"AS place_in_line FROM ({files})) WHERE place_in_line = 1"
        )
