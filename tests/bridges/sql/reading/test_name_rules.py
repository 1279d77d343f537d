"""Names in text over columns `a` and `A`: what each engine finds, or refused."""

from __future__ import annotations

from pathlib import Path

import datafusion
import duckdb
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.where import to_operand, to_predicate
from rowsieve.errors import UnknownColumn
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of

ROWS = pa.table({"id": [0], "a": [1], "A": [2], "b": [3], "s": pa.array([{"a": 5}])})
SCHEMA, _ = schema_of(ROWS.schema)
NAMES = ("a", "A", '"a"', '"A"', "b")


def found(name: str, dialect: str) -> int | None:
    """The value that the name has in our text; None if it is refused."""
    for value in (1, 2, 3):
        try:
            read = to_predicate(f"{name} = {value}", dialect, SCHEMA)
        except UnknownColumn:
            return None
        if matching(bind(read, SCHEMA, Semantics.SQL), ROWS.to_batches()[0]).any():
            return value
    raise AssertionError(name)


@pytest.mark.parametrize("name", NAMES)
def test_datafusion_finds_the_same_column(name: str) -> None:
    context = datafusion.SessionContext()
    context.register_record_batches("t", [ROWS.to_batches()])
    (column,) = context.sql(f"SELECT {name} AS v FROM t").to_pydict().values()
    ours = found(name, "datafusion")
    assert ours == column[0] or (ours is None and name == "A")
    assert ours == found(name, "postgres")


@pytest.mark.parametrize("name", NAMES)
def test_duckdb_compares_names_without_case(name: str) -> None:
    with duckdb.connect() as connection:
        connection.register("t", ROWS)
        ((value,),) = connection.execute(f"SELECT {name} FROM t").fetchall()
    assert value == (3 if name == "b" else 1)  # `A` is found as `a`: which one is chance
    assert found(name, "duckdb") == (3 if name == "b" else None)
    assert found(name, "trino") == (3 if name == "b" else None)


@pytest.mark.parametrize("name", ["a", "A", "`A`"])
def test_spark_calls_both_ambiguous_by_default(name: str, tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    with pytest.raises(UnknownColumn, match="ambiguous in spark"):
        table.scan(f"{name} = 1", dialect="spark")
    with pytest.raises(UnknownColumn, match="ambiguous in spark"):
        rs.translate(f"{name} = 1", "spark", target="duckdb", schema=ROWS.schema)
    with pytest.raises(UnknownColumn, match="ambiguous in spark"):
        to_operand(f"{name} + 1", "spark", SCHEMA)


def test_the_message_of_an_unquoted_name_says_how_to_write_it() -> None:
    with pytest.raises(UnknownColumn, match='write "A"'):
        to_predicate("b = 3 OR A = 2", "postgres", SCHEMA)
    kept = ("b = 3 AND lower('A') = 'a'", "'A' = 'B'", '"A" = 1 OR a = 1', "s.a = 5")
    for text in kept:
        to_predicate(text, "postgres", SCHEMA)
    to_predicate("s.a = 5", "spark", SCHEMA)
