"""Conditions with `now()` skip parts in Spark, and none whose rows a later run needs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions

import rowsieve as rs
from rowsieve.providers.spark import explain_prune, prune, sql
from rowsieve.providers.spark.frames import spark_read
from rowsieve.providers.spark.reads.hybrid import routes_of
from rowsieve.providers.spark.reads.prune_report import Refusal
from rowsieve.providers.spark.reads.routes import ALL_ROUTES, Reason
from tests.executor.planted import lie
from tests.profiles import some
from tests.providers.spark.test_spark_prune import files, ids

pytestmark = pytest.mark.spark

NOW = datetime.now(UTC)
DAYS = (-400, -200, -100, -10, 10)  # from today: one part each, the last in the future


def moments(day: int, first: int) -> pa.Table:
    at = [NOW + timedelta(days=day, minutes=minute) for minute in range(3)]
    return pa.table(
        {
            "id": pa.array(range(first, first + 3), pa.int64()),
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "d": pa.array([each.date() for each in at], pa.date32()),
        }
    )


@pytest.fixture(scope="module")
def table(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[rs.Table]:
    """The view `m` of five parts, with a hidden row in the one of ten days ago."""
    path = tmp_path_factory.mktemp("moments") / "t"
    made = rs.create_table(str(path), moments(DAYS[0], 0).schema, key=["id"])
    for number, day in enumerate(DAYS):
        made.upsert(moments(day, 3 * number))
    made.delete(keys=pa.table({"id": [10]}))
    made.to_spark(spark).createOrReplaceTempView("m")
    yield made
    spark.catalog.dropTempView("m")


BOUNDS = (
    ("at > now() - interval '30 days'", 2),
    ("at > current_timestamp() - interval '30' day", 2),
    ("at >= now() - interval 5 months", 3),
    ("now() - interval '2880' hour < at", 3),
    ("at > now() - make_dt_interval(30, 1, 2, 3.5)", 2),
    ("at BETWEEN now() - interval '30 days' AND now()", 2),
    ("NOT (at < now() - interval '30 days')", 2),
    ("at > date_trunc('day', now()) - interval '30' day", 2),
    ("at > localtimestamp() - interval '30' day", 2),
    ("d > current_date() - 30", 2),
    ("d > date_sub(curdate(), 30)", 2),
    ("d > add_months(current_date(), -1)", 2),
    ("to_date(at) > current_date() - interval '30' day", 2),
    ("at > now() - interval '30 days' OR id < 3", 3),
    ("at > now()", 1),
    ("at < now()", 5),
    ("at <> now()", 5),
    ("at < now() AND id < 3", 1),
    ("now() - at < interval '30' day", 5),
    ("at > now() - make_interval(0, 1, 0, 3)", 5),
    ("id % second(now()) = 1 AND id < 3", 5),
)


@pytest.mark.parametrize(("condition", "count"), some(BOUNDS, 3))
def test_a_bound_of_now_skips_parts(
    spark: Any, table: rs.Table, condition: str, count: int
) -> None:
    assert table.key == ("id",)
    query = f"SELECT id, at FROM m WHERE {condition}"
    found, plain = sql(spark, query), spark.sql(query)
    assert files(found) == count  # invariant 30
    assert files(plain) == 5
    if "%" not in condition:
        assert ids(found) == ids(plain)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("SELECT id FROM (SELECT *, now() AS n FROM m) WHERE at < n", 5),
        ("SELECT id FROM (SELECT *, now() - interval '30' day AS n FROM m) WHERE at > n", 2),
        ("SELECT id FROM m JOIN (SELECT now() AS n FROM VALUES (1)) ON at < n", 5),
        (
            "SELECT id FROM m JOIN (SELECT now() n, i FROM VALUES (7L) v(i)) ON at < n AND id = i",
            5,
        ),
        ("SELECT id FROM m WHERE at IN (SELECT at FROM m WHERE at < now())", 10),
        ("SELECT id FROM m WHERE at < (SELECT max(now()))", 5),
        ("SELECT id, now() AS n FROM m WHERE id < 3 ORDER BY now()", 1),
        ("SELECT id, row_number() OVER (ORDER BY now()) AS n FROM m WHERE id < 3", 1),
        (
            "SELECT max(id) AS id, current_date() AS n FROM m WHERE id < 3 GROUP BY current_date()",
            1,
        ),
        ("SELECT id FROM m WHERE id < 3 AND now() > timestamp '2020-01-01'", 1),
    ],
)
def test_the_time_is_not_known_anywhere_in_a_query(
    spark: Any, table: rs.Table, query: str, count: int
) -> None:
    assert table.key == ("id",)
    found, plain = sql(spark, query), spark.sql(query)
    assert files(found) == count <= files(plain)
    assert ids(found) == ids(plain)


@pytest.mark.parametrize("zone", some(["America/New_York", "Pacific/Apia"], 2, 1))
def test_the_session_zone_moves_no_bound_past_a_row(spark: Any, table: rs.Table, zone: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    table.to_spark(session).createOrReplaceTempView("m")
    for condition, count in some(BOUNDS[:12], 3, 2):
        found = sql(session, f"SELECT id FROM m WHERE {condition}")
        assert files(found) == count
        assert ids(found) == ids(session.sql(f"SELECT id FROM m WHERE {condition}"))
    view = "CREATE TEMPORARY VIEW days AS SELECT * FROM m WHERE d > current_date() - 30"
    session.sql(view)
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert files(sql(session, "SELECT id FROM days")) >= 2


def test_a_report_names_a_bound_of_the_time(spark: Any, table: rs.Table) -> None:
    report = explain_prune(spark.sql("SELECT id FROM m WHERE at > now() - interval '30 days'"))
    assert report.refusal is None
    assert [(each.uri, each.parts, each.parts_read) for each in report.reads] == [(table.uri, 5, 2)]
    for query in ("SELECT id FROM m WHERE at > 'now'", "SELECT current_user() FROM m WHERE id < 3"):
        assert explain_prune(spark.sql(query)).refusal is Refusal.TIME
        assert prune(plain := spark.sql(query)) is plain


@pytest.mark.parametrize(("condition", "count"), some(BOUNDS[:-3], 6, 1))
def test_a_condition_of_a_read_has_parts_for_later_runs(
    spark: Any, table: rs.Table, condition: str, count: int
) -> None:
    for where in (condition, functions.expr(condition)):
        found = table.to_spark(spark, where=where)
        assert ids(found) == ids(spark.sql(f"SELECT id FROM m WHERE {condition}"))
        if found.inputFiles():  # Spark reads them itself
            assert files(found) == count
    only = table.to_spark(spark, where=condition, columns=["id"])
    assert only.columns == ["id"]
    assert ids(only) == ids(spark.sql(f"SELECT id FROM m WHERE {condition}"))


def test_one_clock_reads_all_parts_of_a_condition(spark: Any, tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), moments(-10, 0), key=["id"])
    table.upsert(moments(10, 3))
    where = "at > now() - interval '30 days'"

    def reasons() -> set[tuple[str, Reason]]:
        found = routes_of(spark_read(table, spark, where, None), ALL_ROUTES)
        return {(part.route, part.reason) for part in found.parts}

    assert reasons() == {("native", Reason.CLEAN)}
    lie(table, "native_safe", value=False)
    assert reasons() == {("source", Reason.CONDITION)}
    assert ids(table.to_spark(spark, where=where)) == [0, 1, 2, 3, 4, 5]
