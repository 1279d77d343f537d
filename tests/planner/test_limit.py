"""LIMIT at planning: parts are dropped only if others certainly have enough rows (trap T6)."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve import Table
from tests.profiles import examples
from tests.small_tables import appended, apply, keyed, kv


def three_parts() -> Table:
    """Rows 0-9, 10-19 and 20-29, v = k, in a part each."""
    return keyed(*({"k": [*range(s, s + 10)], "v": [*range(s, s + 10)]} for s in (0, 10, 20)))


def pruned_by_limit(table: Table, where: str | None = None, limit: int = 5) -> int:
    """How many parts the limit leaves out; the rows must be as many as the limit allows."""
    scan = table.scan(where, limit=limit)
    rows = scan.to_arrow().to_pylist()
    everything = table.scan(where, pruning="off").to_arrow().to_pylist()
    assert len(rows) == min(limit, len(everything)) == scan.count()
    assert all(row in everything for row in rows)
    assert len({row["k"] for row in rows}) == len(rows)
    return scan.metrics.pruned_by.get("limit", 0)


@pytest.mark.parametrize(("limit", "left"), [(0, 0), (1, 1), (10, 1), (11, 2), (30, 3), (31, 3)])
def test_parts_beyond_the_limit_are_not_planned(limit: int, left: int) -> None:
    table = three_parts()
    assert pruned_by_limit(table, limit=limit) == 3 - left
    plan = table.scan(limit=limit).plan()
    assert sum(len(piece.parts) for split in plan.splits for piece in split.pieces) == left


def test_rows_that_a_condition_may_drop_do_not_count() -> None:
    table = three_parts()
    assert pruned_by_limit(table, "v >= 5") == 2  # one of the two parts that match as a whole stays
    assert pruned_by_limit(table, "v >= 5", limit=21) == 0
    assert pruned_by_limit(table, "v % 2 = 0") == 0


def test_rows_that_other_parts_may_hide_do_not_count() -> None:
    table = three_parts()
    table.upsert(kv((1, 1), (11, 1), (21, 1)))  # overlaps all of them
    assert pruned_by_limit(table) == 0
    table.upsert(kv((40, 1)))
    assert pruned_by_limit(table, limit=1) == 4
    assert pruned_by_limit(table, limit=2) == 0


def test_rows_that_a_vector_hides_do_not_count() -> None:
    table = appended({"k": [1, 2], "v": [1, 1]}, {"k": [3, 4], "v": [1, 1]})
    assert pruned_by_limit(table, limit=2) == 1
    table.delete("k = 1")
    table.delete("k = 3")
    assert pruned_by_limit(table, limit=2) == 0
    assert pruned_by_limit(table, limit=1) == 0


def test_tombstones_do_not_count_as_rows() -> None:
    table = three_parts()
    apply(table, ("d", 100, None), ("d", 101, None))
    assert pruned_by_limit(table, limit=30) == 0
    assert pruned_by_limit(table, limit=31) == 0


def test_an_order_decides_which_rows_come_first() -> None:
    table = keyed({"k": [20], "v": [1]}, {"k": [10], "v": [1]})
    scan = table.scan(limit=1, order_by_key=True)
    assert scan.to_arrow()["k"].to_pylist() == [10]
    assert scan.metrics.pruned_by == {}


def test_parts_beyond_a_limit_are_not_claims_about_rows() -> None:
    table = three_parts()
    scan = table.scan("v >= 0", limit=3, pruning="soft")
    assert scan.to_arrow().num_rows == 3
    assert scan.metrics.parts_pruned == 0


def test_the_limit_is_a_reason() -> None:
    found = three_parts().scan(limit=1).explain()
    assert [reason.by for reason in found.skipped] == ["limit", "limit"]
    assert "skipped by limit: other parts hold enough rows" in str(found)


batches = st.lists(
    st.dictionaries(st.integers(0, 20), st.integers(0, 3), min_size=1, max_size=6), max_size=5
)


@examples(150)
@given(
    batches,
    st.sampled_from([None, "v = 1", "v >= 0", "k > 7", "v IS NOT NULL AND k < 15"]),
    st.integers(0, 12),
    st.booleans(),
)
def test_a_limited_scan_returns_as_many_rows_as_there_are(
    found: list[dict[int, int]], where: str | None, limit: int, has_key: bool
) -> None:
    table = rs.create_table(keyed().uri + "x", kv().schema, key=["k"] if has_key else None)
    for i, batch in enumerate(found):
        data = kv(*batch.items())
        if not has_key:
            table.append(data if i % 2 else pa.concat_tables([data, data]).slice(0, len(batch)))
        elif i % 3 == 2:
            table.delete(keys=data.select(["k"]))
        else:
            table.upsert(data)
    scan = table.scan(where, limit=limit)
    everything = table.scan(where, pruning="off").to_arrow().to_pylist()
    rows = scan.to_arrow().to_pylist()
    assert len(rows) == min(limit, len(everything)) == scan.count()
    for row in rows:
        everything.remove(row)
    unlimited = table.scan(where, limit=limit, pruning="soft").to_arrow()
    assert unlimited.num_rows == len(rows)
