"""Spark reads parts of all forms, and follows `read_encoding` where the forms differ."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.encodings.tables_with_codecs import create
from tests.encodings.test_encodings_elsewhere import three_forms

pytestmark = pytest.mark.spark


def test_spark_reads_parts_of_all_forms(spark: SparkSession, tmp_path: Path) -> None:
    table, rows = three_forms(tmp_path / "t")
    for read in ("columns", "codec"):
        table.set_properties({"read_encoding": read})
        frame = table.to_spark(spark, "s LIKE 's%'")
        pairs = [(row["id"], row["s"]) for row in frame.select("id", "s").collect()]
        assert sorted(pairs) == sorted(rows.items()), read


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
