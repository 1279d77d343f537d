"""The parts of a commit, sent to another process whole or in shares, give the rows of the feed."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.change_feed.commit_parts import CommitParts, parts_of_commit, parts_of_rows
from rowsieve.change_feed.commit_rows import rows_of_commit
from rowsieve.change_feed.feed_columns import FeedColumns
from rowsieve.errors import InvalidInput
from rowsieve.predicate.ir import TRUE
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.next_version import next_version
from tests.change_feed.test_random_histories import History, shown_rows
from tests.profiles import examples
from tests.small_tables import appended, keyed, kv


def rows_of(table: rs.Table, commit: CommitParts | None) -> list[pa.RecordBatch]:
    """The rows of a commit, each share read as in another process."""
    if commit is None:
        return []
    target = table.handle.pinned
    columns = FeedColumns.bound(target, None, TRUE, Semantics.SQL, 0)
    return [
        batch
        for share in commit.shares(target)
        for batch in rows_of_commit(
            table.handle.store, target, CommitParts.from_bytes(share.to_bytes()), columns
        )
    ]


@pytest.mark.parametrize(("kind", "parts"), [("integer", 1), ("text", 2), ("float", 2), (None, 0)])
@examples(3)
@given(seed=st.integers(0, 2**32))
def test_shares_of_all_commits_give_the_rows_of_the_feed(
    kind: str | None, parts: int, seed: int
) -> None:
    history = History(random.Random(seed), kind, parts)
    for _ in range(9):
        history.step()
    table = history.table
    log = CommitLog(table.handle.store)
    found, before = [], None
    for version in range(table.version + 1):
        after, operation = next_version(log, before, version)
        commit = parts_of_commit(before, after, operation, table.handle.pinned)
        found += rows_of(table, commit)
        before = after
    feed = table.changes(0).read_all()
    rows = pa.Table.from_batches(found, feed.schema)
    assert Counter(shown_rows(rows)) == Counter(shown_rows(feed))
    all_rows = pa.Table.from_batches(rows_of(table, parts_of_rows(after)), feed.schema)
    names = table.schema.names
    assert Counter(shown_rows(all_rows.select(names))) == Counter(shown_rows(table.to_arrow()))
    assert set(all_rows["_change_type"].to_pylist()) <= {"insert"}


def test_shares_are_cut_by_keys_and_small_ones_stay_whole() -> None:
    table = keyed({"k": [1, 2], "v": [1, 1]}, {"k": [5, 6], "v": [1, 1]}, {"k": [9], "v": [1]})
    table.upsert(kv((2, 2), (5, 2)))
    target = table.handle.pinned
    whole = parts_of_rows(target)
    assert whole is not None
    counts = [len(share.after) for share in whole.shares(target)]
    assert counts == [3, 1]  # the newest part overlaps two others


def test_without_a_key_each_part_is_a_share() -> None:
    table = appended({"k": [1], "v": [1]}, {"k": [1], "v": [2]})
    target = table.handle.pinned
    whole = parts_of_rows(target)
    assert whole is not None
    assert [len(share.after) for share in whole.shares(target)] == [1, 1]


def test_a_version_without_parts_has_no_rows() -> None:
    assert parts_of_rows(keyed().handle.pinned) is None


def test_other_bytes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="not the parts of a commit"):
        CommitParts.from_bytes(b"\xc1")
