"""The traps of expressions that the tables of values do not cover: T8 to T12, T14 to T16."""

from __future__ import annotations

import dataclasses
import decimal
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from rowsieve import Table
from rowsieve.bridges.sql import parse_predicate
from rowsieve.errors import EvaluationError, InvalidPredicate, SchemaMismatch
from rowsieve.executor.execute import Execution
from rowsieve.planner.cache import PlanCache
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from tests.small_tables import appended, pairs


def of(type_: pa.DataType, *parts: list[Any]) -> Table:
    """A part for each list of values `v`; `k` numbers the rows."""
    schema = pa.schema([("k", pa.int64()), ("v", type_)])
    first = [sum(len(part) for part in parts[:i]) for i in range(len(parts))]
    batches = [
        {"k": [*range(start, start + len(part))], "v": part}
        for start, part in zip(first, parts, strict=True)
    ]
    return appended(*batches, schema=schema)


def keys(table: Table, where: str, *, parts_read: int | None = None) -> list[int]:
    """The rows that match, found with pruning and without."""
    scan = table.scan(where)
    found = sorted(scan.to_arrow()["k"].to_pylist())
    assert found == sorted(table.scan(where, pruning="off").to_arrow()["k"].to_pylist())
    assert found == sorted(table.scan(where, pruning="soft").to_arrow()["k"].to_pylist())
    if parts_read is not None:
        assert scan.explain().parts_read == parts_read
    return found


def keys_in(
    table: Table, predicate: Predicate, semantics: Semantics, *, parts_read: int | None = None
) -> list[int]:
    """The same of a predicate under semantics of its own; the plan goes as bytes."""
    snapshot = table.handle.pinned
    answers = []
    for pruning in (True, False):
        plan = plan_scan(
            snapshot, "t", predicate=predicate, now_us=0, semantics=semantics, pruning=pruning
        )
        if pruning and parts_read is not None:
            assert sum(len(p.reads) for split in plan.splits for p in split.pieces) == parts_read
        execution = Execution(ScanPlan.from_bytes(plan.to_bytes()), table.handle.store)
        rows = [batch.column("k").to_pylist() for batch in execution.read()]
        answers.append(sorted(key for keys in rows for key in keys))
    assert answers[0] == answers[1]
    return answers[0]


def test_t8_a_predicate_its_negation_and_its_null_share_the_rows() -> None:
    table = of(pa.int64(), [1, None], [None, None], [5, 6], [1, 1])
    for text in ("v = 1", "v IN (1, NULL)", "v > 3 AND v <> 5", "v = 1 OR v > 5"):
        whole = [keys(table, f"{how}({text})") for how in ("", "NOT ")]
        whole.append(keys(table, f"({text}) IS NULL"))
        assert sorted(key for keys_of in whole for key in keys_of) == [*range(8)]
    assert keys(table, "v NOT IN (7, NULL)", parts_read=0) == []
    assert keys(table, "NOT (v = 1)", parts_read=1) == [4, 5]


def test_t9_a_possible_error_keeps_the_part() -> None:
    table = of(pa.int64(), [-4, 0, 4], [100, 200])
    for pruning in ("on", "soft", "off"):
        with pytest.raises(EvaluationError):
            table.scan("10 / v > 1000", pruning=pruning).to_arrow()
    assert keys(table, "10 / v > 1000 AND v > 50", parts_read=0) == []
    table = of(pa.int64(), [1, 2**63 - 1], [5, 6])
    with pytest.raises(EvaluationError):
        table.scan("v + 1 < 0").to_arrow()  # TRUE nowhere, but not without an error
    assert keys(table, "v + 1 < 0 AND v < 7", parts_read=0) == []


def test_t10_monotone_is_not_defined_everywhere() -> None:
    table = of(pa.float64(), [-2.0, 1.0, 10.0], [20.0, 50.0])
    assert keys(table, "10 / v > 5", parts_read=1) == [1]  # -5 and 1 at the ends
    table = of(pa.int64(), [-3, 0, 3])
    with pytest.raises(EvaluationError):
        table.scan("10 / v > 5").to_arrow()  # defined at both ends


def test_t11_a_month_later_is_not_in_order() -> None:
    noon = timedelta(hours=12)
    start = datetime(2024, 1, 30)
    table = of(pa.timestamp("us"), [start, start + noon, start + 2 * noon])
    assert keys(table, "v + interval '1 month' > TIMESTAMP '2024-02-29 06:00:00'") == [1]
    assert keys(table, "v + interval '31 days' > TIMESTAMP '2024-03-01 06:00:00'") == [1, 2]
    ends = of(pa.date32(), [date(2024, 1, 29), date(2024, 1, 31)], [date(2024, 3, 1)])
    assert keys(ends, "v + interval '1 month' = DATE '2024-02-29'", parts_read=1) == [0, 1]


def test_t12_the_day_of_an_instant_needs_a_zone_and_the_zone_is_in_the_plan() -> None:
    instant = datetime(2024, 10, 26, 22, 30, tzinfo=UTC)  # after midnight in Berlin
    table = of(pa.timestamp("us", "UTC"), [instant], [instant + timedelta(hours=4)])
    assert keys(table, "CAST(v AS date) = DATE '2024-10-26'", parts_read=1) == [0]
    berlin = dataclasses.replace(Semantics.SQL, time_zone="Europe/Berlin")
    day = parse_predicate("CAST(v AS date) = DATE '2024-10-26'")
    assert keys_in(table, day, berlin, parts_read=0) == []
    day = parse_predicate("CAST(v AS date) = DATE '2024-10-27'")
    assert keys_in(table, day, berlin, parts_read=2) == [0, 1]
    plans, plain = PlanCache(), parse_predicate("v IS NOT NULL")
    snapshot = table.handle.pinned
    for semantics in (Semantics.SQL, berlin):
        plan, known = plans.plan(snapshot, "t", now_us=0, predicate=plain, semantics=semantics)
        assert not known
        assert ScanPlan.from_bytes(plan.to_bytes()).semantics == semantics


def test_t12_a_local_time_falls_where_a_clock_is_set_back() -> None:
    """The ends of the part have the days 17 and 18; a row between them has the 16th once more."""
    midnight = datetime(2019, 2, 17, 2, tzinfo=UTC)  # in Sao Paulo 00:00, set back to 23:00
    rows = [midnight - timedelta(microseconds=1), midnight, midnight + timedelta(minutes=59)]
    table = of(pa.timestamp("us", "UTC"), rows, [rows[2] + timedelta(minutes=1)])
    paulo = dataclasses.replace(Semantics.SQL, time_zone="America/Sao_Paulo")
    for text in ("CAST(v AS date) = DATE '2019-02-16'", "date_trunc('day', v) < '2019-02-17'"):
        assert keys_in(table, parse_predicate(text), paulo, parts_read=1) == [0, 1, 2]
    late = parse_predicate("CAST(v AS timestamp) > TIMESTAMP '2019-02-16 23:59:59.5'")
    assert keys_in(table, late, paulo) == [0, 3]  # more than both ends of the part have
    early = parse_predicate("extract(hour FROM v) = 23 AND extract(minute FROM v) = 0")
    assert keys_in(table, early, paulo, parts_read=1) == [1]


def test_t12_a_day_that_a_zone_skipped_is_in_no_part() -> None:
    last = datetime(2011, 12, 30, 9, 59, 59, tzinfo=UTC)  # Apia: the 29th; a second later the 31st
    table = of(pa.timestamp("us", "UTC"), [last, last + timedelta(seconds=1)])
    apia = dataclasses.replace(Semantics.SQL, time_zone="Pacific/Apia")
    days = {
        day: keys_in(table, parse_predicate(f"CAST(v AS date) = DATE '2011-12-{day}'"), apia)
        for day in (29, 30, 31)
    }
    assert days == {29: [0], 30: [], 31: [1]}


def test_t14_decimals_are_exact_and_floats_near_them_are_not() -> None:
    odd = decimal.Decimal(2**53 + 1)
    table = of(pa.decimal128(38, 2), [odd, odd], [decimal.Decimal("1.50")])
    assert keys(table, "v = 9007199254740993", parts_read=1) == [0, 1]
    assert keys(table, "v = 9007199254740992", parts_read=0) == []
    assert keys(table, "CAST(v AS double precision) = 9007199254740992.0") == [0, 1]
    assert keys(table, "v = 1.5 AND v = 1.500", parts_read=1) == [2]
    assert keys(table, "v > 1.4999999", parts_read=2) == [0, 1, 2]
    assert keys(table, "v = 1.499", parts_read=0) == []


def test_t15_text_that_no_bound_can_hold() -> None:
    last = "\U0010ffff" * 60  # 240 bytes, no greater text of that length
    table = of(pa.string(), ["a", last + "x"], ["b" * 150, "b" * 150 + "c"], ["\ud7ff", "\ue000"])
    assert keys(table, f"v > '{last}'") == [1]
    assert keys(table, f"v >= '{'b' * 150}c' AND v < 'c'") == [3]
    assert keys(table, f"v LIKE '{'b' * 120}%'", parts_read=2) == [2, 3]
    assert keys(table, "v > '\ud7ff' AND v < '\ue001'") == [5]


def test_t16_before_1970_time_is_cut_downwards() -> None:
    table = of(
        pa.timestamp("us"),
        [datetime(1969, 12, 31, 23, 59, 59, 500_000)],
        [datetime(1970, 1, 1, 0, 0, 0, 500_000)],
    )
    assert keys(table, "date_trunc('day', v) = TIMESTAMP '1969-12-31'", parts_read=1) == [0]
    assert keys(table, "CAST(v AS date) = DATE '1970-01-01'", parts_read=1) == [1]
    assert keys(table, "extract(year FROM v) = 1969", parts_read=1) == [0]
    assert keys(table, "date_trunc('second', v) < TIMESTAMP '1970-01-01'", parts_read=1) == [0]


def test_t16_leap_seconds_and_nanoseconds_are_refused_not_guessed() -> None:
    table = of(pa.timestamp("us"), [datetime(2016, 12, 31, 23, 59, 59)])
    with pytest.raises(InvalidPredicate, match="23:59:60"):
        table.scan("v = TIMESTAMP '2016-12-31 23:59:60'")
    nanoseconds = pa.table({"k": [1], "v": pa.array([1_500], pa.timestamp("ns"))})
    with pytest.raises(SchemaMismatch):
        table.append(nanoseconds)
    assert pairs(table, "v IS NULL") == []
