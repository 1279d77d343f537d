"""Constants in the spellings of each dialect have the values that its engine gives them."""

from __future__ import annotations

from typing import Any

import datafusion
import duckdb
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidPredicate
from tests.small_tables import fresh_uri

ROWS = pa.table(
    {
        "n": range(1, 7),
        "s": ["a", "it's", "a\\nb", "x\ny", "date_part", "A"],
        "i": [1, 2, 10, 100, 1000, 5],
        "b": pa.array([b"\x0f", b"a", b"\\x61", b"", b"\xff", b"x"]),
        "f": [0.5, 1.0, 1e5, 2.0, 3.0, 4.0],
        "d": pa.array([None, 0, 1, 2, 400, 800], pa.date32()),
    }
)
COMMON = [
    r"s = E'x\ny'", r"s = e'a\\nb'", r"s = E'it\'s'", "s = E'it''s'", r"s IN (E'\x41', E'\141')",
    "s = $$it's$$", "s = $q$it's$q$", r"s = 'a\nb'", "s = 'it''s'", "f = 1.", "f = .5", "f = 1e5",
    "f = 1E+5", "f = 1.e5", "i = 1 /* a /* b */ c */", "i = 10 -- it's", "s LIKE E'x\n%'",
]  # fmt: skip
BYTES = [
    r"b = '\x61'", r"b <> '\x61'", r"'\x61' = b", r"b IN ('a', '\x61')", r"b > '\x00'",
    r"b BETWEEN '\x00' AND '\x62'", r"b IS DISTINCT FROM '\x61'", "b = 'a'",
]  # fmt: skip


@pytest.fixture(scope="module")
def table() -> rs.Table:
    return rs.create_table(fresh_uri(), ROWS)


def numbers(rows: Any) -> list[int]:
    return sorted(rows.column("n").to_pylist())


@pytest.mark.parametrize("text", [*COMMON, *BYTES])
def test_constants_are_those_of_datafusion(table: rs.Table, text: str) -> None:
    engine = datafusion.SessionContext()
    engine.register_record_batches("t", [ROWS.to_batches()])
    expected = engine.sql(f"SELECT n FROM t WHERE {text}\n").to_arrow_table()
    assert numbers(table.scan(text, dialect="datafusion").to_arrow()) == numbers(expected)


@pytest.mark.parametrize("text", [*COMMON, *BYTES])
def test_constants_are_those_of_duckdb(table: rs.Table, text: str) -> None:
    with duckdb.connect() as engine:
        engine.register("t", ROWS)
        expected = engine.sql(f"SELECT n FROM t WHERE {text}\n").to_arrow_table()
    assert numbers(table.scan(text, dialect="duckdb").to_arrow()) == numbers(expected)


@pytest.mark.parametrize("text", COMMON)
def test_constants_of_postgres_are_those_of_duckdb(table: rs.Table, text: str) -> None:
    assert numbers(table.scan(text).to_arrow()) == numbers(
        table.scan(text, dialect="duckdb").to_arrow()
    )


@pytest.mark.parametrize("text", [r"s = E'\u0041'", r"s = E'\xff'", r"s = E'\q'", r"s = E'\0'"])
def test_escapes_of_one_engine_are_refused(table: rs.Table, text: str) -> None:
    for dialect in ("postgres", "duckdb", "datafusion"):
        with pytest.raises(InvalidPredicate, match="codes of ASCII"):
            table.scan(text, dialect=dialect)


@pytest.mark.parametrize("tag", ["a-b", "a.b", "a+", "a'"])
def test_a_tag_between_dollars_is_a_name(table: rs.Table, tag: str) -> None:
    for dialect in ("postgres", "duckdb", "datafusion"):
        with pytest.raises(InvalidPredicate, match="the tag between dollars is a name"):
            table.scan(f"s = ${tag}$a${tag}$", dialect=dialect)
        assert numbers(table.scan("s = $é_1$a$é_1$", dialect=dialect).to_arrow()) == [1]


def test_bits_of_postgres_are_not_bytes(table: rs.Table) -> None:
    assert numbers(table.scan("b IN (X'0f', X'FF')").to_arrow()) == [1, 5]  # PostgreSQL fails
    for text in ("length(X'0f') = 1", "b = b || X'0f'", "octet_length(coalesce(b, X'')) = 0"):
        with pytest.raises(InvalidPredicate, match="string of bits in postgres"):
            table.scan(text)


def test_texts_and_names_are_not_calls_of_fields(table: rs.Table) -> None:
    inner = "CAST(extract(day FROM d) AS int)"
    text = f"s <> 'date_part' AND extract(year FROM d + {inner}) % 2 = 0"
    assert numbers(table.scan(text).to_arrow()) == [2, 3, 4, 6]
