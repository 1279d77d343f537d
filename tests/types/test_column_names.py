"""Names of data that differ from those of columns in case."""

from __future__ import annotations

import pytest

from rowsieve.types.schema import ColumnNames


@pytest.mark.parametrize(
    ("name", "column"),
    [("b", "b"), ("B", "b"), ("a", "a"), ("A", "A"), ("ab", "ab"), ("É", "é"), ("z", "z")],
)
def test_a_name_means_the_same_column_or_the_only_one_in_another_case(
    name: str, column: str
) -> None:
    assert ColumnNames(["a", "A", "b", "é"]).column(name) == column


def test_a_name_between_two_columns_means_neither() -> None:
    assert ColumnNames(["aB", "Ab"]).columns(["ab", "AB", "Ab"]) == ["ab", "AB", "Ab"]
