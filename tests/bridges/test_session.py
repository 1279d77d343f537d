"""`session=`: text means what it means in a session of its engine, in reads and in changes."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
from rowsieve.bridges.session import in_session
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import EvaluationError, InvalidInput, RowsieveError, UnsupportedOperation
from rowsieve.predicate.codec import semantics_from_json, semantics_to_json
from rowsieve.predicate.semantics import Semantics
from tests.bridges.sql import postgres
from tests.duckdb_sessions import duckdb_session
from tests.zones import EDGES

ZONES = ("America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
CONDITIONS = (
    "tz >= '2024-03-10 02:30:00'",
    "tz < TIMESTAMPTZ '2024-10-06 02:15:00' AND tz > TIMESTAMPTZ '2018-11-04 00:00:00'",
    "CAST(tz AS DATE) = DATE '2024-03-10'",
    "CAST(tz AS DATE) IN (DATE '2011-12-30', DATE '2018-11-03')",
    "EXTRACT(HOUR FROM tz) IN (1, 2, 23)",
    "tz = ts",
    "tz BETWEEN DATE '2019-02-16' AND DATE '2024-03-10'",
    "date_trunc('day', tz) = TIMESTAMPTZ '2024-03-10 00:00:00'",
    "tz + INTERVAL '1' DAY > TIMESTAMPTZ '2024-03-11 02:30:00'",
    "tz - ts < INTERVAL '270 minutes'",
    "ts - tz > INTERVAL '-600 minutes' AND tz - TIMESTAMP '2018-11-04 00:00:00' > INTERVAL '1' DAY",
)
ROWS = pa.table(
    {
        "k": pa.array(range(len(EDGES)), pa.int64()),
        "tz": pa.array(EDGES).cast(pa.timestamp("us")).view(pa.int64()).cast(
            pa.timestamp("us", "UTC")
        ),
        "ts": pa.array(EDGES).cast(pa.timestamp("us")),
        "n": pa.array([2**31 - 1 - row for row in range(len(EDGES))], pa.int32()),
        "day": pa.nulls(len(EDGES), pa.date32()),
    }
)  # fmt: skip


def made() -> rs.Table:
    """The rows in parts of six, sorted by time: statistics can prune most of them."""
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", ROWS.schema, key=["k"])
    for start in range(0, ROWS.num_rows, 6):
        table.upsert(ROWS.slice(start, 6))
    return table


def keys(scan: rs.Scan) -> list[int]:
    return sorted(scan.to_arrow()["k"].to_pylist())


def in_duckdb(text: str, zone: str) -> list[int]:
    connection = duckdb_session()
    connection.execute(f"SET TimeZone = '{zone}'")
    connection.register("t", ROWS)
    return sorted(row for (row,) in connection.execute(f"SELECT k FROM t WHERE {text}").fetchall())


def in_postgres(text: str, zone: str) -> list[int]:
    connection = postgres.hold(ROWS)
    try:
        connection.execute(f"SET TimeZone = '{zone}'")
        query = f'SELECT "{postgres.ROW}" FROM t WHERE {text}'
        return sorted(row for (row,) in connection.execute(query).fetchall())
    finally:
        connection.execute("SET TimeZone = 'UTC'")


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("dialect", "judge"), [("duckdb", in_duckdb), ("postgres", in_postgres)])
def test_text_selects_the_rows_of_the_engine_in_that_session(
    dialect: str, judge: Callable[[str, str], list[int]], zone: str
) -> None:
    table, session = made(), rs.Session(time_zone=zone)
    differs = 0
    for text in CONDITIONS:
        expected = judge(text, zone)
        scan = table.scan(text, dialect=dialect, session=session)
        assert (text, keys(scan)) == (text, expected)
        split = (rs.read_split(each).read_all() for each in scan.plan().splits_to_bytes())
        assert (text, sorted(key for each in split for key in each["k"].to_pylist())) == (
            text,
            expected,
        )
        whole = table.scan(text, dialect=dialect, session=session, pruning="off")
        assert (text, keys(whole)) == (text, expected)
        assert table.count(text, dialect=dialect, session=session) == len(expected)
        differs += keys(table.scan(text, dialect=dialect)) != expected
    assert differs >= 3  # the zone matters


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
def test_truncated_instants_are_translated_within_one_zone(unit: str, zone: str) -> None:
    judges = {"duckdb": in_duckdb, "postgres": in_postgres}
    session = rs.Session(time_zone=zone)
    table, schema = made(), ROWS.select(["tz"]).schema
    for source, constant in (*((name, "TIMESTAMPTZ") for name in judges), ("spark", "TIMESTAMP")):
        for text in (
            f"date_trunc('{unit}', tz) = {constant} '2024-03-01 00:00:00'",
            f"date_trunc('{unit}', tz) < {constant} '2018-11-04 00:00:00'",
        ):
            expected = keys(table.scan(text, dialect=source, session=session))
            for target in ("duckdb", "postgres", "spark"):
                written = rs.translate(
                    text, source, target=target, schema=schema,
                    session=session, target_session=session,
                )  # fmt: skip
                assert written.exactness is Exactness.EXACT
                again = str(written.expression)
                if target in judges:
                    assert judges[target](again, zone) == expected
                    assert judges[target](again, "Asia/Kathmandu") == expected
                else:
                    assert keys(table.scan(again, dialect="spark", session=session)) == expected


def test_truncated_instants_of_a_zone_with_skipped_midnights_are_not_translated() -> None:
    session = rs.Session(time_zone="Africa/Cairo")
    written = rs.translate(
        "date_trunc('DAY', tz) = TIMESTAMP '2024-03-10 00:00:00'", "spark", target="postgres",
        schema=ROWS.select(["tz"]).schema, session=session, target_session=session,
    )  # fmt: skip
    assert written.exactness is Exactness.UNSUPPORTED


def test_changes_use_the_session() -> None:
    zone = rs.Session(time_zone="America/New_York")
    text = "EXTRACT(HOUR FROM tz) = 22"
    expected = in_postgres(text, zone.time_zone)
    assert expected
    assert expected != in_postgres(text, "UTC")
    table = made()
    table.update({"day": "CAST(tz AS DATE)"}, where="tz = '2024-03-09 21:30:00'", session=zone)
    (changed,) = pa.table(table.scan("day IS NOT NULL")).to_pylist()
    assert (changed["ts"], changed["day"]) == (datetime(2024, 3, 10, 2, 30), date(2024, 3, 9))
    table.delete(text, session=zone)
    assert keys(table.scan()) == sorted(set(range(len(EDGES))) - set(expected))
    computed = pa.table(table.scan(columns={"h": "EXTRACT(HOUR FROM tz)"}, session=zone))
    assert 22 not in computed["h"].to_pylist()
    data = table.to_arrow("k = 0")
    with pytest.raises(RowsieveError, match="not match"):
        table.overwrite(data, where=text, session=zone)


def test_plans_of_two_sessions_are_two_plans() -> None:
    table = made()
    text = "EXTRACT(HOUR FROM tz) < 9"
    found = {
        zone: keys(table.scan(text, session=rs.Session(time_zone=zone))) for zone in ("UTC", *ZONES)
    }
    assert len({tuple(rows) for rows in found.values()}) == len(found)


def test_the_ansi_mode_of_spark_text_is_the_sessions() -> None:
    table, text = made(), "n + 1 < 0"
    wraps = rs.Session(ansi=False)
    assert keys(table.scan(text, dialect="spark", session=wraps)) == [0]
    for session in (None, rs.Session(), rs.Session(ansi=True)):
        with pytest.raises(EvaluationError):
            keys(table.scan(text, dialect="spark", session=session))
    with pytest.raises(EvaluationError):  # what is stored never wraps
        table.update({"n": "n + 1"}, where="k = 0", dialect="spark", session=wraps)
    table.update({"n": str(-(2**31))}, where="k = 0", dialect="spark", session=wraps)
    # Where negating wraps, the least value is its own absolute one.
    assert keys(table.scan("abs(n) < 0", dialect="spark", session=wraps)) == [0]
    computed = table.scan("k = 1", {"n": "n + 9"}, dialect="spark", session=wraps)
    assert pa.table(computed)["n"].to_pylist() == [-(2**31) + 7]


def test_a_session_travels_with_a_plan() -> None:
    for semantics in (Semantics.POSTGRES, Semantics.DUCKDB, Semantics.SPARK, Semantics.SQL):
        meant = in_session(semantics, rs.Session(time_zone="Asia/Kathmandu"))
        assert meant.time_zone == "Asia/Kathmandu"
        assert semantics_from_json(semantics_to_json(meant)) == meant


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"time_zone": "Europe/Atlantis"}, "Europe/Atlantis"),
        ({"time_zone": "EST"}, "EST"),
        ({"time_zone": None}, "not NoneType"),
        ({"time_zone": "\ud800"}, "Session"),
        ({"ansi": "true"}, "True, False or None"),
        ({"ansi": 1}, "True, False or None"),
    ],
)
def test_a_wrong_setting_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        rs.Session(**arguments)


@pytest.mark.parametrize(
    ("dialect", "session", "error", "message"),
    [
        ("postgres", rs.Session(ansi=False), InvalidInput, "a setting of Spark's"),
        ("duckdb", rs.Session(ansi=True), InvalidInput, "a setting of Spark's"),
        ("postgres", rs.Session("+05:30"), UnsupportedOperation, "west of Greenwich"),
        ("duckdb", rs.Session("Asia/Gaza"), UnsupportedOperation, "after 2037"),
        ("datafusion", rs.Session("Asia/Kathmandu"), UnsupportedOperation, "to_local_time"),
        ("trino", rs.Session("Asia/Kathmandu"), UnsupportedOperation, "not followed for trino"),
        ("spark", "Asia/Kathmandu", InvalidInput, "session is .*Session"),
    ],
)
def test_a_setting_that_a_dialect_does_not_follow_is_refused(
    dialect: str, session: Any, error: type[Exception], message: str
) -> None:
    table = made()
    for call in (table.scan, table.delete, table.count):
        with pytest.raises(error, match=message):
            call("n = 1", dialect=dialect, session=session)
    with pytest.raises(error, match=message):
        table.update({"n": "n"}, where="n = 1", dialect=dialect, session=session)


def test_a_session_of_an_engine_without_one_is_refused() -> None:
    with pytest.raises(UnsupportedOperation, match="name their zones themselves"):
        made().scan(pc.field("n") == 1, session=rs.Session("Asia/Kathmandu"))
    assert keys(made().scan(pc.field("k") == 1, session=rs.Session())) == [1]
