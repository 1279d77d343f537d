"""Engines read a table whose columns were changed: by id, with defaults, never by an old name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs


@pytest.fixture(params=("keyed", "plain", "tagged"))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> rs.Table:
    """Columns id, a, b; b was dropped and added again with the default 50, a was renamed to c."""
    key = None if request.param == "plain" else ["id"]
    properties = {"column_names": "tag" if request.param == "tagged" else "user"}
    rows = pa.table({"id": [1, 2, 3], "a": ["x", "y", "z"], "b": [5, 6, 7]})
    made = rs.create_table(str(tmp_path / "t"), rows, key=key, properties=properties)
    made.drop_column("b")
    made.add_column("b", "int64", default=50, after="id")
    made.rename_column("a", "c")
    more = pa.table({"id": [4], "b": [5], "c": ["w"]})
    if key:
        made.upsert(more)
    else:
        made.append(more)
    return made


ALL = [(1, 50, "x"), (2, 50, "y"), (3, 50, "z"), (4, 5, "w")]


def test_datafusion_reads_columns_by_id(table: rs.Table) -> None:
    context = datafusion.SessionContext()
    context.register_table("t", table)

    def rows(where: str) -> list[Any]:
        query = f"SELECT * FROM t WHERE {where} ORDER BY id"
        return [tuple(row.values()) for row in context.sql(query).to_pylist()]

    assert rows("TRUE") == ALL
    assert rows("b = 5") == [ALL[3]]
    assert rows("b = 50 AND c > 'x'") == [ALL[1], ALL[2]]
    assert context.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 4}]


def test_datafusion_refuses_a_table_whose_columns_changed_after_it_was_registered(
    table: rs.Table,
) -> None:
    context = datafusion.SessionContext()
    context.register_table("t", table)
    table.drop_column("c")
    with pytest.raises(Exception, match="register it again"):
        context.sql("SELECT c FROM t").to_pylist()
    context.deregister_table("t")
    context.register_table("t", table)
    assert context.sql("SELECT * FROM t WHERE id = 4").to_pylist() == [{"id": 4, "b": 5}]


def test_a_dataset_keeps_the_columns_of_its_version(table: rs.Table) -> None:
    dataset = table.to_dataset()
    table.drop_column("b")
    assert dataset.to_table().num_rows == 4
    assert [tuple(row.values()) for row in dataset.to_table().to_pylist()] == ALL
    assert table.to_dataset().schema.names == ["id", "c"]
    old = table.to_dataset(version=0).to_table().to_pylist()
    assert old[0] == {"id": 1, "a": "x", "b": 5}


@pytest.mark.spark
def test_spark_reads_columns_by_id(spark: Any, table: rs.Table) -> None:
    frame = spark.read.format("rowsieve").load(table.uri)
    assert [tuple(row) for row in frame.orderBy("id").collect()] == ALL
    assert frame.filter("b = 5").count() == 1
    asked = spark.read.format("rowsieve").option("where", "b = 50 AND c <> 'y'").load(table.uri)
    assert sorted(tuple(row) for row in asked.collect()) == [ALL[0], ALL[2]]
    found = table.to_spark(spark, where="b = 5", columns=["c", "id"]).collect()
    assert [tuple(row) for row in found] == [("w", 4)]
    old = spark.read.format("rowsieve").option("version", 0).load(table.uri)
    assert old.columns == ["id", "a", "b"]
    assert old.filter("b = 5").count() == 1


@pytest.mark.spark
def test_spark_writes_the_columns_that_there_are_now(spark: Any, table: rs.Table) -> None:
    rows = spark.createDataFrame([(9, 1, "s")], "id long, b long, c string")
    table.write_spark(rows, mode="upsert" if table.key else "append")
    assert table.scan("id = 9").to_arrow().to_pylist() == [{"id": 9, "b": 1, "c": "s"}]
    assert table.count() == 5
