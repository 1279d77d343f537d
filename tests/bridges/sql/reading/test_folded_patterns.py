"""ILIKE and letters whose cases are not one pair: each dialect matches them as its engine does."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate
from tests.bridges.sql.postgres import postgres_rows
from tests.duckdb_sessions import duckdb_session

LETTERS = [
    *sorted(
        "aAiI\u0130\u0131kK\u212asS\u017f\u00df\u1e9e\u03c3\u03c2\u03a3\u00b5\u03bc\u039c\u00e5\u00c5\u212b\u03b8\u03d1\u03f4\u0390\u1fd3\u00e9\u00c9\u01c6\u01c5\u01c4_%"
    ),
    "ss",
    "ISS",
    "\u0130S\u017f",
    None,
]
ROWS = pa.table({"k": pa.array(range(len(LETTERS)), pa.int64()), "s": LETTERS})
PATTERNS = (
    "i",
    "\u0130%",
    "K",
    "s",
    "S_%",
    "\u00df",
    "\u03c3",
    "\u03a3",
    "\u03c2",
    "\u00b5",
    "\u00c5",
    "\u03b8",
    "\u0390",
    "\u00c9",
    "\u01c4",
    "%ss",
)


def in_duckdb(text: str) -> list[int]:
    connection = duckdb_session()
    connection.register("t", ROWS)
    return sorted(k for (k,) in connection.execute(f"SELECT k FROM t WHERE {text}").fetchall())


def in_postgres(text: str) -> list[int] | None:
    return postgres_rows(text, ROWS.to_batches()[0])


def in_datafusion(text: str) -> list[int]:
    import datafusion

    context = datafusion.SessionContext()
    context.register_record_batches("t", [ROWS.to_batches()])
    found = context.sql(f"SELECT k FROM t WHERE {text}").to_arrow_table()
    return sorted(found["k"].to_pylist())


@pytest.mark.parametrize(
    ("dialect", "judge"),
    [("duckdb", in_duckdb), ("postgres", in_postgres), ("datafusion", in_datafusion)],
)
def test_ilike_matches_the_letters_of_the_engine(dialect: str, judge: Any) -> None:
    table = rs.create_table(f"memory:///folded_{dialect}", ROWS.schema, key=["k"])
    for start in range(0, ROWS.num_rows, 5):
        table.upsert(ROWS.slice(start, 5))
    for pattern in PATTERNS:
        for text in (f"s ILIKE '{pattern}'", f"s NOT ILIKE '{pattern}'"):
            found = sorted(table.to_arrow(text, ["k"], dialect=dialect)["k"].to_pylist())
            assert (text, found) == (text, judge(text))


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_a_letter_does_not_escape_a_pattern_of_any_case(dialect: str) -> None:
    table = rs.create_table(f"memory:///escaped_{dialect}", ROWS, key=["k"])
    with pytest.raises(InvalidPredicate, match="a letter as the escape of ILIKE"):
        table.count("s ILIKE 'axb' ESCAPE 'x'", dialect=dialect)


def test_ilike_is_not_written_for_an_engine_that_matches_other_letters() -> None:
    text = "s ILIKE 'S%'"
    made = rs.translate(text, "datafusion", target="duckdb", schema=ROWS.schema)
    assert made.exactness is Exactness.UNSUPPORTED
    kept = rs.translate(text, "duckdb", target="duckdb", schema=ROWS.schema)
    assert kept.expression == """lower("s") LIKE 's%'"""
