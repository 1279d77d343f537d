"""Conditions with `now()` in a plan that runs later: what they keep then is kept now."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_predicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.later_now import from_now_on
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.profiles import examples

SCHEMA, _ = schema_of(
    pa.schema([("ts", pa.timestamp("us", "UTC")), ("d", pa.date32()), ("k", pa.int64())])
)
CONDITIONS = (
    *("ts > now() - interval '30 days'", "ts >= now() - interval '1 month'", "ts = now()"),
    *("now() - interval '1 hour' < ts", "NOT (ts < now())", "NOT (now() > ts)", "ts < now()"),
    *("d >= CAST(now() AS date)", "ts BETWEEN now() - interval '2 days' AND now()", "ts <> now()"),
    *("ts > now() - interval '1 day' OR k = 5", "k = 5 AND ts > now()", "NOT (ts <= now())"),
    *("date_trunc('day', ts) >= date_trunc('month', now())", "ts IS DISTINCT FROM now()"),
    *("now() > ts", "NOT (ts > now() AND k = 5)", "ts > now() - interval '1 month 3 days 2 hours'"),
)
PRUNE = ("ts > now() - interval '30 days'", "NOT (ts < now())", "now() - interval '1 hour' < ts")
ZONES = ("UTC", "America/New_York", "Pacific/Apia", "Australia/Lord_Howe")
DAY_US = 86_400_000_000
AROUND = int(datetime.datetime(2011, 12, 30, tzinfo=datetime.UTC).timestamp()) * 1_000_000


def _kept(found: ir.Predicate, semantics: Semantics, now_us: int | None, ts: int) -> bool:
    bound = bind(found, SCHEMA, semantics, now_us=now_us)
    moment = pa.array([ts]).view(pa.timestamp("us", "UTC"))
    days = pa.array([ts // DAY_US], pa.int32()).view(pa.date32())
    rows = pa.record_batch({"ts": moment, "d": days, "k": pa.array([5])})
    return bool(evaluate(bound, rows).true[0])


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("text", CONDITIONS)
def test_what_is_kept_at_a_later_time_is_kept(text: str, zone: str) -> None:
    semantics = Semantics.of_spark(ansi=True, time_zone=zone)
    read = parse_predicate(text)

    @examples(240)
    @given(
        start=st.integers(-400 * DAY_US, 400 * DAY_US).map(AROUND.__add__),
        later=st.sampled_from([0, 1, 1_800_000_000, 3_600_000_000, DAY_US, 40 * DAY_US]),
        moved=st.integers(-45 * DAY_US, 45 * DAY_US),
    )
    def holds(start: int, later: int, moved: int) -> None:
        found = from_now_on(read, semantics, start)
        assert not any(isinstance(node, ir.Now) for node in ir.walk(found))
        ts = start + later + moved
        if _kept(read, semantics, start + later, ts):
            assert _kept(found, semantics, None, ts)

    holds()


@pytest.mark.parametrize("text", PRUNE)
def test_a_lower_bound_of_now_is_one_of_the_time_of_planning(text: str) -> None:
    found = from_now_on(parse_predicate(text), Semantics.DATAFUSION, AROUND)
    assert not _kept(found, Semantics.DATAFUSION, None, AROUND - 32 * DAY_US)
    assert _kept(found, Semantics.DATAFUSION, None, AROUND)
