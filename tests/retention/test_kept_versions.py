"""Deletion needs a proof from the log: listings that lag or tear, and logs that lost entries."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

import rowsieve
from rowsieve import Table
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import CorruptData, SnapshotExpired, StoreError
from rowsieve.objects import Details
from rowsieve.retention import retaining
from rowsieve.retention.leases import LEASES, Lease
from rowsieve.storage.log.checkpoint import checkpoint_path
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.floors import floors_of
from rowsieve.storage.log.log_entry import log_path
from rowsieve.storage.log.log_head import _seen
from rowsieve.storage.versioned_names import new_id
from tests.faults.listings import ChangedListings
from tests.profiles import some
from tests.retention.small_histories import expected, paths, rows_of, table_of, with_history

CALLS: dict[str, Callable[[Table], Any]] = {
    "expire_versions": lambda t: t.expire_versions(retain_last=3),
    "remove_orphans": lambda t: t.remove_orphans(grace_s=0),
    "vacuum": lambda t: t.vacuum(retain_last=3, grace_s=0),
    "maintain": lambda t: t.maintain(retain_last=3, grace_s=0),
}


def behind(table: Table, change: Callable[[str, Details], Details], *, lists: bool = True) -> Table:
    """The table behind such a store; without `lists`, only listings with details change."""
    store: Any = ChangedListings(table.handle.store, change, lists=lists)
    log = CommitLog(store)
    return Table(Handle(store, log, log.latest()))


def check(uri: str, newest: int, floor: int | None = None) -> None:
    """Every version from the floor on is complete, for a process that starts now."""
    _seen.clear()
    table = rowsieve.open_table(uri)
    found = floors_of(table.detail()["properties"]).oldest_version
    assert floor in (None, found)
    for version in range(found, table.version + 1):
        rows = rows_of(rowsieve.open_table(uri, version=version))
        assert rows == expected(min(version, newest))


@pytest.mark.parametrize(
    ("call", "earlier"), [("remove_orphans", 0), ("vacuum", 0), ("expire_versions", 4)]
)
def test_a_listing_that_lags_by_any_one_name_hides_no_kept_file(call: str, earlier: int) -> None:
    hidden: list[str] = []
    for number in some(range(100), 3, earlier):
        table = with_history(versions=5, checkpoint_interval="2")
        if earlier:
            table.expire_versions(retain_last=earlier)
        names = sorted(paths(table.handle.store, "_rowsieve/log", "_rowsieve/checkpoints"))
        if number >= len(names):
            return
        hidden[:] = names[number : number + 1]
        late = behind(table, lambda _, found: {p: x for p, x in found.items() if p not in hidden})
        CALLS[call](late)
        check(table.uri, 4)
        rowsieve.open_table(table.uri).vacuum(retain_last=3, grace_s=0)
        check(table.uri, 4)
    raise AssertionError("never ended")


@pytest.mark.parametrize("call", CALLS)
def test_a_listing_without_the_first_entry_hides_no_start_of_a_log_without_checkpoints(
    call: str,
) -> None:
    table = with_history(versions=5, checkpoint_interval="1000")
    late = behind(table, lambda _, found: {p: x for p, x in found.items() if p != log_path(0)})
    CALLS[call](late)
    check(table.uri, 4)


def test_the_checkpoint_of_the_floor_is_found_without_its_entry_and_its_name_in_a_listing() -> None:
    table = with_history(versions=8, checkpoint_interval="2")
    table.expire_versions(retain_last=3)
    floor = floors_of(table.detail()["properties"]).oldest_version
    table.handle.store.delete([log_path(floor)])
    checkpoint = checkpoint_path(floor)
    late = behind(table, lambda _, found: {p: x for p, x in found.items() if p != checkpoint})
    late.remove_orphans(grace_s=0)
    check(table.uri, 7, floor)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("first", ["_rowsieve/checkpoints", "_rowsieve/log", "data"])
def test_versions_that_expire_between_two_listings_take_no_kept_file_along(
    call: str, first: str
) -> None:
    """The names of one folder are older than the other call, those of the others are newer."""
    table = with_history(versions=13, checkpoint_interval="9")
    other = rowsieve.open_table(table.uri)
    before = table.handle.store.details(first)
    listed: list[str] = []

    def torn(prefix: str, found: Details) -> Details:
        if not listed:
            listed.append(prefix)
            other.expire_versions(retain_last=8)
            found = table.handle.store.details(prefix)
        if prefix == first and prefix not in listed[1:]:
            listed.append(prefix)
            return before
        return found

    late = behind(table, torn, lists=False)
    CALLS[call](late)
    assert first in listed[1:]
    check(table.uri, 12)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("interval", ["100", "3"])
def test_a_log_without_its_newest_entries_is_not_changed(call: str, interval: str) -> None:
    table = with_history(versions=8, checkpoint_interval=interval)
    lost = {log_path(version): table.handle.store.get(log_path(version)) for version in (6, 7)}
    table.handle.store.delete(list(lost))
    before = paths(table.handle.store)
    _seen.clear()  # as another process would
    try:
        late = rowsieve.open_table(table.uri)
    except CorruptData:  # a checkpoint names one of them
        assert interval == "3"
        return
    with pytest.raises(CorruptData, match=r"later entries of the log were lost"):
        CALLS[call](late)
    assert paths(table.handle.store) == before
    for path, data in lost.items():
        table.handle.store.put_new(path, data)
    check(table.uri, 7, 0)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("older", [[], [3]], ids=["alone", "behind an older one"])
def test_a_lease_of_a_later_version_shows_that_entries_were_lost(
    call: str, older: list[int]
) -> None:
    table = with_history(versions=8)
    uuid = table.handle.pinned.table.uuid
    with ExitStack() as held:
        for version in (*older, 7):
            held.enter_context(Lease(table.handle.store, uuid, version, 60.0, "reader"))
        lost = table.handle.store.get(log_path(7))
        table.handle.store.delete([log_path(7)])
        _seen.clear()
        late = rowsieve.open_table(table.uri)
        assert late.version == 6
        with pytest.raises(CorruptData, match="a lease is of a later version"):
            CALLS[call](late)
        table.handle.store.put_new(log_path(7), lost)
        check(table.uri, 7, 0)


@pytest.mark.parametrize("number", range(1, 5))
def test_what_is_leased_before_the_floor_is_read_stays(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another call keeps files for a lease; this one lists the leases after it read that floor."""
    table = with_history(versions=8)
    other = rowsieve.open_table(table.uri)
    late, calls = rowsieve.open_table(table.uri), 0
    held = other.lease(version=2)
    pinned: list[Table] = []
    latest = CommitLog.latest

    def meanwhile(log: CommitLog, *args: Any) -> Any:
        nonlocal calls
        if log is late.handle.log:
            calls += 1
            if calls == number:
                pinned.append(held.__enter__())
                other.expire_versions(retain_last=1)
        return latest(log, *args)

    monkeypatch.setattr(CommitLog, "latest", meanwhile)
    late.remove_orphans(grace_s=0)
    assert len(pinned) == (calls >= number)
    if pinned:
        assert rows_of(pinned[0]) == expected(2)
        held.__exit__(None, None, None)


def test_a_lease_between_the_first_look_and_the_floor_keeps_its_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its reader read the floor before the expiry committed it; no later call may ignore it."""
    table = with_history(versions=8, checkpoint_interval="3")
    table.compact()  # no later version has the files of version 2
    held = rowsieve.open_table(table.uri).lease(version=2)
    pinned: list[Table] = []
    raise_floors = retaining._raise_floors

    def leased_first(*args: Any, **options: Any) -> Any:
        pinned.append(held.__enter__())
        return raise_floors(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(retaining, "_raise_floors", leased_first)
        assert table.expire_versions(retain_last=1).leased_version == 2
    assert floors_of(rowsieve.open_table(table.uri).detail()["properties"]).oldest_version == 8
    assert rows_of(pinned[0]) == expected(2)
    for call in CALLS.values():
        call(rowsieve.open_table(table.uri))
        assert rows_of(pinned[0]) == expected(2)
    held.__exit__(None, None, None)


def test_a_lease_that_the_listing_lacks_stops_the_deletion() -> None:
    table = with_history(versions=8)
    late = behind(table, lambda prefix, found: {} if prefix == LEASES else found)
    for call in CALLS.values():
        with pytest.raises(StoreError, match="listings lag"):
            call(late)
    check(table.uri, 7, 0)


def test_a_refused_lease_below_the_floor_holds_nothing_up() -> None:
    """Its reader took it after the version had gone, and has not looked at the floor yet."""
    table = with_history(versions=8, checkpoint_interval="3")
    table.expire_versions(retain_last=3)
    with Lease(table.handle.store, table.handle.pinned.table.uuid, 1, 60.0, "late"):
        with pytest.raises(SnapshotExpired):
            table.scan(version=1)
        for call in CALLS.values():
            call(rowsieve.open_table(table.uri))
            check(table.uri, 7)
    table.upsert(table_of((0, 8), (8, 8)))


def test_a_file_that_is_based_on_the_floor_itself_stays() -> None:
    """Invariant 15: only commits with a base below the floor are refused."""
    table = with_history(versions=4)
    store = table.handle.store
    for name in (f"data/{'a' * 32}.1.parquet", f"_rowsieve/log/{new_id(1)}.arrow"):
        store.put_new(name, b"x")
    table.remove_orphans(grace_s=0)
    floor = floors_of(table.detail()["properties"]).oldest_base
    assert floor == 4
    writing = {f"data/{'b' * 32}.{floor}.parquet", f"_rowsieve/log/{new_id(floor)}.arrow"}
    below = {f"data/{'c' * 32}.{floor - 1}.parquet", f"_rowsieve/log/{new_id(floor - 1)}.arrow"}
    for name in writing | below:
        store.put_new(name, b"x")
    assert set(table.remove_orphans(grace_s=3600).sizes) == below
    assert writing <= paths(store)


def test_an_entry_that_a_listing_hid_from_an_expiry_goes_with_the_next_one() -> None:
    """Found by the simulation: seed 6392."""
    table = with_history(versions=5, checkpoint_interval="2")
    hidden = log_path(2)
    late = behind(table, lambda _, found: {p: x for p, x in found.items() if p != hidden})
    late.expire_versions(retain_last=2, grace_s=0)
    assert table.handle.store.exists(hidden)
    table = rowsieve.open_table(table.uri)
    table.expire_versions(retain_last=2, grace_s=0)
    assert not table.handle.store.exists(hidden)
    check(table.uri, 4)
