"""A short text is read once; what it means is found out for each scan."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
from rowsieve.bridges.sql import SHORT, parse_predicate
from rowsieve.errors import InvalidPredicate, UnknownColumn
from tests.small_tables import keyed


def test_a_short_text_gives_the_same_tree_and_a_long_one_an_equal_tree() -> None:
    assert parse_predicate("a > 1 AND b = 'x'") is parse_predicate("a > 1 AND b = 'x'")
    long = f"a IN ({', '.join(map(str, range(SHORT)))})"
    assert parse_predicate(long) is not parse_predicate(long)
    assert parse_predicate(long) == parse_predicate(long)


def test_a_dialect_reads_a_text_for_itself() -> None:
    texts = [str(parse_predicate('a = "x"', dialect)) for dialect in ("postgres", "spark")]
    assert texts[0] != texts[1]  # a column there, a text here
    assert str(parse_predicate('a = "x"', "postgres")) == texts[0]


def test_bad_text_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(InvalidPredicate, match="offset"):
            parse_predicate("a > > 1")


@pytest.mark.usefixtures("own_registry")
def test_a_function_registered_after_its_text_was_read_is_known() -> None:
    table = keyed({"k": [1, 2], "v": [5, 6]})
    with pytest.raises(InvalidPredicate, match="no function"):
        table.scan("read_once_later(v) = 6")
    rs.register_function("read_once_later", [pa.int64()], pc.negate, returns=pa.int64())
    assert table.scan("read_once_later(v) = -6").count() == 1
    assert table.scan("read_once_later(v) = 6").count() == 0


def test_names_are_checked_for_each_schema_of_a_known_text() -> None:
    table = keyed({"k": [1, 2], "v": [5, 6]})
    both = pa.schema(
        [pa.field("k", pa.int64(), nullable=False), ("v", pa.int64()), ("V", pa.int64())]
    )
    for _ in range(2):
        assert table.scan("V = 5").count() == 1
        with pytest.raises(UnknownColumn, match="'V'"):
            keyed({"k": [1], "v": [5], "V": [6]}, schema=both).scan("V = 5")


def test_text_of_postgres_needs_no_other_bridge() -> None:
    code = (
        "import sys, pyarrow as pa, rowsieve as rs\n"
        "t = rs.create_table('memory:///read-once', pa.table({'k': [1, 2]}), key=['k'])\n"
        "assert t.scan('k > 1').to_arrow().num_rows == 1\n"
        "print([m for m in sys.modules if m.startswith('rowsieve.bridges.') and m.endswith("
        "('registry', 'substrait_exprs', 'pyarrow_exprs', 'polars_exprs', 'iceberg_exprs'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
