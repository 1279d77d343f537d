"""CREATE TABLE … USING rowsieve with columns or a query, by `rowsieve.providers.spark.sql`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import (
    InvalidInput,
    KeyViolation,
    SchemaMismatch,
    TableExists,
    TableNotFound,
    UnsupportedOperation,
)
from rowsieve.providers.spark import sql

pytestmark = pytest.mark.spark
USING = "USING rowsieve OPTIONS (path '{path}', key 'id') {rest}"


@pytest.fixture
def database(spark: Any) -> Iterator[str]:
    """A database of Spark's catalog, which is dropped with all that is in it."""
    spark.sql("CREATE DATABASE created")
    yield "created"
    spark.sql("DROP DATABASE created CASCADE")


def test_a_query_creates_a_table_and_its_name(spark: Any, database: str, tmp_path: Path) -> None:
    path = tmp_path / "it's"
    made = f"{database}.`made`"
    place = f"OPTIONS (path \"{path}\", key 'id', property.checkpoint_interval '7')"
    query = "SELECT id, concat('v', id) AS s FROM range(3)"
    assert sql(spark, f"CREATE TABLE {made} USING rowsieve {place} AS {query}").columns == []
    table = rs.open_table(str(path))
    assert (table.version, table.key, table.count()) == (0, ("id",), 3)
    assert table.handle.pinned.table.properties == {"checkpoint_interval": "7"}
    assert sorted(map(tuple, spark.table(made).collect())) == [(0, "v0"), (1, "v1"), (2, "v2")]
    with pytest.raises(TableExists, match="already exists in Spark's catalog"):
        sql(spark, f"CREATE TABLE {made} USING rowsieve {place} AS {query}")
    sql(spark, f"CREATE TABLE IF NOT EXISTS {made} USING rowsieve {place} AS {query}")
    with pytest.raises(TableExists):
        sql(spark, f"CREATE TABLE {database}.other USING rowsieve {place} AS {query}")
    assert not spark.catalog.tableExists(f"{database}.other")
    named = f'CREATE TABLE {database}.again USING rowsieve OPTIONS (path "{path}")'
    sql(spark, named)  # of a table that exists: Spark's own statement
    assert spark.table(f"{database}.again").count() == 3
    assert table.refresh() == 0


def test_a_table_is_not_replaced(spark: Any, database: str, tmp_path: Path) -> None:
    text = f"TABLE {database}.t {USING.format(path=tmp_path / 't', rest='AS SELECT 1L AS id')}"
    with pytest.raises(UnsupportedOperation, match="OR REPLACE"):
        sql(spark, f"CREATE OR REPLACE {text}")
    assert not spark.catalog.tableExists(f"{database}.t")


@pytest.mark.parametrize("columns", ["", "(id BIGINT)"])
def test_a_table_without_a_place_is_refused(spark: Any, database: str, columns: str) -> None:
    for text in (
        f"CREATE TABLE {database}.g {columns} USING rowsieve",
        "CREATE TABLE g2 USING rowsieve",
    ):
        with pytest.raises(InvalidInput, match="the table is not named, and nothing was created"):
            sql(spark, text)
    assert not spark.catalog.tableExists(f"{database}.g")


def test_columns_create_an_empty_table(spark: Any, database: str, tmp_path: Path) -> None:
    columns = "(id BIGINT COMMENT 'the key', p DECIMAL(10, 2), l ARRAY<STRING>)"
    sql(spark, f"CREATE TABLE {database}.t {columns} USING rowsieve LOCATION '{tmp_path / 't'}'")
    table = rs.open_table(str(tmp_path / "t"))
    assert (table.key, table.count()) == ((), 0)
    assert table.scan().to_arrow().schema.types == [
        pa.int64(),
        pa.decimal128(10, 2),
        pa.list_(pa.string()),
    ]
    assert spark.table(f"{database}.t").collect() == []


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("(id BIGINT, name STRING COLLATE UTF8_LCASE) USING", SchemaMismatch, "'name'"),
        ("(id BIGINT, st STRUCT<n: STRING COLLATE UNICODE_CI>) USING", SchemaMismatch, "'st"),
        ("USING+AS SELECT 1L AS id, 'a' COLLATE UTF8_LCASE AS name", SchemaMismatch, "'name'"),
        ("(id BIGINT, n INT DEFAULT 5) USING", UnsupportedOperation, "'n' has a default"),
        ("USING+PARTITIONED BY (id) AS SELECT 1L AS id", UnsupportedOperation, "PARTITIONED BY"),
        ("USING+COMMENT 'x' AS SELECT 1L AS id", UnsupportedOperation, "COMMENT"),
        ("USING+TBLPROPERTIES (a = 'b') AS SELECT 1L id", InvalidInput, "property 'a'"),
        ("USING+AS SELECT id % 2 AS id FROM range(3)", KeyViolation, "'id': 0"),
        ("USING rowsieve AS SELECT 1L AS id", InvalidInput, "nothing was created; add OPTIONS"),
        ("USING rowsieve OPTIONS (path '/x', colour 'b') AS SELECT 1L id", InvalidInput, "colour"),
    ],
)
def test_what_is_refused_creates_nothing(
    spark: Any, database: str, tmp_path: Path, statement: str, error: type[Exception], message: str
) -> None:
    head, plus, rest = statement.partition("USING+")
    using = USING.format(path=tmp_path / "t", rest=rest)
    text = head + using if plus else statement
    if text.endswith("USING"):
        text = text.removesuffix("USING") + using
    with pytest.raises(error, match=message):
        sql(spark, f"CREATE TABLE {database}.t {text}")
    assert not spark.catalog.tableExists(f"{database}.t")
    with pytest.raises(TableNotFound):
        rs.open_table(str(tmp_path / "t"))
