"""Stories of the commit log on a store that answers one request at a time.

`test_log_across_a_network.py` has its own: there the log asks ahead of the answers.
"""

from __future__ import annotations

import pytest

from rowsieve.errors import UnsupportedOperation
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import log_path
from tests.faults.stores import FaultyStore
from tests.storage.log_fixtures import commit, create, memory_store, never, upsert
from tests.storage.test_commit_log_faults import overwriting


def test_refreshing_reads_new_entries_only() -> None:
    log, s3 = create(memory_store(), 3)
    store = FaultyStore(log._store)
    follower = CommitLog(store)
    assert follower.latest(s3) is s3
    assert store.calls == [("get", log_path(4)), ("get", log_path(3))]
    s4 = commit(log, s3)
    store.calls.clear()
    assert follower.latest(s3) == s4
    assert [name for name, _ in store.calls] == ["get"] * 4
    assert "list" not in [name for name, _ in store.calls]


def test_invariant_rule_2_a_store_that_overwrites_is_left_as_it_was() -> None:
    store, inner = overwriting()
    _, before = create(inner)
    listed = inner.list("")
    with pytest.raises(UnsupportedOperation, match="does not honour create-only puts"):
        CommitLog(store).commit(upsert(), before, never)
    assert inner.list("") == listed
