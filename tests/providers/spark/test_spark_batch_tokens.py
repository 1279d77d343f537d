"""Writes are committed once: by a token that the caller gives, or that of a batch of a stream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, RowsieveError
from rowsieve.providers.spark import sql
from tests.providers.spark.test_spark_merge import content

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("s", pa.string())])
FRAME = "id long, n long, s string"
ADD = {"update": {"n": "target.n + source.n"}}


@pytest.fixture(params=[["id"], []], ids=["key", "no key"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> rs.Table:
    rows = pa.table({"id": [1, 2], "n": [10, 20], "s": ["a", "b"]}, COLUMNS)
    return rs.create_table(str(tmp_path / "t"), rows, key=request.param)


def run(spark: Any, tmp_path: Path, function: Callable[[Any, int], None]) -> None:
    """Run what is new of a stream of files, in one batch, from its checkpoint."""
    stream = spark.readStream.schema(FRAME).parquet(str(tmp_path / "feed"))
    writer = stream.writeStream.foreachBatch(function).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.awaitTermination()


def error_of(table: rs.Table, frame: Any) -> str:
    """The error of a merge that is refused; Spark never returns from pytest's own in a function."""
    try:
        table.merge_spark(frame, ["id"], when_matched={"update": {"n": "no_such_column"}})
    except RowsieveError as error:
        return str(error)
    return ""


def test_a_merge_with_a_token_is_committed_once(spark: Any, table: rs.Table) -> None:
    source = spark.createDataFrame([(1, 5, "x")], FRAME)
    token, metadata = ("job", 7), {"Run": "A", "note": "ü"}
    commits = [
        table.merge_spark(source, ["id"], when_matched=ADD, token=token, metadata=metadata)
        for _ in range(2)
    ]
    assert commits[0].version == commits[1].version == 1
    assert dict(table.history(1)[0].metadata).items() >= metadata.items()
    table.merge_spark(source, ["id"], when_matched=ADD, token=("job", 8))
    assert content(table) == [(1, 20, "a"), (2, 20, "b")]
    with pytest.raises(InvalidInput, match="idempotency token"):
        table.merge_spark(source, ["id"], when_matched=ADD, token=("", 1))


def test_a_write_with_a_token_is_committed_once(spark: Any, table: rs.Table) -> None:
    mode: Any = "upsert" if table.key else "append"
    source = spark.createDataFrame([(3, 1, "c")], FRAME)
    first = table.write_spark(source, mode, token=("job", 1), metadata={"Run": "A"})
    other = spark.createDataFrame([(4, 1, "d")], FRAME)
    assert table.write_spark(other, mode, token=("job", 1)).version == first.version == 1
    assert table.history(1)[0].metadata["Run"] == "A"
    table.write_spark(source, "overwrite", token=("job", 2))
    table.write_spark(other, "overwrite", token=("job", 2))
    assert content(table) == [(3, 1, "c")]


def test_a_repeated_batch_changes_the_table_once(
    spark: Any, table: rs.Table, tmp_path: Path
) -> None:
    """The function fails between its writes and after them, and is called again."""
    feed = spark.createDataFrame([(1, 5, "x"), (2, 7, "y")], FRAME)
    feed.write.mode("append").parquet(str(tmp_path / "feed"))
    fails, refused = iter(["between", "end", ""]), []
    table.to_spark(spark).createOrReplaceTempView("batched")

    def merge(frame: Any, _: int) -> None:
        fail = next(fails)
        target = rs.open_table(table.uri)
        if fail == "between":
            refused.append(error_of(target, frame))  # counts for nothing
        target.merge_spark(frame, ["id"], when_matched=ADD)
        if fail == "between":
            raise ValueError(fail)
        target.merge_spark(frame.where("id = 1"), ["id"], when_matched=ADD)
        sql(frame.sparkSession, "UPDATE batched SET n = n + 100 WHERE id = 2")
        if fail == "end":
            raise ValueError(fail)

    for _ in range(2):
        with pytest.raises(Exception, match="ValueError"):
            run(spark, tmp_path, merge)
    run(spark, tmp_path, merge)
    assert content(table) == [(1, 20, "a"), (2, 127, "b")]
    assert ["no_such_column" in error for error in refused] == [True]
    feed.write.mode("append").parquet(str(tmp_path / "feed"))
    fails = iter([""])
    run(spark, tmp_path, merge)  # another batch
    assert content(table) == [(1, 30, "a"), (2, 234, "b")]
    spark.catalog.dropTempView("batched")


def test_a_write_outside_of_a_batch_has_no_token(spark: Any, table: rs.Table) -> None:
    source = spark.createDataFrame([(1, 5, "x")], FRAME)
    for _ in range(2):
        table.merge_spark(source, ["id"], when_matched=ADD)
    assert content(table) == [(1, 20, "a"), (2, 20, "b")]
    assert table.handle.pinned.tokens == {}


def test_a_call_in_a_repeated_batch_is_made_once(spark: Any, tmp_path: Path) -> None:
    catalog = rs.Catalog(str(tmp_path / "c"))
    table = catalog.create_table("db.t", pa.table({"id": [1]}), key=["id"])
    table.upsert({"id": [2]})
    call = f"CALL system.rollback_to_snapshot('db.t', {table.handle.pinned.version - 1})"
    feed, fails = spark.createDataFrame([(1, 5, "x")], FRAME), iter(["fails"])
    feed.write.parquet(str(tmp_path / "feed"))

    def restore(frame: Any, _batch: int) -> None:
        sql(frame.sparkSession, call, catalog)
        for reason in fails:
            raise ValueError(reason)

    with pytest.raises(Exception, match="fails"):
        run(spark, tmp_path, restore)
    table.upsert({"id": [3]})
    run(spark, tmp_path, restore)  # Spark repeats the batch
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 3]
    sql(spark, call, catalog)  # outside of one
    assert table.to_arrow()["id"].to_pylist() == [1]


FIRST = {
    "delete": "DELETE FROM {} WHERE id >= 7",
    "update": "UPDATE {} SET n = -1 WHERE id >= 7",
    "truncate": "TRUNCATE TABLE {}",
    "restore": "RESTORE TABLE {} TO VERSION AS OF 0",
}


@pytest.mark.parametrize("first", FIRST)
def test_a_statement_without_effect_is_not_repeated(
    spark: Any, table: rs.Table, tmp_path: Path, first: str
) -> None:
    """Run again, it would change what the statement after it has written."""
    feed, fails = spark.createDataFrame([(7, 5, "x")], FRAME), iter(["fails"])
    feed.write.parquet(str(tmp_path / "feed"))
    name = f"rowsieve.`{tmp_path / 't'}`"
    if first == "truncate":
        table.delete("TRUE")

    def load(frame: Any, _batch: int) -> None:
        sql(frame.sparkSession, FIRST[first].format(name))
        rs.open_table(table.uri).write_spark(frame, "upsert" if table.key else "append")
        for reason in fails:
            raise ValueError(reason)

    with pytest.raises(Exception, match="fails"):
        run(spark, tmp_path, load)
    expected = content(table)
    assert (7, 5, "x") in expected
    run(spark, tmp_path, load)  # Spark repeats the batch
    assert content(table) == expected
