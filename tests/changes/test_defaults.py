"""Columns and fields that the rows of an append lack."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowsieve.changes.defaults import with_defaults
from rowsieve.errors import SchemaMismatch
from rowsieve.types.conform import conform
from rowsieve.types.logical import Field, Int, Struct
from rowsieve.types.schema import Schema


def pair(*names: str) -> Struct:
    return Struct(tuple(Field(10 + i, name, Int(), added=i) for i, name in enumerate(names)))


@pytest.mark.parametrize(
    ("given", "lacking"),
    [
        pytest.param("s", "y", id="the exact name"),
        pytest.param("S", "z", id="the exact name of another column"),
        pytest.param("ß", None, id="no column"),
    ],
)
def test_a_column_is_found_by_its_exact_name_first(given: str, lacking: str | None) -> None:
    schema = Schema(1, (Field(1, "S", pair("x", "z")), Field(2, "s", pair("x", "y"))))
    rows = pa.table({given: [{"x": 1}]})
    names = with_defaults(rows, schema)[given].type
    assert [each.name for each in names] == ["x", *([lacking] if lacking else [])]


def test_a_name_between_two_columns_means_neither() -> None:
    schema = Schema(1, (Field(1, "Ab", pair("x", "first")), Field(2, "aB", pair("x", "second"))))
    found = with_defaults(pa.table({"AB": [{"x": 1}, None]}), schema)
    assert found["AB"].to_pylist() == [{"x": 1}, None]
    with pytest.raises(SchemaMismatch, match="'AB' that the table does not have"):
        conform(found, schema)


def test_names_are_looked_up_once_for_all_columns() -> None:
    """4,000 columns took 16,000,000 comparisons of names."""
    compared = 0

    class Name(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str(self) == other

        __hash__ = str.__hash__

    fields = tuple(Field(i, Name(f"c{i}"), Int()) for i in range(500))
    rows = pa.table({f"c{i}": [i] for i in range(500)})
    assert with_defaults(rows, Schema(1, fields)) is rows
    assert compared < 5_000
