"""Apache Paimon through pypaimon-rust: merge on read by primary key, one bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pypaimon_rust.datafusion as paimon

from benchmarks.peers.protocol import Keys

OPTIONS = "'bucket' = '1', 'file.format' = 'parquet', 'file.compression' = 'zstd'"


class Paimon:
    """A table in a warehouse on disk, read by the SQL context of the package."""

    def __init__(self, folder: Path) -> None:
        self._options = {"warehouse": str(folder)}
        self._schema: pa.Schema

    def load(self, chunks: Iterator[pa.Table]) -> None:
        """A commit per chunk."""
        self._connect()
        for i, chunk in enumerate(chunks):
            if i == 0:
                columns = ", ".join(_column(field) for field in chunk.schema)
                self._context.sql("CREATE SCHEMA d")
                self._context.sql(
                    f"CREATE TABLE p.d.t ({columns}, PRIMARY KEY (id)) WITH ({OPTIONS})"
                )
            self.upsert(chunk)

    def open(self) -> None:
        """Connect and look the table up."""
        self._connect()
        self._context.sql("SELECT * FROM p.d.t WHERE id = -1")

    def select(self, keys: Keys) -> pa.Table:
        """Read by SQL."""
        batches = self._context.sql(f"SELECT * FROM p.d.t{keys.where}")
        if not batches:
            batches = self._context.sql("SELECT * FROM p.d.t LIMIT 1")
            return pa.Table.from_batches(batches).slice(0, 0)
        return pa.Table.from_batches(batches)

    def count(self, keys: Keys) -> int:
        """Count by SQL."""
        batches = self._context.sql(f"SELECT count(*) AS n FROM p.d.t{keys.where}")
        return int(pa.Table.from_batches(batches).column("n")[0].as_py())

    def upsert(self, rows: pa.Table) -> None:
        """One commit; a later one wins by key."""
        table: Any = paimon.PaimonCatalog(self._options).get_table("d.t")
        builder = table.new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        schema = pa.schema([field.with_nullable(field.name != "id") for field in rows.schema])
        for batch in rows.cast(schema).to_batches():
            writer.write_arrow(batch)
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()

    def _connect(self) -> None:
        self._context = paimon.SQLContext()
        self._context.register_catalog("p", self._options)
        self._context.set_current_catalog("p")


def _column(field: pa.Field) -> str:
    if pa.types.is_floating(field.type):
        kind = "DOUBLE"
    elif pa.types.is_timestamp(field.type):
        kind = "TIMESTAMP(6)"
    elif pa.types.is_boolean(field.type):
        kind = "BOOLEAN"
    else:
        kind = "BIGINT" if pa.types.is_integer(field.type) else "STRING"
    return f'"{field.name}" {kind}' + (" NOT NULL" if field.name == "id" else "")
