"""Spark reads what a writer of the same table has acknowledged, and tables of a database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rowsieve as rs
from tests.small_tables import kv

pytestmark = pytest.mark.spark

NEVER = 3600.0


def shown(frame: Any) -> list[tuple[int, int]]:
    return sorted((row["k"], row["v"]) for row in frame.collect())


def test_to_spark_commits_what_was_acknowledged(spark: Any, tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", kv((1, 1)), key=["k"])
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=NEVER) as writer:
        writer.upsert({"k": 2, "v": 2}).result()
        frame = table.to_spark(spark)
        assert shown(frame) == [(1, 1), (2, 2)]
        writer.upsert({"k": 3, "v": 3}).result()
        writer.delete(keys={"k": [1]}).result()
        assert shown(frame) == [(1, 1), (2, 2)]
        assert shown(table.to_spark(spark, "v > 1", ["k", "v"])) == [(2, 2), (3, 3)]
        assert table.to_spark(spark).count() == table.count() == 2
        writer.upsert({"k": 4, "v": 4}).result()
        assert table.to_arrow().num_rows == 3
    assert shown(table.to_spark(spark)) == [(2, 2), (3, 3), (4, 4)]


def test_spark_reads_and_writes_tables_of_a_database(spark: Any, tmp_path: Path) -> None:
    database = rs.Database(tmp_path / "db")
    for name in ("a", "shop.b"):
        database.create_table(name, kv((1, 1)), ["k"], properties={"inline_bytes": 16_384})
    a, b = database.open_table("a"), database.open_table("shop.b")
    assert shown(spark.read.format("rowsieve").load(a.uri)) == [(1, 1)]
    rows = spark.createDataFrame(kv((1, 5), (2, 6)))
    rows.write.format("rowsieve").option("mode", "upsert").mode("append").save(b.uri)
    assert database.version == 3
    assert shown(database.open_table("shop.b").to_spark(spark)) == [(1, 5), (2, 6)]
    before = spark.read.format("rowsieve").option("version", 0).load(b.uri)
    assert shown(before) == [(1, 1)]
    b.refresh()
    b.merge_spark(rows, ["k"], when_matched="delete")
    assert database.open_table("shop.b").count() == 0
    assert (database.version, shown(a.to_spark(spark))) == (4, [(1, 1)])
