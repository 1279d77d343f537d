"""Spark reads small changes that live in the log, by every way of reading."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from tests.parts_in_memory import count_in_memory
from tests.providers.spark.test_spark_stream_sink import ROWS as ROWS_OF_FEED
from tests.providers.spark.test_spark_stream_sink import Feed
from tests.small_tables import KV, kv

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    """A file of 2,000 rows, and small changes of it in the log."""
    folder: Path = tmp_path_factory.mktemp("inline")
    made = rs.create_table(str(folder / "t"), KV, key=["k"], properties={"inline_bytes": 9_000})
    made.upsert(kv(*((k, k) for k in range(2_000))))
    made.upsert(kv((5, -5), (3_000, None)))
    made.delete(keys={"k": [7]})
    assert count_in_memory(made) == 2
    return made


ROWS = sorted([(k, k) for k in range(2_000) if k not in (5, 7)] + [(5, -5), (3_000, -1)])


def shown(frame: Any) -> list[tuple[int, int]]:
    return sorted((row["k"], -1 if row["v"] is None else row["v"]) for row in frame.collect())


def test_to_spark_and_the_source_read_rows_of_the_log(spark: Any, table: rs.Table) -> None:
    assert shown(table.to_spark(spark)) == ROWS
    some = [row for row in ROWS if row[0] < 9 or row[0] == 3_000]
    assert shown(table.to_spark(spark, "k < 9 OR k = 3000")) == some
    assert table.to_spark(spark).count() == len(ROWS)
    source = spark.read.format("rowsieve").load(table.uri)
    assert shown(source) == ROWS
    assert shown(source.where("v = -5")) == [(5, -5)]


def test_statements_and_writes_of_spark_meet_rows_of_the_log(
    spark: Any, table: rs.Table, tmp_path: Path
) -> None:
    copy = table.clone(str(tmp_path / "copy"))
    frame = spark.createDataFrame([(7, 70), (5, 50)], "k long, v long")
    frame.write.format("rowsieve").option("mode", "upsert").mode("append").save(copy.uri)
    expected = sorted([row for row in ROWS if row[0] != 5] + [(5, 50), (7, 70)])
    assert shown(spark.read.format("rowsieve").load(copy.uri)) == expected
    assert copy.scan().count() == len(expected)


def test_small_batches_of_a_stream_are_in_the_log_until_they_are_many(
    spark: Any, tmp_path: Path
) -> None:
    properties = {"inline_bytes": "9000", "inline_total_bytes": "1500"}
    table = rs.create_table(str(tmp_path / "log"), ROWS_OF_FEED, properties=properties)
    feed = Feed(spark, tmp_path, ROWS_OF_FEED)
    for i in range(5):
        feed.put((i, "a"), (i, "b"))
        feed.run(table)
        table.refresh()
        if i == 0:
            assert (count_in_memory(table), table.files().num_rows) == (1, 0)
    assert any(commit.operation == "compact" for commit in table.history())
    rows = table.scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["s"]) for row in rows) == [(i, s) for i in range(5) for s in "ab"]


def test_a_merge_without_a_key_changes_rows_of_the_log(spark: Any, tmp_path: Path) -> None:
    columns = pa.schema(
        [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us"))]
    )
    moment = datetime(2026, 7, 1, 12, tzinfo=UTC)
    rows: list[dict[str, Any]] = [
        {"id": i, "at": moment, "local": moment.replace(tzinfo=None)} for i in range(3_000)
    ]
    table = rs.create_table(str(tmp_path / "t"), columns, properties={"inline_bytes": 9_000})
    table.append(pa.Table.from_pylist(rows[:4], columns))
    table.append(pa.Table.from_pylist(rows[4:], columns))
    table.delete("id IN (1, 5)")
    assert (count_in_memory(table), table.files().num_rows) == (1, 1)
    source = spark.createDataFrame([(1,), (2,), (7,), (9_999,)], "id long")
    later = {"at": "target.at + INTERVAL 1 DAY", "local": "target.local + INTERVAL 1 DAY"}
    table.merge_spark(source, ["id"], when_matched={"update": later})
    day = timedelta(days=1)
    expected = [
        {**row, **{name: row[name] + day for name in ("at", "local")}}
        if row["id"] in (2, 7)
        else row
        for row in rows
        if row["id"] not in (1, 5)
    ]
    found = rs.open_table(table.uri).scan().to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == expected
