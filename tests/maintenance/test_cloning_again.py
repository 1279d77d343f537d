"""`Table.clone` that dies, meets a full disk, or runs twice at once: called again, it ends well."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import pytest

import rowsieve as rs
from rowsieve.errors import CorruptData, StoreError, TableExists
from rowsieve.maintenance.cloning import clone_version
from rowsieve.objects import ObjectStore, open_store
from rowsieve.storage import planting
from rowsieve.storage.log import commit_log
from rowsieve.storage.log.checkpoint import read_parts
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import LOG
from tests.faults.stores import FaultyStore, RemoteFaultyStore
from tests.faults.vocabulary import Crash, Fault
from tests.retention.small_histories import expected, rows_of, with_history
from tests.small_tables import fresh_uri


def copied(table: rs.Table, store: Any) -> None:
    clone_version(table.handle.store, table.handle.pinned, store, None)


def assert_whole(store: ObjectStore, version: int) -> None:
    """The copy, as another process reads it, and changed once."""
    copy = rs.open_table(store.uri)
    assert rows_of(copy) == expected(version)
    assert [commit.version for commit in copy.history()] == [version]
    assert copy.verify().is_whole
    assert copy.upsert({"id": [0], "v": [9]}).version == version + 1


def puts(table: rs.Table) -> list[int]:
    """The places of the puts among the requests of a copy."""
    store = FaultyStore(open_store(fresh_uri()))
    copied(table, store)
    places = [place for place, (name, _) in enumerate(store.calls) if name == "put_new"]
    assert len(places) > 5
    return places


@pytest.mark.parametrize(
    "fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.NO_SPACE], ids=lambda each: each.name
)
@pytest.mark.parametrize("most_bytes", [0, 1 << 20], ids=["list in a file", "list in the entry"])
def test_a_call_that_ended_at_any_request_is_completed_by_the_next(
    fault: Fault, most_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (commit_log, planting):
        monkeypatch.setattr(module, "LIST_BYTES", most_bytes)
    table = with_history(versions=3)
    for number in puts(table):
        store = open_store(fresh_uri())
        faulty = FaultyStore(store, fault, number)
        with suppress(Crash, StoreError):  # the probe of the store is repeated
            copied(table, faulty)
        assert faulty.failed is not None
        with suppress(TableExists):  # it died after its entry
            copied(table, store)
        assert_whole(store, 2)


def test_two_calls_at_once_make_one_table() -> None:
    table = with_history(versions=3)
    for number in puts(table):
        store = open_store(fresh_uri())
        first = FaultyStore(store).overtake(partial(copied, table, store), after=number)
        with suppress(TableExists):
            copied(table, first)
        assert first.is_over
        assert_whole(store, 2)


def test_a_call_beside_one_that_dies_before_its_entry_makes_one_table() -> None:
    table = with_history(versions=3)

    def die(store: ObjectStore) -> None:
        dying = FaultyStore(store).meet_where(Fault.CRASH_BEFORE, "put_new", is_entry)
        with pytest.raises(Crash):
            copied(table, dying)

    for number in puts(table):
        store = open_store(fresh_uri())
        copied(table, FaultyStore(store).overtake(partial(die, store), after=number))
        assert_whole(store, 2)


def test_a_list_of_parts_that_arrives_cut_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (commit_log, planting):
        monkeypatch.setattr(module, "LIST_BYTES", 0)
    table = with_history(versions=3)
    store = open_store(fresh_uri())
    dying = FaultyStore(store).meet_where(Fault.CRASH_BEFORE, "put_new", is_entry)
    with pytest.raises(Crash):
        copied(table, dying)
    remote = RemoteFaultyStore(store).meet_where(Fault.TRUNCATED, "get", is_list, times=1)
    copied(table, remote)
    assert remote.is_over
    entry = CommitLog(store).entry(2)
    assert entry is not None
    assert entry.file is not None
    assert read_parts(store, LOG, entry.file).row_count == table.handle.pinned.parts.row_count
    assert_whole(store, 2)


def is_list(path: str) -> bool:
    return path.startswith("_rowsieve/log/") and path.endswith(".arrow")


def is_entry(path: str) -> bool:
    return path.startswith("_rowsieve/log/0000")


def test_the_rest_of_a_copy_of_another_version_is_refused_with_the_way_out() -> None:
    table = with_history(versions=4)
    store = open_store(fresh_uri())
    dying = FaultyStore(store).meet_where(Fault.CRASH_BEFORE, "put_new", is_entry)
    with pytest.raises(Crash):
        copied(table, dying)
    table.upsert({"id": [0], "v": [7]})
    with pytest.raises(CorruptData, match=r"a copy was interrupted here, .* delete the folder"):
        copied(table, store)
