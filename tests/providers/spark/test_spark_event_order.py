"""Writes of Spark's tasks keep the event order of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import KeyViolation, UnsupportedOperation
from rowsieve.providers.spark import sql
from rowsieve.types.ordering.column_order import COLUMN_ORDER

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("id", pa.int64()), ("lsn", pa.int64()), ("v", pa.string())])
START = [(1, 10, "a"), (2, 50, "b"), (3, 50, None)]
FRAME = "id long, lsn long, v string"


def ordered(tmp_path: Path, **properties: str) -> rs.Table:
    uri = str(tmp_path / "t")
    table = rs.create_table(uri, COLUMNS, key=["id"], sequence="lsn", properties=properties)
    rows = [dict(zip(COLUMNS.names, row, strict=True)) for row in START]
    changes = [{**row, "op": "d" if row["v"] is None else "u"} for row in rows]
    table.apply_changes(changes, op="op")
    return table


def content(table: rs.Table) -> list[tuple[Any, ...]]:
    table.refresh()
    rows = table.scan(columns=COLUMNS.names).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def test_batch_writes_leave_out_late_rows(spark: Any, tmp_path: Path) -> None:
    table = ordered(tmp_path)
    rows = spark.createDataFrame([(1, 20, "new"), (2, 49, "late"), (3, 49, "late")], FRAME)
    commit = table.write_spark(rows, "upsert", token=("job", 1), metadata={"from": "a"})
    assert (commit.rows_late, commit.metadata["from"]) == (2, "a")
    assert content(table) == [(1, 20, "new"), (2, 50, "b")]
    assert table.write_spark(rows, "upsert", token=("job", 1)).version == commit.version
    saving = rows.limit(1).write.format("rowsieve").option("mode", "upsert")
    saving.mode("append").save(table.uri)
    gone = spark.createDataFrame([(1, 19), (2, 51)], "id long, lsn long")
    table.write_spark(gone, "delete")
    assert content(table) == [(1, 20, "new")]
    table.write_spark(spark.createDataFrame([(7, 1, "only")], FRAME), "overwrite")
    assert content(table) == [(7, 1, "only")]
    with pytest.raises(UnsupportedOperation, match="does not keep the event order"):
        table.write_spark(rows, "overwrite", where="id > 5")


def test_a_merge_leaves_out_late_rows(spark: Any, tmp_path: Path) -> None:
    table = ordered(tmp_path)
    source = [(1, 9, "late"), (2, 60, "new"), (3, 49, "late"), (4, 1, "first")]
    table.merge_spark(
        spark.createDataFrame(source, FRAME),
        ["id"],
        when_matched="update",
        when_not_matched="insert",
    )
    assert content(table) == [(1, 10, "a"), (2, 60, "new"), (4, 1, "first")]
    table.merge_spark(spark.createDataFrame([(2,)], "id long"), ["id"], when_matched="delete")
    assert content(table) == [(1, 10, "a"), (4, 1, "first")]
    table.upsert([{"id": 2, "lsn": 59, "v": "late"}])
    assert content(table) == [(1, 10, "a"), (4, 1, "first")]


def test_a_merge_deletes_and_updates_at_the_sequences_of_its_rows(
    spark: Any, tmp_path: Path
) -> None:
    table = ordered(tmp_path)
    table.upsert([{"id": 5, "lsn": 20, "v": "c"}])
    source = spark.createDataFrame([(1, 9, "late"), (2, 60, "gone"), (5, 21, "new")], FRAME)
    clauses: list[Any] = [
        {"delete": True, "where": "source.id < 3"},
        {"update": {"v": "source.v"}},
    ]
    table.merge_spark(source, ["id"], when_matched=clauses)
    assert content(table) == [(1, 10, "a"), (5, 21, "new")]
    assert table.upsert([{"id": 2, "lsn": 59, "v": "late"}]).rows_late == 1


@pytest.mark.parametrize(
    "clauses",
    [
        {"when_matched": "update", "when_not_matched": "insert"},
        {"when_matched": "update"},
        {"when_not_matched": "insert"},
    ],
    ids=["upsert", "update", "insert"],
)
def test_two_rows_of_a_key_are_refused_as_by_other_merges(
    spark: Any, tmp_path: Path, clauses: dict[str, Any]
) -> None:
    table = ordered(tmp_path)
    source = spark.createDataFrame([(k, lsn, "c") for k in (1, 4) for lsn in (60, 61)], FRAME)
    with pytest.raises(KeyViolation, match="two rows of the source"):
        table.merge_spark(source, ["id"], **clauses)
    other = table.merge(source.toArrow(), on="id")
    if "when_matched" in clauses:
        other = other.when_matched_update_all()
    if "when_not_matched" in clauses:
        other = other.when_not_matched_insert_all()
    with pytest.raises(KeyViolation, match=r"two rows of the source|repeat the key"):
        other.execute()
    assert content(table) == [(1, 10, "a"), (2, 50, "b")]


def test_of_several_deletes_of_a_row_the_newest_counts(spark: Any, tmp_path: Path) -> None:
    table = ordered(tmp_path)
    source = spark.createDataFrame([(2, 49), (2, 52), (2, 51), (1, 9)], "id long, lsn long")
    table.merge_spark(source, ["id"], when_matched="delete")
    assert content(table) == [(1, 10, "a")]
    assert table.upsert([{"id": 2, "lsn": 51, "v": "late"}]).rows_late == 1
    assert table.upsert([{"id": 2, "lsn": 53, "v": "new"}]).rows_late == 0


def test_whole_rows_set_what_nothing_newer_has_set(spark: Any, tmp_path: Path) -> None:
    table = ordered(tmp_path, column_order="each")
    table.upsert([{"id": 5, "lsn": 70}], columns="given")
    rows = spark.createDataFrame([(5, 60, "late"), (2, 40, "late")], FRAME)
    assert table.write_spark(rows, "upsert").rows_late == 1
    assert content(table) == [(1, 10, "a"), (2, 50, "b"), (5, 70, "late")]
    assert COLUMN_ORDER in table.to_spark(spark).columns
    with pytest.raises(UnsupportedOperation, match="does not keep the sequence of each value"):
        table.merge_spark(rows, ["id"], when_matched="update")


def test_a_truncate_begins_the_order_anew(spark: Any, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("lsn", pa.int64())])
    table = rs.create_table(tmp_path / "t", schema, key=["id"], sequence="lsn")
    table.upsert([{"id": 1, "lsn": 50}])
    sql(spark, f"TRUNCATE TABLE rowsieve.`{tmp_path / 't'}`")
    table.upsert([{"id": 1, "lsn": 10}])
    assert table.to_arrow().to_pylist() == [{"id": 1, "lsn": 10}]
