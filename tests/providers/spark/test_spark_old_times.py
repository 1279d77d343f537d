"""Spark's reader skips no rows of days that the calendar of Java's older dates does not have."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.providers.spark import explain, prune, read, sql
from rowsieve.providers.spark.jvm import old_times_rule
from rowsieve.providers.spark.reads import hybrid
from tests.providers.spark.test_spark_count_queries import numbers_rows

pytestmark = pytest.mark.spark

INSTANTS = pa.timestamp("us", tz="UTC")
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("at", INSTANTS),
        ("local", pa.timestamp("us")),
        ("box", pa.struct([("at", INSTANTS)])),
    ]
)
CONDITIONS = (
    "day = DATE'1582-10-10'",
    "day >= DATE'1582-10-11'",
    "day <=> DATE'1582-10-10'",
    "day IN (DATE'1582-10-10', DATE'2000-01-01')",
    "day IN (" + ", ".join(f"DATE'1582-10-{day:02}'" for day in range(5, 13)) + ", NULL, "
    "DATE'2000-01-01', DATE'2000-01-02', DATE'2000-01-03')",
    "at = TIMESTAMP'1582-10-10 00:00:00'",
    "at >= TIMESTAMP'1582-10-10 00:00:01' AND id < 9",
    "CAST(at AS DATE) = DATE'1582-10-10'",
    "NOT (at < TIMESTAMP'1582-10-10 00:00:01' OR id > 90)",
    "box.at = TIMESTAMP'1582-10-10 00:00:00'",
    "local >= TIMESTAMP_NTZ'1582-10-11 00:00:00'",
    "at >= (SELECT TIMESTAMP'1582-10-10 00:00:00' + INTERVAL '0' SECOND * count(*) FROM one)",
    "day >= (SELECT max(day) FROM one)",
)


def rows_of(days: list[dt.datetime | None]) -> pa.Table:
    columns = {
        "id": range(len(days)),
        "day": [None if day is None else day.date() for day in days],
        "at": days,
        "local": days,
        "box": [{"at": day} for day in days],
    }
    return pa.table(
        [pa.array(columns[field.name], field.type) for field in COLUMNS], schema=COLUMNS
    )


OLD = rows_of([dt.datetime(1582, 10, day) for day in (5, 8, 10, 10, 11, 12)])


@pytest.fixture(params=["native", "bitmap"])
def table(tmp_path: Path, spark: Any, request: pytest.FixtureRequest) -> Iterator[rs.Table]:
    """Days that Java's older calendar does not have; also the view `one` of 11 October."""
    made = rs.create_table(str(tmp_path / "t"), COLUMNS, key=["id"], properties={"inline_bytes": 0})
    made.upsert(OLD)
    if request.param == "bitmap":
        made.delete("id = 0")
    (part,) = explain(spark, made.uri).parts
    assert part.route == request.param
    spark.sql("SELECT DATE'1582-10-11' AS day").createOrReplaceTempView("one")
    yield made
    spark.catalog.dropTempView("one")


def ids(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.collect())


def test_no_row_is_lost_by_a_bound_that_java_shifts(spark: Any, table: rs.Table) -> None:
    view = read(spark, table.uri)
    view.createOrReplaceTempView("old")
    source = read(spark, table.uri, routes=["source"])
    for condition in CONDITIONS:
        expected = ids(source.filter(condition))
        assert expected, condition
        assert ids(view.filter(condition)) == expected, condition
        assert ids(sql(spark, f"SELECT * FROM old WHERE {condition}")) == expected, condition
        assert ids(prune(view.filter(condition))) == expected, condition
        if "SELECT" not in condition:
            assert ids(table.to_spark(spark, where=condition)) == expected, condition
    assert not numbers_rows(spark.sql("SELECT count(*) FROM old"))  # both rules are there
    spark.catalog.dropTempView("old")


def test_without_the_rule_and_in_other_sessions_none_is_lost(
    spark: Any, table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    condition = "day = DATE'1582-10-10' AND at < TIMESTAMP'2000-01-01 00:00:00'"
    with monkeypatch.context() as patch:
        patch.setattr(hybrid, "columns_of_old_times", lambda *_: frozenset())
        assert ids(read(spark.newSession(), table.uri).filter(condition)) == []  # Spark's fault
    read(spark, table.uri).createOrReplaceGlobalTempView("old")
    other = spark.newSession()
    assert ids(other.table("global_temp.old").filter(condition)) == [2, 3]
    spark.catalog.dropGlobalTempView("old")
    monkeypatch.setattr(old_times_rule, "_TEXT", "not Java")
    monkeypatch.setattr(old_times_rule, "_NAME", "Unknown")
    assert ids(read(other, table.uri).filter(condition)) == [2, 3]


def test_other_bounds_and_scans_of_newer_times_are_pushed(spark: Any, tmp_path: Path) -> None:
    newer = rs.create_table(
        str(tmp_path / "t"), COLUMNS, key=["id"], properties={"inline_bytes": 0}
    )
    newer.upsert(rows_of([dt.datetime(1900, 1, 3), dt.datetime(2024, 1, 1), None]))
    condition = (
        "at >= TIMESTAMP'1582-10-10 00:00:00' AND at < TIMESTAMP'2000-01-01 00:00:00' "
        "AND box.at < TIMESTAMP'2001-01-01 00:00:00' AND day IN (DATE'1900-01-03', "
        "DATE'1582-10-10') AND (day < DATE'2002-01-01' OR id = 7)"
    )
    frame = read(spark, newer.uri).filter(condition)
    assert ids(frame) == [0]
    assert pushed(frame) == {"GreaterThanOrEqual(at", "1900-", "2000-", "2001-", "2002-"}
    newer.upsert(OLD.slice(3, 1))
    frame = read(spark, newer.uri).filter(condition)
    assert ids(frame) == [0, 3]
    assert pushed(frame) == {"2000-", "2001-", "2002-"}


def pushed(frame: Any) -> set[str]:
    """The bounds that Spark's reader gets."""
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    scans = [leaves.apply(place) for place in range(leaves.length())]
    filters = "".join(str(scan.metadata().apply("PushedFilters")) for scan in scans)
    known = ("GreaterThanOrEqual(at", "1900-", "2000-", "2001-", "2002-")
    return {each for each in known if each in filters}
