"""Two-phase reads: unneeded columns are not decoded, hidden rows are not evaluated."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError
from rowsieve.storage.parts.part_file import PAGE_ROWS
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS
from tests.planner.test_one_form import calls_of

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


@pytest.mark.parametrize(
    ("where", "reads"),
    [
        pytest.param(f"k BETWEEN {PAGE_ROWS + 9} AND {6 * PAGE_ROWS}", 1, id="most pages whole"),
        pytest.param(f"k BETWEEN {PAGE_ROWS + 9} AND {3 * PAGE_ROWS}", 2, id="few pages whole"),
        pytest.param("code BETWEEN 3 AND 13", 6, id="no page whole"),
    ],
)
def test_all_columns_are_read_at_once_where_most_rows_match(
    table: rs.Table, where: str, reads: int
) -> None:
    found: list[pa.Table] = []
    calls = calls_of(lambda: found.append(table.scan(where).to_arrow()))
    assert calls["read_rows"] == reads
    rows = table.scan(pruning="off").to_arrow()
    assert found[0].equals(rows.filter(table_filter(rows, where)))


def table_filter(rows: pa.Table, where: str) -> pa.ChunkedArray:
    """The mask of `column BETWEEN least AND most`."""
    column, _, least, _, most = where.split()
    values = rows.column(column)
    return pc.and_(pc.greater_equal(values, int(least)), pc.less_equal(values, int(most)))
