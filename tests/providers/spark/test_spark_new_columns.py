"""Writes that add the columns that their table lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructType

import rowsieve as rs
from rowsieve.errors import SchemaMismatch
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.writes.write_tasks import begin_job

pytestmark = pytest.mark.spark


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    rows = pa.table({"id": [1], "n": [10]})
    return rs.create_table(str(tmp_path / "t"), rows, key=["id"])


def content(table: rs.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = rs.open_table(table.uri).to_arrow().sort_by("id").to_pylist()
    return rows


def test_a_write_adds_columns_if_it_is_told_to(spark: Any, table: rs.Table) -> None:
    wider = spark.createDataFrame([(2, 20, "x")], "id long, n long, S string")
    with pytest.raises(SchemaMismatch, match="column 'S'"):
        table.write_spark(wider, "upsert")
    assert table.refresh() == 0
    commit = table.write_spark(wider, "upsert", schema_mode="merge")
    assert (commit.version, commit.operation, table.history(2)[1].operation) == (
        2,
        "upsert",
        "alter",
    )
    narrower = spark.createDataFrame([(3, 30, None, 1.5)], "id long, n long, s string, d double")
    writer = narrower.write.format("rowsieve").mode("append").option("mode", "upsert")
    writer.option("mergeSchema", "true").save(table.uri)
    assert content(table) == [
        {"id": 1, "n": 10, "S": None, "d": None},
        {"id": 2, "n": 20, "S": "x", "d": None},
        {"id": 3, "n": 30, "S": None, "d": 1.5},
    ]


@pytest.mark.parametrize("mode", ["upsert", "changes"])
def test_a_write_whose_columns_are_refused_adds_none(table: rs.Table, mode: str) -> None:
    columns = StructType().add("id", LongType()).add("new", StringType())
    columns = columns.add("op", StringType()).add("seq", LongType())
    options = {"path": table.uri, "mode": mode, "mergeSchema": "true"}
    if mode == "changes":
        parsed = WriteOptions.parse_stream({**options, "op": "op", "sequence": "seq"})
    else:
        parsed = WriteOptions.parse(options)
    with pytest.raises(SchemaMismatch, match="column 'n'"):
        begin_job(parsed, columns, overwrite=False)
    assert table.refresh() == 0


def test_columns_of_a_change_stream_are_not_added(spark: Any, table: rs.Table) -> None:
    frame = spark.createDataFrame([], "id long, n long, new string, op string, seq long")
    options = WriteOptions.parse_stream(
        {"path": table.uri, "mode": "changes", "op": "op", "sequence": "seq", "mergeSchema": "true"}
    )
    for _ in range(2):
        job = begin_job(options, frame.schema, overwrite=False)
        assert list(job.schema.names) == ["id", "n", "new"]
    assert table.refresh() == 1


def test_a_stream_goes_on_with_more_columns(spark: Any, table: rs.Table, tmp_path: Path) -> None:
    for number, columns in enumerate(("id long, n long", "id long, n long, more string")):
        row = (number + 2, 5, "m")[: columns.count(",") + 1]
        spark.createDataFrame([row], columns).write.mode("append").parquet(str(tmp_path / "feed"))
        stream = spark.readStream.schema(columns).parquet(str(tmp_path / "feed"))
        query = (
            stream.writeStream.format("rowsieve")
            .options(mode="upsert", mergeSchema="true")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(table.uri)
        )
        query.awaitTermination()
    assert content(table) == [
        {"id": 1, "n": 10, "more": None},
        {"id": 2, "n": 5, "more": None},
        {"id": 3, "n": 5, "more": "m"},
    ]
