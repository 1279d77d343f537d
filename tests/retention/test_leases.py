"""Leases: what they protect, when they are over, and who has to wait for them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rowsieve
from rowsieve.errors import InvalidInput, SnapshotExpired, UnsupportedOperation
from rowsieve.retention import expiring, retaining
from rowsieve.retention.leases import LEASES, Lease, lease_files
from rowsieve.storage.log.commit_log import CommitLog
from tests.faults.listings import ChangedListings
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Fault
from tests.processes import PROCESSES, start
from tests.retention.small_histories import (
    expected,
    later_by,
    paths,
    rows_of,
    table_of,
    with_history,
)
from tests.storage.sharded import tiny_shards

HELD_S = 2.0  # of a lease in another process, which a busy machine may keep from renewing it
PATIENCE_S = 120.0  # only a failing test waits this long


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_reader_that_holds_a_lease_finishes() -> None:
    table = with_history(versions=6)
    with table.lease(version=2) as pinned:
        assert (pinned.version, rows_of(pinned)) == (2, expected(2))
        batches = pinned.scan().to_batches()
        table.compact()
        removed = table.vacuum(retain_last=1, grace_s=0)
        assert (removed.oldest_version, removed.leased_version) == (2, 2)
        assert "a lease protects version 2" in repr(removed)
        assert sum(batch.num_rows for batch in batches) == 3
        for version in range(2, 7):
            assert rows_of(table.scan(version=version)) == expected(min(version, 5))
        with pytest.raises(SnapshotExpired, match="versions 2 to"):
            table.scan(version=1)
    assert paths(table.handle.store, LEASES) == set()
    assert table.vacuum(retain_last=1, grace_s=0).oldest_version == 6
    with pytest.raises(SnapshotExpired):
        rows_of(pinned)


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
def test_a_lease_that_is_held_outlives_a_jump_of_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:  # trap T24
    table, clock_ns = with_history(tmp_path / "t", versions=5), time.time_ns
    with table.lease(version=2) as pinned:
        (path,) = paths(table.handle.store, LEASES)
        touched_ns = clock_ns() - round(jump_s * 1e9)
        os.utime(tmp_path / "t" / path, ns=(touched_ns, touched_ns))
        monkeypatch.setattr(time, "time_ns", lambda: clock_ns() + round(jump_s * 1e9))
        removed = table.expire_versions(retain_last=1)
        assert removed.leased_version == 2
        assert rows_of(pinned) == expected(2)
        (lease,) = lease_files(table.handle.store)
        assert (lease.version, len(lease.files)) == (2, 1 if jump_s < 0 else 2)
    assert paths(table.handle.store, LEASES) == set()


def test_a_lease_protects_the_newest_version_unless_told_otherwise() -> None:
    table = with_history(versions=4)
    with table.lease() as newest, rowsieve.open_table(table.uri, version=1).lease() as first:
        table.upsert(table_of((0, 4), (4, 4)))
        assert (rows_of(newest), rows_of(first)) == (expected(3), expected(1))
    moment = table.history()[2].timestamp
    with table.lease(as_of=moment) as pinned:
        assert pinned.version == 2
        with pytest.raises(UnsupportedOperation, match="read-only"):
            pinned.upsert(table_of((1, 1)))
    with pytest.raises(InvalidInput, match="both name"), table.lease(version=1, as_of=moment):
        pass


def test_a_lease_taken_while_versions_expire_is_refused_or_honoured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Invariant 16: whoever comes between the two listings sees the floor."""
    table = with_history(versions=5)
    other = rowsieve.open_table(table.uri)
    outcomes: list[str] = []
    raise_floor = retaining._raise_floors

    def take(when: str) -> None:
        try:
            with other.lease(version=1):
                outcomes.append(f"{when}: held")
        except SnapshotExpired:
            outcomes.append(f"{when}: refused")

    def between(*args: Any, **options: Any) -> Any:
        take("before the commit")
        found = raise_floor(*args, **options)
        take("after the commit")
        return found

    monkeypatch.setattr(retaining, "_raise_floors", between)
    table.expire_versions(retain_last=1)
    assert outcomes == ["before the commit: held", "after the commit: refused"]
    assert paths(table.handle.store, LEASES) == set()


def test_a_lease_that_came_just_before_the_floor_is_honoured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = with_history(versions=5)
    other = rowsieve.open_table(table.uri)
    held = other.lease(version=1)
    raise_floor = retaining._raise_floors
    pinned = []

    def between(*args: Any, **options: Any) -> Any:
        pinned.append(held.__enter__())
        return raise_floor(*args, **options)

    monkeypatch.setattr(retaining, "_raise_floors", between)
    table.compact()
    removed = table.expire_versions(retain_last=1)
    assert (removed.oldest_version, removed.leased_version) == (5, 1)
    assert rows_of(pinned[0]) == expected(1)
    with pytest.raises(SnapshotExpired):
        table.scan(version=1)
    monkeypatch.undo()
    table.vacuum(retain_last=1, grace_s=0)
    assert rows_of(pinned[0]) == expected(1)
    held.__exit__(None, None, None)
    assert table.vacuum(retain_last=1, grace_s=0).files["data"] == 5
    assert paths(table.handle.store, "data") == set(table.files()["path"].to_pylist())


def test_a_lease_reads_the_floor_after_it_was_created(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process expires everything between the look at the version and the lease."""
    table = with_history(versions=5)
    other = rowsieve.open_table(table.uri)

    def too_late(*args: Any) -> Lease:
        monkeypatch.undo()
        other.expire_versions(retain_last=1)
        return Lease(*args)

    for version in (None, 1):
        monkeypatch.setattr(retaining, "Lease", too_late)
        pinned = rowsieve.open_table(table.uri, version=4) if version is None else table
        if version is None:
            other.upsert(table_of((0, 5), (5, 5)))
        with pytest.raises(SnapshotExpired, match="versions"), pinned.lease(version=version):
            pass
        assert paths(table.handle.store, LEASES) == set()
        if version is None:
            table = with_history(versions=5)
            other = rowsieve.open_table(table.uri)


def test_an_expiry_that_another_one_overtakes_looks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The lease that it kept versions for ends, and the other one deletes them meanwhile."""
    table = with_history(versions=9, checkpoint_interval="2")
    other = rowsieve.open_table(table.uri)
    held = other.lease(version=3)
    held.__enter__()
    ensure = expiring._ensure_checkpoints

    def overtaken(*args: Any) -> bool:
        monkeypatch.undo()
        held.__exit__(None, None, None)
        table.upsert(table_of((0, 9), (9, 9)))
        other.expire_versions(retain_last=1)
        return ensure(*args)

    monkeypatch.setattr(expiring, "_ensure_checkpoints", overtaken)
    removed = table.expire_versions(retain_last=1)
    assert removed.leased_version is None
    assert rows_of(rowsieve.open_table(table.uri)) == expected(9)
    assert table.vacuum(retain_last=1, grace_s=0).file_count >= 0
    assert paths(table.handle.store, LEASES) == set()


def test_a_lease_is_renewed_while_it_is_held() -> None:
    table = with_history(versions=2)
    with Lease(table.handle.store, "uuid", 1, 0.3, "me") as lease:
        wait_for(lambda: not lease.path.endswith(".0.json"))
        assert [each.renewal for each in lease_files(table.handle.store)] != [0]
        assert "of version 1, for 0.3 s" in repr(lease)
    assert paths(table.handle.store, LEASES) == set()
    assert "ended" in repr(lease)
    lease.end()


def test_a_renewal_that_fails_is_tried_again() -> None:
    store: Any = FaultyStore(with_history(versions=2).handle.store)
    with Lease(store, "uuid", 1, 0.3, "me") as lease:
        store.meet_where(Fault.UNAVAILABLE, "put_new", times=1)
        wait_for(lambda: not lease.path.endswith(".0.json"))
        assert store.failed is not None


def test_a_lease_is_over_by_the_time_of_the_store_and_a_second_look() -> None:
    table = with_history(versions=4)
    held = table.lease(100, version=1)
    pinned = held.__enter__()
    own = next(iter(paths(table.handle.store, LEASES)))
    with later_by(table.handle.store, 99, "never"):
        assert table.expire_versions(retain_last=1).leased_version == 1
    with later_by(table.handle.store, 101):  # everything is older, and so no time has passed
        assert table.expire_versions(retain_last=1).leased_version == 1
    assert rows_of(pinned) == expected(1)
    others = f".{int(retaining._OWN_LEASE_S * 1000)}."
    with later_by(table.handle.store, 101, others):
        removed = table.expire_versions(retain_last=1)
    assert (removed.oldest_version, removed.leased_version) == (3, None)
    assert removed.files["lease"] == 1
    assert own not in paths(table.handle.store)
    held.__exit__(None, None, None)


def test_a_lease_that_seemed_over_and_is_renewed_is_not_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = with_history(versions=4)
    raise_floor = retaining._raise_floors
    with Lease(table.handle.store, "uuid", 1, 100, "me") as lease:

        def between(*args: Any, **options: Any) -> Any:
            lease._renew()
            return raise_floor(*args, **options)

        monkeypatch.setattr(retaining, "_raise_floors", between)
        with later_by(table.handle.store, 101, f".{int(retaining._OWN_LEASE_S * 1000)}."):
            removed = table.expire_versions(retain_last=1)
        assert removed.leased_version == 1
        assert CommitLog(table.handle.store).read_version(1).version == 1
        assert lease.path in paths(table.handle.store)


def test_all_renewals_of_a_lease_that_is_over_go() -> None:
    """A process was killed after it had renewed its lease and before it deleted the old file."""
    table = with_history(versions=4)
    with Lease(table.handle.store, "uuid", 1, 100, "dead") as dead:
        dead._renew()
        (renewals,) = [set(lease.files) for lease in lease_files(table.handle.store)]
        assert len(renewals) == 2
        with later_by(table.handle.store, 101, f".{int(retaining._OWN_LEASE_S * 1000)}."):
            removed = table.expire_versions(retain_last=1)
        assert (removed.oldest_version, removed.leased_version) == (3, None)
        assert removed.files["lease"] == 2
        assert paths(table.handle.store, LEASES) == set()


def test_a_listing_that_misses_a_renewal_meets_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A folder is listed name by name: a file put meanwhile may be missed, one deleted, too."""
    table = with_history(versions=2)
    store = table.handle.store
    with Lease(store, "uuid", 1, 100, "me") as lease:
        lease._renew()
        lease._renew()
        begun = store.details(LEASES)
        lease._renew()
        seen = {path: detail for path, detail in begun.items() if path in paths(store, LEASES)}
        listed: Any = ChangedListings(store, lambda *_: seen)
        assert [each.version for each in lease_files(listed)] == [1]
    assert paths(store, LEASES) == set()


def test_a_lease_of_what_was_deleted_already_delays_expiry_and_breaks_nothing() -> None:
    """A reader was killed after it had created its lease and before it read the floor."""
    table = with_history(versions=6)
    table.expire_versions(retain_last=2)
    Lease(table.handle.store, "uuid", 1, 100, "killed")._ended.set()
    table.upsert(table_of((0, 6), (6, 6)))
    removed = table.expire_versions(retain_last=1)
    assert (removed.oldest_version, removed.leased_version) == (4, 1)
    assert rows_of(rowsieve.open_table(table.uri, version=4)) == expected(4)
    assert table.remove_orphans(grace_s=0).sizes == {}
    with later_by(table.handle.store, 101, f".{int(retaining._OWN_LEASE_S * 1000)}."):
        assert table.expire_versions(retain_last=1).oldest_version == 7


def test_a_lease_in_shards_reads_a_checkpoint_that_stays() -> None:
    """The handle came here from version 5, whose checkpoint goes; it has read few columns."""
    for _ in tiny_shards(1):
        table = with_history(versions=6, checkpoint_interval="4")
        early = rowsieve.open_table(table.uri)
        for version in range(6, 10):
            table.upsert(table_of((0, version), (version, version)))
        with early.lease() as pinned:
            assert not pinned.handle.pinned.parts.in_memory
            for version in (10, 11, 12, 13):
                table.upsert(table_of((0, version), (version, version)))
                table.compact()
                table.vacuum(retain_last=1, grace_s=0)
            assert rows_of(pinned) == expected(9)


@pytest.mark.parametrize("duration_s", [0, -1.0, 0.01, float("nan"), float("inf"), 1e9])
def test_a_lease_has_a_sensible_duration(duration_s: float) -> None:
    table = with_history(versions=2)
    with pytest.raises(InvalidInput, match=r"a lease lasts from 0\.1"), table.lease(duration_s):
        pass
    assert paths(table.handle.store, LEASES) == set()


def test_files_of_other_names_are_no_leases() -> None:
    table = with_history(versions=3)
    table.handle.store.put_new(f"{LEASES}/notes.txt", b"")
    table.handle.store.put_new(f"{LEASES}/{0:020d}.5.x.0.json", b"")
    assert lease_files(table.handle.store) == []
    assert table.expire_versions(retain_last=1).oldest_version == 2
    assert f"{LEASES}/notes.txt" in paths(table.handle.store)


def newest_renewal(table: rowsieve.Table) -> int:
    return max(each.renewal for each in lease_files(table.handle.store))


def hold_for_ever(uri: str, ready: Any) -> None:
    with rowsieve.open_table(uri).lease(HELD_S, version=1):
        ready.set()
        time.sleep(600)


def test_the_lease_of_a_killed_process_is_over_after_its_duration(tmp_path: Path) -> None:
    table = with_history(tmp_path / "t", versions=4)
    ready = PROCESSES.Event()
    process = start(hold_for_ever, table.uri, ready, daemon=True)
    assert ready.wait(60)
    begun_s = time.monotonic()
    wait_for(lambda: newest_renewal(table) > 1 and time.monotonic() > begun_s + HELD_S)
    assert table.expire_versions(retain_last=1).leased_version == 1
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    deadline = time.monotonic() + PATIENCE_S
    while (removed := table.expire_versions(retain_last=1)).leased_version is not None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert removed.oldest_version == 3
    assert paths(table.handle.store, LEASES) == set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_neither_renews_nor_ends_the_lease(tmp_path: Path) -> None:
    table = with_history(tmp_path / "t", versions=2)
    with Lease(table.handle.store, "uuid", 1, 100, "parent") as lease:
        child = multiprocessing.get_context("fork").Process(target=lease.end)
        child.start()
        child.join(60)
        assert child.exitcode == 0
        assert lease.path in paths(table.handle.store)
