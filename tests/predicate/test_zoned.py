"""What a session's zone decides, against `zoneinfo` row by row, and what pruning makes of it."""

from __future__ import annotations

import datetime
import itertools
import random
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_expression, parse_predicate
from rowsieve.errors import InvalidPredicate
from rowsieve.executor.execute import Execution
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.binding.zoned import zoned_call
from rowsieve.predicate.evaluate import compute, evaluate
from rowsieve.predicate.functions.registry import FUNCTIONS
from rowsieve.predicate.functions.row import Argument
from rowsieve.predicate.ir import Call, Cast, Literal, Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Date, Int, LogicalType, String, Time, Timestamp
from tests.predicate.functions.claims import violations
from tests.predicate.functions.sample_calls import Sample, X, Y, call
from tests.profiles import DEEP_FACTOR, IS_DEEP, examples
from tests.small_tables import appended
from tests.zones import NAMES, instant_of, instants, local_of, truncated_in

INSTANT, LOCAL = Timestamp(utc=True), Timestamp()
ENGINES = (Semantics.SQL, Semantics.SPARK, Semantics.DUCKDB)
SESSIONS = [replace(rules, time_zone=name) for rules in ENGINES for name in NAMES]
UNITS = ("minute", "hour", "day", "week", "month", "year")
ARROW = pa.schema(
    [("k", pa.int64()), ("tz", pa.timestamp("us", "UTC")), ("ts", pa.timestamp("us"))]
)
SCHEMA = schema_of(ARROW)[0]
in_sessions = pytest.mark.parametrize(
    "session", SESSIONS, ids=lambda session: f"{session.name}-{session.time_zone}"
)


def batch(moments: Sequence[datetime.datetime] | None = None) -> pa.RecordBatch:
    moments = moments or instants()
    naive = [moment.replace(tzinfo=None) for moment in moments]
    return pa.record_batch([pa.array(range(len(moments))), moments, naive], schema=ARROW)


def found(
    text: str, session: Semantics, moments: Sequence[datetime.datetime] | None = None
) -> list[Any]:
    bound = bind_operand(parse_expression(text), SCHEMA, session)
    values, failed = compute(bound, batch(moments))
    assert not failed.any()
    cells: list[Any] = values.to_pylist()
    return cells


@in_sessions
def test_local_times_of_instants_are_those_of_zoneinfo(session: Semantics) -> None:
    local = [local_of(moment, session.time_zone) for moment in instants()]
    assert found("CAST(tz AS timestamp)", session) == local
    assert found("CAST(tz AS date)", session) == [each.date() for each in local]
    assert found("CAST(tz AS time)", session) == [each.time() for each in local]
    for field in ("year", "month", "day", "hour", "minute"):
        wanted = [getattr(each, field) for each in local]
        assert found(f"extract({field} FROM tz)", session) == wanted
    week_days = [each.isoweekday() for each in local]
    assert found("extract(isodow FROM tz)", session) == week_days
    epochs = [moment.timestamp() for moment in instants()]
    assert [float(each) for each in found("extract(epoch FROM tz)", session)] == epochs


@in_sessions
def test_instants_of_local_times_follow_the_rules_of_the_engine(session: Semantics) -> None:
    naive = [moment.replace(tzinfo=None) for moment in instants()]
    naive = [each.replace(minute=30) for each in naive] + naive
    rules = session.repeated_time, session.skipped_time
    table = pa.record_batch([range(len(naive)), [None] * len(naive), naive], schema=ARROW)
    bound = bind_operand(Cast(parse_expression("ts"), INSTANT), SCHEMA, session)
    values, failed = compute(bound, table)
    assert not failed.any()
    assert values.to_pylist() == [instant_of(each, session.time_zone, *rules) for each in naive]


@in_sessions
def test_truncations_are_those_of_zoneinfo(session: Semantics) -> None:
    for unit in UNITS:
        wanted = [truncated_in(unit, moment, session) for moment in instants()]
        assert found(f"date_trunc('{unit}', tz)", session) == wanted
        explicit = Call("date_trunc", (Literal(unit), parse_expression("tz"), Literal("UTC")))
        values, _ = compute(bind_operand(explicit, SCHEMA, session), batch())
        utc = replace(session, time_zone="UTC")
        assert values.to_pylist() == [truncated_in(unit, m, utc) for m in instants()]


@pytest.mark.parametrize("name", NAMES)
def test_days_and_months_are_added_to_local_times(name: str) -> None:
    session = replace(Semantics.SQL, time_zone=name)
    rules = session.moved_time, session.skipped_time
    for days in (1, -7, 200):
        wanted = []
        for moment in instants():
            local = local_of(moment, name) + datetime.timedelta(days=days)
            wanted.append(instant_of(local, name, *rules) + datetime.timedelta(hours=5))
        assert found(f"tz + interval '{days} days 5 hours'", session) == wanted
    assert found("tz + interval '36 hours'", session) == [
        moment + datetime.timedelta(hours=36) for moment in instants()
    ]


def test_a_month_and_a_day_are_two_steps() -> None:
    """2024-03-10 02:30 does not exist in New York; a day later 03:30 does, or 02:30."""
    start = Literal(1_707_550_200_000_000, INSTANT)  # 2024-02-10 02:30 there
    moved = Call("add_interval", (start, Literal(1), Literal(1), Literal(0)))
    wanted = {"sql": "2024-03-11T07:30", "spark": "2024-03-11T07:30"}  # as the engines say
    for name, text in wanted.items():
        session = replace(Semantics.named(name), time_zone="America/New_York")
        values, _ = compute(bind_operand(moved, SCHEMA, session), batch().slice(0, 1))
        assert values[0].as_py().isoformat().startswith(text)


def test_constants_are_read_in_the_zone() -> None:
    session = replace(Semantics.SQL, time_zone="America/New_York")
    winter = "2024-01-15 12:00:00"
    for text in (
        f"tz = '{winter}'",
        f"tz = TIMESTAMP '{winter}'",
        f"tz = TIMESTAMPTZ '{winter}'",
        f"tz IN ('{winter}', NULL)",
        f"tz = CAST('{winter}' AS timestamptz)",
        f"tz = '{winter}-05'",
        f"tz IN (TIMESTAMP '{winter}', TIMESTAMP '2000-01-01')",
    ):
        root = bind(parse_predicate(text), SCHEMA, session).root
        assert "1705338000000000" in repr(root) or "2024-01-15 17:00:00" in repr(root), text


def test_text_of_an_instant_has_its_offset() -> None:
    session = replace(Semantics.SQL, time_zone="Asia/Kathmandu")
    shown = dict(zip(instants(), found("CAST(tz AS text)", session), strict=True))
    moment = datetime.datetime(2024, 12, 31, 18, 15, tzinfo=datetime.UTC)
    assert shown[moment] == "2025-01-01 00:00:00+05:45"
    assert found("CAST(CAST(tz AS text) AS timestamptz)", replace(session, time_zone="UTC")) == [
        *instants()
    ]


def test_a_zone_may_be_named() -> None:
    session = replace(Semantics.SQL, time_zone="Asia/Kathmandu")
    at = Call("timezone", (Literal("Europe/Berlin"), parse_expression("tz")))
    values, _ = compute(bind_operand(at, SCHEMA, session), batch())
    assert values.to_pylist() == [local_of(moment, "Europe/Berlin") for moment in instants()]
    back = Call("timezone", (Literal("Europe/Berlin"), at))
    values, _ = compute(bind_operand(back, SCHEMA, session), batch())
    folded = [a != b for a, b in zip(values.to_pylist(), instants(), strict=True)]
    assert sum(folded) == 1  # the first of the hours that come twice


def test_a_zone_that_is_not_constant_is_rejected() -> None:
    with pytest.raises(InvalidPredicate, match="constant"):
        bind_operand(Call("timezone", (parse_expression("tz"),) * 2), SCHEMA)
    with pytest.raises(InvalidPredicate, match="timestamp"):
        bind_operand(Call("timezone", (Literal("UTC"), parse_expression("k"))), SCHEMA)


OF_NO_ZONE = {  # functions of instants for which no zone matters, or that name theirs
    *(
        "epoch_us",
        "epoch_seconds",
        "coalesce",
        "nullif",
        "greatest",
        "least",
        "date_bin",
        "list_contains",
    ),
    *("local_time", "zoned_trunc", "zoned_shift", "zoned_text", "make_list", "make_struct"),
}
IN_A_ZONE = {"extract", "date_trunc", "last_day", "days_between", "age", "age_us"}
SHIFTS = {"add_interval", "shift", "shift_timestamp"}


def test_every_function_of_instants_is_known_to_follow_the_zone_or_not_to() -> None:
    constants: list[Argument] = [
        *(Argument(String(), is_constant=True, constant=text) for text in ("day", "UTC", "later")),
        *(Argument(Int(64), is_constant=True, constant=number) for number in (0, 1)),
        Argument(INSTANT, is_constant=True, constant=0),
        Argument(INSTANT),
    ]
    rng = random.Random(0)
    taken = set()
    for name, row in FUNCTIONS.items():
        for count in (1, 2, 4):
            for _ in range(300):
                arguments = [rng.choice(constants) for _ in range(count)]
                arguments[rng.randrange(count)] = constants[-1]
                try:
                    resolved = row.resolve(arguments)
                except InvalidPredicate:
                    continue
                if resolved is not None and INSTANT in resolved.arguments:
                    taken.add(name)
    assert taken <= OF_NO_ZONE | IN_A_ZONE | SHIFTS
    berlin = replace(Semantics.SQL, time_zone="Europe/Berlin")
    for name in IN_A_ZONE:
        given = (Literal("day", String()), X) if name in ("extract", "date_trunc") else (X, X)
        types: tuple[LogicalType, ...] = (String(), INSTANT)
        assert zoned_call(name, given, types, berlin) is not None
        assert zoned_call(name, given, types, Semantics.SQL) is None
    for name in SHIFTS:
        parts = (X, Literal(0), Literal(1), Literal(0))
        assert zoned_call(name, parts, (INSTANT,), berlin) is not None


def zoned_samples() -> list[Sample]:
    """Operands that bind to zoned calls."""
    fields = ("year", "month", "day", "hour", "minute", "dow", "week", "epoch")
    shifts = ((0, 1, 0), (0, -30, 3_600_000_000), (1, 0, 0), (-13, 2, -1), (0, 0, 5))
    return [
        *(Sample(Cast(X, target), INSTANT) for target in (LOCAL, Date(), Time(), String())),
        *(
            Sample(Cast(X, INSTANT, try_), type_)
            for type_ in (LOCAL, Date())
            for try_ in (True, False)
        ),
        *(Sample(Cast(X, target, try_=True), INSTANT) for target in (LOCAL, Date(), String())),
        *(Sample(call("extract", field, X), INSTANT) for field in fields),
        *(Sample(call("date_trunc", unit, X), INSTANT) for unit in UNITS),
        *(Sample(call("add_interval", X, *shift), INSTANT) for shift in shifts),
        Sample(call("last_day", X), INSTANT),
        Sample(call("days_between", X, Y), INSTANT, Date()),
        Sample(call("coalesce", X, Y), INSTANT, LOCAL),
        Sample(call("greatest", X, Y), INSTANT, Date()),
    ]


@in_sessions
def test_the_interpreter_contains_all_values_of_a_zoned_operand(session: Semantics) -> None:
    for round_ in range(DEEP_FACTOR if IS_DEEP else 1):
        for index, sample in enumerate(zoned_samples()):
            seed = zlib.crc32(f"{session.name} {session.time_zone} {index} {round_}".encode())
            assert violations(sample, session, seed, part_count=25) == []


CONDITIONS = (
    "CAST(tz AS date) = DATE '{day}'",
    "CAST(tz AS date) <> DATE '{day}'",
    "CAST(tz AS date) IN (DATE '{day}', DATE '2024-11-03')",
    "tz >= TIMESTAMP '{time}'",
    "tz < '{time}'",
    "tz = TIMESTAMP '{time}'",
    "tz > DATE '{day}'",
    "CAST(tz AS timestamp) BETWEEN TIMESTAMP '{time}' AND TIMESTAMP '{day} 23:59:59'",
    "extract(hour FROM tz) = {hour}",
    "extract(hour FROM tz) = {hour} AND CAST(tz AS date) = DATE '{day}'",
    "extract(dow FROM tz) = 0 AND extract(month FROM tz) = 11",
    "date_trunc('day', tz) = TIMESTAMP '{day} 00:00:00'",
    "date_trunc('hour', tz) >= TIMESTAMP '{time}'",
    "date_trunc('month', tz) < TIMESTAMP '{day} 00:00:00'",
    "tz + interval '1 day' > TIMESTAMP '{time}'",
    "tz + interval '1 month' <= TIMESTAMP '{time}'",
    "CAST(ts AS timestamptz) > tz",
    "CAST(ts AS timestamptz) = TIMESTAMP '{time}'",
    "CAST(tz AS text) LIKE '{day}%'",
    "CAST(tz AS time) = TIME '00:00:00'",
)


def rows_of(table: Any, predicate: Predicate, session: Semantics, *, pruning: bool) -> list[int]:
    plan = plan_scan(
        table.handle.pinned,
        "t",
        predicate=predicate,
        now_us=0,
        semantics=session,
        pruning=pruning,
    )
    execution = Execution(ScanPlan.from_bytes(plan.to_bytes()), table.handle.store)
    batches = [rows.column("k").to_pylist() for rows in execution.read()]
    return sorted(key for keys in batches for key in keys)


@pytest.mark.parametrize(
    "session", [Semantics.SPARK, Semantics.DATAFUSION, Semantics.DUCKDB], ids=lambda each: each.name
)
def test_no_part_is_pruned_in_which_a_later_instant_has_a_lesser_text(session: Semantics) -> None:
    """To DataFusion `06:30:00.500Z` sorts below `06:30:00Z`, and `.500001Z` below `.500Z`."""
    start = datetime.datetime(2024, 7, 3, 6, 30, tzinfo=datetime.UTC)
    places = (0, 1, 1000, 500_000, 500_001, 999_999, 1_000_000)
    moments = [start + datetime.timedelta(microseconds=place) for place in places]
    parts: list[dict[str, Sequence[Any]]] = [
        {"k": [2 * number, 2 * number + 1], "tz": pair, "ts": [None, None]}
        for number, pair in enumerate(itertools.combinations(moments, 2))
    ]
    table = appended(*parts, schema=ARROW)
    whole = batch([moment for part in parts for moment in part["tz"]])
    for spelt in sorted(set(found("CAST(tz AS text)", session, moments))):
        for op in ("<", "<=", "=", ">=", ">", "<>"):
            predicate = parse_predicate(f"CAST(tz AS text) {op} '{spelt}'")
            truth = evaluate(bind(predicate, SCHEMA, session, simplified=False), whole)
            wanted = np.flatnonzero(truth.true).tolist()
            assert rows_of(table, predicate, session, pruning=True) == wanted, (op, spelt)
    assert rows_of(table, predicate, session, pruning=False) == wanted


@pytest.mark.parametrize("rules", [Semantics.POSTGRES, Semantics.SQL])
def test_an_hour_that_keeps_its_offset_is_not_pruned(rules: Semantics) -> None:
    """Lord Howe's clock goes back by half an hour at 15:00Z: 01:00 is 14:00Z, and here 14:30Z."""
    session = replace(rules, time_zone="Australia/Lord_Howe")
    start = datetime.datetime(2024, 4, 6, 15, tzinfo=datetime.UTC)
    moments = [start + datetime.timedelta(minutes=each) for each in (0, 10, 29)]
    assert set(found("date_trunc('hour', tz)", session, moments)) == {
        start - datetime.timedelta(minutes=30)
    }
    table = appended({"k": range(3), "tz": moments, "ts": [None] * 3}, schema=ARROW)
    predicate = parse_predicate("date_trunc('hour', tz) = TIMESTAMPTZ '2024-04-06 14:30:00+00'")
    for pruning in (True, False):
        assert rows_of(table, predicate, session, pruning=pruning) == [0, 1, 2]


@examples(40)
@given(
    seed=st.integers(0, 2**32),
    session=st.sampled_from(SESSIONS),
    text=st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=2),
)
def test_pruned_rows_are_unpruned_rows_in_any_zone(
    seed: int, session: Semantics, text: list[str]
) -> None:
    """Parts of a few neighbouring moments, near a change of some zone more often than not."""
    rng = random.Random(seed)
    moments = sorted(
        moment + datetime.timedelta(minutes=rng.choice((0, 0, 1, -30, 59, 61, 24 * 60, -1440)))
        for moment in rng.choices(instants(), k=12)
    )
    local = local_of(rng.choice(moments), session.time_zone)
    words = {"day": local.date(), "time": local.replace(microsecond=0), "hour": local.hour}
    parts = [moments[start : start + 3] for start in range(0, len(moments), 3)]
    table = appended(
        *(
            {
                "k": range(3 * number, 3 * number + len(part)),
                "tz": part,
                "ts": [moment.replace(tzinfo=None) for moment in part],
            }
            for number, part in enumerate(parts)
        ),
        schema=ARROW,
    )
    predicate = parse_predicate(" AND ".join(term.format(**words) for term in text))
    whole = pa.record_batch(
        [range(len(moments)), moments, [moment.replace(tzinfo=None) for moment in moments]],
        schema=ARROW,
    )
    truth = evaluate(bind(predicate, SCHEMA, session, simplified=False), whole)
    assert not truth.failed.any()
    wanted = [key for key, true in enumerate(truth.true.tolist()) if true]
    assert rows_of(table, predicate, session, pruning=True) == wanted
    assert rows_of(table, predicate, session, pruning=False) == wanted
