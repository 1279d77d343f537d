"""Constants with a type, `numeric '1'` or `interval '1 day'`, in every place of a condition.

The rows are those of PostgreSQL 15, which was asked once.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidPredicate
from tests.small_tables import fresh_uri

NUMBER = pa.field("m", pa.string(), metadata={"ARROW:extension:name": "rowsieve.numeric.1"})
SPAN = pa.field("v", pa.month_day_nano_interval())
ROWS = pa.table(
    [
        pa.array([1, 2, 3, 4], pa.int64()),
        pa.array([1, 2, 100, None], pa.int64()),
        pa.array([0.5, float("nan"), 0.1, None]),
        pa.array(["1", "NaN", "0.1234567890123456789012345678901234567890", None]),
        pa.array(["1", "a", "", None]),
        pa.array([(0, 1, 0), (0, 0, 86_400 * 10**9), (1, 0, 0), None], SPAN.type),
    ],
    schema=pa.schema(
        [
            ("n", pa.int64()),
            ("i", pa.int64()),
            ("f", pa.float64()),
            NUMBER,
            ("s", pa.string()),
            SPAN,
        ]
    ),
)
EXPECTED = {
    "i IN (numeric '1', numeric '100.0', numeric '1.5')": [1, 3],
    "i NOT IN (numeric '1')": [2, 3],
    "i NOT IN (numeric '1', NULL)": [],
    "i IN (numeric '1e45', 2)": [2],
    "i + 1 IN (numeric '2')": [1],
    "i = ANY(ARRAY[numeric '1'])": [1],
    "f IN (numeric '0.5', numeric '0.1')": [1, 3],
    "f NOT IN (numeric 'NaN')": [1, 3],
    "m IN (numeric '1.00', numeric 'NaN')": [1, 2],
    "m = numeric '1.00' OR m = numeric '1' OR m = numeric '2'": [1],
    "COALESCE(m, numeric '1.0') IN (numeric '1')": [1, 4],
    "NULLIF(m, numeric '1.0') IS NULL": [1, 4],
    "NULLIF(numeric 'NaN', m) IS NULL": [2],
    "numeric '1' = numeric '1.0'": [1, 2, 3, 4],
    "numeric '2' > numeric '10'": [],
    "numeric '1' IN (m, numeric '2')": [1],
    "jsonb '1' = jsonb '1.0'": [1, 2, 3, 4],
}
INTERVALS = [
    "interval '1 day' = interval '24 hours'", "interval '1 day' <> interval '24 hours'",
    "interval '1 month' < interval '31 days'", "interval '1 day' IN (interval '24 hours')",
    "interval '1 day' IS DISTINCT FROM interval '24 hours'", "v IN (interval '24 hours')",
    "v = interval '30 days' OR v = interval '24 hours'",
    "n = 1 OR interval '1 day' BETWEEN interval '23 hours' AND interval '24 hours'",
]  # fmt: skip


@pytest.fixture(scope="module")
def table() -> rs.Table:
    return rs.create_table(fresh_uri(), ROWS)


def kept(table: rs.Table, text: str, dialect: str) -> list[int]:
    return sorted(table.scan(text, dialect=dialect).to_arrow()["n"].to_pylist())


@pytest.mark.parametrize("text", EXPECTED)
def test_typed_constants_are_compared_by_value(table: rs.Table, text: str) -> None:
    assert kept(table, text, "postgres") == EXPECTED[text]


@pytest.mark.parametrize("text", INTERVALS)
def test_constant_intervals_are_compared_by_length(table: rs.Table, text: str) -> None:
    with duckdb.connect() as engine:
        engine.register("t", ROWS.select(["n", "v"]))
        expected = [row[0] for row in engine.sql(f"SELECT n FROM t WHERE {text}").fetchall()]
    assert kept(table, text, "duckdb") == kept(table, text, "postgres") == sorted(expected)


@pytest.mark.parametrize("column", ["s", "v"])
def test_a_list_of_numerics_takes_numbers_only(table: rs.Table, column: str) -> None:
    with pytest.raises(InvalidPredicate, match=r"a numeric is compared with|IN a list of"):
        table.scan(f"{column} IN (numeric '1')")


def test_a_numeric_constant_is_refused_for_polars_by_its_type(table: rs.Table) -> None:
    translation = rs.translate(
        "NULLIF(m, numeric '1') IS NULL", "postgres", target="polars", schema=table.schema
    )
    assert "a constant of type numeric" in str(translation.notes)
