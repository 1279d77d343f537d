"""The stories of the commit log again, on a store whose requests overlap as across a network.

There the log is read by other requests, many at a time; what it says must be the same.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

from rowsieve.errors import StoreError, UnsupportedOperation
from rowsieve.objects import ObjectStore, RemoteStore, Uploads
from rowsieve.objects.drafts import MAX_BYTES
from rowsieve.storage.log import incremental_checkpoint
from rowsieve.storage.log.checkpoint import CHECKPOINTS, checkpoint_path, write_checkpoint
from rowsieve.storage.log.commit_log import CommitLog, CommitRequest
from rowsieve.storage.log.log_entry import log_path
from rowsieve.storage.log.log_head import _seen
from rowsieve.storage.snapshot import Snapshot
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Fault
from tests.storage.log_fixtures import commit, copy, create, memory_store, never, part, upsert
from tests.storage.test_commit_log import *  # noqa: F403 - all of its stories
from tests.storage.test_commit_log_faults import *  # noqa: F403
from tests.storage.test_commit_log_faults import _checkpoints, _no_pauses, new_process, overwriting
from tests.storage.test_lost_entries import *  # noqa: F403

__all__ = ["_checkpoints", "_no_pauses", "new_process"]


@pytest.fixture(autouse=True)
def across_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of memory overlap; checkpoints are written before a commit returns."""
    monkeypatch.setattr(RemoteStore, "overlaps", property(lambda _: True))
    monkeypatch.setattr(incremental_checkpoint, "in_background", lambda _, task: task())


def test_refreshing_asks_for_new_entries_at_once() -> None:
    log, known = create(memory_store(), 3)
    store = FaultyStore(log._store)
    follower = CommitLog(store)
    assert follower.latest(known) is known
    asked = [("get", log_path(3)), ("get", log_path(4)), ("list", CHECKPOINTS)]
    assert sorted(store.calls) == asked
    ours = part()
    newest = commit(log, known, added=ours)
    store.calls.clear()
    assert follower.latest(known) == newest
    assert all(name != "list" or path == CHECKPOINTS for name, path in store.calls)


def test_invariant_rule_2_a_store_that_overwrites_gets_no_entry() -> None:
    store, inner = overwriting()
    _, before = create(inner)
    with pytest.raises(UnsupportedOperation, match="does not honour create-only puts"):
        CommitLog(store).commit(upsert(), before, never)
    assert CommitLog(inner).latest() == before
    assert log_path(1) not in inner.list("")


def test_a_refresh_sees_by_a_later_checkpoint_that_the_next_entry_was_lost() -> None:
    inner = memory_store()
    log, known = create(inner, 1, checkpoint_interval="4")
    newest = known
    for _ in range(4):
        newest = commit(log, newest)
    assert CommitLog(copy(inner, log_path(2))).latest(known) == newest


@pytest.mark.parametrize("damaged", [(4,), (4, 2), (4, 2, 0), (2, 0), ()])
def test_an_old_version_is_read_from_before_damaged_checkpoints(damaged: tuple[int, ...]) -> None:
    log, _ = create(memory_store(), 6, checkpoint_interval="2")
    write_checkpoint(log._store, log.at(0))
    versions = {number: log.at(number) for number in range(1, 6)}
    store = copy(log._store, changed={checkpoint_path(number): b"damaged" for number in damaged})
    assert {number: CommitLog(store).at(number) for number in versions} == versions


def test_invariant_rule_6_an_entry_that_expires_during_a_refresh_is_not_one_never_written() -> None:
    """Its number is asked for last of several, once retention has deleted it."""
    inner = memory_store()
    _, known = create(inner, 3, checkpoint_interval="2")
    newest = known
    for _ in range(6):
        newest = commit(CommitLog(inner), newest)
    following = log_path(known.version + 1)
    expire = partial(inner.delete, [log_path(version) for version in range(known.version + 2)])
    store = FaultyStore(inner).overtake(expire, "get", lambda path: path == following)
    _seen.clear()  # of a process that has not been here for long
    assert CommitLog(store).latest(known) == newest
    assert store.is_over


def test_invariant_rule_3_no_entry_is_put_before_all_files_that_it_names_are_stored() -> None:
    """The store denies a data file, but only after all else before the entry is stored."""
    inner = memory_store()
    log, base = create(inner)

    def is_data(path: str) -> bool:
        while path.startswith("data/"):
            if any(other.endswith(".arrow") for other in inner.list("")):
                return True
        return False

    store = FaultyStore(inner).meet_where(Fault.DENIED, "put_new", is_data)
    uploads = Uploads(store)
    uploads.put("data/small", bytes(10))
    _refuses_to_commit(store, uploads, base)
    uploads = Uploads(store)
    with pytest.raises(StoreError, match="403"):  # a large object is waited for at once
        uploads.put("data/large", bytes(MAX_BYTES + 10))
    _refuses_to_commit(store, uploads, base)
    assert log.latest().version == base.version == 0


def _refuses_to_commit(store: FaultyStore, uploads: Uploads, base: Snapshot) -> None:
    request = CommitRequest("upsert", part(), uploads=uploads)
    for _ in range(2):  # an upload that failed is not forgotten
        with pytest.raises(StoreError, match="403"):
            CommitLog(store).commit(request, base, never)


@pytest.mark.parametrize("left", [3, 4, 5])
def test_invariant_rule_6_entries_that_are_deleted_in_any_order_hide_no_version(left: int) -> None:
    """One request deletes 1,000 objects in any order; it may end with an entry left over.

    The reader pauses after it read the first new entry. Meanwhile there are a checkpoint and an
    expiry, and of the old entries one stays.
    """
    inner = memory_store()
    log, known = create(inner, 2, checkpoint_interval="1000")
    newest = known
    for _ in range(7):
        newest = commit(log, newest)

    def expire() -> None:
        write_checkpoint(inner, log.at(8))
        inner.delete([log_path(version) for version in range(8) if version != left])

    paused = FaultyStore(inner).overtake(expire, "get", lambda path: path == log_path(4))
    _seen.clear()
    assert CommitLog(paused).latest(known) == newest
    assert not inner.exists(log_path(2))


class Replaced:
    """A store whose table is dropped and created anew by `replace`."""

    def __init__(self, before: ObjectStore, after: ObjectStore) -> None:
        self._store, self._after = before, after
        self.uri = before.uri
        self.overlaps = True

    def replace(self) -> None:
        self._store = self._after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_an_old_version_of_a_table_that_is_replaced_meanwhile_is_not_mixed_with_the_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stores = [memory_store(), memory_store()]
    for each in stores:
        log, first = create(each)
        commit(log, commit(log, first))
    store = Replaced(*stores)
    reader, read = CommitLog(store), threading.Event()
    read_version, newest = reader.read_version, reader.newest

    def reading(version: int) -> Snapshot:
        try:
            return read_version(version)
        finally:
            read.set()

    def replaced() -> Snapshot:
        assert read.wait(60)
        store.replace()
        return newest()

    monkeypatch.setattr(reader, "read_version", reading)
    monkeypatch.setattr(reader, "newest", replaced)
    assert reader.at(1).table.uuid == CommitLog(stores[1]).latest().table.uuid
