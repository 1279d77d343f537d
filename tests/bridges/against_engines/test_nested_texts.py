"""An operation takes a call's result in the engine's type: a wider, an unsigned, a float one.

The call alone has the engine's value in any of them; what is computed from it differs.
"""

from __future__ import annotations

import pytest

from rowsieve.bridges.pyarrow_exprs import read
from tests.bridges.against_engines.compare import Case, compared

# By the type of the inner call's result in the engine, and ours.
UNSIGNED_COUNTS = [
    "datafusion|wholes|cardinality(a) / 2",
    "datafusion|wholes|cardinality(a) - 5 < 0",
    "datafusion|wholes|cardinality(a) - cardinality(a) - 1 < 0",
    "datafusion|wholes|array_position(a, 1) / 2",
    "datafusion|wholes|coalesce(array_length(a), 0) / 2",
    "datafusion|wholes|CASE WHEN a IS NULL THEN 0 ELSE cardinality(a) END / 2",
    "datafusion|texts|round(array_length(a)) / 2",
    "datafusion|u64|a - 1",
    "datafusion|u64|a / 2 IN (1, 0.5)",
    "datafusion|u64,i64|a * b",
]
NARROW_FIELDS = [
    "datafusion|date|extract(year FROM a) * extract(year FROM a) * extract(year FROM a)",
    "datafusion|ts|date_part('year', a) * date_part('year', a) * date_part('day', a) > 0",
    "datafusion|date|extract(year FROM a) / 100 = 19",
]
WIDE_SHIFTS = [
    "datafusion|i8|(a >> 1) * a",
    "datafusion|i16|(a >> 1) * a",
    "datafusion|i32|(a >> 1) * a",
]
FLOAT_FIELDS = [
    "postgres|ts|date_part('month', a) * 0.1 = 0.3",
    "postgres|ts|round(date_part('day', a) * 0.5)",
    "postgres|ts|(date_part('day', a) * 0.5)::int",
    "postgres|ts|date_part('day', a) / 4",
    "postgres|ts|extract(year FROM a) * 0.1 = date_part('year', a) * 0.1",
    "postgres|date|date_part('century', a) * 0.1 = 2.1",
    "postgres|time|date_part('hour', a) * 0.1 = 1.2",
]
FLOATS_OF_REALS = [
    "postgres|f32|floor(a) + a",
    "postgres|f32|ceil(a) * a",
    "postgres|f32|round(a) * a",
]
REALS_OF_CHOICES = [
    "postgres|f32|coalesce(a, 0) * a",
    "postgres|f32|greatest(a, 0, -1.5) * a",
    "postgres|f32|coalesce(a, 0)::numeric",
    "postgres|f32|(CASE WHEN a > 0 THEN a ELSE 0 END) * a",
    "duckdb|f32|nullif(a, 1e0) * a",
]
BORROWED_TYPES = [
    "postgres|u8|floor(a & 3) / 2",
    "postgres|u8|round(a & 3) / 2",
    "postgres|u32|ceil(a # 3) / 3",
    "postgres|u16,u8|floor(a & b) / 2",
]

POLARS_FIELDS = [
    "polars|ts|a.dt.month() * a.dt.month()",
    "polars|ts|a.dt.hour() * 100 > 50",
    "polars|tz|a.dt.week() * 3",
    "polars|ts|a.dt.ordinal_day() * 200",
    "polars|date|a.dt.year() * 1000000",
    "polars|ts|pl.coalesce(a.dt.minute(), 0) * 100",
    "polars|ts|a.dt.hour().cast(pl.Int64) * 100",
    "polars|date|a.dt.year().cast(pl.Int8, strict=False)",
    "polars|text|a.str.len_chars() - 5",
    "polars|texts|a.list.len() - 5 < 0",
]
REORDERED = [
    "pyarrow|f64|(a + 1e16) + -1e16",
    "pyarrow|f32|pc.multiply_checked(a, 127) * 3",
    "pyarrow|f64|(a * a) * 0.1",
]
IN_ORDER = ["pyarrow|f64|a * 3 * a", "pyarrow|f64|(a + 1e16) - 1e16", "pyarrow|f64|a + a + a"]


@pytest.mark.parametrize(
    "name",
    [
        *(*UNSIGNED_COUNTS, *NARROW_FIELDS, *WIDE_SHIFTS, *FLOAT_FIELDS),
        *(*FLOATS_OF_REALS, *REALS_OF_CHOICES, *BORROWED_TYPES, *POLARS_FIELDS, *IN_ORDER),
    ],
)
def test_an_operation_takes_a_value_in_the_type_of_the_engine(name: str) -> None:
    verdict = compared(Case.named(name))
    assert not [*verdict.findings, *verdict.fails_here]
    assert verdict.compared


@pytest.mark.parametrize("name", REORDERED)
def test_a_chain_that_pyarrow_computes_in_another_order_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compared(Case.named(name)).skipped.startswith("refused: ")
    monkeypatch.setattr(read, "keeps_order", lambda _: True)
    assert compared(Case.named(name)).findings
