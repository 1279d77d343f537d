"""The systems of the suite: each keeps the same keyed rows, takes upserts and answers SELECT *.

What a system cannot do it does not offer: `Keeper` is loaded and read, `Changer` can also be
changed, `Compacter` can also be compacted and opened again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import SessionContext

import rowsieve as rs
from benchmarks import data


class Keeper(Protocol):
    """A loaded table; `select` gives all columns of the rows that a SQL condition selects."""

    name: str

    def select(self, where: str) -> pa.Table:
        """Read into Arrow."""


class Changer(Keeper, Protocol):
    """A table that takes new versions of rows."""

    def upsert(self, rows: pa.Table) -> object:
        """Write rows by key, durably."""


@runtime_checkable
class Compacter(Changer, Protocol):
    """A table format: files that are rewritten, and a log that is read again."""

    def compact(self) -> object:
        """Rewrite files so that reads have less to do."""

    def reopen(self) -> int:
        """Open the table anew; its version."""


class Rowsieve:
    """Our own scan."""

    name = "rowsieve"

    def __init__(self, folder: Path, rows: pa.Table) -> None:
        self.uri = str(folder / "rowsieve")
        self.table = rs.create_table(self.uri, rows, key=[data.KEY])

    def select(self, where: str) -> pa.Table:
        """Read by `Table.scan`."""
        return self.table.scan(where).to_arrow()

    def upsert(self, rows: pa.Table) -> object:
        """One commit."""
        return self.table.upsert(rows)

    def compact(self) -> object:
        """One commit."""
        return self.table.compact()

    def reopen(self) -> int:
        """Read the log."""
        return rs.open_table(self.uri).version


class RowsieveInDataFusion:
    """The same table, registered in DataFusion."""

    name = "rowsieve in DataFusion"

    def __init__(self, ours: Rowsieve) -> None:
        self._context = SessionContext()
        self._context.register_table("t", ours.table)

    def select(self, where: str) -> pa.Table:
        """Read by SQL."""
        return self._context.sql(f"SELECT * FROM t WHERE {where}").to_arrow_table()


class Delta:
    """deltalake: copy on write, read by its own engine."""

    name = "deltalake"

    def __init__(self, folder: Path, rows: pa.Table) -> None:
        from deltalake import write_deltalake

        self._uri = str(folder / "delta")
        write_deltalake(self._uri, rows)

    def select(self, where: str) -> pa.Table:
        """Read by its query builder."""
        from deltalake import QueryBuilder

        builder = QueryBuilder().register("t", self._table())
        return pa.table(builder.execute(f"SELECT * FROM t WHERE {where}"))

    def upsert(self, rows: pa.Table) -> object:
        """Merge by key."""
        merge = self._table().merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
        return merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def compact(self) -> object:
        """Bin packing."""
        return self._table().optimize.compact()

    def reopen(self) -> int:
        """Read the log."""
        return int(self._table().version())

    def _table(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(self._uri)


class DuckDb:
    """DuckDB's own file with a primary key."""

    name = "DuckDB table"

    def __init__(self, folder: Path, rows: pa.Table) -> None:
        import duckdb

        self._connection = duckdb.connect(str(folder / "duck.db"))
        self._connection.register("loaded", rows)
        self._connection.execute(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, value DOUBLE, quantity BIGINT, "
            'place VARCHAR, "at" TIMESTAMP)'
        )
        self._connection.execute("INSERT INTO t SELECT * FROM loaded")
        self._connection.unregister("loaded")

    def select(self, where: str) -> pa.Table:
        """Read by SQL."""
        return self._connection.sql(f"SELECT * FROM t WHERE {where}").to_arrow_table()

    def upsert(self, rows: pa.Table) -> object:
        """Insert or replace."""
        self._connection.register("changed", rows)
        self._connection.execute("INSERT OR REPLACE INTO t SELECT * FROM changed")
        return self._connection.unregister("changed")


class ParquetInDataFusion:
    """No table format: sorted Parquet files, and the newest version of each key by a window."""

    name = "Parquet in DataFusion"

    def __init__(self, folder: Path, rows: pa.Table) -> None:
        self._folder = folder / "parquet"
        self._folder.mkdir()
        self._files = 0
        self._context = SessionContext()
        self.upsert(rows)

    def select(self, where: str) -> pa.Table:
        """Read by SQL; conditions on the key go below the window."""
        columns = 'id, value, quantity, place, "at"'
        query = f"SELECT {columns} FROM f0 WHERE {where}"
        if self._files > 1:
            files = " UNION ALL ".join(
                f"SELECT *, {i} AS age FROM f{i} WHERE {where}" for i in range(self._files)
            )
            query = (
                f"SELECT {columns} FROM (SELECT *, row_number() OVER "
                f"(PARTITION BY id ORDER BY age DESC) AS place_in_line FROM ({files})) "
                "WHERE place_in_line = 1"
            )
        return self._context.sql(query).to_arrow_table()

    def upsert(self, rows: pa.Table) -> object:
        """Write a file, durable when the system says so, and not atomic."""
        path = self._folder / f"{self._files}.parquet"
        pq.write_table(rows.sort_by(data.KEY), path, compression="zstd", row_group_size=65_536)
        self._context.register_parquet(f"f{self._files}", str(path))
        self._files += 1
        return path


def changers(folder: Path, rows: pa.Table) -> Iterator[Changer]:
    """Every system that is installed, loaded; ours first."""
    yield Rowsieve(folder, rows)
    for kind in (Delta, DuckDb, ParquetInDataFusion):
        try:
            yield kind(folder, rows)
        except ImportError:
            continue
