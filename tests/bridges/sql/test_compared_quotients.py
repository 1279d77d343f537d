"""Quotients of decimals, and decimals next to floats, match the rows that the engine matches."""

from __future__ import annotations

import decimal
import random

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from tests.bridges.sql.engines import JUDGES
from tests.small_tables import fresh_uri

_NEAR = ["0", "5", "500", "-500", "8.34", "1.5", "15", "0.0003", "12.3456", "99999999999999.9999"]


def _near() -> list[decimal.Decimal | None]:
    """Numbers around those whose quotients the conditions compare, and large ones."""
    unit = decimal.Decimal("0.0001")
    found = [decimal.Decimal(text) + step * unit for text in _NEAR for step in (-1, 0)]
    found += [decimal.Decimal(text) + unit for text in _NEAR[:-1]]
    draw = random.Random(5)
    found += [draw.randint(-(10**p), 10**p) * unit for p in range(18) for _ in range(4)]
    return [*found, None]


VALUES = _near()
ROWS = pa.table(
    {
        "k": pa.array(range(len(VALUES)), pa.int64()),
        "d": pa.array(VALUES, pa.decimal128(18, 4)),
        "n": pa.array([None if v is None else int(v) % 2**31 for v in VALUES], pa.int32()),
        "x": [None if v is None else float(v) / 3 for v in VALUES],
    }
)
QUOTIENTS = [
    "d / 100 > 5",
    "d / 100 >= 5",
    "d / -100 < 5",
    "d / 100 = 5",
    "d / 100 <> 5",
    "5 < d / 100",
    "d / 3 > 5",
    "d / 3 <= 0.0001",
    "d / 12 = 0.695",
    "d / 7 BETWEEN 0.5 AND 71.5",
    "NOT (d / 3 IS DISTINCT FROM 5)",
    "CASE WHEN d / 3 > 1 THEN n ELSE 0 END > 4",
]
WITH_FRACTIONS = [
    "d::numeric / 3 > 1",
    "n::numeric / 3 > 1.5",
    "n / 3::numeric <= 1.5",
    "d / 3 > 1.5::numeric",
    "d / 100.0 > 5",
    "d / 2.5 >= 200",
    "n / 3.0 > 1.5",
    "d * 1.0 / 3 > 1",
]
OF_COLUMNS = [
    "d / nullif(n, 0) > 1",
    "coalesce(d, 0) / 3 > 0.5",
    "d / greatest(n, 1) > 1",
    "n / nullif(d, 0) < 0.3",
    "d / 100 IN (5, 0.0834, 71)",
    "d / 100 IN (5, NULL)",
    "d / 7 NOT IN (1, 2)",
]
ROUNDED = [
    "d / 30000000 < 3.33333333333333333",
    "d / 3 > CAST(0.5 AS double precision)",
    "n / 3.0 > d",
    "d / 3 < 1e200",
    "round(d / 3, 2) = 0.5",
    "x::numeric / 3 > 1",
    "d / 3 + n > 1",
]
TRUNCATED = ["d / 20000000 = 0.00000001", "d / 7 <= 71.4", "d / 3 = 0.00003333"]
FLOATS = [
    "d * 1.2 > 10",
    "d / 100.0 > 5",
    "d - 0.1 = 12.2456",
    "x + d > 1",
    "x * 3 = d * 1.0",
    "d % 2.5 > 1",
    "CAST(d AS double) / 3 = x",
    "CAST(d AS double) > 0.1",
]


CHOICES = [
    "nullif(d, 0) > 5",
    "nullif(d, 5) IS NULL",
    "nullif(x, 0) > 1",
    "nullif(x, 0.0) IS NULL",
    "x / nullif(d, 0) > 0.3",
    "nullif(n, 0) > 5",
]


@pytest.fixture(scope="module")
def table() -> rs.Table:
    """Parts of few rows, of neighbouring numbers: conditions skip some of them."""
    made = rs.create_table(fresh_uri(), ROWS.slice(0, 0), key=["k"])
    ordered = ROWS.sort_by("d")
    for start in range(0, ordered.num_rows, 20):
        made.upsert(ordered.slice(start, 20))
    return made


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        *((dialect, text) for dialect in ("postgres", "datafusion") for text in QUOTIENTS),
        *(("postgres", text) for text in (*WITH_FRACTIONS, *OF_COLUMNS, *ROUNDED)),
        *(("datafusion", text) for text in TRUNCATED),
        *(("datafusion", text) for text in FLOATS),
        *((dialect, text) for dialect in ("postgres", "duckdb") for text in CHOICES),
    ],
)
def test_decimals_match_the_rows_of_the_engine(dialect: str, text: str, table: rs.Table) -> None:
    expected = JUDGES[dialect](text, ROWS.to_batches()[0])
    assert expected
    found = table.scan(text, ["k"], dialect=dialect).to_arrow()["k"].to_pylist()
    assert sorted(found) == expected


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "coalesce(d, n) / n > 0.5"),  # a value of its own places
        ("postgres", "d / 3 / 7 > 0.5"),
        ("postgres", "n::text::numeric / 3 > 0.5"),  # zeros at the end are not stored
    ],
)
def test_quotients_of_unknown_digits_are_refused(dialect: str, text: str, table: rs.Table) -> None:
    with pytest.raises((UnsupportedOperation, InvalidPredicate)):
        table.scan(text, dialect=dialect)


@pytest.mark.parametrize("text", ["d / 100 > 10000", "d / 100 IN (10000, 20000)"])
def test_a_compared_quotient_skips_parts(text: str, table: rs.Table) -> None:
    scan = table.scan(text)
    assert scan.to_arrow().num_rows == table.count(text)
    assert scan.metrics.parts_read < scan.metrics.parts_considered
