"""Spark reads parts of all forms, and follows `read_encoding` where the forms differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import rowsieve as rs
from rowsieve.encodings import message_pack
from tests.encodings.tables_with_codecs import create, lying_in
from tests.encodings.test_encodings_elsewhere import numbered, three_forms

pytestmark = pytest.mark.spark


def test_spark_reads_parts_of_all_forms(spark: SparkSession, tmp_path: Path) -> None:
    table, rows = three_forms(tmp_path / "t")
    for read in ("columns", "codec"):
        table.set_properties({"read_encoding": read})
        frame = table.to_spark(spark, "s LIKE 's%'")
        pairs = [(row["id"], row["s"]) for row in frame.select("id", "s").collect()]
        assert sorted(pairs) == sorted(rows.items()), read


def test_spark_compares_both_forms(spark: SparkSession, tmp_path: Path) -> None:
    rs.register_codec("right-in-spark", 1, lying_in({3: "right"}, "s"), message_pack.decode)
    rows = numbered(range(9))
    table = create(
        tmp_path / "t", rows, key=True, row_codec="right-in-spark", write_encoding="both"
    )
    assert table.to_spark(spark, "id = 3").collect()[0]["s"] == "s3"
    with pytest.raises(Exception, match=r"codec right version 1.*does not know|does not know"):
        table.to_spark(spark, "id = 3", read_encoding="codec").collect()  # a task has no codecs
    other = create(tmp_path / "o", rows, key=True, write_encoding="both")
    shadow: dict[str, Any] = {"read_encoding": "shadow", "on_encoding_difference": "raise"}
    assert other.to_spark(spark, **shadow).count() == 9
    frame = spark.read.format("rowsieve").options(**shadow).load(other.uri)
    assert frame.where("s = 's3'").count() == 1
    with pytest.raises(Exception, match="columns, codec or shadow"):
        spark.read.format("rowsieve").option("read_encoding", "rows").load(other.uri)


def test_spark_writes_rows_of_codecs(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())]).empty_table()
    table = create(tmp_path / "t", schema, key=True, write_encoding="codec")
    frame = spark.createDataFrame([(1, "a"), (2, "b")], "id LONG, s STRING")
    writer = frame.write.format("rowsieve").mode("append").option("mode", "upsert")
    writer.save(table.uri)
    table.refresh()
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "s": "a"},
        {"id": 2, "s": "b"},
    ]
    assert table.scan("s = 'b'", read_encoding="shadow").count() == 1
