"""Net changes: the difference of two versions by key, whatever the commits in between did."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.change_feed.commit_parts import CommitParts, parts_of_range
from rowsieve.errors import InvalidInput, SnapshotExpired, UnsupportedOperation
from tests.change_feed.test_changes import feed
from tests.change_feed.test_commit_parts import rows_of
from tests.change_feed.test_random_histories import (
    CONDITIONS,
    History,
    Row,
    ids_of,
    key_of,
    key_places,
    plain,
    shown_rows,
)
from tests.profiles import examples
from tests.small_tables import appended, keyed, kv


def test_a_key_has_at_most_one_row_before_and_one_after() -> None:
    table = keyed({"k": [1, 2, 3], "v": [10, 20, 30]})
    table.upsert(kv((1, 11), (4, 40)))
    table.upsert(kv((1, 12), (5, 50)))
    table.delete("k IN (2, 5)")
    assert feed(table, 2, net=True) == [("<", 1, 10), (">", 1, 12), ("-", 2, 20), ("+", 4, 40)]
    assert feed(table, 0, net=True) == [("+", 1, 12), ("+", 3, 30), ("+", 4, 40)]
    assert feed(table, 3, 3, net=True) == [("<", 1, 11), (">", 1, 12), ("+", 5, 50)]
    assert feed(table, table.version + 1, net=True) == []


def test_rows_that_end_as_they_began_are_left_out() -> None:
    table = keyed({"k": [1, 2, 3], "v": [10, 20, 30]})
    table.upsert(kv((1, 10)))  # an equal row
    table.update({"v": "v + 1"}, where="k = 2")
    table.update({"v": "v - 1"}, where="k = 2")
    table.delete("k = 3")
    table.upsert(kv((3, 30), (9, 9)))
    table.delete("k = 9")
    table.compact()
    assert feed(table, 2, net=True) == []


def test_every_row_names_the_last_version() -> None:
    table = keyed({"k": [1], "v": [10]}, {"k": [2], "v": [20]}, {"k": [3], "v": [30]})
    rows = table.changes(2, 2, net=True).read_all()
    commits = {commit.version: commit.timestamp for commit in table.history()}
    assert rows["_commit_version"].to_pylist() == [2]
    assert rows["_commit_timestamp"].to_pylist() == [commits[2]]


def test_nan_is_equal_to_itself_and_zero_is_not_minus_zero() -> None:
    schema = pa.schema([("k", pa.int64()), ("f", pa.float64()), ("l", pa.list_(pa.float64()))])
    rows: dict[str, Any] = {
        "k": [1, 2, 3, 4],
        "f": [float("nan"), 0.0, None, 1.0],
        "l": [[float("nan")], [0.0], [None], None],
    }
    table = rs.create_table("memory:///net_equality", schema, key=["k"])
    table.upsert(pa.table(rows, schema=schema))
    table.upsert(pa.table(rows, schema=schema))
    assert table.changes(2, net=True).read_all().num_rows == 0
    table.upsert(pa.table({"k": [3], "f": [None], "l": [[-0.0]]}, schema=schema))
    changed = table.changes(2, net=True, columns=["k"]).read_all()
    assert changed["k"].to_pylist() == [3, 3]


def test_restore_overwrite_and_a_new_column_count_by_their_rows() -> None:
    table = keyed({"k": [1, 2], "v": [10, 20]})
    table.upsert(kv((1, 11)))
    table.restore(1)
    assert feed(table, 2, net=True) == []
    table.overwrite(kv((1, 10), (3, 30)))
    assert feed(table, 2, net=True) == [("-", 2, 20), ("+", 3, 30)]
    table.add_column("w", pa.int64(), default=7)
    table.update({"w": "8"}, where="k = 3")
    rows = table.changes(2, net=True).read_all().select(["k", "v", "w"]).to_pylist()
    assert rows == [{"k": 2, "v": 20, "w": 7}, {"k": 3, "v": 30, "w": 8}]


def test_a_table_without_a_key_is_refused_by_name() -> None:
    table = appended({"k": [1], "v": [1]})
    with pytest.raises(UnsupportedOperation, match="the table has no key"):
        table.changes(0, net=True)


def test_commits_in_between_need_not_be_kept_but_the_first_must() -> None:
    table = keyed({"k": [1], "v": [1]}, {"k": [1], "v": [2]}, {"k": [1], "v": [3]})
    table.expire_versions(retain_last=1)
    with pytest.raises(SnapshotExpired):
        table.changes(1, net=True).read_all()


def test_a_range_in_reverse_is_refused() -> None:
    table = keyed({"k": [1], "v": [1]})
    with pytest.raises(InvalidInput, match="has no version"):
        table.changes(3, 1, net=True)


def difference(table: rs.Table, history: History, first: int, last: int) -> list[tuple[str, Row]]:
    """The net changes by the rows of both versions as dicts of their keys."""
    target = table.scan(version=last).to_arrow()
    ids = ids_of(target.schema)
    places = key_places(history, ids)
    after = {key_of(row, places): row for row in plain(target, ids)}
    before: dict[Row, Row] = {}
    if first:
        feed = table.changes(0, last).read_all()  # rows before, with the columns of the last
        rows = zip(
            feed["_commit_version"].to_pylist(),
            feed["_change_type"].to_pylist(),
            plain(feed, ids),
            strict=True,
        )
        for version, kind, row in rows:
            if version < first and kind in ("delete", "update_preimage"):
                del before[key_of(row, places)]
            elif version < first:
                before[key_of(row, places)] = row
    changes: list[tuple[str, Row]] = []
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if old is not None:
            changes.append(("delete" if new is None else "update_preimage", old))
        if new is not None:
            changes.append(("insert" if old is None else "update_postimage", new))
    return sorted(changes, key=repr)


def labelled(rows: pa.Table, ids: list[int]) -> list[tuple[str, Row]]:
    return sorted(zip(rows["_change_type"].to_pylist(), plain(rows, ids), strict=True), key=repr)


@pytest.mark.parametrize(("kind", "parts"), [("integer", 1), ("text", 2), ("float", 2)])
@examples(12)
@given(seed=st.integers(0, 2**32))
def test_net_changes_are_the_difference_of_the_rows_of_both_versions(
    kind: str, parts: int, seed: int
) -> None:
    history = History(random.Random(seed), kind, parts)
    for _ in range(12):
        history.step()
    table = history.table
    for _ in range(4):
        first = history.rng.randrange(table.version + 1)
        last = history.rng.randrange(first, table.version + 1)
        rows = table.changes(first, last, net=True).read_all()
        ids = ids_of(table.scan(version=last).to_arrow().schema)
        assert labelled(rows, ids) == difference(table, history, first, last), (first, last)
        for where, matches in CONDITIONS:
            chosen = table.changes(first, last, where=where, columns=["k"], net=True).read_all()
            expected = rows.filter(pa.array(map(matches, rows.to_pylist()), pa.bool_()))
            assert shown_rows(chosen) == shown_rows(expected.select(chosen.schema.names)), where


@examples(3)
@given(seed=st.integers(0, 2**32))
def test_shares_of_a_range_give_the_same_rows(seed: int) -> None:
    history = History(random.Random(seed), "integer", 1)
    for _ in range(9):
        history.step()
    table = history.table
    first = history.rng.randrange(table.version + 1)
    before = table.handle.log.at(first - 1) if first else None
    commit: CommitParts | None = parts_of_range(before, table.handle.pinned)
    whole = table.changes(first, net=True).read_all()
    shares = pa.Table.from_batches(rows_of(table, commit), whole.schema)
    assert sorted(shown_rows(shares), key=repr) == sorted(shown_rows(whole), key=repr)
