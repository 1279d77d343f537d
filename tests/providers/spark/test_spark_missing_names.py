"""Names that no table has: the error is ours where only a table of ours could have the name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import RowsieveError, TableNotFound
from rowsieve.providers.spark import sql

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> rs.Catalog:
    catalog = rs.Catalog(str(tmp_path_factory.mktemp("lake")))
    catalog.create_table("db.t", pa.table({"id": [1, 2]}), key=["id"])
    return catalog


STATEMENTS = [
    "SELECT * FROM {}",
    "SELECT * FROM {} VERSION AS OF 1",
    "SELECT * FROM db.t WHERE id IN (SELECT id FROM {})",
    "INSERT INTO {} VALUES (1)",
    "INSERT INTO db.t SELECT * FROM {}",
    "UPDATE {} SET id = 1",
    "DELETE FROM {} WHERE id = 1",
    "MERGE INTO {} t USING db.t s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE {}",
    "DROP TABLE {}",
    "ALTER TABLE {} ADD COLUMN x INT",
    "SHOW CREATE TABLE {}",
    "SHOW TBLPROPERTIES {}",
    "DESCRIBE TABLE {}",
    "DESCRIBE HISTORY {}",
    "DESC DETAIL {}",
    "OPTIMIZE {}",
    "VACUUM {} RETAIN 1 HOURS",
    "RESTORE TABLE {} TO VERSION AS OF 1",
]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("db.nope", "there is no table `db`.`nope`.* The namespace has db.t"),
        ("lake.db.nope", "no table `lake`.`db`.`nope`.* The namespace has db.t"),
        ("lake.nodb.t", "Tables are in the namespaces db"),
        ("db.t.manifests", "metadata tables .*snapshots"),
    ],
)
def test_a_name_that_only_we_could_have(
    spark: Any, lake: rs.Catalog, name: str, message: str
) -> None:
    for statement in STATEMENTS:
        with pytest.raises(TableNotFound, match=message):
            sql(spark, statement.format(name), lake)
    assert lake.open_table("db.t").version == 0


def test_names_of_several_catalogs(spark: Any, lake: rs.Catalog) -> None:
    both = {"lake": lake, "pond": lake}
    with pytest.raises(TableNotFound, match="Rowsieve catalogs are lake, pond"):
        sql(spark, "SELECT * FROM sea.db.t", both)
    with pytest.raises(RowsieveError, match="sea"):
        sql(spark, "CALL sea.system.rewrite_data_files(table => 'db.t')", both)
    assert sql(spark, "SELECT * FROM pond.db.t", both).count() == 2


def test_other_names_are_sparks(spark: Any, lake: rs.Catalog) -> None:
    for statement in ("SELECT * FROM nope", "SELECT * FROM other.nope", "DROP TABLE nope"):
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            sql(spark, statement, lake)
    for statement in ("OPTIMIZE nope", "VACUUM other.nope", "DESCRIBE HISTORY nope"):
        with pytest.raises(TableNotFound, match="not a Rowsieve table"):
            sql(spark, statement, lake)
    sql(spark, "DROP TABLE IF EXISTS lake.db.nope", lake)
    sql(spark, "CREATE TABLE IF NOT EXISTS db.t (id BIGINT)", lake)
    with pytest.raises(TableNotFound, match="/nope/none"):
        sql(spark, "OPTIMIZE rowsieve.`/nope/none`")


def test_namespaces(spark: Any, tmp_path: Path) -> None:
    lake = rs.Catalog(str(tmp_path))
    sql(spark, "CREATE SCHEMA lake.sales", lake)
    sql(spark, "CREATE DATABASE IF NOT EXISTS lake.sales", lake)
    sql(spark, "CREATE TABLE sales.orders (id BIGINT)", lake)
    sql(spark, "CREATE TABLE sales.items (id BIGINT)", lake)
    rows = [("sales", "items", False), ("sales", "orders", False)]
    for text in ("SHOW TABLES IN lake.sales", "SHOW TABLES IN sales"):
        assert sorted(map(tuple, sql(spark, text, lake).collect())) == rows
    assert sql(spark, "SHOW TABLES IN lake.sales LIKE 'o*|x'", lake).first().tableName == "orders"
    assert [tuple(row) for row in sql(spark, "SHOW NAMESPACES IN lake", lake).collect()] == [
        ("sales",)
    ]
    with pytest.raises(RowsieveError, match="sales"):
        sql(spark, "DROP SCHEMA lake.sales", lake)
    sql(spark, "DROP SCHEMA lake.sales CASCADE", lake)
    assert lake.namespaces() == []
    assert sql(spark, "SHOW TABLES", lake).columns == ["namespace", "tableName", "isTemporary"]
