"""Small changes of a branch live in its log, and are published with it."""

from __future__ import annotations

import rowsieve as rs
from tests.parts_in_memory import count_in_memory
from tests.small_tables import keyed, kv, pairs


def test_a_branch_with_rows_in_its_log_is_published() -> None:
    table = keyed({"k": [1, 2], "v": [10, 20]}, properties={"inline_bytes": 9_000})
    table.tag("before")
    branch = table.branch("audit")
    branch.upsert(kv((2, 21), (3, 30)))
    branch.delete("k = 1")
    assert pairs(table) == [(1, 10), (2, 20)]
    assert count_in_memory(branch) == 3
    table.fast_forward("audit")
    assert pairs(table) == [(2, 21), (3, 30)]
    table.upsert(kv((4, 40)))
    table.vacuum(retain_last=1, grace_s=0)
    assert pairs(rs.open_table(table.uri)) == [(2, 21), (3, 30), (4, 40)]
    assert pairs(rs.open_table(table.uri, ref="before")) == [(1, 10), (2, 20)]


def test_a_branch_of_a_table_without_parts_is_published() -> None:
    """The list of parts of such a table has its columns in another order."""
    table = keyed(kv(), properties={"inline_bytes": 9_000})
    table.upsert(kv((1, 10)))
    table.restore(0)
    branch = table.branch("audit")
    branch.upsert(kv((2, 20), (3, 30)))
    branch.delete("k = 3")
    table.fast_forward("audit")
    assert pairs(table) == [(2, 20)]
    assert pairs(rs.open_table(table.uri)) == [(2, 20)]
