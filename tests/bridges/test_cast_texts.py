"""Casts of text columns keep, in `where=` and in translations, the rows that the engine keeps."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.sql.language import from_text, to_text
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import EvaluationError, UnreadText
from rowsieve.types.encodings import schema_of
from tests.bridges.sql.engines import JUDGES
from tests.small_tables import fresh_uri

NUMBERS = ["1_000", "1000", " 7 ", "0x1F", "1.5", "2.5", "1e3", "nan", "on", "tru", " t", "x", ""]
NUMBERS += ["99999999999999999999", "-0.4", "15e-1", "0b11", "1e400", "2", "007", "1__0", "\v2"]
DAYS = ["2024-07-03", "2024-7-3", "20240703", " 2024-07-03", "2024-02-30", "n/a", "", "2024-07-04"]
MOMENTS = ["2024-07-03 10:20:30", "2024-07-03T10:20:30Z", "2024-07-03 10:20:30.5+02", "2024-07-03"]
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("s", pa.string())])


def rows(texts: list[str | None]) -> pa.Table:
    return pa.table({"k": range(len(texts)), "s": texts}, schema=SCHEMA)


def stored(data: pa.Table) -> rs.Table:
    table = rs.create_table(fresh_uri(), SCHEMA, key=["k"])
    for start in range(0, data.num_rows, 3):  # small parts, so that statistics can prune
        table.upsert(data.slice(start, 3))
    return table


DATAFUSION = [
    ("TRY_CAST(s AS BIGINT) = 1000", NUMBERS),
    ("TRY_CAST(s AS INT) IN (2, 3, 7)", NUMBERS),
    ("TRY_CAST(s AS INT) = 7", NUMBERS),
    ("NOT TRY_CAST(s AS INT) < 3", NUMBERS),
    ("TRY_CAST(s AS TINYINT) IS NULL", NUMBERS),
    ("TRY_CAST(s AS DOUBLE) > 999.5", NUMBERS),
    ("TRY_CAST(s AS REAL) IS NULL", NUMBERS),
    ("TRY_CAST(s AS DECIMAL(9, 0)) BETWEEN 2 AND 7", NUMBERS),
    ("TRY_CAST(s AS BOOLEAN)", NUMBERS),
    ("CAST(CASE WHEN s IN ('007', '2') THEN s END AS INT) = 7", NUMBERS),
    ("TRY_CAST(s AS DATE) = DATE '2024-07-03'", [*DAYS, *MOMENTS]),
    ("TRY_CAST(s AS DATE) IS NULL", [*DAYS, *MOMENTS]),
    ("TRY_CAST(s AS TIMESTAMP) >= TIMESTAMP '2024-07-03 10:00:00'", [*DAYS, *MOMENTS]),
    ("TRY_CAST(s AS TIMESTAMP) IS NULL", [*DAYS, *MOMENTS]),
    ("CAST(s AS TIMESTAMP) < TIMESTAMP '2024-07-03 10:00:00'", MOMENTS),
]
POSTGRES = [
    ("CAST(s AS int) > 6", ["1_000", "0x1F", " 7 ", "007", "-0b11", "0o17"]),
    ("s::int IN (7, 31)", ["1_000", "0x1F", " 7 ", "007", "-0b11", "0o17"]),
    ("s::double precision > 2", ["1e3", "nan", "inf", " 2.5 ", "1.", "-Infinity"]),
    ("s::numeric(9, 2) = 1.01", ["1.005", "1.0149", "101e-2", "1_0.1", "0x1"]),
    ("s::boolean", ["tru", "of", " on ", "1", "f", "yes"]),
    ("s::date = '2024-07-03'", ["2024-07-03", "2024-7-3", "20240703", "2024/07/04", *MOMENTS]),
    ("s::timestamp >= '2024-07-03 10:00'", [*MOMENTS, "2024-7-3 9:08"]),
    ("s::timestamptz >= '2024-07-03 10:00+00'", [*MOMENTS, "2024-7-3 9:08"]),
    ("s::time > '10:00'", ["9:59", "10:20:30.5", "23:59"]),
]
CASES = [("datafusion", *case) for case in DATAFUSION] + [("postgres", *case) for case in POSTGRES]


@pytest.mark.parametrize(("dialect", "where", "texts"), CASES)
def test_casts_of_text_keep_the_rows_of_the_engine(
    dialect: str, where: str, texts: list[str]
) -> None:
    data = rows([*texts, None])
    expected = JUDGES[dialect](where, data.to_batches()[0])
    assert expected
    kept = stored(data).scan(where, ["k"], dialect=dialect).to_arrow()
    assert sorted(kept["k"].to_pylist()) == expected


@pytest.mark.parametrize(("dialect", "where", "texts"), CASES)
def test_text_that_is_written_reads_back_for_the_engine(
    dialect: str, where: str, texts: list[str]
) -> None:
    schema, data = schema_of(SCHEMA)[0], rows([*texts, None])
    read = from_text(where, schema, dialect=dialect)
    if read.exactness is not Exactness.EXACT:
        assert dialect == "datafusion"
        assert any(kind in where for kind in ("DATE", "TIMESTAMP", "DOUBLE"))  # or -nan
        return
    made = to_text(read.exact(), schema, dialect=dialect, strict="timestamptz" not in where)
    if made.exactness is Exactness.EXACT:
        batch = data.to_batches()[0]
        assert JUDGES[dialect](made.exact(), batch) == JUDGES[dialect](where, batch)


@pytest.mark.parametrize(
    ("dialect", "where", "text"),
    [
        ("postgres", "s::int = 1", "1.5"),
        ("postgres", "s::numeric(3, 1) = 1", "1e400"),
        ("postgres", "s::float8 = 1", "1e-400"),
        ("datafusion", "CAST(s AS INT) = 1", "1_000"),
        ("datafusion", "CAST(s AS DATE) = DATE '2024-07-03'", " 2024-07-03"),
        ("trino", "CAST(s AS BOOLEAN)", "on"),
        ("trino", "CAST(s AS DOUBLE) = 1e0", "nan"),
    ],
)
def test_a_cast_without_a_value_fails_as_in_the_engine(dialect: str, where: str, text: str) -> None:
    data = rows([text])
    if dialect in JUDGES:
        assert JUDGES[dialect](where, data.to_batches()[0]) is None
    with pytest.raises(EvaluationError):
        stored(data).scan(where, dialect=dialect).to_arrow()


@pytest.mark.parametrize(
    ("dialect", "where", "text"),
    [
        ("postgres", "s::date > '2024-01-01'", "July 3, 2024"),
        ("datafusion", "TRY_CAST(s AS TIMESTAMP) IS NULL", "2024-07-03 10:20:30 EST"),
        ("trino", "TRY_CAST(s AS BIGINT) IS NULL", " 7"),
    ],
)
def test_a_text_that_only_the_engine_reads_is_an_error_and_no_null(
    dialect: str, where: str, text: str
) -> None:
    with pytest.raises(UnreadText, match=f"{dialect} has rules of its own"):
        stored(rows([text])).scan(where, dialect=dialect).to_arrow()


UNREAD = [
    ("postgres", "DATE", "today", "2024-07-03"),
    ("postgres", "TIMESTAMP", "July 3, 2024", "2024-07-03 10:00"),
    ("postgres", "DOUBLE PRECISION", "0x1F", "1.5"),
    ("duckdb", "DATE", " infinity", "2024-07-03"),
    ("duckdb", "TIMESTAMP", " 2024-07-03 10:00:00", "2024-07-03 10:00:00"),
    ("duckdb", "DOUBLE", "nan(1)", "1.5"),
    ("datafusion", "TIMESTAMP", "2024-07-03 10:20:30 EST", "2024-07-03 10:20:30"),
    ("trino", "BIGINT", " 7", "7"),
    ("trino", "DOUBLE", "1.5f", "1e0"),
    ("spark", "TIMESTAMP", "10:30", "2024-07-03 10:20:30"),
    ("spark", "DOUBLE", "0x1p3", "1.5"),
]


@pytest.mark.parametrize("pruning", ["on", "off", "soft"])
@pytest.mark.parametrize(("dialect", "type_", "unread", "read"), UNREAD)
def test_unread_text_raises_only_on_rows_that_other_conditions_keep(
    dialect: str, type_: str, unread: str, read: str, pruning: Any
) -> None:
    table = stored(rows([unread, read, None]))
    tried = f"TRY_CAST(s AS {type_}) IS NOT NULL"
    for where in (
        f"s <> '{unread}' AND {tried}",
        f"k > 0 AND CAST(s AS {type_}) IS NOT NULL",
        f"NOT (s = '{unread}' OR NOT ({tried}))",
        f"CASE WHEN s <> '{unread}' THEN {tried} ELSE FALSE END",
    ):
        scan = table.scan(where, dialect=dialect, pruning=pruning)
        assert scan.to_arrow()["k"].to_pylist() == [1], where
        assert table.count(where, dialect=dialect) == 1
    for where in (tried, f"k >= 0 AND NOT ({tried})", f"CASE WHEN k = 0 THEN {tried} END"):
        with pytest.raises(UnreadText, match=re.escape(repr(unread))):
            table.scan(where, dialect=dialect, pruning=pruning).to_arrow()


def test_a_computed_column_needs_no_text_of_a_branch_that_is_not_taken() -> None:
    table = stored(rows(["today", "2024-07-03"]))
    day = {"day": "CASE WHEN k > 0 THEN CAST(s AS DATE) END"}
    found = table.scan(columns=day, order_by_key=True).to_arrow()["day"].to_pylist()
    assert found == [None, datetime.date(2024, 7, 3)]
    with pytest.raises(UnreadText, match="'today'"):
        table.scan(columns={"day": "TRY_CAST(s AS DATE)"}).to_arrow()


@pytest.mark.parametrize("audit", [0, 100])
def test_an_audit_does_not_count_unread_text_as_a_violation(audit: int) -> None:
    table = stored(rows(["today", "x", "y", "2024-07-03"]))  # two parts; the first is refuted
    where = "k > 2 AND TRY_CAST(s AS DATE) = DATE '2024-07-03'"
    assert table.scan(where, audit=audit).to_arrow()["k"].to_pylist() == [3]


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("TRY_CAST(s AS BIGINT) = 7", ["7"]),
        ("TRY_CAST(s AS DOUBLE) >= 1e3", ["1e3", "Infinity"]),
        ("TRY_CAST(s AS DECIMAL(9, 2)) = CAST('1000.00' AS DECIMAL(9, 2))", ["1e3"]),
        ("TRY_CAST(s AS BOOLEAN)", ["t"]),
        ("TRY_CAST(s AS DATE) = DATE '2024-07-03'", ["2024-07-03"]),
        ("TRY_CAST(s AS TIMESTAMP(6)) >= TIMESTAMP '2024-07-03 00:00:00.000000'", ["2024-07-03"]),
    ],
)
def test_casts_of_trino_keep_the_rows_of_its_source(where: str, kept: list[str]) -> None:
    texts = ["7", "1e3", "Infinity", "t", "n/a", ""]
    if "DATE" in where or "TIME" in where:
        texts = ["2024-07-03", "2024-07-02", "n/a", ""]
    found = stored(rows([*texts])).scan(where, ["s"], dialect="trino").to_arrow()
    assert found["s"].to_pylist() == kept
