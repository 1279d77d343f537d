"""What a plan tells an engine is true of the rows that the plan returns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from tests.profiles import examples
from tests.small_tables import keyed, kv


def overlapping(folder: Path) -> rs.Table:
    """A part of 20 rows, a part that replaces ten of them, and a part with other keys."""
    table = rs.create_table(str(folder / "t"), kv(*((k, k) for k in range(20))), key=["k"])
    table.upsert(kv(*((k, -k) for k in range(10, 20))))
    table.upsert(kv((100, 1), (101, 2)))
    return table


def test_hints_tell_what_is_merged_and_what_is_read_alone(tmp_path: Path) -> None:
    hints = overlapping(tmp_path).scan().plan().hints()
    assert (hints.rows_at_most, hints.rows_merged, hints.sorted_by) == (32, 30, ())
    assert sorted((part.rows, part.rows_at_most, part.merged) for part in hints.parts) == [
        (2, 2, False),
        (10, 10, True),
        (20, 20, True),
    ]
    assert hints.size_bytes == sum(part.size_bytes for part in hints.parts) > 0
    assert hints.largest_task_bytes <= hints.size_bytes


def test_hints_of_a_resolved_plan_leave_out_hidden_rows(tmp_path: Path) -> None:
    plan = overlapping(tmp_path).scan("k >= 5").plan(resolve=True)
    hints = plan.hints()
    largest = next(part for part in hints.parts if part.rows == 20)
    assert largest.resolved is not None
    assert (largest.resolved.rows_hidden, largest.filtered) == (10, True)
    assert plan.resolved is not None
    assert hints.rows_at_most == sum(len(part.rows) for part in plan.resolved) == 22


def test_hints_name_order_and_limit() -> None:
    plan = keyed({"k": [3, 1, 2], "v": [1, 2, 3]}).scan(limit=2, order_by_key=True).plan()
    hints = plan.hints()
    assert (hints.sorted_by, hints.rows_at_most, hints.tasks) == (("k",), 2, 1)
    assert not hints.limit_is_per_task


def test_a_plan_that_reads_nothing_has_hints() -> None:
    hints = keyed({"k": [1], "v": [1]}).scan("k > 5").plan().hints()
    assert (hints.tasks, hints.rows_at_most, hints.largest_task_bytes, hints.parts) == (0, 0, 0, ())


@given(
    batches=st.lists(st.lists(st.integers(0, 60), min_size=1, unique=True), min_size=1, max_size=5),
    bound=st.integers(0, 60),
    limit=st.none() | st.integers(0, 10),
)
@examples(100)
def test_no_scan_returns_more_rows_than_its_hints_say(
    batches: list[list[int]], bound: int, limit: int | None
) -> None:
    table = keyed({"k": batches[0], "v": batches[0]})
    for keys in batches[1:]:
        table.upsert(pa.table({"k": keys, "v": keys}))
    scan = table.scan(f"k >= {bound}", limit=limit)
    rows = scan.to_arrow().num_rows
    assert rows <= scan.plan().hints().rows_at_most
    assert rows <= scan.plan(resolve=True).hints().rows_at_most
