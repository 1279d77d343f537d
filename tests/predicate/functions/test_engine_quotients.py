"""Quotients of numbers of any size with the digits of PostgreSQL, among values without digits."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.small_tables import appended

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("values", "text", "kept"),
    [
        ([NAN], "f::numeric / 3 > 1", 1),  # NaN is above all numbers
        ([NAN, None], "3 / f::numeric > 1", 1),
        ([None], "f::numeric / 3 > 1", 0),
        ([INFINITY, NAN], "f::numeric / 3 = 'Infinity'::numeric", 1),
        ([INFINITY, -INFINITY], "3 / f::numeric = 0", 2),
        ([INFINITY, -INFINITY], "f::numeric / -2 < 0", 1),
        ([INFINITY, 2.0], "f::numeric / f::numeric = 1", 1),
        ([], "f::numeric / 3 > 1", 0),
    ],
)
def test_numbers_without_digits_are_divided(
    values: list[float | None], text: str, kept: int
) -> None:
    table = appended({"f": values}, schema=pa.schema([("f", pa.float64())]))
    assert table.scan(text).count() == kept
