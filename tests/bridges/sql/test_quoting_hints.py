"""A refusal of a name says how the dialect quotes what the text seems to mean."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError, InvalidPredicate

ROWS = pa.table({"k": [1, 2], "a.b": [1, 2], "s": ["x", "y"], "l": [[1], [1, 2]]})


@pytest.mark.parametrize(
    ("text", "dialect", "hint"),
    [
        ("a.b = 1", "postgres", 'the column with a dot is written "a.b"'),
        ("a.b = 1", "spark", "the column with a dot is written `a.b`"),
        ('s = "x"', "postgres", "double quotes are those of names, a text is written 'x'"),
        ('s = "x"', "duckdb", "a text is written 'x'"),
        ("`k` = 1", "postgres", 'names are quoted as in "name"'),
        ("`k` = 1", "duckdb", 'names are quoted as in "name"'),
        ("A b = 1", "postgres", 'a name with a space is written "A b"'),
        ("when > 1", "postgres", 'a column of that name is written "when"'),
        ("k = 1 AND then > 1", "spark", "a column of that name is written `then`"),
        ("k = 1 AND A b > 1", "spark", "a name with a space is written `A b`"),
    ],
)
def test_a_refusal_says_how_names_are_quoted(text: str, dialect: str, hint: str) -> None:
    table = rs.create_table("memory:///quoting", ROWS, key=["k"], if_exists="replace")
    with pytest.raises(InvalidPredicate) as raised:
        table.count(text, dialect=dialect)
    assert hint in str(raised.value)


@pytest.mark.parametrize("text", ["len(l) = 2", "length(l) = 2", "len(l) = 2 AND len(s) = 1"])
def test_duckdbs_length_is_of_text_and_lists(text: str) -> None:
    table = rs.create_table("memory:///lengths", ROWS, key=["k"], if_exists="replace")
    assert table.count(text, dialect="duckdb") == 1


@pytest.mark.parametrize("text", ['"a.b" = 1', '1 < "a.b"', '"a.b" IN (1, 2)'])
def test_a_failing_text_of_spark_says_how_a_column_is_quoted(text: str) -> None:
    table = rs.create_table("memory:///quoting", ROWS, key=["k"], if_exists="replace")
    with pytest.raises(EvaluationError, match=r"'a.b' is a text; Spark writes a column as `a.b`"):
        table.count(text, dialect="spark")


@pytest.mark.parametrize("text", ["1 / 0 = 1", "sqrt(-1) = 1"])
def test_a_failing_filter_without_texts_has_no_hint(text: str) -> None:
    table = rs.create_table("memory:///quoting", ROWS, key=["k"], if_exists="replace")
    with pytest.raises(EvaluationError, match="with no column; guard"):
        table.count(text)
