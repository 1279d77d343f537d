"""Definitions in Spark's SQL mean in a table what they say, or are refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import ConstraintViolation, SchemaMismatch, UnsupportedOperation
from rowsieve.providers.spark import sql

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("id", pa.int64()), ("s", pa.string()), ("t", pa.timestamp("us", tz="UTC"))])
ANSI, ZONE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"
TEN = "TIMESTAMP'2020-01-01 10:00:00'"
OF_THE_ZONE = (
    f"ADD COLUMN d TIMESTAMP DEFAULT {TEN}",
    "ADD COLUMN d TIMESTAMP DEFAULT '2020-01-01 10:00:00'",
    f"ALTER COLUMN t SET DEFAULT {TEN}",
    f"ADD CONSTRAINT c CHECK (t < {TEN})",
    "ADD CONSTRAINT c CHECK (hour(t) < 12)",
    f"ADD COLUMN n INT, ADD CONSTRAINT c CHECK (n > 0 OR t < {TEN})",
)
OF_NO_ZONE = (
    "ADD COLUMN d TIMESTAMP_NTZ DEFAULT TIMESTAMP_NTZ'2020-01-01 10:00:00'",
    "ADD COLUMN e TIMESTAMP",
    "ADD CONSTRAINT c1 CHECK (id / 2 < 100)",
    "ADD CONSTRAINT c2 CHECK (t < TIMESTAMP'2021-01-01 00:00:00Z')",
)


@pytest.fixture
def lake(tmp_path: Path) -> rs.Catalog:
    catalog = rs.Catalog(str(tmp_path / "lake"))
    catalog.create_table("db.t", COLUMNS, key=["id"])
    return catalog


@pytest.fixture
def settings(spark: Any) -> Iterator[Any]:
    """The settings of the session, which are as before in the end."""
    yield spark.conf
    spark.conf.unset(ANSI)
    spark.conf.unset(ZONE)


def test_a_definition_by_the_sessions_zone_is_refused(
    spark: Any, lake: rs.Catalog, settings: Any
) -> None:
    settings.set(ZONE, "America/New_York")
    for actions in OF_THE_ZONE:
        with pytest.raises(UnsupportedOperation, match="read in the zone UTC"):
            sql(spark, f"ALTER TABLE db.t {actions}", lake)
    with pytest.raises(UnsupportedOperation, match="the constraint 'check' is read in the zone"):
        sql(spark, f"CREATE TABLE db.made (id INT, t TIMESTAMP, CHECK (t < {TEN}))", lake)
    assert lake.open_table("db.t").version == 0
    assert lake.tables() == ["db.t"]
    for actions in OF_NO_ZONE:
        sql(spark, f"ALTER TABLE db.t {actions}", lake)
    settings.set(ZONE, "UTC")
    sql(spark, f"ALTER TABLE db.t {OF_THE_ZONE[2]}", lake)
    sql(spark, "INSERT INTO db.t (id) VALUES (1)", lake)
    table = lake.open_table("db.t")
    assert table.scan().to_arrow()["t"].to_pylist() == [datetime(2020, 1, 1, 10, tzinfo=UTC)]
    sql(spark, f"ALTER TABLE db.t {OF_THE_ZONE[4]}", lake)
    with pytest.raises(ConstraintViolation):
        sql(spark, "INSERT INTO db.t (id, t) VALUES (2, TIMESTAMP'2020-01-01 12:00:00Z')", lake)


def test_a_constraint_by_the_mode_is_refused(spark: Any, lake: rs.Catalog, settings: Any) -> None:
    settings.set(ANSI, "false")
    with pytest.raises(UnsupportedOperation, match="in ANSI mode"):
        sql(spark, "ALTER TABLE db.t ADD CONSTRAINT c CHECK (10 / id < 5)", lake)
    sql(spark, "ALTER TABLE db.t ADD CONSTRAINT c CHECK (id > 5)", lake)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("id INT, c CHAR(3)", r"'c' has Spark's type char\(3\).*write STRING"),
        ("id INT, c STRUCT<v: VARCHAR(3)>", r"'c\.v' has Spark's type varchar\(3\)"),
    ],
)
def test_text_of_limited_length_is_refused(
    spark: Any, lake: rs.Catalog, tmp_path: Path, columns: str, message: str
) -> None:
    for name in ("db.made", f"rowsieve.`{tmp_path / 'made'}`"):
        with pytest.raises(SchemaMismatch, match=message):
            sql(spark, f"CREATE TABLE {name} ({columns})", lake)
    assert lake.tables() == ["db.t"]


def test_no_statement_brings_a_collation(spark: Any, lake: rs.Catalog) -> None:
    with pytest.raises(UnsupportedOperation, match="DEFAULT COLLATION"):
        sql(spark, "CREATE TABLE db.made (s STRING) DEFAULT COLLATION UTF8_LCASE", lake)
    sql(spark, "CREATE TABLE db.made (s STRING) DEFAULT COLLATION UTF8_BINARY", lake)
    query = "SELECT 1L AS id, 'Ann' COLLATE UTF8_LCASE AS s"
    for insert in (
        f"INSERT INTO db.t (id, s) {query}",
        f"INSERT INTO db.t BY NAME {query}",
        f"INSERT INTO db.t REPLACE WHERE id = 1 {query}, NULL",
        f"INSERT OVERWRITE db.t {query}, NULL",
        "INSERT INTO db.made SELECT 'Ann' COLLATE UTF8_LCASE",
    ):
        with pytest.raises(SchemaMismatch, match="'s' has Spark's collation UTF8_LCASE"):
            sql(spark, insert, lake)
    assert lake.open_table("db.t").version == 0


def test_a_shown_definition_keeps_the_names_of_fields(spark: Any, lake: rs.Catalog) -> None:
    text = "id INT, s STRUCT<a: INT NOT NULL, `B c`: ARRAY<STRUCT<x: INT>>>, m MAP<STRING, DATE>"
    sql(spark, f"CREATE TABLE db.made ({text}) OPTIONS (key 'id')", lake)
    made = lake.open_table("db.made").schema
    (statement,) = sql(spark, "SHOW CREATE TABLE db.made", lake).first()
    sql(spark, "DROP TABLE db.made PURGE", lake)
    sql(spark, statement, lake)
    assert pa.schema(lake.open_table("db.made").schema) == pa.schema(made)


def test_a_change_is_not_explained(spark: Any, lake: rs.Catalog) -> None:
    for change in (
        "DELETE FROM db.t WHERE id = 1",
        "UPDATE db.t SET s = 'x'",
        "MERGE INTO db.t a USING db.t b ON a.id = b.id WHEN MATCHED THEN DELETE",
        "INSERT INTO db.t (id) VALUES (1)",
        "INSERT OVERWRITE db.t SELECT * FROM db.t",
    ):
        with pytest.raises(UnsupportedOperation, match=r"EXPLAIN of a change of `db`\.`t`"):
            sql(spark, f"EXPLAIN {change}", lake)
    assert "Scan" in sql(spark, "EXPLAIN SELECT * FROM db.t", lake).first()[0]


def test_a_key_is_not_updated(spark: Any, lake: rs.Catalog) -> None:
    with pytest.raises(UnsupportedOperation, match="delete the row, and insert another"):
        sql(spark, "UPDATE db.t SET id = 9 WHERE id = 1", lake)


def test_inserts_that_cannot_run_say_why(spark: Any, lake: rs.Catalog) -> None:
    for query in ("id IN (SELECT 1L)", "id = 1 OR s = (SELECT 'a')", "EXISTS (SELECT 1)"):
        with pytest.raises(UnsupportedOperation, match="REPLACE WHERE takes a condition"):
            sql(spark, f"INSERT INTO db.t REPLACE WHERE {query} SELECT 1L, 'a', NULL", lake)
    sql(
        spark, "CREATE TABLE db.made (id BIGINT, i INTERVAL DAY TO SECOND) OPTIONS (key 'id')", lake
    )
    rows = "SELECT 1L AS id, INTERVAL '1' DAY AS i"
    with pytest.raises(UnsupportedOperation, match=r"'i' is not available.*write_spark"):
        sql(spark, f"INSERT INTO db.made {rows}", lake)
    made = lake.open_table("db.made")
    made.write_spark(spark.sql(rows), "upsert")
    assert made.count("i = INTERVAL '24 hours'") == 1
