"""`where=` as text of DuckDB and DataFusion: what they compare otherwise is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.errors import UnsupportedOperation
from tests.bridges.sql.engines import JUDGES
from tests.small_tables import fresh_uri

ROWS = pa.table(
    {
        "k": pa.array([0, 1, 2], pa.int64()),
        "g": pa.array([0.1, 16777216.0, 7.0], pa.float32()),
        "i": pa.array([16777217, 16777217, 7], pa.int64()),
        "d": pa.array(["0.1", "0.2", "7"]).cast(pa.decimal128(38, 1)),
        "s": ["\u00a0a", " a ", "b"],
    },
    schema=pa.schema(
        [
            pa.field("k", pa.int64(), nullable=False),
            *(("g", pa.float32()), ("i", pa.int64()), ("d", pa.decimal128(38, 1))),
            ("s", pa.string()),
        ]
    ),
)
REFUSED = [
    ("duckdb", "g = d", "cast them to one"),
    ("duckdb", "trim(s) = 'a'", "name them, as in"),
    ("datafusion", "d = CAST(g AS DOUBLE)", "cast them to one"),
    ("datafusion", "ifnull(d, 0) = 7", "write COALESCE"),
]
READ = [
    ("duckdb", "g = 0.1"),
    ("duckdb", "g = i"),
    ("duckdb", "g < i"),
    ("duckdb", "g >= -2.9 AND g < 10"),
    ("duckdb", "g BETWEEN -2.9 AND 10"),
    ("duckdb", "g > 16777216.5 OR g + 1 = i"),
    ("duckdb", "g + 1 >= 16777216"),
    ("duckdb", "g * 2 > i"),
    ("datafusion", "g = i"),
    ("datafusion", "g <= i"),
    ("datafusion", "g >= 16777217"),
    ("datafusion", "g + 1 >= 16777216"),
    ("datafusion", "g * 2 > i"),
    ("datafusion", "i >= -2.9 AND i < 10"),
    ("datafusion", "g NOT IN (0, 1)"),
    ("duckdb", "g = CAST(0.1 AS REAL)"),
    ("duckdb", "CAST(g AS DOUBLE) = CAST(i AS DOUBLE)"),
    ("duckdb", "trim(s, ' ') = 'a'"),
    ("datafusion", "d = 0.1"),
    ("datafusion", "g = CAST(i AS REAL)"),
]


@pytest.fixture
def table() -> Table:
    made = rs.create_table(fresh_uri(), ROWS.schema, key=["k"])
    made.upsert(ROWS)
    return made


@pytest.mark.parametrize(("dialect", "text", "way_out"), REFUSED)
def test_a_change_of_other_rows_than_the_engine_means_is_refused(
    table: Table, dialect: str, text: str, way_out: str
) -> None:
    error = (UnsupportedOperation, rs.errors.InvalidPredicate)
    for act in (
        lambda: table.delete(text, dialect=dialect),
        lambda: table.scan(text, dialect=dialect),
        lambda: table.update({"s": "'x'"}, where=text, dialect=dialect),
    ):
        with pytest.raises(error, match=way_out):
            act()
    assert table.scan().count() == 3


@pytest.mark.parametrize(("dialect", "text"), READ)
def test_rows_deleted_are_those_of_the_engine(table: Table, dialect: str, text: str) -> None:
    found = JUDGES[dialect](text, ROWS.to_batches()[0])
    assert found
    assert table.scan(text, ["k"], dialect=dialect).to_arrow()["k"].to_pylist() == found
    table.delete(text, dialect=dialect)
    left = table.scan(columns=["k"]).to_arrow()["k"].to_pylist()
    assert sorted(left) == sorted({0, 1, 2} - set(found))
