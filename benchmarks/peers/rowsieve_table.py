"""Our own table: read by its own scan, and registered in DataFusion."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from datafusion import SessionContext

import rowsieve as rs
from benchmarks import data
from benchmarks.peers.protocol import KEYS_PER_PART, Keys
from rowsieve.objects import open_store
from rowsieve.stats.model import ColumnStatistics
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.manifests.manifest import FileRef, NewPart, PartEntry, PartTable


class Rowsieve:
    """`Table.scan` and `Table.upsert`."""

    def __init__(self, folder: Path) -> None:
        self.uri = str(folder / "table")
        self.table: rs.Table

    def load(self, chunks: Iterator[pa.Table]) -> None:
        """One commit and one part per chunk."""
        self.table = rs.create_table(self.uri, next(chunks), key=[data.KEY])
        for chunk in chunks:
            self.table.upsert(chunk)

    def open(self) -> None:
        """Read the log."""
        self.table = rs.open_table(self.uri)

    def select(self, keys: Keys) -> pa.Table:
        """One scan."""
        return self.table.scan(keys.sql).to_arrow()

    def count(self, keys: Keys) -> int:
        """From the manifest and the keys."""
        return self.table.scan(keys.sql).count()

    def upsert(self, rows: pa.Table) -> None:
        """One commit."""
        self.table.upsert(rows)

    def compact(self) -> None:
        """One commit."""
        self.table.compact()

    def reopen(self) -> int:
        """Read the log again."""
        return rs.open_table(self.uri).version


class InDataFusion:
    """The same table through the DataFusion provider."""

    def __init__(self, folder: Path) -> None:
        self._uri = str(folder / "table")
        self._context = SessionContext()

    def open(self) -> None:
        """Register it."""
        self._context.register_table("t", rs.open_table(self._uri))

    def select(self, keys: Keys) -> pa.Table:
        """Read by SQL."""
        return self._context.sql(f"SELECT * FROM t{keys.where}").to_arrow_table()

    def count(self, keys: Keys) -> int:
        """Count by SQL."""
        rows = self._context.sql(f"SELECT count(*) AS n FROM t{keys.where}").to_pylist()
        return int(rows[0]["n"])


class Parts:
    """A table whose manifest names parts that do not exist; its log and checkpoint are real."""

    def __init__(self, folder: Path) -> None:
        self._uri = str(folder / "table")
        self._table: rs.Table

    def build(self, parts: int) -> None:
        """One commit of so many parts, and the checkpoint that follows it."""
        table = rs.create_table(
            self._uri,
            pa.schema([pa.field(data.KEY, pa.int64(), nullable=False), ("v", pa.float64())]),
            key=[data.KEY],
            properties={"checkpoint_interval": "1"},
        )
        log = CommitLog(open_store(self._uri))
        head = log.latest()
        fields = head.schema.fields
        added = PartTable.of([_part(i) for i in range(parts)], head.schema, fields[:1])
        request = CommitRequest("upsert", added=added, rows_written=parts * KEYS_PER_PART)
        log.commit(request, head, lambda *_: request)
        table.refresh()

    def open(self) -> None:
        """Read the log."""
        self._table = rs.open_table(self._uri)

    def plan(self, key: int) -> int:
        """The real plan of a scan, from SQL text on."""
        plan = self._table.scan(f"id = {key}").plan()
        return sum(len(piece.parts) for split in plan.splits for piece in split.pieces)


def _part(place: int) -> NewPart:
    first, last = place * KEYS_PER_PART, place * KEYS_PER_PART + KEYS_PER_PART - 1
    part_id = uuid.UUID(int=place).hex
    lower, upper = pa.scalar(first, pa.int64()), pa.scalar(last, pa.int64())
    file = FileRef(
        f"data/{part_id}.0.parquet", KEYS_PER_PART, 1_000_000, "xxh3_128:0", 900_000, "xxh3_128:1"
    )
    entry = PartEntry(part_id, 0, 0, True, file, None, (lower,), (upper,))  # noqa: FBT003
    return NewPart(
        entry,
        {
            1: ColumnStatistics(0, None, lower, upper, lower_exact=True, upper_exact=True),
            2: ColumnStatistics(0, 0, pa.scalar(0.0), pa.scalar(1.0)),
        },
    )
