"""Selecting rows of a decoded array gives those rows, and keeps few bytes for few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowsieve.executor.decode_row_group import selection
from rowsieve.predicate.rowset import RowSet

COUNT = 4_096
ARRAYS: dict[str, pa.Array] = {
    "numbers": pa.array(np.arange(COUNT)),
    "text": pa.array([f"text {i}" for i in range(COUNT)]),
    "dictionary": pa.array(["a", None, "c", "d"] * (COUNT // 4)).dictionary_encode(),
    "booleans": pa.array([True, False, None, True] * (COUNT // 4)),
    "nulls": pa.array([None] * COUNT, pa.int32()),
    "lists": pa.array([[i, i + 1] for i in range(COUNT)]),
    "structs": pa.array([{"a": i, "b": None} for i in range(COUNT)]),
}
ROWS = [[0], [7], [4_095], [*range(3, 90)], [*range(4_000, 4_096)], [1, 5], [*range(3_000)], []]


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("rows", ROWS, ids=lambda rows: f"{len(rows)} from {rows[:1]}")
@pytest.mark.parametrize("offset", [0, 8])
def test_the_rows_are_those_asked_for(name: str, rows: list[int], offset: int) -> None:
    array = ARRAYS[name].slice(offset, COUNT - 2 * offset)
    numbers = np.array([row for row in rows if row < len(array)], dtype=np.int64)
    expected = array.take(pa.array(numbers))
    asked: list[Any] = [numbers, RowSet.from_ids(numbers, len(array))]
    for each in asked:
        found = selection(each, len(array))(array)
        found.validate(full=True)
        assert found.equals(expected)
        if len(numbers) * 8 < COUNT:
            assert found.get_total_buffer_size() < array.get_total_buffer_size() // 4 + 200
