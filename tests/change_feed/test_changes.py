"""The change feed by small stories: `Table.changes`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.change_feed import changed_rows, commit_rows
from rowsieve.errors import (
    EvaluationError,
    InvalidInput,
    SnapshotExpired,
    UnsupportedOperation,
    VersionNotFound,
)
from rowsieve.executor.execute import Execution
from rowsieve.retention.leases import lease_files
from tests.small_tables import KV, appended, fresh_uri, keyed, kv

LABELS = {"insert": "+", "update_preimage": "<", "update_postimage": ">", "delete": "-"}


def feed(table: rs.Table, *versions: int, **options: Any) -> list[tuple[Any, ...]]:
    """(sign, k, v) of each change."""
    rows = table.changes(*versions, **options).read_all().to_pylist()
    return [(LABELS[row["_change_type"]], row.get("k"), row.get("v")) for row in rows]


def test_each_change_of_a_keyed_table_has_its_type() -> None:
    table = keyed({"k": [1, 2, 3], "v": [10, 20, 30]})
    table.upsert(kv((2, 21), (4, 40)))
    table.delete("k = 1")
    table.update({"v": "v + 1"}, where="k = 3")
    assert feed(table, 1, 1) == [("+", 1, 10), ("+", 2, 20), ("+", 3, 30)]
    assert feed(table, 2, 2) == [("<", 2, 20), (">", 2, 21), ("+", 4, 40)]
    assert feed(table, 3, 3) == [("-", 1, 10)]
    assert feed(table, 4) == [("<", 3, 30), (">", 3, 31)]
    assert feed(table, 0) == [change for v in range(5) for change in feed(table, v, v)]


def test_every_row_names_its_commit() -> None:
    table = keyed({"k": [1], "v": [10]}, {"k": [1], "v": [11]})
    found = table.changes(1).read_all()
    commits = {commit.version: commit.timestamp for commit in table.history()}
    assert found["_commit_version"].to_pylist() == [1, 2, 2]
    assert found["_commit_timestamp"].to_pylist() == [commits[1], commits[2], commits[2]]
    assert found.schema.names == ["k", "v", "_change_type", "_commit_version", "_commit_timestamp"]


def test_an_upsert_of_an_equal_row_is_an_update() -> None:
    table = keyed({"k": [1], "v": [10]}, {"k": [1], "v": [10]})
    assert feed(table, 2) == [("<", 1, 10), (">", 1, 10)]


def test_a_delete_of_an_absent_key_is_no_change() -> None:
    table = keyed({"k": [1], "v": [10]})
    table.delete(keys=pa.table({"k": [7]}))
    assert feed(table, 2, table.version) == []


def test_a_deleted_and_reinserted_key_is_an_insert_then() -> None:
    table = keyed({"k": [1], "v": [10]})
    table.delete("k = 1")
    table.upsert(kv((1, 12)))
    assert feed(table, 1) == [("+", 1, 10), ("-", 1, 10), ("+", 1, 12)]


def test_few_but_large_rows_are_merged_instead_of_sorted_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A million rows of 1 kB were held three times over; memory is bounded by bytes, not rows."""
    table = keyed({"k": [5, 1, 9], "v": [1, 2, 3]}, {"k": [7, 2], "v": [4, 5]})
    table.overwrite(kv((9, 3), (1, 0), (4, 4)))
    expected = feed(table, 3), feed(table, 1), feed(table, 1, net=True)
    plans = []

    class Recorded(Execution):
        def __init__(self, plan: Any, *args: Any, **options: Any) -> None:
            plans.append(plan)
            super().__init__(plan, *args, **options)

    monkeypatch.setattr(commit_rows, "Execution", Recorded)
    feed(table, 3)
    assert not any(plan.ordered for plan in plans)
    monkeypatch.setattr(commit_rows, "SORTED_AT_ONCE_BYTES", 8)
    assert (feed(table, 3), feed(table, 1), feed(table, 1, net=True)) == expected
    assert any(plan.ordered for plan in plans)


def test_rewrites_and_settings_emit_nothing() -> None:  # invariant 34
    table = keyed({"k": [1, 2], "v": [1, 2]}, {"k": [2, 3], "v": [5, 6]})
    table.compact()
    table.build_deletion_vectors()
    table.set_properties({"checkpoint_interval": 5})
    table.add_column("w", pa.int64(), default=3)
    assert table.version >= 5
    assert feed(table, 3) == []


def test_a_restore_emits_the_difference_even_across_a_compaction() -> None:  # invariant 34
    table = keyed({"k": [1, 2], "v": [1, 2]}, {"k": [2, 3], "v": [5, 6]})
    table.compact()
    table.upsert(kv((4, 7)))
    restored = table.restore(1).version
    assert feed(table, restored) == [("<", 2, 5), (">", 2, 2), ("-", 3, 6), ("-", 4, 7)]


def test_a_restore_compares_all_columns_bit_by_bit() -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.float64())])
    nan = float("nan")
    table = keyed({"k": [1, 2, 3, 4], "v": [nan, 0.0, None, 1.0]}, schema=schema)
    table.upsert(pa.table({"k": [2, 4], "v": [-0.0, 2.0]}))
    table.upsert(pa.table({"k": [4], "v": [1.0]}))
    table.compact()
    restored = table.restore(1).version
    assert [sign + str(k) for sign, k, _ in feed(table, restored)] == ["<2", ">2"]
    assert [row[:2] for row in feed(table, restored, columns=["k"])] == [("<", 2), (">", 2)]


def test_an_overwrite_pairs_the_rows_of_a_key() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]})
    table.overwrite(kv((2, 2), (3, 3)))
    assert feed(table, 2) == [("-", 1, 1), ("<", 2, 2), (">", 2, 2), ("+", 3, 3)]


def test_a_table_without_a_key_reports_updates_and_deletes() -> None:
    table = appended({"k": [1, 1, 2], "v": [1, 1, 2]}, {"k": [3], "v": [3]})
    table.update({"v": "9"}, where="k = 2")
    table.delete("k = 1")
    assert table.compact().committed
    table.overwrite(kv((5, 5)))
    assert feed(table, 1, 2) == [("+", 1, 1), ("+", 1, 1), ("+", 2, 2), ("+", 3, 3)]
    assert feed(table, 3, 3) == [("<", 2, 2), (">", 2, 9)]
    assert feed(table, 4, 5) == [("-", 1, 1), ("-", 1, 1)]
    assert sorted(feed(table, 6)) == [("+", 5, 5), ("-", 2, 9), ("-", 3, 3)]


def test_rows_have_the_columns_of_the_last_version() -> None:
    table = keyed({"k": [1], "v": [10]})
    table.add_column("w", pa.int64(), default=7)
    table.rename_column("v", "x")
    assert table.changes(1).read_all().select([0, 1, 2]).to_pylist() == [{"k": 1, "x": 10, "w": 7}]
    assert table.changes(1, 1).schema.names[:2] == ["k", "v"]


def test_where_selects_rows_of_the_feed_not_of_keys() -> None:
    table = keyed({"k": [1, 2], "v": [10, 20]}, {"k": [1], "v": [99]})
    assert feed(table, 2, where="v > 50") == [(">", 1, 99)]
    assert feed(table, 2, where="v < 50") == [("<", 1, 10)]
    assert feed(table, 1, where="_change_type = 'insert' AND k = 2") == [("+", 2, 20)]
    assert feed(table, 0, where="_commit_version = 2 AND k < 9") == [("<", 1, 10), (">", 1, 99)]
    assert feed(table, 1, where="k = 3") == []


@pytest.mark.parametrize("new", [appended, keyed])
def test_a_term_that_is_false_keeps_another_one_from_failing(new: Any) -> None:  # invariant 27
    table = new({"k": [0, 1], "v": [1, 1]})
    table.delete("k = 0")
    kept = "_change_type = 'delete' AND 1 / k > 0"
    with pytest.raises(EvaluationError):
        feed(table, 1, where=kept)
    assert feed(table, 1, 1, where=kept) == []


def test_columns_select_columns_of_the_table() -> None:
    table = keyed({"k": [1], "v": [10]}, {"k": [1], "v": [11]})
    found = table.changes(1, columns=["v"]).read_all()
    assert found.schema.names == ["v", "_change_type", "_commit_version", "_commit_timestamp"]
    assert found["v"].to_pylist() == [10, 10, 11]
    assert table.changes(1, columns=[]).read_all().num_rows == 3
    with pytest.raises(InvalidInput, match="twice"):
        table.changes(1, columns=["v", "v"])


def test_a_range_beyond_the_newest_version_is_refused() -> None:
    table = keyed({"k": [1], "v": [10]})
    assert feed(table, 2) == []  # nothing happened since
    with pytest.raises(VersionNotFound, match="newest version is 1"):
        table.changes(3)
    with pytest.raises(VersionNotFound, match="newest version is 1"):
        table.changes(0, 2)
    with pytest.raises(InvalidInput, match="0 <= from_version <= to_version"):
        table.changes(1, 0)
    with pytest.raises(InvalidInput, match="0 <= from_version <= to_version"):
        table.changes(-1)


def test_a_table_opened_at_a_version_ends_there() -> None:
    table = keyed({"k": [1], "v": [10]}, {"k": [2], "v": [20]})
    old = rs.open_table(table.uri, version=1)
    assert feed(old, 0) == [("+", 1, 10)]


def test_an_expired_version_is_an_error_that_says_what_there_is() -> None:
    table = keyed(*({"k": [i], "v": [i]} for i in range(5)))
    table.expire_versions(retain_last=3)
    oldest = table.history()[-1].version
    with pytest.raises(SnapshotExpired, match=f"versions {oldest + 1} to {table.version}"):
        table.changes(oldest)
    with pytest.raises(SnapshotExpired, match="they need version 0, and versions before"):
        table.changes(1)
    assert feed(table, oldest + 1)[0][0] == "+"


def test_rows_of_an_entry_that_are_gone_are_an_error_that_names_the_versions(
    tmp_path: Path,
) -> None:
    table = rs.create_table(tmp_path / "t", KV, key=["k"], properties={"inline_bytes": 0})
    table.upsert(kv((1, 1)))
    table.upsert(kv((2, 2)))
    for file in (tmp_path / "t/_rowsieve/log").glob("*.arrow"):
        file.unlink()
    with pytest.raises(SnapshotExpired, match="the changes of versions"):
        feed(table, 1)


def test_a_lease_protects_the_versions_while_the_feed_is_read(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", KV, key=["k"])
    for i in range(3):
        table.upsert(kv((i, i)))
    reader = table.changes(1)
    assert lease_files(table.handle.store) == []
    reader.read_next_batch()
    assert [lease.version for lease in lease_files(table.handle.store)] == [0]
    table.compact()
    table.vacuum(retain_last=1)
    assert sum(batch.num_rows for batch in reader) == 2
    assert lease_files(table.handle.store) == []


def test_versions_that_expire_before_the_first_batch_are_an_error() -> None:
    table = keyed(*({"k": [i], "v": [i]} for i in range(5)))
    reader = table.changes(1)
    table.expire_versions(retain_last=1)
    with pytest.raises(SnapshotExpired, match="changes of version 1"):
        reader.read_all()


def test_a_column_with_a_name_of_the_feed_is_refused() -> None:
    table = keyed(schema=pa.schema([("k", pa.int64()), ("_commit_version", pa.int64())]))
    with pytest.raises(UnsupportedOperation, match="rename_column"):
        table.changes(0)


def test_many_keys_and_few_keys_give_the_same_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = rs.create_table(fresh_uri(), KV, key=["k"])
    table.upsert(kv(*((i, i) for i in range(2_000))))
    table.upsert(kv(*((i, -i) for i in range(0, 2_000, 3))))
    table.delete("k % 5 = 0")
    few = feed(table, 0)
    monkeypatch.setattr(changed_rows, "KEYS_LOOKED_UP_AT_MOST", 0)
    assert feed(table, 0) == few
    assert len(few) == 2_000 + 2 * 667 + 400
