"""`age`: the intervals of PostgreSQL and DuckDB, bit for bit, and conditions over a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.functions.registry import FUNCTIONS
from rowsieve.predicate.functions.row import Argument
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.days import DAY_US
from rowsieve.types.interval_bytes import decoded
from rowsieve.types.logical import Timestamp
from tests.bridges.sql.postgres import connection
from tests.duckdb_sessions import duckdb_session
from tests.profiles import IS_DEEP

COUNT = 200_000 if IS_DEEP else 5_000
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_000_000  # the years 1 to 9999
_EDGES = (
    *("2024-01-15 00:00", "2024-02-14 23:00", "2024-02-15 00:00", "2026-01-31 00:00"),
    *("2026-03-01 00:00", "2024-02-29 12:00", "2025-02-28 12:00", "2025-03-30 02:30"),
    *("0001-01-01 00:00", "9999-12-31 23:59", "1969-12-31 23:59", "1970-01-01 00:00"),
)
_PARTS = """
    SELECT id, extract(year FROM x) * 12 + extract(month FROM x), extract(day FROM x),
        extract(hour FROM x) * 3600000000 + extract(minute FROM x) * 60000000
        + extract(microseconds FROM x)
    FROM (SELECT id, age(a, b) AS x FROM times) AS ages ORDER BY id"""


def times() -> pa.Table:
    """Pairs of edges, of near and of far times; half of them at midnight."""
    draws = np.random.default_rng(20)
    edges = np.array(_EDGES, "datetime64[us]").astype(np.int64)
    left = draws.integers(_FIRST, _LAST, COUNT)
    right = np.where(
        draws.random(COUNT) < 0.7,
        np.clip(left + draws.integers(-(10**14), 10**14, COUNT), _FIRST, _LAST),
        draws.integers(_FIRST, _LAST, COUNT),
    )
    whole = draws.random(COUNT) < 0.5
    pairs = [np.where(whole, each // DAY_US * DAY_US, each) for each in (left, right)]
    a = np.concatenate([np.repeat(edges, len(edges)), pairs[0]])
    b = np.concatenate([np.tile(edges, len(edges)), pairs[1]])
    columns = {"a": pa.array(a, pa.timestamp("us")), "b": pa.array(b, pa.timestamp("us"))}
    return pa.table({"id": range(len(a)), **columns})


def ages(rows: pa.Table) -> list[tuple[int, int, int]]:
    row = FUNCTIONS["age"]
    signature = row.resolve([Argument(Timestamp())] * 2)
    assert signature is not None
    columns = [rows[name].combine_chunks() for name in "ab"]
    values = row.evaluate(columns, signature, Semantics.POSTGRES).values
    return [decoded(value) for value in values.to_pylist()]


def test_ages_are_those_of_duckdb() -> None:
    session = duckdb_session()
    session.register("times", times())
    theirs = [tuple(map(int, row[1:])) for row in session.execute(_PARTS).fetchall()]
    assert ages(times()) == theirs


def test_ages_are_those_of_postgres() -> None:
    rows = times().slice(0, 2_000)
    with connection().cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS times")
        cursor.execute("CREATE TEMPORARY TABLE times (id bigint, a timestamp, b timestamp)")
        values = [tuple(row.values()) for row in rows.to_pylist()]
        cursor.executemany("INSERT INTO times VALUES (%s, %s, %s)", values)
        cursor.execute(_PARTS)
        theirs = [tuple(map(int, row[1:])) for row in cursor.fetchall()]
    assert ages(rows) == theirs


@pytest.mark.parametrize("dialect", ["postgres", "duckdb"])
@pytest.mark.parametrize(
    "condition",
    [
        "age(a, b) > INTERVAL '1 month'",
        "age(a, b) <= INTERVAL '30 days'",
        "age(a, TIMESTAMP '2026-01-31 00:00:00') BETWEEN INTERVAL '1 day' AND INTERVAL '900 years'",
        "age(TIMESTAMP '2024-02-14 23:00:00', b) = INTERVAL '30 days 23 hours'",
        "age(a, b) IS NULL OR NOT age(b, a) < INTERVAL '2 years 1 day'",
    ],
)
def test_conditions_find_the_rows_of_duckdb(condition: str, dialect: Any, tmp_path: Path) -> None:
    rows = times()
    table = rs.create_table(tmp_path / "t", rows.sort_by("a").slice(0, 10), key=["id"])
    for start in range(10, len(rows), 800):
        table.upsert(rows.sort_by("a").slice(start, 800))
    session = duckdb_session()
    session.register("times", rows)
    theirs = {
        each for (each,) in session.execute(f"SELECT id FROM times WHERE {condition}").fetchall()
    }
    assert {*table.scan(condition, dialect=dialect).to_arrow()["id"].to_pylist()} == theirs


def test_parts_that_are_too_old_are_not_read(tmp_path: Path) -> None:
    rows = times().sort_by("a")
    table = rs.create_table(tmp_path / "t", rows.slice(0, 10), key=["id"])
    for start in range(10, len(rows), 800):
        table.upsert(rows.slice(start, 800))
    plan = table.scan("age(TIMESTAMP '2026-01-31 00:00:00', a) < INTERVAL '100 years'").explain()
    assert 0 < plan.parts_read < plan.parts_considered


def test_instants_are_on_the_clock_of_the_session(tmp_path: Path) -> None:
    zone = "America/New_York"
    moments = np.array(
        ["2025-03-09T06:30", "2025-11-02T05:30", "2025-04-09T04:00"], "datetime64[us]"
    )
    rows = pa.table({"id": [0, 1, 2], "moment": pa.array(moments, pa.timestamp("us", "UTC"))})
    table = rs.create_table(tmp_path / "t", rows, key=["id"])
    session = duckdb_session()
    session.execute(f"SET TimeZone = '{zone}'")
    session.register("moments", rows)
    for text in ("1 month", "2 months", "-6 months", "3 days 23 hours"):
        condition = f"age(moment, TIMESTAMPTZ '2025-02-09 05:00:00Z') > INTERVAL '{text}'"
        theirs = session.execute(f"SELECT id FROM moments WHERE {condition} ORDER BY id").fetchall()
        ours = table.scan(condition, session=rs.Session(time_zone=zone)).to_arrow()
        assert sorted(ours["id"].to_pylist()) == [each for (each,) in theirs]


def test_what_has_no_age_is_named(tmp_path: Path) -> None:
    rows = pa.table(
        {"id": [1], "a": pa.array([0], pa.timestamp("us")), "d": pa.array([0], pa.date32())}
    )
    table = rs.create_table(tmp_path / "t", rows, key=["id"])
    with pytest.raises(InvalidPredicate, match=r"write age\(later, earlier\)"):
        table.scan("age(a) > INTERVAL '1 day'")
    with pytest.raises(InvalidPredicate, match=r"age\(date, timestamp\) has no meaning"):
        table.scan("age(d, a) > INTERVAL '1 day'")
