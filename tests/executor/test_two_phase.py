"""Two-phase reads: unneeded columns are not decoded, hidden rows are not evaluated."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError
from rowsieve.storage.part_file import PAGE_ROWS
from rowsieve.storage.part_writer import ROW_GROUP_ROWS

ROWS = 3 * ROW_GROUP_ROWS


@pytest.fixture(scope="module")
def table() -> rs.Table:
    """Three row groups; `code` is 7 in one row of the second, within its bounds in all."""
    rng = np.random.default_rng(2)
    code = rng.integers(0, 4, ROWS) * 4
    code[ROW_GROUP_ROWS + 5] = 7
    rows = {"k": np.arange(ROWS), "code": code, "wide": rng.integers(0, 2**62, ROWS)}
    return rs.create_table("memory:///two-phase/codes", pa.table(rows), key=["k"])


def test_other_columns_are_read_only_where_a_row_matches(table: rs.Table) -> None:
    found = table.scan("code = 7")
    assert found.to_arrow().column("k").to_pylist() == [ROW_GROUP_ROWS + 5]
    asked = table.scan("code = 7", columns=["code"])
    asked.to_arrow()
    everything = table.scan()
    everything.to_arrow()
    others = everything.metrics.bytes_read - asked.metrics.bytes_read
    assert asked.metrics.row_groups_read == 3
    page = others / ROWS * PAGE_ROWS
    assert (
        0.7 * page < found.metrics.bytes_read - asked.metrics.bytes_read < 2 * page
    )  # and a gap between columns


def test_columns_come_back_in_their_own_order(table: rs.Table) -> None:
    found = table.scan("code = 7", columns=["wide", "code", "k"]).to_arrow()
    assert found.column_names == ["wide", "code", "k"]
    whole = table.scan(order_by_key=True).to_arrow().slice(ROW_GROUP_ROWS + 5, 1)
    assert found.equals(whole.select(["wide", "code", "k"]))


def test_a_row_that_is_hidden_cannot_fail() -> None:
    rows = pa.table({"k": [1, 2, 3], "d": [1, 0, 2]})
    made = rs.create_table("memory:///two-phase/hidden", rows, key=["k"])
    with pytest.raises(EvaluationError):
        made.scan("10 / d > 1").to_arrow()
    made.upsert(pa.table({"k": [2], "d": [4]}))
    assert sorted(made.scan("10 / d > 1").to_arrow().column("k").to_pylist()) == [1, 2, 3]
    assert made.scan("10 / d > 1", order_by_key=True).to_arrow().column("k").to_pylist() == [
        1,
        2,
        3,
    ]


def test_a_limit_stops_reading(table: rs.Table) -> None:
    for order_by_key in (False, True):
        scan = table.scan(limit=10, order_by_key=order_by_key)
        assert scan.to_arrow().num_rows == 10
        assert scan.metrics.row_groups_read == 1


def test_rows_without_columns_are_still_counted() -> None:
    rows = pa.table({"k": range(10), "v": range(10)})
    made = rs.create_table("memory:///two-phase/none", rows, key=["k"])
    made.upsert(pa.table({"k": [3, 20], "v": [0, 0]}))
    made.delete(keys=pa.table({"k": [5]}))
    for where in (None, "v < 4"):
        assert sum(b.num_rows for b in made.scan(where, columns=[]).to_batches()) == (
            10 if where is None else 5
        )
