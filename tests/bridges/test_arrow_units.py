"""Timestamps of an Arrow schema in other units: an engine that cuts them gets no such condition."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from tests.bridges.against_engines.judges import taken
from tests.bridges.against_engines.pairs import TARGETS

MICROS = [None, 0, -1, 999, 1_000, 1_001, -1_000, 1_500_000, 1_362_882_600_000_000]
PER_MICRO = {"s": 10**-6, "ms": 10**-3}
CONDITIONS = [
    *(
        f"c {op} TIMESTAMP '{point}'"
        for op in ("=", ">", "<=", "IS DISTINCT FROM")
        for point in ("1970-01-01", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.0015")
    ),
    "c IN (TIMESTAMP '1970-01-01 00:00:00.000001', NULL)",
    "c IN (TIMESTAMP '1970-01-01', TIMESTAMP '1970-01-01 00:00:01')",
    "date_trunc('second', c) = c",
    "year(c) = 2013 OR c IS NULL",
    "c < u",
    "c >= d",
    "coalesce(c, TIMESTAMP '1970-01-01 00:00:00.0015') > TIMESTAMP '1970-01-01 00:00:00.0012'",
    "coalesce(c, d, u) > TIMESTAMP '1970-01-01'",
]


def rows(unit: str) -> pa.Table:
    if unit == "ns":
        ticks = [None if n is None else n * 1_000 + rest for n in MICROS for rest in (0, 500)]
    else:
        ticks = [None if n is None else int(n * PER_MICRO[unit] // 1) for n in MICROS]
    column = pa.array(ticks, pa.int64()).cast(pa.timestamp(unit))
    micros = pa.array([1_500] * len(ticks), pa.int64()).cast(pa.timestamp("us"))
    return pa.table({"c": column, "d": column.take(pa.array(range(len(ticks))[::-1])), "u": micros})


def kept(target: str, words: Any, table: pa.Table) -> list[int]:
    return sorted(TARGETS[target](words, taken(table, list(range(table.num_rows)))))


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
@pytest.mark.parametrize("target", ["polars", "datafusion", "datafusion_exprs", "pyarrow_exprs"])
def test_times_of_another_unit_keep_their_rows_or_are_refused(target: str, unit: str) -> None:
    table = rows(unit)
    exact = 0
    for text in CONDITIONS:
        made = rs.translate(text, "duckdb", target=target, schema=table.schema)
        if made.expression is not None:
            exact += 1
            assert kept(target, made.expression, table) == kept("duckdb", text, table), text
    assert exact > 1


@pytest.mark.parametrize("target", ["polars", "datafusion"])
def test_a_constant_that_the_unit_lacks_is_refused_by_the_column(target: str) -> None:
    columns = pa.schema([("c", pa.timestamp("ms"))])
    text = "c > TIMESTAMP '1970-01-01 00:00:00.0015'"
    made = rs.translate(text, "duckdb", target=target, schema=columns)
    assert made.expression is None
    assert "'c' as timestamp[ms]" in str(made.notes[0])
    finer = pa.schema([("c", pa.timestamp("us"))])
    assert rs.translate(text, "duckdb", target=target, schema=finer).exact() is not None


@pytest.mark.parametrize("text", ["c IN ([1])", "c IN ([1]) AND c IS NULL", "TRUE"])
def test_a_condition_of_nested_columns_alone_is_left_not_raised(text: str) -> None:
    columns = pa.schema([("c", pa.list_(pa.int32()))])
    made = rs.translate(text, "duckdb", target="delta", schema=columns)
    assert made.expression is None
    assert made.notes
