"""Rules 9, 10, 11, 13, 23, 24, 26 and 27 of the invariants, each by its smallest story."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext

import rowsieve
from rowsieve import Table
from rowsieve.errors import EvaluationError, KeyViolation, UnsupportedOperation
from tests.oracle_table import bag, merge_by_row
from tests.small_tables import KV, appended, apply, files, fresh_uri, keyed, kv, meddled, pairs


def answer(table: Table, query: str) -> list[dict[str, Any]]:
    context = SessionContext()
    context.register_table("t", table)
    rows: list[dict[str, Any]] = context.sql(query).to_arrow_table().to_pylist()
    return rows


# Rule 9: one final action per key


def test_rule_9_the_last_action_of_a_commit_is_the_only_one() -> None:
    table = keyed({"k": [1, 2, 3], "v": [0, 0, 0]})
    apply(
        table,
        ("u", 1, 1), ("d", 1, None),  # gone
        ("d", 2, None), ("i", 2, 7),  # there
        ("i", 4, 1), ("u", 4, 2), ("d", 4, None),  # never was
    )  # fmt: skip
    assert pairs(table) == [(2, 7), (3, 0)]


def test_rule_9_a_key_is_a_row_or_a_tombstone_of_its_commit_never_both() -> None:
    table = keyed({"k": [1], "v": [0]})
    apply(table, ("d", 1, None), ("i", 1, 5), ("d", 2, None))
    (entry,) = [
        entry
        for i in range(len(table.handle.pinned.parts))
        if (entry := table.handle.pinned.parts.entry(i)).commit_ts_max == 2
    ]
    assert entry.data is not None
    assert entry.deletes is not None
    assert (entry.data.rows, entry.deletes.rows) == (1, 1)
    assert bag(merge_by_row(table)) == bag([{"k": 1, "v": 5}])


# Rule 10: parts of one commit share no key


def test_rule_10_a_key_twice_in_one_commit_commits_nothing() -> None:
    table = keyed({"k": [1], "v": [0]})
    before = files(table)
    twice = pa.Table.from_batches([*kv((5, 1)).to_batches(), *kv((6, 1), (5, 2)).to_batches()])
    with pytest.raises(KeyViolation, match=r"\{'k': 5\}"):
        table.upsert(twice)
    assert files(table) == before
    assert table.refresh() == 1


def test_rule_10_parts_of_one_commit_are_disjoint_ranges() -> None:
    count = 300_000
    table = keyed(properties={"target_part_bytes": "1000"})
    table.upsert(pa.table({"k": range(count), "v": [1] * count}, schema=KV))
    parts = table.handle.pinned.parts
    assert len(parts) > 2
    scan = table.scan("k = 150000")
    assert scan.to_arrow().to_pylist() == [{"k": 150_000, "v": 1}]
    assert scan.metrics.parts_read == 1
    assert scan.explain().merged_groups == 0


# Rule 11: rewrites keep the order of commits


def test_rule_11_rows_written_during_a_rewrite_stay_newer() -> None:
    table = keyed({"k": [1, 2], "v": [1, 1]}, {"k": [1], "v": [2]})
    other = rowsieve.open_table(table.uri)

    def meddle(attempt: int) -> None:
        if attempt == 0:
            other.upsert(kv((1, 3)))
            other.delete(keys=pa.table({"k": [2]}))

    commit = meddled(table, meddle).compact()
    assert commit.version == 5
    assert pairs(table) == [(1, 3)]
    assert pairs(table, version=2) == [(1, 2), (2, 1)]


def test_rule_11_a_rewrite_is_not_newer_than_its_inputs() -> None:
    table = keyed({"k": [1, 2], "v": [1, 1]}, {"k": [1], "v": [2]})
    table.compact()
    table.refresh()
    parts = table.handle.pinned.parts
    assert [parts.entry(i).commit_ts_max for i in range(len(parts))] == [2]
    table.upsert(kv((2, 5)))
    assert pairs(table) == [(1, 2), (2, 5)]
    assert bag(merge_by_row(table)) == bag([{"k": 1, "v": 2}, {"k": 2, "v": 5}])


def test_rule_11_compacted_tombstones_delete_nothing_that_came_later() -> None:
    table = keyed({"k": [1, 2], "v": [1, 1]})
    table.delete(keys=pa.table({"k": [1]}))
    table.upsert(kv((1, 9)))
    table.compact()
    assert pairs(table) == [(1, 9), (2, 1)]
    assert table.detail()["tombstones"] == 0
    assert table.compact().version == table.version  # nothing left to do


# Rule 13: what a rewrite conflicts with


def test_rule_13_a_restore_during_a_rewrite_is_not_undone() -> None:
    table = keyed({"k": [1], "v": [1]}, {"k": [1], "v": [2]})
    other = rowsieve.open_table(table.uri)

    def meddle(attempt: int) -> None:
        if attempt == 0:
            other.restore(1)

    meddled(table, meddle).compact()
    assert pairs(table) == [(1, 1)]


def test_rule_13_a_vector_only_grows() -> None:
    table = appended({"k": [1, 2, 3], "v": [1, 1, 1]})
    other = rowsieve.open_table(table.uri)

    def meddle(attempt: int) -> None:
        if attempt == 0:
            other.delete("k = 1")

    meddled(table, meddle).delete("k = 2")
    assert pairs(table) == [(3, 1)]


@pytest.mark.parametrize("rewrite_first", [True, False])
def test_rule_13_rewrite_and_delete_of_rows_without_a_key(rewrite_first: bool) -> None:
    table = appended({"k": [1, 2], "v": [1, 1]}, {"k": [3], "v": [1]})
    other = rowsieve.open_table(table.uri)

    def meddle(attempt: int) -> None:
        if attempt == 0:
            other.compact() if rewrite_first else other.delete("k = 2")

    handle = meddled(table, meddle)
    if rewrite_first:
        handle.delete("k = 2")
    else:
        handle.compact()
    assert pairs(table) == [(1, 1), (3, 1)]


# Rule 23: what a scan, a registered table and an opened version see


def test_rule_23_a_scan_is_pinned_when_it_is_built() -> None:
    table = keyed({"k": [1], "v": [1]})
    scan = table.scan()
    table.upsert(kv((1, 2), (2, 2)))
    assert scan.version == 1
    assert scan.to_arrow().to_pylist() == [{"k": 1, "v": 1}]
    assert scan.count() == 1


def test_rule_23_a_registered_table_moves_with_its_own_commits_and_refresh_only() -> None:
    table = keyed({"k": [1], "v": [1]})
    other = rowsieve.open_table(table.uri)
    context = SessionContext()
    context.register_table("t", table)

    def count() -> int:
        return int(context.sql("SELECT count(*) AS n FROM t").to_arrow_table()["n"][0].as_py())

    other.upsert(kv((2, 2)))
    assert table.scan().count() == 2  # looks for the newest version first
    assert count() == 1  # stays where it was
    assert table.version == 1
    table.refresh()
    assert count() == 2
    table.upsert(kv((3, 3)))
    assert count() == 3


def test_rule_23_a_table_opened_at_a_version_is_read_only_and_stays() -> None:
    table = keyed({"k": [1], "v": [1]}, {"k": [1], "v": [2]})
    old = rowsieve.open_table(table.uri, version=1)
    changes: list[Callable[[], object]] = [
        lambda: old.upsert(kv((1, 3))),
        lambda: old.delete("TRUE"),
        lambda: old.delete(keys=pa.table({"k": [1]})),
        lambda: old.update({"v": "1"}),
        lambda: old.overwrite(kv((1, 3))),
        lambda: old.restore(0),
        old.compact,
        lambda: apply(old, ("d", 1, None)),
    ]
    for change in changes:
        with pytest.raises(UnsupportedOperation, match="read-only"):
            change()
    assert old.refresh() == 1
    assert pairs(old) == [(1, 1)]
    assert answer(old, "SELECT v FROM t") == [{"v": 1}]
    assert table.refresh() == 2


# Rule 24: bounds are inclusive, and infinite behind a cut


def test_rule_24_parts_that_touch_in_one_key_are_merged() -> None:
    table = keyed({"k": [1, 5], "v": [1, 1]}, {"k": [5, 9], "v": [2, 2]})
    assert pairs(table) == [(1, 1), (5, 2), (9, 2)]
    assert pairs(table, "v = 1") == [(1, 1)]
    assert pairs(table, "k >= 5 AND k <= 5") == [(5, 2)]


def test_rule_24_behind_a_cut_key_column_the_later_ones_are_infinite() -> None:
    schema = pa.schema(
        [
            pa.field("k", pa.string(), nullable=False),
            pa.field("n", pa.int64(), nullable=False),
            pa.field("v", pa.int64()),
        ]
    )
    long = "k" * 300
    table = rowsieve.create_table(fresh_uri(), schema, key=["k", "n"])
    table.upsert(pa.table({"k": [long, long], "n": [5, 9], "v": [1, 1]}, schema=schema))
    table.upsert(pa.table({"k": [long], "n": [-100], "v": [2]}, schema=schema))
    table.upsert(pa.table({"k": [long], "n": [9], "v": [3]}, schema=schema))
    assert table.scan(order_by_key=True).to_arrow()["v"].to_pylist() == [2, 1, 3]
    assert table.scan(f"k = '{long}' AND n = 9").to_arrow()["v"].to_pylist() == [3]
    assert table.scan(f"k = '{long}' AND n = 9 AND v = 1").count() == 0
    assert table.scan(f"k > '{long}'").count() == 0


# Rule 26: COUNT


def test_rule_26_a_count_is_of_visible_rows() -> None:
    table = keyed({"k": list(range(10)), "v": [1] * 10})
    table.upsert(kv((0, 2), (20, 2)))
    table.delete("k = 5")
    assert table.scan().count() == 10
    assert table.scan("v = 1").count() == 8
    assert answer(table, "SELECT count(*) AS n, count(v) AS m FROM t") == [{"n": 10, "m": 10}]
    assert answer(table, "SELECT count(*) AS n FROM t WHERE v = 1") == [{"n": 8}]
    assert answer(table, "SELECT min(v) AS a, max(k) AS b FROM t WHERE k < 9") == [{"a": 1, "b": 8}]


def test_rule_26_a_count_without_a_key_leaves_hidden_rows_out() -> None:
    table = appended({"k": list(range(10)), "v": [1] * 10}, {"k": [0], "v": [2]})
    table.delete("k = 0")
    assert table.scan().count() == 9
    assert answer(table, "SELECT count(*) AS n FROM t") == [{"n": 9}]
    scan = table.scan("v >= 1")
    assert scan.count() == 9
    assert scan.metrics.rows_decoded == 0  # proved by bounds, counted by the manifest


def test_rule_26_the_highest_value_may_be_hidden() -> None:
    table = appended({"k": [1, 2], "v": [1, 100]})
    table.delete("k = 2")
    assert answer(table, "SELECT max(v) AS m, min(k) AS k FROM t") == [{"m": 1, "k": 1}]


# Rule 27: errors


@pytest.mark.parametrize("pruning", ["on", "off"])
def test_rule_27_only_a_surviving_row_fails(pruning: Any) -> None:
    table = keyed({"k": [1, 2, 3], "v": [1, 0, None]})

    def rows(where: str) -> list[int]:
        return sorted(table.scan(where, pruning=pruning).to_arrow()["k"].to_pylist())

    assert rows("k <> 2 AND 10 / v > 1") == [1]
    assert rows("10 / v > 1 AND k <> 2") == [1]
    assert rows("k = 2 OR k = 1 OR 10 / v > 1") == [1, 2]
    assert rows("10 / v > 1 AND NULL") == []
    for where in ("10 / v > 1", "k = 2 AND 10 / v > 1", "k = 1 OR 10 / v > 1", "NOT (10 / v > 1)"):
        with pytest.raises(EvaluationError):
            rows(where)


@pytest.mark.parametrize("pruning", ["on", "off"])
def test_rule_27_a_version_that_is_hidden_does_not_fail(pruning: Any) -> None:
    table = keyed({"k": [1, 2], "v": [0, 0]}, {"k": [1], "v": [5]})
    table.delete(keys=pa.table({"k": [2]}))
    assert table.scan("10 / v = 2", pruning=pruning).to_arrow().to_pylist() == [{"k": 1, "v": 5}]
    without = appended({"k": [1, 2], "v": [0, 5]})
    without.delete("v = 0")
    assert without.scan("10 / v = 2", pruning=pruning).count() == 1
    without.delete("10 / v = 2")
    assert without.scan().count() == 0


def test_rule_27_a_part_whose_rows_may_fail_is_read() -> None:
    table = keyed({"k": [1], "v": [0]})
    with pytest.raises(EvaluationError):
        table.scan("10 / v > 100").to_arrow()
    with pytest.raises(EvaluationError):
        table.scan("10 / v > 100").count()
    with pytest.raises(EvaluationError):
        table.delete("10 / v > 100")
    with pytest.raises(EvaluationError):
        table.update({"v": "10 / v"})
    assert table.refresh() == 1
