"""Globs of paths and URIs."""

from __future__ import annotations

import pytest

from rowsieve.errors import InvalidInput
from rowsieve.objects.globs import glob_expression, split_glob

NAMES = ["a.csv", "x y.csv", "x%20y.csv", "a*.csv", "[b].csv", "&.csv", "d/a.csv", "d/e/a.csv"]


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("s3://b/x%20*.csv", ["x y.csv"]),
        ("s3://b/x%2520*.csv", ["x%20y.csv"]),
        ("x%20*.csv", ["x%20y.csv"]),
        ("s3://b/?%2A.csv", ["a*.csv"]),
        ("s3://b/[[]*.csv", ["[b].csv"]),
        ("s3://b/%5B*.csv", ["[b].csv"]),
        ("s3://b/[&&~~||].csv", ["&.csv"]),
        ("s3://b/**/a.csv", ["a.csv", "d/a.csv", "d/e/a.csv"]),
        ("s3://b/[!a-w]?y.csv", ["x y.csv"]),
    ],
)
def test_a_glob_matches_decoded_names(pattern: str, matching: list[str]) -> None:
    expression = glob_expression(split_glob(pattern)[1])
    assert [name for name in NAMES if expression.fullmatch(name)] == matching


def test_letters_that_are_no_range_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"the glob '\[z-a\]\*' cannot be read"):
        glob_expression("[z-a]*")
