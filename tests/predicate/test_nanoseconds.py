"""Casts and functions of nanoseconds: as the engines give them, as a slow model does, and pruned.

DuckDB and DataFusion judge conditions over rows in memory; the model counts in Python's integers.
"""

from __future__ import annotations

import calendar
import datetime
import decimal
import zlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.where import to_predicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.evaluate import Outcome, compute, evaluate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Date, Field, Nanos, Timestamp
from rowsieve.types.schema import Schema
from tests.bridges.sql.engines import datafusion_rows, duckdb_rows
from tests.predicate.part_statistics import Known
from tests.profiles import IS_DEEP, examples, judged

DAY_NS = 86_400 * 10**9
LEAST, MOST = -(2**63), 2**63 - 1
MICRO = 1_700_000_000_123_456  # 2023-11-14 22:13:20.123456
EXTREMES = [LEAST, LEAST + 1, LEAST + 2, LEAST + DAY_NS, MOST - 500, MOST - 1, MOST]
EXTREMES += [LEAST + 999, LEAST + 1_000, MOST - 1_000, MOST - 999]  # a microsecond before the ends
SMALL = [
    -1_500,
    -1_499,
    -1_001,
    -1_000,
    -999,
    -501,
    -500,
    -499,
    -1,
    0,
    1,
    499,
    500,
    501,
    999,
    1_500,
]
DAYS = [base + rest for base in (-DAY_NS, DAY_NS, MICRO * 1_000) for rest in (-500, -1, 0, 1, 500)]
MONTHS = [
    int(np.datetime64(text, "ns").astype(np.int64)) + rest
    for text in ("1970-01-31", "2024-02-29", "1969-12-31T12", "1900-03-01", "2024-12-30")
    for rest in (-1, 0, 1)
]
ROWS: list[int | None] = [*EXTREMES, *SMALL, *DAYS, *MONTHS, None]
SCHEMA = Schema(
    7,
    (
        Field(1, "t", Nanos(utc=False)),
        Field(2, "z", Nanos(utc=True)),
        Field(3, "u", Timestamp()),
        Field(4, "day", Date()),
    ),
)


def batch_of(rows: Sequence[int | None]) -> pa.RecordBatch:
    near = [None if row is None else max(min(row, 2**62), -(2**62)) for row in rows]
    micros = [None if row is None else row // 1_000 for row in near]
    days = [None if row is None else row // DAY_NS for row in near]
    return pa.record_batch(
        {
            "t": pa.array(rows, pa.timestamp("ns")),
            "z": pa.array(rows, pa.timestamp("ns", "UTC")),
            "u": pa.array(micros, pa.timestamp("us")),
            "day": pa.array(days, pa.int32()).cast(pa.date32()),
        }
    )


def evaluated(text: str, dialect: str, batch: pa.RecordBatch) -> Outcome:
    predicate = to_predicate(text, dialect, SCHEMA)
    bound = bind(predicate, SCHEMA, Semantics.named(dialect))
    check_pruning(bound, batch)
    return evaluate(bound, batch)


def check_pruning(bound: Any, batch: pa.RecordBatch) -> None:
    """A verdict of parts of four and of all rows, in deep runs also of one, is that of the rows."""
    parts = [batch.slice(i, 1) for i in range(batch.num_rows if IS_DEEP else 0)]
    parts += [batch.slice(i, 4) for i in range(0, batch.num_rows, 4)] + [batch]
    columns = {}
    for name in batch.schema.names:
        ends = [ends_of(part.column(name)) for part in parts]
        type_ = batch.schema.field(name).type
        width = pa.int32() if pa.types.is_date32(type_) else pa.int64()
        columns[name] = AbstractColumn(
            pa.array([low for low, _ in ends], width).view(type_),
            pa.array([high for _, high in ends], width).view(type_),
            np.array([low is None for low, _ in ends], np.bool_),
            np.array([part.column(name).null_count > 0 for part in parts], np.bool_),
        )
    for known in (columns, {}):
        verdicts = interpret(bound, Known(len(parts), known))
        for verdict, part in zip(verdicts, parts, strict=True):
            outcome = evaluate(bound, part)
            if verdict == Verdict.NONE:
                assert not outcome.true.any()
                assert not outcome.failed.any()
            if verdict == Verdict.ALL:
                assert outcome.true.all()


def ends_of(values: pa.Array) -> tuple[int | None, int | None]:
    width = pa.int32() if pa.types.is_date32(values.type) else pa.int64()
    present = values.drop_null().view(width).to_pylist()
    return min(present, default=None), max(present, default=None)


Judge = Callable[[str, pa.RecordBatch], list[int] | None]
JUDGES: dict[str, Judge] = {"duckdb": duckdb_rows, "datafusion": datafusion_rows}


def check_with_engine(text: str, dialect: str, rows: Sequence[int | None]) -> None:
    """Each row that does not fail here is kept, or not, as the engine does."""
    batch = batch_of(rows)
    outcome, judge = evaluated(text, dialect, batch), JUDGES[dialect]
    known = pa.array(~outcome.failed)
    kept = pa.array(outcome.true).filter(known).to_numpy(zero_copy_only=False).nonzero()[0]
    assert judge(text, batch.filter(known)) == kept.tolist(), text
    for place in outcome.failed.nonzero()[0].tolist() if IS_DEEP else ():
        near = abs(rows[place] or 0) < 9_200_000_000 * 10**9
        assert not near or judge(text, batch.slice(place, 1)) is None, (text, rows[place])


DUCKDB = [
    "t::TIMESTAMP {op} TIMESTAMP '1970-01-01'",
    "t::TIMESTAMP {op} TIMESTAMP '1969-12-31 23:59:59.999998'",
    "t::TIMESTAMPTZ {op} TIMESTAMPTZ '1970-01-01 00:00:00.000001+00'",
    "t::DATE {op} DATE '1970-01-01'",
    "t::DATE {op} DATE '1969-12-31'",
    "t::VARCHAR {op} '1969-12-31 23:59:59.9999995'",
    "t::VARCHAR {op} '1970-01-01 00:00:00'",
    "date_trunc('microsecond', t) {op} TIMESTAMP '1970-01-01 00:00:00.000001'",
    "date_trunc('second', t) {op} TIMESTAMP '1969-12-31 23:59:59'",
    "date_trunc('day', t) {op} TIMESTAMP '1970-01-01'",
    "date_trunc('month', t) {op} TIMESTAMP '1969-12-01'",
    "date_trunc('year', t) {op} TIMESTAMP '1970-01-01'",
    "year(t) {op} 1970",
    "extract(month FROM t) {op} 12",
    "extract(hour FROM t) {op} 23",
    "t + INTERVAL '1 month' {op} TIMESTAMP '1970-02-01'",
    "t - INTERVAL '1 day' {op} TIMESTAMP '1969-12-31'",
    "t + INTERVAL '1 microsecond' {op} TIMESTAMP '1970-01-01 00:00:00.000001'",
    "epoch_us(t) {op} -1",
    "last_day(t) {op} DATE '1969-12-31'",
    "date_diff('day', t, u) {op} 0",
    "t {op} u",
    "u {op} t",
    "t {op} day",
    "u::TIMESTAMP_NS {op} t",
    "z::TIMESTAMPTZ {op} TIMESTAMPTZ '1969-12-31 23:59:59.999998+00'",
    "z::DATE {op} DATE '1969-12-31'",
    "t AT TIME ZONE 'Europe/Berlin' {op} '1969-12-31 23:00:00.000000001+00'",
    "z AT TIME ZONE 'America/New_York' {op} TIMESTAMP_NS '1969-12-31 19:00:00.000000001'",
]
DATAFUSION = [
    "t::DATE {op} DATE '1969-12-31'",
    "z::DATE {op} DATE '1970-01-01'",
    "date_trunc('microsecond', t) {op} TIMESTAMP '1970-01-01 00:00:00.000001'",
    "date_trunc('second', t) {op} TIMESTAMP '1969-12-31 23:59:59'",
    "date_trunc('day', t) {op} TIMESTAMP '1970-01-01'",
    "date_trunc('day', z) {op} '1970-01-01 00:00:00Z'",
    "date_trunc('week', t) {op} TIMESTAMP '1969-12-29'",
    "date_trunc('month', t) {op} TIMESTAMP '1969-12-01'",
    "date_trunc('year', t) {op} TIMESTAMP '1970-01-01'",
    "extract(year FROM t) {op} 1970",
    "extract(year FROM z) {op} 1969",
    "extract(month FROM t) {op} 12",
    "extract(day FROM t) {op} 31",
    "extract(hour FROM t) {op} 23",
    "extract(second FROM t) {op} 59",
    "t + INTERVAL '1 month' {op} '1970-01-31 23:59:59.999999999'",
    "t + INTERVAL '1 day' {op} '1970-01-02 00:00:00.000000001'",
    "t - INTERVAL '1 microsecond' {op} TIMESTAMP '1969-12-31 23:59:59.999999'",
    "t {op} u",
    "u {op} t",
    "t {op} day",
    "t::VARCHAR {op} '1969-12-31T23:59:59.999999500'",
    "t::VARCHAR {op} '1970-01-01T00:00:00'",
    "u {op} TIMESTAMP '1970-01-01 00:00:00.000000499'",
    "u {op} TIMESTAMP '1969-12-31 23:59:59.999999501'",
    "TIMESTAMP '1969-12-31 23:59:59.999998501' {op} u",
    "u + INTERVAL '1 day' {op} TIMESTAMP '1970-01-02 00:00:00.000000499'",
    "date_trunc('day', u) {op} TIMESTAMP '1970-01-01 00:00:00.000000499'",
    "u {op} TIMESTAMP '1969-12-31 00:00:00.000000499' + INTERVAL '1 day'",
    "(u IN (TIMESTAMP '1970-01-01 00:00:00.000000499', TIMESTAMP '1960-01-01')) {op} TRUE",
    f"(u IN (arrow_cast({-(2**62) + 1}, 'Timestamp(ns)'))) {{op}} TRUE",
    f"u {{op}} arrow_cast({-(2**62) + 1}, 'Timestamp(Nanosecond, None)')",
    "day {op} TIMESTAMP '1970-01-01 00:00:00.000000499'",
    "t {op} TIMESTAMP '1970-01-01 00:00:00.000000499'",
]
OPS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM")


NANOS = st.one_of(
    st.sampled_from([row for row in ROWS if row is not None]),
    st.integers(LEAST, MOST),
    st.integers(-3_000, 3_000),
)
CONDITIONS = [
    *(pytest.param("duckdb", text, id=text) for text in DUCKDB),
    *(pytest.param("datafusion", text, id=f"datafusion: {text}") for text in DATAFUSION),
]


@pytest.mark.parametrize(("dialect", "condition"), CONDITIONS)
def test_engines_keep_the_same_rows(dialect: str, condition: str) -> None:
    for op in OPS if IS_DEEP else OPS[zlib.crc32(condition.encode()) % len(OPS) :][:1]:
        check_with_engine(condition.format(op=op), dialect, ROWS)


@judged(60)
@given(
    st.sampled_from(["duckdb", "datafusion"]),
    st.sampled_from(OPS),
    st.lists(st.none() | NANOS, min_size=1, max_size=8),
    st.data(),
)
def test_random_rows_are_kept_as_the_engines_keep_them(
    dialect: str, op: str, rows: list[int | None], data: st.DataObject
) -> None:
    condition = data.draw(st.sampled_from(DUCKDB if dialect == "duckdb" else DATAFUSION))
    check_with_engine(condition.format(op=op), dialect, rows)


EPOCH = datetime.datetime(1970, 1, 1)


def at(nanos: int) -> tuple[datetime.datetime, int]:
    """The time in microseconds, rounded down, and the nanoseconds after it."""
    return EPOCH + datetime.timedelta(microseconds=nanos // 1_000), nanos % 1_000


def back(moment: datetime.datetime, rest: int = 0) -> int | None:
    """Nanoseconds since 1970; None outside 64 bits."""
    found = (moment - EPOCH) // datetime.timedelta(microseconds=1) * 1_000 + rest
    return found if LEAST <= found <= MOST else None


def started(nanos: int, unit: str) -> int | None:
    moment, _ = at(nanos)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "microsecond":
            return back(moment)
        case "second":
            return back(moment.replace(microsecond=0))
        case "hour":
            return back(moment.replace(minute=0, second=0, microsecond=0))
        case "day":
            return back(day)
        case "week":
            return back(day - datetime.timedelta(day.weekday()))
        case "month":
            return back(day.replace(day=1))
        case "quarter":
            return back(day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1))
        case _:
            return back(day.replace(month=1, day=1))


def field_of(nanos: int, field: str) -> Any:
    moment, _ = at(nanos)
    iso = moment.isocalendar()
    return {
        "year": moment.year,
        "month": moment.month,
        "day": moment.day,
        "hour": moment.hour,
        "minute": moment.minute,
        "whole_second": moment.second,
        "microsecond": moment.second * 1_000_000 + moment.microsecond,
        "week": iso.week,
        "isoyear": iso.year,
        "dow": iso.weekday % 7,
        "doy": moment.timetuple().tm_yday,
        "second": decimal.Decimal(nanos % (60 * 10**9)).scaleb(-9),
        "epoch": decimal.Decimal(nanos).scaleb(-9),
    }[field]


def moved(nanos: int, months: int, days: int, micros: int) -> int | None:
    moment, rest = at(nanos)
    month = moment.year * 12 + moment.month - 1 + months
    year, month = month // 12, month % 12 + 1
    last = calendar.monthrange(year, month)[1]
    moment = moment.replace(year=year, month=month, day=min(moment.day, last))
    return back(moment + datetime.timedelta(days, microseconds=micros), rest)


def rounded(nanos: int) -> int:
    """Microseconds, half away from 1970."""
    number = abs(Fraction(nanos, 1_000)) + Fraction(1, 2)
    return int(number) * (1 if nanos >= 0 else -1)


UNITS = ("microsecond", "second", "hour", "day", "week", "month", "quarter", "year")
FIELDS = (
    *("year", "month", "day", "hour", "minute", "whole_second", "microsecond"),
    *("week", "isoyear", "dow", "doy", "second", "epoch"),
)
T, Z = ir.Column("t"), ir.Column("z")
MODELS: dict[str, tuple[ir.Operand, Callable[[int], Any]]] = {
    "timestamp": (ir.Cast(T, Timestamp()), rounded),
    "instant": (ir.Cast(Z, Timestamp(utc=True)), rounded),
    "other zone": (ir.Cast(Z, Nanos(utc=False)), lambda nanos: nanos),
    "date": (ir.Cast(T, Date()), lambda nanos: nanos // DAY_NS),
    "date of an instant": (ir.Cast(Z, Date()), lambda nanos: nanos // DAY_NS),
    "there and back": (
        ir.Cast(ir.Cast(T, Timestamp()), Nanos(utc=False)),
        lambda nanos: back(EPOCH + datetime.timedelta(microseconds=rounded(nanos))),
    ),
    "start of the day": (
        ir.Cast(ir.Cast(T, Date()), Nanos(utc=False)),
        lambda nanos: started(nanos, "day"),
    ),
    "seconds": (ir.Call("epoch_seconds", (Z,)), lambda nanos: nanos // 10**9),
}


def call(name: str, *arguments: Any) -> ir.Call:
    given = (a if isinstance(a, ir.Operand) else ir.Literal(a) for a in arguments)
    return ir.Call(name, tuple(given))


SHIFTS = (
    (1, 0, 0),
    (-13, 2, -1),
    (0, -1, 0),
    (0, 0, 1),
    (0, 0, -1),
    (12 * 200, 0, 0),
    (0, 40_000, -7),
)
MODELS |= {
    **{f"trunc {u}": (call("date_trunc", u, T), partial(started, unit=u)) for u in UNITS},
    **{f"extract {f}": (call("extract", f, Z), partial(field_of, field=f)) for f in FIELDS},
    **{
        f"move {shift}": (
            call("shift", T, *shift),
            partial(moved, months=shift[0], days=shift[1], micros=shift[2]),
        )
        for shift in SHIFTS
    },
}


@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_whole_numbers(name: str) -> None:
    check_model(name, ROWS)


@examples(200)
@given(st.sampled_from(list(MODELS)), st.lists(st.none() | NANOS, min_size=1, max_size=12))
def test_random_results_are_those_of_whole_numbers(name: str, rows: list[int | None]) -> None:
    check_model(name, rows)


def check_model(name: str, rows: Sequence[int | None]) -> None:
    """A result outside 64 bits fails."""
    operand, model = MODELS[name]
    bound = bind_operand(operand, SCHEMA, Semantics.SQL)
    values, failed = compute(bound, batch_of(rows))
    for row, value, fails in zip(rows, values, failed, strict=True):
        wanted = None if row is None else model(row)
        found = value.value if pa.types.is_temporal(values.type) else value.as_py()
        assert (found, fails) == (wanted, wanted is None and row is not None), (name, row)
