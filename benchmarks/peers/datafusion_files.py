"""DataFusion over sorted Parquet files; `row_number()` picks the newest version of each key."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from benchmarks.peers.parquet_files import ParquetFiles
from benchmarks.peers.protocol import Keys


class Files(ParquetFiles):
    """Each file is a table with its age; conditions on the key go below the window."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        pushdown = {"datafusion.execution.parquet.pushdown_filters": "true"}
        self._context = SessionContext(SessionConfig(pushdown))
        self._columns = ""
        self._registered: set[str] = set()

    def open(self) -> None:
        """Register what is new."""
        super().open()
        for path in {*self.base, *self.changed} - self._registered:
            self._context.register_parquet(_name(path), path)
            self._registered.add(path)
        schema = self._context.table(_name(self.base[0])).schema()
        self._columns = ", ".join(f'"{name}"' for name in schema.names)

    def select(self, keys: Keys) -> pa.Table:
        """Read by SQL."""
        return self._context.sql(self._query(keys, self._columns)).to_arrow_table()

    def count(self, keys: Keys) -> int:
        """Count by SQL."""
        query = f"SELECT count(*) AS n FROM ({self._query(keys, 'id')})"
        return int(self._context.sql(query).to_pylist()[0]["n"])

    def _query(self, keys: Keys, columns: str) -> str:
        ages = dict.fromkeys(self.base, 0)
        ages |= {path: age for age, path in enumerate(self.changed, start=1)}
        files = " UNION ALL ".join(
            f'SELECT {columns}, {age} AS age FROM "{_name(path)}"{keys.where}'
            for path, age in ages.items()
        )
        if not self.changed:
            return f"SELECT {columns} FROM ({files})"
        return (
            f"SELECT {columns} FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY age "
            f"DESC) AS place_in_line FROM ({files})) WHERE place_in_line = 1"
        )


def _name(path: str) -> str:
    return Path(path).stem.replace("-", "_")
