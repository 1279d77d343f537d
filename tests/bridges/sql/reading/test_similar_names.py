"""An unknown function's similar names are those of the text's dialect."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.sql.dialects import DIALECTS, dialect_named
from rowsieve.bridges.sql.reading.similar_names import similar_names
from rowsieve.errors import InvalidPredicate
from tests.small_tables import fresh_uri


@pytest.mark.parametrize(
    ("dialect", "text", "name"),
    [
        ("spark", "array_contain(li, 1)", "array_contains"),
        ("duckdb", "list_contain(li, 1)", "list_contains"),
        ("datafusion", "array_ha(li, 1)", "array_has"),
        ("postgres", "array_positio(li, 1) = 1", "array_position"),
        ("trino", "contain(li, 1)", "contains"),
    ],
)
def test_the_nearest_name_is_the_dialect_s(dialect: str, text: str, name: str) -> None:
    table = rs.create_table(fresh_uri(), pa.table({"li": [[1]]}))
    with pytest.raises(InvalidPredicate, match=f"no function '.*'; did you mean '{name}' or"):
        table.scan(text, dialect=dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_name_that_nothing_resembles_has_none(dialect: str) -> None:
    assert similar_names("qqqqqqqq", dialect_named(dialect)) == []


def test_a_name_of_the_grammar_that_is_not_read_is_not_proposed() -> None:
    assert "soundex" not in similar_names("soundexx", dialect_named("spark"))
