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


def test_without_the_rule_spark_loses_them_and_the_source_reads_all(
    spark: Any, table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = spark.newSession()
    with monkeypatch.context() as patch:
        patch.setattr(hybrid, "hides_shifted_bounds", lambda _: True)
        assert ids(read(fresh, table.uri).filter("day = DATE'1582-10-10'")) == []
    monkeypatch.setattr(old_times_rule, "_TEXT", "not Java")
    monkeypatch.setattr(old_times_rule, "_NAME", "Unknown")
    assert {part.route for part in explain(fresh, table.uri).parts} == {"source"}
    assert ids(read(fresh, table.uri).filter("day = DATE'1582-10-10'")) == [2, 3]


def test_other_bounds_and_scans_of_newer_times_are_left_to_spark(
    spark: Any, tmp_path: Path
) -> None:
    newer = rs.create_table(
        str(tmp_path / "t"), COLUMNS.remove(4), key=["id"], properties={"inline_bytes": 0}
    )
    days = [dt.datetime(1900, 1, 3), dt.datetime(2024, 1, 1), None]
    newer.upsert(rows_of(days).drop_columns("box"))
    condition = "at >= TIMESTAMP'1582-10-10 00:00:00' AND at < TIMESTAMP'2000-01-01 00:00:00'"
    frame = read(spark, newer.uri).filter(condition)
    assert ids(frame) == [0]
    assert "knownnullable" not in plan_of(frame)
    newer.upsert(OLD.slice(3, 1).drop_columns("box"))
    frame = read(spark, newer.uri).filter(condition)
    assert ids(frame) == [0, 3]
    hidden, plain = plan_of(frame).count("knownnullable"), plan_of(frame).count("2000-01-01")
    assert (hidden, plain) == (1, 1)


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().optimizedPlan())
