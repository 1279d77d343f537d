"""LIMIT truncates the result; rows that are not returned cannot fail (trap T6, invariant 27)."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError


def test_columns_are_computed_for_returned_rows_only() -> None:
    rows = pa.table({"k": [1, 2, 3], "v": [5, 2, 0]})
    table = rs.create_table("memory:///limit/computed", rows, key=["k"])
    quotient = {"x": "10 / v"}
    found = table.scan(columns=quotient, limit=2, order_by_key=True).to_arrow()
    assert found["x"].to_pylist() == [2, 5]
    with pytest.raises(EvaluationError):
        table.scan(columns=quotient, limit=3, order_by_key=True).to_arrow()


def test_a_limit_of_zero_evaluates_no_row() -> None:
    rows = pa.table({"k": [1], "v": [0]})
    table = rs.create_table("memory:///limit/none", rows, key=["k"])
    assert table.scan("10 / v > 0", limit=0).to_arrow().num_rows == 0
    assert table.scan("10 / v > 0", limit=0).count() == 0
