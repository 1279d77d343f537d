"""Statements on procedures and views of a catalog's tables, in a Spark session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, UnknownColumn, UnsupportedOperation
from rowsieve.providers.spark import sql
from rowsieve.providers.spark.procedure_engine import SparkEngine
from rowsieve.providers.spark.statements import create_views
from tests.procedures.test_bound_call import FORMS, five_parts

pytestmark = pytest.mark.spark


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    catalog = rs.Catalog(tmp_path / "lake")
    for name in ("db.flights", "other.flights"):
        table = catalog.create_table(name, pa.schema([("id", pa.int64())]), ["id"])
        for i in range(5):
            table.upsert(pa.table({"id": [i]}))
    return catalog


def test_statements_run_in_spark_or_on_its_workers(spark: Any, catalog: rs.Catalog) -> None:
    views = create_views(spark, catalog)
    assert views == {"db_flights": "db.flights", "other_flights": "other.flights"}
    assert sql(spark, "SELECT count(*) AS n FROM db_flights").first().n == 5
    call = "CALL system.rewrite_data_files(table => 'db.flights', where => 'id % 2 >= 0')"
    assert sql(spark, call, catalog).first().rewritten_data_files_count == 5
    optimize = "ALTER TABLE other.flights EXECUTE optimize(file_size_threshold => '1GB')"
    assert sql(spark, optimize, catalog).first().added_data_files_count == 1
    (line, *_) = sql(spark, f"EXPLAIN {optimize}", catalog).collect()
    assert line.plan.startswith("Output [rewritten_data_files_count")
    names = [row.procedure for row in sql(spark, "SHOW PROCEDURES", catalog).collect()]
    assert {"rewrite_data_files", "register_table"} <= set(names)
    described = sql(spark, "DESCRIBE PROCEDURE system.register_table", catalog).collect()
    assert [row.parameter for row in described] == ["schema", "table_name", "uri"]
    assert create_views(spark, catalog, "db") == {"flights": "db.flights"}
    assert spark.sql("SELECT sum(id) AS n FROM flights").first().n == 10
    with pytest.raises(InvalidInput, match="needs a catalog"):
        sql(spark, call)


CHANGES_OF_VIEWS = [
    "-- a comment\n/* and\nanother */ delete from some_flights",
    "UPDATE some_flights SET id = 9",
    "INSERT INTO some_flights VALUES (9)",
    "INSERT OVERWRITE some_flights VALUES (9)",
    "MERGE INTO some_flights t USING db_flights s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE db_flights",
    "DELETE FROM db_flights WHERE id = 1 RETURNING id",
    "INSERT INTO db_flights VALUES (1) RETURNING *",
    "ALTER TABLE db_flights ADD COLUMN x INT",
]


def test_changes_of_views_are_refused(spark: Any, catalog: rs.Catalog) -> None:
    create_views(spark, catalog)
    spark.table("db_flights").where("id > 2").createOrReplaceTempView("some_flights")
    for statement in CHANGES_OF_VIEWS:
        with pytest.raises(UnsupportedOperation, match=r"sql: Spark does not change .*merge_spark"):
            sql(spark, statement)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql(spark, "DELETE FROM nowhere")
    assert catalog.open_table("db.flights").count() == 5


def test_views_of_one_name_are_refused(spark: Any, catalog: rs.Catalog) -> None:
    catalog.create_table("db.a_b", pa.table({"id": [1]}))
    catalog.create_table("db_a.b", pa.table({"id": [1]}))
    with pytest.raises(InvalidInput, match="two tables would have the view db_a_b"):
        create_views(spark, catalog)


@contextmanager
def settings(session: Any, values: Mapping[str, str]) -> Iterator[None]:
    before = {name: session.conf.get(name, None) for name in values}
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            session.conf.unset(name) if value is None else session.conf.set(name, value)


@pytest.fixture
def times(tmp_path: Path) -> rs.Catalog:
    """A part of midnight to one, and a part of six to seven, in UTC."""
    catalog = rs.Catalog(tmp_path / "lake")
    schema = pa.schema([("Ts", pa.timestamp("us", "UTC")), ("name", pa.string())])
    table = catalog.create_table("db.t", schema, ["Ts"])
    for hour in (0, 6):
        hours = [datetime(2020, 1, 1, each, tzinfo=UTC) for each in (hour, hour + 1)]
        table.upsert(pa.table({"Ts": hours, "name": ["1", "x"]}))
    return catalog


SELECTED = """
CALL system.rewrite_data_files('db', 't', '{}', options => map('rewrite-all', 'true'),
    dry_run => TRUE)
"""


@pytest.mark.parametrize(
    ("kind", "zone", "count"),
    [
        ("spark", "UTC", 0),
        ("spark", "America/New_York", 1),
        ("spark", "-07:00", 2),
        ("client", "America/New_York", 1),
    ],
)
def test_a_filter_has_the_time_zone_of_the_session(
    kind: str, request: pytest.FixtureRequest, times: rs.Catalog, zone: str, count: int
) -> None:
    session = request.getfixturevalue(kind)
    call = SELECTED.format("ts < TIMESTAMP ''2020-01-01''")
    with settings(session, {"spark.sql.session.timeZone": zone}):
        found = sql(session, call, times).first().rewritten_data_files_count
        assert found == count
        engine = SparkEngine(session)
        counts = times.call(call, engine=engine, dialect="spark").to_pylist()[0]
        assert counts["rewritten_data_files_count"] == count
        given = rs.Session("UTC")  # is said by the caller, and the session does not decide
        counts = times.call(call, engine=engine, dialect="spark", session=given).to_pylist()[0]
        assert counts["rewritten_data_files_count"] == 0


class Client:
    """A client of Spark Connect whose server answers every statement with this error."""

    read = None

    def __init__(self, condition: str) -> None:
        self.condition = condition

    def sql(self, _: str) -> None:
        from pyspark.errors.exceptions.connect import AnalysisException

        raise AnalysisException(
            "an error", errorClass=self.condition, messageParameters={}, sql_state="42P01"
        )


@pytest.mark.parametrize("statement", ["SELECT * FROM {}", "DELETE FROM {} WHERE name = 'x'"])
def test_a_client_of_connect_says_that_it_finds_no_names(times: rs.Catalog, statement: str) -> None:
    table = times.open_table("db.t")
    places = (("db.t", times), (f"rowsieve.`{table.uri}`", None))
    for condition in ("TABLE_OR_VIEW_NOT_FOUND", "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"):
        for name, catalog in places:
            with pytest.raises(UnsupportedOperation, match="Spark Connect has no parser"):
                sql(Client(condition), statement.format(name), catalog)
        with pytest.raises(Exception, match="an error"):  # no name of ours
            sql(Client(condition), statement.format("nothing"))


def test_a_filter_follows_the_other_settings_of_the_session(spark: Any, times: rs.Catalog) -> None:
    call = SELECTED.format("CAST(''x'' AS int) = 1")
    for ansi, count in (("true", 2), ("false", 0)):  # an error in each row, or NULL
        with settings(spark, {"spark.sql.ansi.enabled": ansi}):
            assert sql(spark, call, times).first().rewritten_data_files_count == count
    other_case = SELECTED.format("TS IS NOT NULL")
    assert sql(spark, other_case, times).first().rewritten_data_files_count == 2
    with (
        settings(spark, {"spark.sql.caseSensitive": "true"}),
        pytest.raises(UnknownColumn, match="caseSensitive is true in this session"),
    ):
        sql(spark, other_case, times)
    with (
        settings(spark, {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}),
        pytest.raises(UnsupportedOperation, match="doubleQuotedIdentifiers is true"),
    ):
        sql(spark, other_case, times)


@pytest.mark.parametrize("form", [*FORMS[:3], FORMS[6]])
def test_all_forms_are_called_in_spark(form: str, spark: Any, tmp_path: Path) -> None:
    row = sql(spark, form.format(c="lake"), five_parts(tmp_path)).first()
    assert (row.rewritten_data_files_count, row.added_data_files_count) == (5, 1)


def test_texts_and_times_are_those_of_the_session(spark: Any, tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    table = catalog.create_table("db.sample", pa.table({"id": [3], "name": ["foo"]}), ["id"])
    table.upsert(pa.table({"id": [4], "name": ["bar"]}))
    call = """
        CALL `catalog_name`.system.rewrite_data_files(table => "db.sample",
            where => 'id = 3 and name = "foo"', options => map('rewrite-all', 'true'))
    """
    assert sql(spark, call, catalog).first().rewritten_data_files_count == 1
    at = table.history(1)[0].timestamp.replace(tzinfo=None)
    call = f"CALL c.system.expire_snapshots('db.sample', TIMESTAMP '{at}', dry_run => true)"
    for zone, count in (("Asia/Tokyo", 0), ("UTC", 2)):
        with settings(spark, {"spark.sql.session.timeZone": zone}):
            assert sql(spark, call, catalog).first().expired_versions_count == count


def test_a_call_for_a_catalog_of_spark_goes_to_spark(spark: Any, catalog: rs.Catalog) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.ice", "org.example.NoSuchCatalog")
    for call in ("CALL ice.system.compact('db.flights')", "CALL system.compact('ice.db.flights')"):
        with pytest.raises(Exception, match=r"NoSuchCatalog|UNRESOLVED_ROUTINE"):
            sql(session, call, catalog)
    with pytest.raises(Exception, match="NoSuchCatalog"):
        sql(session, "CALL ice.system.compact('db.flights')")
    assert catalog.open_table("db.flights").version == 5
