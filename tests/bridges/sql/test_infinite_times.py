"""Infinite days and times: functions give what DuckDB gives, or fail."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rowsieve.bridges.where import to_operand
from rowsieve.errors import RowsieveError
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.duckdb_sessions import duckdb_session

TYPES = {"d": pa.date32(), "ts": pa.timestamp("us"), "tz": pa.timestamp("us", "UTC")}
DAYS = (2**31 - 1, -(2**31) + 1, 2**31 - 2, -(2**31) + 400, 18_266)
MOMENTS = (2**63 - 1, -(2**63) + 1, 2**63 - 2, -(2**63) + 2, 1_578_182_400_000_000)
SAME = (
    *("year({})", "extract(month FROM {})", "date_part('week', {})", "dayofweek({})"),
    *("isodow({})", "dayofyear({})", "quarter({})", "last_day({})"),
    *("date_trunc('month', {})", "date_trunc('day', {})", "date_trunc('year', {})"),
    *("{} + INTERVAL 1 DAY", "{} + INTERVAL 1 MONTH", "{} - INTERVAL 1 DAY", "CAST({} AS DATE)"),
)
OF_DAYS = ("{} + 1", "{} - 1")
OF_TIMES = ("hour({})", "minute({})", "time_bucket(INTERVAL 1 DAY, {})")
REFUSED = (
    *("dayname({})", "monthname({})", "date_diff('day', {}, DATE '2020-01-01')"),
    *("date_diff('month', {}, DATE '2020-01-01')", "epoch_us({})", "CAST({} AS TIME)", "epoch({})"),
    *("{} AT TIME ZONE 'Europe/Berlin'", "CAST({} AS TIMESTAMP)", "strftime({}, '%A')"),
)
"""Texts that may also fail, or be refused for a type."""


def column(name: str, values: list[int]) -> pa.Array:
    return pa.array(values, pa.int32() if name == "d" else pa.int64()).view(TYPES[name])


def numbered(array: pa.Array) -> list[Any]:
    """The stored numbers of days and times, which Python may not hold."""
    if pa.types.is_date32(array.type):
        return list(array.view(pa.int32()).to_pylist())
    if pa.types.is_timestamp(array.type):
        return list(array.view(pa.int64()).to_pylist())
    if pa.types.is_decimal(array.type):
        return list(array.cast(pa.float64()).to_pylist())
    return list(array.to_pylist())


def ours(text: str, name: str, value: int) -> Any:
    batch = pa.record_batch({name: column(name, [value])})
    schema = schema_of(batch.schema)[0]
    operand = bind_operand(to_operand(text, "duckdb", schema), schema, Semantics.DUCKDB)
    values, failed = compute(operand, batch)
    return "failed" if failed.any() else numbered(values)[0]


def theirs(connection: Any, text: str, name: str, value: int) -> Any:
    import duckdb

    rows = pa.table({name: column(name, [value])})
    try:
        found = connection.from_arrow(rows).project(f"{text} AS found").to_arrow_table()
    except duckdb.Error:
        return "failed"
    return numbered(found.column(0).combine_chunks())[0]


def asked() -> list[tuple[str, str, int]]:
    found = []
    for name, values in (("d", DAYS), ("ts", MOMENTS), ("tz", MOMENTS)):
        own = OF_DAYS if name == "d" else OF_TIMES
        found += [(text.format(name), name, value) for text in (*SAME, *own) for value in values]
    return found


def test_functions_of_infinite_times_are_those_of_duckdb() -> None:
    with duckdb_session() as connection:
        wrong = []
        for text, name, value in asked():
            expected, found = theirs(connection, text, name, value), ours(text, name, value)
            is_first_day = name != "d" and found == "failed" and value == MOMENTS[3]
            if found != expected and not is_first_day:
                wrong.append((text, name, value, expected, found))
    assert not wrong


def test_other_functions_of_infinite_times_fail_or_are_those_of_duckdb() -> None:
    known = 0
    with duckdb_session() as connection:
        for form in REFUSED:
            for name, values in (("d", DAYS), ("ts", MOMENTS), ("tz", MOMENTS)):
                text = form.format(name)
                for value in values:
                    try:
                        found = ours(text, name, value)
                    except RowsieveError:
                        continue
                    expected = theirs(connection, text, name, value)
                    if "failed" not in (found, expected):
                        known += 1
                        assert found == expected, (text, value)
    assert known > len(REFUSED)
