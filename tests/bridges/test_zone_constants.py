"""Constants of instants in a session's zone become instants, and translate exactly."""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.session import Session
from rowsieve.bridges.translation import Exactness

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC"))])
CONSTANTS = [
    *(("postgres", text) for text in ("TIMESTAMPTZ '{0}'", "CAST('{0}' AS timestamptz)", "'{0}'")),
    *(("duckdb", text) for text in ("TIMESTAMPTZ '{0}'", "CAST('{0}' AS timestamptz)", "'{0}'")),
    *(("spark", text) for text in ("TIMESTAMP '{0}'", "CAST('{0}' AS TIMESTAMP)", "'{0}'")),
]
ZONES = ("America/New_York", "Europe/Berlin", "Asia/Kolkata", "UTC")
TARGETS = ("postgres", "duckdb", "datafusion", "polars", "spark")


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("source", "constant"), CONSTANTS)
def test_a_constant_of_the_session_is_an_instant_everywhere(
    source: str, constant: str, zone: str
) -> None:
    condition = f"ts >= {constant.format('2026-07-01')}"
    instant = datetime.datetime(2026, 7, 1, tzinfo=ZoneInfo(zone)).astimezone(datetime.UTC)
    second = datetime.timedelta(seconds=1)
    rows = pa.table({"ts": [instant - second, instant, instant + second]}, schema=SCHEMA)
    session = Session(time_zone=zone)
    for target in TARGETS:
        made = rs.translate(condition, source, target=target, schema=SCHEMA, session=session)
        assert made.exactness is Exactness.EXACT, (target, made.notes)
        if target == "duckdb":
            with duckdb.connect() as connection:
                connection.register("t", rows)
                asked = f"SELECT count(*) FROM t WHERE {made.expression}"
                assert connection.sql(asked).fetchall() == [(2,)]


@pytest.mark.parametrize("text", ["today", "2026-13-01", "noon"])
def test_other_texts_stay_casts(text: str) -> None:
    made = rs.translate(
        f"ts >= CAST('{text}' AS timestamptz)", "postgres", target="duckdb", schema=SCHEMA
    )
    assert made.exactness is not Exactness.EXACT
