"""The streaming sink: every micro-batch is committed exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from tests.profiles import IS_DEEP

pytestmark = pytest.mark.spark

ROWS = pa.schema([("id", pa.int64()), ("s", pa.string())])
CHANGES = pa.schema([*ROWS, ("op", pa.string()), ("at", pa.int64())])


class Feed:
    """A folder whose files a streaming query takes one by one."""

    def __init__(self, spark: Any, folder: Path, schema: pa.Schema) -> None:
        self.spark = spark
        self.folder = folder / "feed"
        self.checkpoint = folder / "checkpoint"
        self.schema = schema
        self.count = 0
        self.sink = "rowsieve"
        self.folder.mkdir()

    def put(self, *rows: tuple[Any, ...]) -> None:
        """Add one batch."""
        columns = dict(zip(self.schema.names, zip(*rows, strict=True), strict=True))
        hidden = self.folder / f".{self.count}"
        pq.write_table(pa.table(columns, schema=self.schema), hidden)
        hidden.rename(self.folder / f"{self.count:06}.parquet")
        self.count += 1

    def frame(self) -> Any:
        kinds = {pa.int64(): "long", pa.string(): "string"}
        schema = ", ".join(f"{field.name} {kinds[field.type]}" for field in self.schema)
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder))

    def start(self, table: rs.Table, how: str = "append", **options: str) -> Any:
        frame = self.frame()
        writer = frame.writeStream.format(self.sink).outputMode(how).options(**options)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        return writer.trigger(availableNow=True).start(table.uri)

    def run(self, table: rs.Table, how: str = "append", **options: str) -> None:
        """Take all batches that are there."""
        self.start(table, how, **options).awaitTermination()

    def run_to_the_end(self, table: rs.Table, **options: str) -> int:
        """Start the query again after each failure; how often it failed."""
        for failures in range(100):
            try:
                self.run(table, **options)
            except Exception as error:
                last = error
            else:
                return failures
        raise last


def keyed(tmp_path: Path) -> rs.Table:
    return rs.create_table(str(tmp_path / "t"), ROWS, key=["id"])


def content(table: rs.Table) -> dict[int, str]:
    rows = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["s"] for row in rows}


def test_each_batch_is_one_commit_with_the_token_of_the_query(spark: Any, tmp_path: Path) -> None:
    table, feed = rs.create_table(str(tmp_path / "log"), ROWS), Feed(spark, tmp_path, ROWS)
    feed.put((1, "a"), (2, "b"))
    feed.put((1, "c"))
    feed.run(table, **{"metadata.job": "test"})
    table.refresh()
    tokens = table.handle.pinned.tokens
    assert [(name.partition(":")[0], last.sequence) for name, last in tokens.items()] == [
        ("spark-stream", 1)
    ]
    second, first, _ = table.history()
    assert (first.rows_written, second.rows_written, first.metadata) == (2, 1, {"job": "test"})
    feed.run(table)
    assert table.refresh() == 2
    rows = table.scan().to_arrow().sort_by([("id", "ascending"), ("s", "ascending")]).to_pydict()
    assert rows == {"id": [1, 1, 2], "s": ["a", "c", "b"]}


def test_many_batches_with_restarts_in_the_middle_are_written_once(
    spark: Any, tmp_path: Path
) -> None:
    """Tasks fail and die; the driver's process fails before, after and in its commit."""
    from tests.faults.spark_writes import COMMIT_FAULTS, STREAM_CYCLE, FaultySource

    spark.dataSource.register(FaultySource)
    batches = 500 if IS_DEEP else STREAM_CYCLE
    table, feed = rs.create_table(str(tmp_path / "log"), ROWS), Feed(spark, tmp_path, ROWS)
    feed.sink = "rowsieve_faulty"
    for i in range(batches):
        feed.put((i, "a"), (i, "b"))
    failing = [batch for batch in range(batches) if batch % STREAM_CYCLE in COMMIT_FAULTS]
    assert feed.run_to_the_end(table) == len(failing)
    table.refresh()
    found = table.scan().to_arrow()
    assert sorted(found.column("id").to_pylist()) == sorted([*range(batches), *range(batches)])
    assert [commit.rows_written for commit in table.history()] == [2] * batches + [0]
