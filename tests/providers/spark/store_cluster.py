"""A driver of Spark whose reads, writes, merges, streams and calls on S3 lose an executor.

    python -m tests.providers.spark.store_cluster MASTER FOLDER STEP…

The executors read and write by our source: they have no client of S3 of their own. A step checks
the table after an executor was killed in the middle; the first check that fails ends the process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import rowsieve as rs
from rowsieve.providers.spark.jvm.java import spark_session
from rowsieve.providers.spark.procedure_engine import SparkEngine
from rowsieve.providers.spark.store_options import passed_on
from tests.faults.tasks import KillingExecutor
from tests.procedures.cluster_driver import CALL, CONF, replace
from tests.providers.spark.cluster_writes import ROWS, STRUCK, executor, struck
from tests.stores.folder_server import folder_server

OLD = dict.fromkeys(range(0, 2 * ROWS, 2), "old")
NEW = {number: f"new {number}" for number in range(ROWS)}


class Lake:
    """A session, and tables in a bucket."""

    def __init__(self, spark: Any, options: dict[str, str], marks: Path) -> None:
        self.spark, self.options, self.marks = spark, options, marks

    def table(self, name: str) -> rs.Table:
        """A table with the even ids, in two parts."""
        ids = list(OLD)
        table = rs.create_table(
            f"s3://bucket/{name}",
            rows_of(ids[: ROWS // 2]),
            key=["id"],
            storage_options=self.options,
        )
        table.upsert(rows_of(ids[ROWS // 2 :]))
        return table

    def struck(self, frame: Any) -> Any:
        """The rows of a frame with `id` and `s`, one of whose tasks loses its executor."""
        from pyspark.sql import functions

        marks = self.marks

        def same(number: int, text: str) -> str:
            if number == STRUCK:
                executor(marks)
            return text

        through = functions.udf(same, "string").asNondeterministic()
        return frame.select("id", through("id", "s").alias("s"))


def rows_of(ids: list[int]) -> pa.Table:
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "s": pa.array(["old"] * len(ids), pa.string())}
    )


def check(table: rs.Table, wanted: dict[int, str], commits: int) -> None:
    """The table has each row once, after so many commits more than two."""
    assert table.refresh() == 1 + commits
    check_rows(table.scan().to_arrow().to_pylist(), wanted)


def check_rows(rows: list[dict[str, Any]], wanted: dict[int, str]) -> None:
    assert len(rows) == len(wanted)
    assert {row["id"]: row["s"] for row in rows} == wanted


def read(lake: Lake) -> None:
    """A read has every row once."""
    table = lake.table("read")
    frame = lake.struck(table.to_spark(lake.spark))
    check_rows([row.asDict() for row in frame.collect()], OLD)


def write(lake: Lake) -> None:
    """A write is one commit with every row once."""
    table = lake.table("write")
    table.write_spark(struck(lake.spark, executor, lake.marks), mode="upsert")
    check(table, OLD | NEW, 1)


def merge(lake: Lake) -> None:
    """A merge is one commit: matched rows are updated, others inserted."""
    table = lake.table("merge")
    table.merge_spark(
        struck(lake.spark, executor, lake.marks),
        ["id"],
        when_matched="update",
        when_not_matched="insert",
    )
    check(table, OLD | NEW, 1)


def stream(lake: Lake) -> None:
    """A stream from one table into another passes every change on once."""
    source, sink = lake.table("source"), lake.table("sink")
    source.upsert(pa.table({"id": [*NEW], "s": [*NEW.values()]}))
    passed = passed_on(lake.options)
    reader = lake.spark.readStream.format("rowsieve").options(**passed, readChangeFeed="true")
    changes = reader.load(source.uri).where("_change_type IN ('insert', 'update_postimage')")
    writer = lake.struck(changes).writeStream.format("rowsieve").options(**passed, mode="upsert")
    writer = writer.option("checkpointLocation", str(lake.marks / "checkpoint"))
    writer.trigger(availableNow=True).start(sink.uri).awaitTermination()
    sink.refresh()
    check_rows(sink.scan().to_arrow().to_pylist(), OLD | NEW)


def call(lake: Lake) -> None:
    """A rewrite is one commit, and changes no row."""
    catalog = rs.Catalog("s3://bucket/lake", storage_options=lake.options)
    table = catalog.create_table("db.t", rows_of([]).schema, ["id"])
    ids = list(OLD)
    for start in range(0, ROWS, ROWS // 4):
        table.upsert(rows_of(ids[start : start + ROWS // 4]))
        table.upsert(rows_of(ids[start : start + ROWS // 8]))
    version = table.version
    replace(catalog, KillingExecutor(lake.marks))
    (row,) = catalog.call(CALL, engine=SparkEngine(lake.spark)).to_pylist()
    assert (lake.marks / "killed").exists(), "nothing went wrong"
    assert table.refresh() == version + 1 == row["version"]
    check_rows(table.scan().to_arrow().to_pylist(), OLD)


STEPS: dict[str, Callable[[Lake], None]] = {
    "read": read,
    "write": write,
    "merge": merge,
    "stream": stream,
    "call": call,
}


def main(master: str, folder: Path, steps: list[str]) -> None:
    """Run the steps; a line for each that survived."""
    (folder / "bucket").mkdir(parents=True)
    with folder_server(folder) as server:
        spark = spark_session("rowsieve on a store", CONF, master=master)
        for name in steps:
            marks = folder / f"marks-{name}"
            marks.mkdir()
            STEPS[name](Lake(spark, dict(server.s3.options), marks))
            assert any((marks / mark).exists() for mark in ("struck", "killed")), name
            sys.stdout.write(f"{name}\n")
            sys.stdout.flush()
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
