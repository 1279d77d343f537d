"""Letters whose case is newer than an engine's Unicode: as in the engine, and never pruned."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import SessionContext

import rowsieve as rs
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.ir import Call, Column
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion import SessionContext as OurSession
from rowsieve.types.encodings import schema_of
from tests.daily import is_due
from tests.small_tables import fresh_uri

SMALL, CAPITAL = "\u027c", "\ua7e2"  # a pair since Unicode 18


@cache
def all_letters() -> pa.Table:
    """All letters beyond ASCII; a million, so that no process makes them to collect its tests."""
    codes = [code for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000]
    return pa.table({"i": range(len(codes)), "s": list(map(chr, codes))})


def _in_duckdb(rows: pa.Table, function: str) -> list[str]:
    with duckdb.connect() as connection:
        connection.register("t", rows)
        found = connection.sql(f"SELECT {function}(s) FROM t ORDER BY i").fetchall()
    return [text for (text,) in found]


def _in_datafusion(rows: pa.Table, function: str) -> list[Any]:
    context = SessionContext()
    context.from_arrow(rows, "t")
    found = context.sql(f"SELECT {function}(s) s FROM t ORDER BY i").collect()
    return list(pa.Table.from_batches(found)["s"].to_pylist())


def _in_polars(rows: pa.Table, function: str) -> list[str]:
    texts = pl.Series(rows["s"].to_pylist()).str
    return (texts.to_uppercase() if function == "upper" else texts.to_lowercase()).to_list()


ENGINES: dict[str, tuple[Callable[[pa.Table, str], list[str]], Semantics]] = {
    "duckdb": (_in_duckdb, Semantics.DUCKDB),
    "datafusion": (_in_datafusion, Semantics.DATAFUSION),
    "polars": (_in_polars, Semantics.POLARS),
}


def here(rows: pa.Table, function: str, semantics: Semantics) -> list[Any]:
    """Our values of a function over the column `s`."""
    schema, _ = schema_of(rows.schema)
    bound = bind_operand(Call(function, (Column("s"),)), schema, semantics)
    values, failed = compute(bound, rows.combine_chunks().to_batches()[0])
    assert not failed.any()
    return list(values.to_pylist())


@pytest.mark.parametrize("function", ["upper", "lower"])
@pytest.mark.parametrize(("engine", "semantics"), ENGINES.values(), ids=ENGINES)
def test_each_letter_has_the_case_of_the_engine(
    engine: Callable[[pa.Table, str], list[str]], semantics: Semantics, function: str
) -> None:
    if not is_due([judge for judge, _ in ENGINES.values()].index(engine), len(ENGINES)):
        pytest.skip("has its turn on another day")
    letters = all_letters()
    assert here(letters, function, semantics) == engine(letters, function)


@pytest.mark.parametrize("function", ["upper", "lower"])
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])  # polars' sigma is its own
def test_letters_next_to_each_other_have_the_case_of_the_engine(engine: str, function: str) -> None:
    judge, semantics = ENGINES[engine]
    young = (SMALL, CAPITAL, "\u019b", "\ua7dc", "\ua7ce", "\ua7cf")
    parts = (*young, "\u03a3", "\u00df", "\u0130", "a", "B", "")
    texts = [one + two + three for one in parts for two in parts for three in parts]
    rows = pa.table({"i": range(len(texts)), "s": texts})
    ours, theirs = here(rows, function, semantics), judge(rows, function)
    assert [pair for pair in zip(texts, ours, theirs, strict=True) if pair[1] != pair[2]] == []


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    path = str(tmp_path_factory.mktemp("t") / "t")
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("s", pa.string())])
    made = rs.create_table(path, schema, key=["k"])
    for key, text in enumerate([SMALL + "a", CAPITAL + "A", "plain"]):
        made.upsert(pa.table({"k": [key], "s": [text]}, schema=schema))
    return made


CONDITIONS = [
    f"upper(s) = '{SMALL}A'",
    f"upper(s) = '{CAPITAL}A'",
    f"lower(s) = '{CAPITAL}a'",
    f"upper(s) LIKE '{SMALL}%'",
    f"upper(s) <> '{CAPITAL}A'",
]


@pytest.mark.parametrize("where", CONDITIONS)
def test_no_row_with_such_a_letter_is_lost(where: str, table: rs.Table) -> None:
    rows = table.scan().to_arrow().select(["k", "s"])
    context = SessionContext()
    context.from_arrow(rows, "t")
    asked = f"SELECT k FROM t WHERE {where} ORDER BY k"
    wanted = [row["k"] for batch in context.sql(asked).collect() for row in batch.to_pylist()]
    assert sorted(table.scan(where, dialect="datafusion").to_arrow()["k"].to_pylist()) == wanted
    session = OurSession()
    session.register_table("t", table)
    ours = session.sql(asked).collect()
    assert [row["k"] for batch in ours for row in batch.to_pylist()] == wanted
    with duckdb.connect() as connection:
        connection.register("t", rows)
        wanted = [key for (key,) in connection.sql(asked).fetchall()]
    assert sorted(table.scan(where, dialect="duckdb").to_arrow()["k"].to_pylist()) == wanted


def test_ilike_lowers_such_a_letter_as_duckdb(table: rs.Table) -> None:
    rows = table.scan().to_arrow()
    for pattern in (f"{SMALL}%", f"{CAPITAL}%", f"%{SMALL}A"):
        with duckdb.connect() as connection:
            connection.register("t", rows)
            asked = f"SELECT k FROM t WHERE s ILIKE '{pattern}' ORDER BY k"
            wanted = [key for (key,) in connection.sql(asked).fetchall()]
        found = table.scan(f"s ILIKE '{pattern}'", dialect="duckdb").to_arrow()
        assert sorted(found["k"].to_pylist()) == wanted


PATTERNS = ["\u0264", "\ua7cb", "%\U00010d50_", "a%", "\ua7ce", SMALL]


def _like_in_datafusion(rows: pa.Table, pattern: str) -> list[int]:
    context = SessionContext()
    context.from_arrow(rows, "t")
    found = context.sql(f"SELECT i FROM t WHERE s ILIKE '{pattern}'").collect()
    return [] if not found else sorted(pa.Table.from_batches(found)["i"].to_pylist())


@pytest.mark.parametrize("pattern", PATTERNS)
def test_ilike_finds_the_letters_that_datafusion_finds(pattern: str) -> None:
    rows = all_letters()
    if pattern.startswith("%"):
        rows = pa.table({"i": rows["i"], "s": pc.binary_join_element_wise(rows["s"], "x", "")})
    expected = _like_in_datafusion(rows, pattern)
    table = rs.create_table(fresh_uri(), rows, key=["i"])
    found = table.scan(f"s ILIKE '{pattern}'", dialect="datafusion").to_arrow()["i"].to_pylist()
    assert sorted(found) == expected


def test_ilike_of_young_letters_reads_parts_of_one_text() -> None:
    table = rs.create_table(fresh_uri(), pa.table({"i": [1], "s": ["\ua7cb"]}), key=["i"])
    table.upsert(pa.table({"i": [2], "s": ["b"]}))
    session = OurSession()
    session.register_table("t", table)
    found = session.sql("SELECT i FROM t WHERE s ILIKE '\u0264'").to_arrow_table()
    assert found["i"].to_pylist() == [1]
    assert table.scan(f"s ILIKE '{SMALL}'", dialect="datafusion").explain().parts_read == 2


def test_ilike_of_young_letters_is_no_translation_between_tables_of_other_versions() -> None:
    schema = pa.schema([("s", pa.string())])
    kept = rs.translate("s ILIKE 'a%'", source="datafusion", target="pyarrow_exprs", schema=schema)
    left = rs.translate(
        "s ILIKE '\u0264'", source="datafusion", target="pyarrow_exprs", schema=schema
    )
    assert kept.residual is None
    assert left.residual is not None


@pytest.mark.parametrize(
    ("semantics", "upper"),
    [
        (Semantics.DUCKDB, "S\u1e9e\u00c9"),
        (Semantics.POSTGRES, "S\u00df\u00c9"),
        (Semantics.TRINO, "S\u00df\u00c9"),
        (Semantics.SPARK, "SSS\u00c9"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_sharp_s_has_the_capital_of_the_engine(semantics: Semantics, upper: str) -> None:
    assert here(pa.table({"s": ["s\u00df\u00e9"]}), "upper", semantics) == [upper]
