"""Columns written as in CREATE TABLE."""

from __future__ import annotations

import pytest

from rowsieve.bridges.sql.column_list import columns_of
from rowsieve.errors import InvalidInput
from rowsieve.types.logical import Decimal, Float, Int, String, Timestamp


def test_columns_have_the_types_of_the_dialect() -> None:
    text = "`a b` bigint, x float, d decimal(10, 2), at timestamp, s string"
    found = [(field.name, field.type) for field in columns_of(text, "spark")]
    assert found == [
        ("a b", Int(64)),
        ("x", Float(32)),
        ("d", Decimal(10, 2)),
        ("at", Timestamp(utc=True)),
        ("s", String()),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("id", "its name and its type"),
        ("id bigint)", "cannot read the columns"),
        ("id bigint, id int", "'id' is defined twice"),
        ("id bigint, primary key (id)", "is not a column"),
        ("id geometry", "'id': "),
        ("", "name the columns"),
        ("id bigint) ; drop table t (x int", "cannot read the columns"),
    ],
)
def test_invalid_column_definitions_are_named(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why.replace("(", "\\(").replace(")", "\\)")):
        columns_of(text)
