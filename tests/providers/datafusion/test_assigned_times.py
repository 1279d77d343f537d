"""The current time in values that a statement assigns: one instant, in the column's type."""

from __future__ import annotations

import datetime
import itertools
import zoneinfo
from collections.abc import Iterator

import datafusion
import pyarrow as pa
import pytest

from rowsieve import Table, clock
from rowsieve.errors import InvalidInput, SchemaMismatch
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.changes.statement_time import StatementTime
from rowsieve.providers.datafusion.session_settings import TIME_ZONE
from rowsieve.types.logical import Date, LogicalType, Timestamp
from tests.small_tables import keyed

NOW = datetime.datetime(2026, 7, 15, 3, 30, 0, 123456, tzinfo=datetime.UTC)
NOW_US = int(NOW.timestamp()) * 1_000_000 + NOW.microsecond
SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
    ]
)
ZONES = [None, "America/New_York", "Pacific/Kiritimati", "+05:30"]
NEW_ROW = [
    "INSERT INTO t VALUES (1, now(), now(), now())",
    (
        "INSERT INTO t (day, local, at, k) VALUES (current_date, CURRENT_TIMESTAMP, now(), 1), "
        "(NULL, NULL, NULL, 2)"
    ),
    "INSERT INTO t VALUES (1, localtimestamp, localtimestamp, localtimestamp)",
    "INSERT INTO t SELECT 1, now() AS x, current_timestamp() y, today() LIMIT 1",
    "INSERT INTO t SELECT DISTINCT 1, now(), now(), now() FROM t",
    "INSERT INTO t BY NAME SELECT today() AS day, now() AS local, now() AS at, 1 AS k",
    "INSERT INTO t WITH s AS (SELECT 1 AS k) SELECT k, now(), now(), now() FROM s",
    "INSERT OR REPLACE INTO t VALUES (1, now(), now(), current_date())",
    (
        "INSERT INTO t (k, at, local, day) VALUES (1, now() - INTERVAL '0 hours', "
        "now() + INTERVAL '0' DAY, now() - interval '0 days')"
    ),
    (
        "MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT "
        "(k, at, local, day) VALUES (1, now(), now(), now())"
    ),
    (
        "MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.k WHEN NOT MATCHED THEN INSERT "
        "VALUES (1, now(), now(), now())"
    ),
]
CHANGED_ROW = [
    "UPDATE t SET at = now(), (local, day) = (now(), now()) WHERE k = 1 AND now() > '2020-01-01'",
    "UPDATE t SET at = coalesce(at, now()), local = localtimestamp, day = CURRENT_DATE",
    "UPDATE t SET at = now(), local = now(), day = now() FROM (SELECT 1 AS k) s WHERE s.k = t.k",
    (
        "MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE "
        "SET at = now(), local = now(), day = now()"
    ),
    (
        "INSERT INTO t (k, at) VALUES (1, now()) ON CONFLICT (k) DO UPDATE SET "
        "at = excluded.at, local = now(), day = now()"
    ),
]


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock go on by a second with each look."""
    looks: Iterator[int] = itertools.count(NOW_US, 1_000_000)
    monkeypatch.setattr(clock, "now_us", lambda: next(looks))


def _session(table: Table, zone: str | None) -> SessionContext:
    config = datafusion.SessionConfig()
    if zone is not None:
        config = config.set(TIME_ZONE, zone)
    session = SessionContext(config)
    session.register_table("t", table)
    return session


def _local(at: datetime.datetime, zone: str | None) -> datetime.datetime:
    if zone == "+05:30":
        return at.replace(tzinfo=None) + datetime.timedelta(hours=5, minutes=30)
    return at.astimezone(zoneinfo.ZoneInfo(zone or "UTC")).replace(tzinfo=None)


def _check_times(table: Table, zone: str | None) -> None:
    """Compare the row with k = 1: its times are one instant near NOW, to the microsecond."""
    (row,) = table.scan("k = 1").to_arrow().to_pylist()
    at = row["at"]
    assert NOW <= at < NOW + datetime.timedelta(minutes=1)
    assert at.microsecond == NOW.microsecond
    assert row["local"] == _local(at, zone)
    assert row["day"] == _local(at, zone).date()


@pytest.mark.parametrize("statement", NEW_ROW)
@pytest.mark.parametrize("zone", ZONES)
def test_an_inserted_call_is_the_time_of_its_column(zone: str | None, statement: str) -> None:
    table = keyed({"k": [5], "at": [None], "local": [None], "day": [None]}, schema=SCHEMA)
    _session(table, zone).sql(statement)
    table.refresh()
    _check_times(table, zone)


@pytest.mark.parametrize("statement", CHANGED_ROW)
@pytest.mark.parametrize("zone", ZONES)
def test_an_assigned_call_is_the_time_of_its_column(zone: str | None, statement: str) -> None:
    table = keyed({"k": [1], "at": [None], "local": [None], "day": [None]}, schema=SCHEMA)
    _session(table, zone).sql(statement)
    table.refresh()
    _check_times(table, zone)


def test_all_queries_of_a_statement_have_one_time() -> None:
    table = keyed({"k": [1], "at": [None], "local": [None], "day": [None]}, schema=SCHEMA)
    merge = (
        "MERGE INTO t USING (SELECT k, now() AS x FROM (VALUES (1), (2)) AS v(k)) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET at = now(), local = to_local_time(s.x) "
        "WHEN NOT MATCHED THEN INSERT (k, at, local) VALUES (s.k, now(), now())"
    )
    session = _session(table, "UTC")
    session.sql(merge)
    table.refresh()
    first, second = table.scan().to_arrow().sort_by("k").to_pylist()
    assert {first["at"], second["at"]} == {first["local"].replace(tzinfo=datetime.UTC)}
    returned = session.sql("UPDATE t SET at = now() WHERE k = 1 RETURNING at = now() AS same")
    assert returned.to_pydict() == {"same": [True]}


def test_local_times_beside_a_call_are_of_the_zone() -> None:
    table = keyed(schema=SCHEMA)
    _session(table, "America/New_York").sql(
        "INSERT INTO t (k, at) VALUES (1, now()), (2, TIMESTAMP '2026-01-01 00:00:00')"
    )
    table.refresh()
    (at,) = table.scan("k = 2").to_arrow()["at"].to_pylist()
    assert at == datetime.datetime(2026, 1, 1, 5, tzinfo=datetime.UTC)


def test_an_interval_is_of_the_zone() -> None:
    table = keyed(schema=SCHEMA)
    first_of_summer_time = datetime.datetime(2026, 3, 8, 16, tzinfo=datetime.UTC)
    time = StatementTime(int(first_of_summer_time.timestamp()) * 1_000_000, "America/New_York")
    literal = time.literals["NOW"]
    session = _session(table, "America/New_York")
    types: list[LogicalType] = [Timestamp(utc=True), Timestamp(), Date()]
    for number, type_ in enumerate(types):
        day_before = time.assigned(f"{literal} - INTERVAL '1 day'", type_)
        session.sql(
            f"INSERT INTO t (k, {SCHEMA.names[number + 1]}) VALUES ({number}, {day_before})"
        )
    table.refresh()
    at, local, day = table.scan().to_arrow().sort_by("k").to_pylist()
    assert at["at"] == datetime.datetime(2026, 3, 7, 17, tzinfo=datetime.UTC)  # noon in both
    assert local["local"] == datetime.datetime(2026, 3, 7, 12)
    assert day["day"] == datetime.date(2026, 3, 7)


def test_names_and_texts_are_not_calls() -> None:
    schema = pa.schema(
        [
            pa.field("k", pa.int64(), nullable=False),
            ("current_date", pa.string()),
            ("now", pa.string()),
        ]
    )
    table = keyed({"k": [1], "current_date": ["d"], "now": ["n"]}, schema=schema)
    session = _session(table, None)
    session.sql("INSERT INTO t (k, current_date, now) VALUES (2, 'now()', 'current_date')")
    session.sql("UPDATE t SET now = t.current_date || ' /* now() */ ' || \"now\" WHERE k = 1")
    table.refresh()
    assert table.scan().to_arrow().sort_by("k").select(["current_date", "now"]).to_pylist() == [
        {"current_date": "d", "now": "d /* now() */ n"},
        {"current_date": "now()", "now": "current_date"},
    ]


def test_other_times_are_converted_by_request_alone() -> None:
    table = keyed({"k": [1], "at": [None], "local": [None], "day": [None]}, schema=SCHEMA)
    session = _session(table, "America/New_York")
    with pytest.raises(SchemaMismatch, match="to_local_time"):
        session.sql("UPDATE t SET local = date_trunc('day', now())")
    session.sql("UPDATE t SET local = to_local_time(date_trunc('day', now()))")
    with pytest.raises(SchemaMismatch, match="give the zone"):
        session.sql("UPDATE t SET at = local")
    table.refresh()
    assert table.scan().to_arrow()["local"].to_pylist() == [datetime.datetime(2026, 7, 14)]


def test_a_zone_that_does_not_exist_is_refused() -> None:
    table = keyed(schema=SCHEMA)
    with pytest.raises(InvalidInput, match="time zone is 'Mars/Base'"):
        _session(table, "Mars/Base").sql("INSERT INTO t (k, at) VALUES (1, now())")
