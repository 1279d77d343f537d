"""Enums in Spark: text to read, to compare and to write."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's users write it

import rowsieve as rs
from rowsieve.providers.spark import prune

pytestmark = pytest.mark.spark


def test_spark_sees_the_text_of_enums(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    table = rs.create_table(uri, {"id": [1, 2, 3, 4]}, key=["id"])
    table.upsert({"id": [1, 2, 3, 4]})
    table.add_column("mood", "enum('sad', 'ok', 'happy')", default="ok")
    table.upsert({"id": [1, 2], "mood": ["happy", None]})
    frame = table.to_spark(spark)
    assert frame.schema["mood"].dataType.simpleString() == "string"
    assert {row.id for row in frame.where("mood < 'ok'").collect()} == {1}
    by_text = table.to_spark(spark, where="mood > 'happy'")
    assert {row.id for row in by_text.collect()} == {3, 4}
    column = rs.translate("mood < 'happy'", "postgres", target="spark_columns", schema=table)
    assert {row.id for row in frame.where(column.exact()).collect()} == {3, 4}
    assert table.scan(where=F.col("mood") < "ok").to_arrow()["id"].to_pylist() == [1]
    back = rs.translate(F.col("mood") < "ok", target="postgres", schema=table)
    assert back.exact() == 'CAST("mood" AS VARCHAR) COLLATE "C" < CAST(\'ok\' AS VARCHAR)'
    pruned = prune(frame.where("mood = 'happy'"))
    assert {row.id for row in pruned.collect()} == {1}
