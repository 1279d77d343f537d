"""`where=` as text of DuckDB and DataFusion: what they compare otherwise is refused."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.bridges.sql import parse_predicate, to_sql
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
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
    ("datafusion", "d = CAST(g AS DOUBLE)", "cast them to one"),
    ("datafusion", "ifnull(d, 0) = 7", "write COALESCE"),
    ("duckdb", "d % CAST(2.25 AS DECIMAL(3, 2)) = 1", "same values in duckdb only"),
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
    ("duckdb", "d % CAST(2.5 AS DECIMAL(2, 1)) = 2"),
    ("duckdb", "trim(s) = 'a'"),
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


TEXTS = [
    "1_000",
    "1000",
    " 7 ",
    "0x1F",
    "1.5",
    "2.5",
    "1e3",
    "inf",
    "nan",
    "on",
    "t",
    " t",
    "x",
    "",
]
TEXTS += ["99999999999999999999", "-0.4", "15e-1", "0b11", "1e400", "2", "31", "1__0", "1001"]
SPELLED = pa.table(
    {
        "k": pa.array(range(2 * len(TEXTS)), pa.int64()),
        "s": [*TEXTS, *TEXTS],
        "j": [
            *(json.dumps({"n": text}) for text in TEXTS),  # a text that looks like a number
            *(f'{{"n": {text}}}' for text in ("1000", "1.5", "2.5", "31", "-0.4", "2", "1001")),
            *("{}" for _ in TEXTS[7:]),
        ],
    },
    schema=pa.schema(
        [pa.field("k", pa.int64(), nullable=False), ("s", pa.string()), ("j", pa.json_())]
    ),
)


@pytest.fixture(scope="module")
def spelled() -> Table:
    """Small parts, so that statistics can prune."""
    table = rs.create_table(fresh_uri(), SPELLED.schema, key=["k"])
    for start in range(0, SPELLED.num_rows, 3):
        table.upsert(SPELLED.slice(start, 3))
    return table


@pytest.mark.parametrize(
    ("text", "theirs"),
    [("s", "s"), ("json_get_text(j, 'n')", "(j->>'n')"), ("lower(s)", "lower(s)")],
)
@pytest.mark.parametrize(
    "condition",
    [
        "TRY_CAST({} AS BIGINT) = 1000",
        "TRY_CAST({} AS BIGINT) IN (2, 3, 31)",
        "TRY_CAST({} AS TINYINT) IS NULL",
        "NOT TRY_CAST({} AS INT) < 1001",
        "TRY_CAST({} AS DOUBLE) > 999.5",
        "TRY_CAST({} AS REAL) IS NULL",
        "TRY_CAST({} AS DECIMAL(9, 0)) BETWEEN 2 AND 7",
        "TRY_CAST({} AS BOOLEAN)",
        "TRY_CAST(CASE WHEN {} <> 'inf' THEN {} END AS DATE) IS NULL AND k < 9",
        "CAST(CASE WHEN {} IN ('1_000', '0b11', '1000') THEN {} END AS BIGINT) = 1000",
    ],
)
def test_duckdb_casts_read_the_texts_that_duckdb_reads(
    spelled: Table, text: str, theirs: str, condition: str
) -> None:
    expected = JUDGES["duckdb"](condition.replace("{}", theirs), SPELLED.to_batches()[0])
    assert expected
    kept = spelled.scan(condition.replace("{}", text), ["k"], dialect="duckdb").to_arrow()
    assert sorted(kept["k"].to_pylist()) == expected


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("k = CAST('1_000' AS BIGINT) - 990", 1),
        ("k < '0x0F'::INT", 15),
        ("k < TRY_CAST('1.5e1' AS BIGINT)", 15),
        ("CAST('infinity' AS DOUBLE) > k", SPELLED.num_rows),
    ],
)
def test_duckdb_casts_of_constants_have_its_values(where: str, count: int) -> None:
    table = rs.create_table(fresh_uri(), SPELLED.schema, key=["k"])
    table.upsert(SPELLED)
    assert len(JUDGES["duckdb"](where, SPELLED.to_batches()[0]) or []) == count
    assert table.scan(where, dialect="duckdb").count() == count


@pytest.mark.parametrize("where", ["TRY_CAST(s AS BIGINT) = 1", "k = CAST('123e-40' AS BIGINT)"])
def test_duckdb_texts_with_rules_of_their_own_are_refused_by_name(where: str) -> None:
    table = rs.create_table(fresh_uri(), SPELLED.schema, key=["k"])
    odd = SPELLED.slice(0, 1).set_column(1, "s", pa.array(["12345678901234567890e-19"]))
    table.upsert(odd)
    refused = (UnsupportedOperation, rs.errors.InvalidPredicate)  # a constant when its text is read
    with pytest.raises(refused, match="duckdb has rules of its own"):
        table.scan(where, dialect="duckdb").to_arrow()


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


BINS = [
    "date_bin(INTERVAL '1 day', ts)",
    "date_bin(INTERVAL '1 month', ts, TIMESTAMP '2001-01-01')",
    "CASE WHEN k > 3 THEN date_bin(INTERVAL '90000 days', ts, TIMESTAMP '1700-01-01') END",
]


def bins_of_datafusion(bin_: str) -> list[object]:
    import datafusion

    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    context.register_record_batches("t", [FAR.to_batches()])
    made = context.sql(f"SELECT {bin_} AS b FROM t ORDER BY k").to_arrow_table()
    found: list[object] = made["b"].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    return found


@pytest.mark.parametrize("bin_", BINS)
def test_bins_of_computed_columns_and_assignments_are_null_there_too(bin_: str) -> None:
    table = rs.create_table(fresh_uri(), FAR.schema, key=["k"])
    table.upsert(FAR)
    expected = bins_of_datafusion(bin_)
    assert None in expected[:-1]
    made = table.scan(columns={"k": "k", "b": bin_}, dialect="datafusion").to_arrow().sort_by("k")
    assert made["b"].cast(pa.int64()).to_pylist() == expected
    table.update({"ts": bin_}, where="TRUE", dialect="datafusion")
    assert table.scan().to_arrow().sort_by("k")["ts"].cast(pa.int64()).to_pylist() == expected


@pytest.mark.parametrize("bin_", BINS)
def test_bins_read_without_a_schema_are_null_there_too(bin_: str) -> None:
    read = parse_predicate(f"{bin_} IS NULL", "datafusion")
    assert parse_predicate(to_sql(read, "datafusion"), "datafusion") == read
    kept = evaluate(bind(read, schema_of(FAR.schema)[0], Semantics.DATAFUSION), FAR.to_batches()[0])
    assert kept.true.tolist() == [value is None for value in bins_of_datafusion(bin_)]


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
