"""Types of Spark that a table cannot keep are refused by name, on every way into a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import RowsieveError, SchemaMismatch

pytestmark = pytest.mark.spark

COLLATED = "'Ann' COLLATE UTF8_LCASE"
NOT_KEPT = [
    (COLLATED, "'v' has Spark's collation UTF8_LCASE"),
    ("'Ann' COLLATE UTF8_BINARY_RTRIM", "'v' has Spark's collation UTF8_BINARY_RTRIM"),
    (f"array({COLLATED})", r"'v\.element' has Spark's collation UTF8_LCASE"),
    ("map('a' COLLATE UNICODE_CI, 1)", r"'v\.key' has Spark's collation UNICODE_CI"),
    (f"map('a', named_struct('s', {COLLATED}))", r"'v\.value\.s' has Spark's collation"),
    ("INTERVAL '1' YEAR", "'v' has Spark's type interval year"),
    ("named_struct('i', array(INTERVAL '1-2' YEAR TO MONTH))", r"'v\.i\.element' has Spark's type"),
    ("make_interval(1, 2)", "'v' has Spark's type interval"),
]


@pytest.mark.parametrize(("value", "message"), NOT_KEPT)
def test_types_that_a_table_cannot_keep_are_refused(
    spark: Any, tmp_path: Path, value: str, message: str
) -> None:
    frame = spark.sql(f"SELECT 1L AS id, {value} AS v")
    for data in (frame, frame.schema):
        with pytest.raises(SchemaMismatch, match=message):
            rs.create_table(str(tmp_path / "new"), data, key=["id"])
    keyed = rs.create_table(str(tmp_path / "keyed"), pa.table({"id": [1], "v": ["a"]}), key=["id"])
    plain = rs.create_table(str(tmp_path / "plain"), pa.table({"id": [1], "v": ["a"]}))
    writes: list[Callable[[], object]] = [
        lambda: keyed.upsert(frame),
        lambda: keyed.overwrite(frame),
        lambda: plain.append(frame),
        lambda: keyed.write_spark(frame, "upsert"),
        lambda: keyed.write_spark(frame, "overwrite"),
        lambda: keyed.write_spark(frame, "overwrite", where="id = 1"),
        lambda: plain.write_spark(frame, "append"),
        lambda: keyed.merge_spark(frame, ["id"], when_matched="update", when_not_matched="insert"),
        lambda: keyed.merge_spark(frame, ["id"], when_not_matched={"insert": "*", "where": "true"}),
    ]
    for write in writes:
        with pytest.raises(SchemaMismatch, match=message if write is not writes[-1] else "'v'"):
            write()
    assert (keyed.version, plain.version) == (0, 0)
    assert keyed.scan().to_arrow().to_pylist() == [{"id": 1, "v": "a"}]


def test_a_collated_key_is_refused(spark: Any, tmp_path: Path) -> None:
    """By the collation, both names are one key; by bytes they are two."""
    table = rs.create_table(str(tmp_path / "t"), pa.table({"name": ["Ann"]}), key=["name"])
    other = spark.sql("SELECT 'ANN' COLLATE UTF8_LCASE AS name")
    for mode in ("upsert", "delete", "overwrite"):
        with pytest.raises(SchemaMismatch, match="'name' has Spark's collation UTF8_LCASE"):
            table.write_spark(other, mode)
    with pytest.raises(SchemaMismatch, match="'name' has Spark's collation UTF8_LCASE"):
        table.delete(keys=other)
    table.write_spark(other.selectExpr("name COLLATE UTF8_BINARY AS name"), "upsert")
    assert table.count() == 2


def test_sparks_own_writers_refuse_a_collation(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rs.create_table(path, pa.table({"id": [1], "v": ["a"]}), key=["id"])
    frame = spark.sql(f"SELECT 1L AS id, {COLLATED} AS v")
    message = "'v' has Spark's collation UTF8_LCASE"
    with pytest.raises(Exception, match=message):
        frame.write.format("rowsieve").mode("append").option("mode", "upsert").save(path)
    with pytest.raises(Exception, match=message):
        frame.write.format("rowsieve").mode("overwrite").save(path)
    new = str(tmp_path / "new")
    with pytest.raises(Exception, match=message):
        frame.write.format("rowsieve").mode("append").option("key", "id").save(new)
    nested = frame.selectExpr("id", "named_struct('s', array(v)) AS v")
    with pytest.raises(Exception, match=r"'v\.s\.element' has Spark's collation UTF8_LCASE"):
        nested.write.format("rowsieve").mode("append").option("key", "id").save(new)
    source = str(tmp_path / "source")
    frame.write.parquet(source)
    stream = spark.readStream.schema(frame.schema).parquet(source)
    query = stream.writeStream.format("rowsieve").option("mode", "upsert")
    started = query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    with pytest.raises(Exception, match=message):
        started.start(path).awaitTermination()
    assert rs.open_table(path).version == 0
    assert not (tmp_path / "new").exists()


CONDITIONS = [
    "v COLLATE UTF8_LCASE = 'ANN'",
    "v = 'ANN' COLLATE UTF8_LCASE",
    "v IN ('ANN' COLLATE UTF8_LCASE)",
    "v = collate('ANN', 'UTF8_LCASE')",
    "CAST(v AS STRING COLLATE UTF8_LCASE) = 'ANN'",
    "v::STRING COLLATE UTF8_LCASE = 'ANN'",
    "v = 'Ann  ' COLLATE UTF8_BINARY_RTRIM",
    "upper(v) COLLATE UTF8_LCASE LIKE 'ann'",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_with_a_collation_are_refused(
    spark: Any, tmp_path: Path, condition: str
) -> None:
    path = str(tmp_path / "t")
    table = rs.create_table(path, pa.table({"id": [1, 2], "v": ["Ann", "bob"]}), key=["id"])
    with pytest.raises(RowsieveError):
        table.to_spark(spark, condition).collect()
    with pytest.raises(RowsieveError):
        table.delete(condition, dialect="spark")
    with pytest.raises(RowsieveError):
        table.write_spark(spark.sql("SELECT 1L AS id, 'x' AS v"), "overwrite", where=condition)
    assert table.version == 0
    plain = table.to_spark(spark)
    expected = spark.createDataFrame([(1, "Ann"), (2, "bob")], "id LONG, v STRING")
    assert plain.where(condition).collect() == expected.where(condition).collect()
