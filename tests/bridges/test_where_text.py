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
    *(
        ("duckdb", f"{cast}(s AS {type_}) IS NOT NULL", "compare it as text")
        for cast in ("CAST", "TRY_CAST")
        for type_ in ("BIGINT", "DOUBLE", "REAL", "DECIMAL(9, 2)", "DATE", "TIMESTAMP")
    ),
    ("duckdb", "TRY_CAST(trim(s, ' ') AS INT) = 1", "compare it as text"),
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
    ("duckdb", "i = CAST('7' AS BIGINT) OR CAST(i AS VARCHAR) = '7'"),
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


END = (2**63 - 1) // 1000  # of nanoseconds, in microseconds
YEAR = 365 * 86_400_000_000
FAR = pa.table(
    {
        "k": pa.array(range(12), pa.int64()),
        "ts": pa.array(
            [
                *(-62_135_596_800_000_000, -END - 1, -END, -END + 86_400_000_000, -END + 40 * YEAR),
                *(0, 1, END - 40 * YEAR, END - 1, END, END + 1, None),
            ],
            pa.timestamp("us"),
        ),
    },
    schema=pa.schema([pa.field("k", pa.int64(), nullable=False), ("ts", pa.timestamp("us"))]),
)


@pytest.mark.parametrize("origin", ["", "2001-01-01", "2250-01-01", "1700-01-01"])
@pytest.mark.parametrize("width", ["1 microsecond", "1 day", "90000 days", "1 month", "1000 years"])
def test_bins_are_null_where_nanoseconds_overflow(width: str, origin: str) -> None:
    table = rs.create_table(fresh_uri(), FAR.schema, key=["k"])
    table.upsert(FAR)
    given = f", TIMESTAMP '{origin}'" if origin else ""
    bin_ = f"date_bin(INTERVAL '{width}', ts{given})"
    for text in (
        f"{bin_} < TIMESTAMP '2011-12-29 23:00:00'",
        f"NOT {bin_} < TIMESTAMP '2011-12-29 23:00:00'",
        f"{bin_} IS NULL",
        f"{bin_} IN (TIMESTAMP '1970-01-01', TIMESTAMP '2001-01-01')",
    ):
        found = table.scan(text, ["k"], dialect="datafusion").to_arrow()["k"].to_pylist()
        assert sorted(found) == JUDGES["datafusion"](text, FAR.to_batches()[0]), text


@pytest.mark.parametrize(
    "text",
    [
        "date_bin(INTERVAL '1 day', ts, TIMESTAMP '0001-01-01') IS NULL",
        "date_bin(INTERVAL '200000 days', ts) IS NULL",
    ],
)
def test_bins_that_datafusion_cannot_make_are_refused(text: str) -> None:
    table = rs.create_table(fresh_uri(), FAR.schema, key=["k"])
    with pytest.raises((UnsupportedOperation, rs.errors.InvalidPredicate), match="nanoseconds"):
        table.scan(text, dialect="datafusion")
