"""The commit log where things fail: crashes at every store call, outcomes that are not known."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rowsieve.errors import (
    CommitConflict,
    CorruptData,
    RowsieveError,
    StoreError,
    UnsupportedOperation,
)
from rowsieve.objects import LocalStore, ObjectStore, RemoteStore
from rowsieve.objects import durable as durable_module
from rowsieve.storage.log import create_only
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import log_path
from rowsieve.storage.log.log_head import _seen
from rowsieve.storage.snapshot import Snapshot
from tests.faults.files import FileCalls
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Crash, Fault
from tests.storage.log_fixtures import (
    SCHEMA,
    commit,
    copy,
    create,
    keep,
    memory_store,
    never,
    part,
    table_info,
    upsert,
)
from tests.storage.sharded import tiny_shards

CRASHES = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
ERRORS = (Fault.UNAVAILABLE, Fault.LOST_ANSWER, Fault.EXISTS_BEFORE, Fault.EXISTS_AFTER)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries need not wait for a store that is in memory."""
    monkeypatch.setattr(durable_module, "pause", lambda *args, **options: None)


@pytest.fixture(params=["whole", "in shards"])
def _checkpoints(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both forms that a checkpoint has."""
    yield from tiny_shards(1) if request.param == "in shards" else (None,)


@pytest.fixture
def new_process() -> Callable[[], None]:
    """Forget what this process has seen and proven, as its successor would."""

    def forget() -> None:
        _seen.clear()
        create_only._proven.clear()

    return forget


def faults_of_a_commit(kinds: tuple[Fault, ...]) -> list[tuple[Fault, int]]:
    """List every store call of the commit under test, with every kind of fault."""
    inner = memory_store()
    _, before = create(inner, 2, checkpoint_interval="3")
    create_only._proven.clear()
    counting = FaultyStore(inner)
    commit_through(counting, before)
    return [(kind, number) for number in range(len(counting.calls)) for kind in kinds]


def commit_through(store: ObjectStore, base: Snapshot, **request: Any) -> Snapshot:
    return commit(CommitLog(store), base, **request)


# Crashes.


@pytest.mark.usefixtures("_checkpoints")
def test_a_crash_at_any_store_call_of_a_commit_leaves_before_or_after(
    new_process: Callable[[], None],
) -> None:
    outcomes = set()
    for kind, number in faults_of_a_commit(CRASHES):
        inner = memory_store()
        _, before = create(inner, 2, checkpoint_interval="3")
        new_process()
        ours, store = part(), FaultyStore(inner, kind, number)
        with pytest.raises(Crash):
            commit_through(store, before, added=ours, token=("app", 1))
        new_process()
        found = CommitLog(inner).latest()
        after = before.parts.part_ids + ours.part_ids
        assert found.parts.part_ids in (before.parts.part_ids, after)
        outcomes.add((found.version, store.failed))
        retried = commit(CommitLog(inner), found, added=ours, token=("app", 1))
        assert retried.version == 3
        assert retried.parts.part_ids == after
        new_process()
        assert CommitLog(inner).latest() == retried
    failed = {call for _, call in outcomes if call is not None}
    assert ("put_new", log_path(3)) in failed
    assert (2, ("put_new", log_path(3))) in outcomes
    assert (3, ("put_new", log_path(3))) in outcomes
    assert any("checkpoints" in path for _, path in failed)


def test_a_crash_at_any_store_call_of_a_creation_leaves_no_table_or_a_whole_one(
    new_process: Callable[[], None],
) -> None:
    info, first = table_info(), part()

    def make(store: ObjectStore) -> Snapshot:
        return CommitLog(store).create(info, SCHEMA, 3, lambda: first)

    counting = FaultyStore(memory_store())
    make(counting)
    for kind, number in itertools.product(CRASHES, range(len(counting.calls))):
        inner = memory_store()
        with pytest.raises(Crash):
            make(FaultyStore(inner, kind, number))
        new_process()
        made = CommitLog(inner).latest() if CommitLog(inner).exists() else make(inner)
        assert made.parts.part_ids == first.part_ids
        assert commit(CommitLog(inner), made).version == 1


def test_a_crash_at_any_system_call_of_a_commit_leaves_before_or_after(
    tmp_path: Path, new_process: Callable[[], None]
) -> None:
    versions = []
    for fail_at in range(60):
        directory = tmp_path / str(fail_at)
        _, before = create(LocalStore(directory), 1)
        new_process()
        with pytest.MonkeyPatch.context() as patch:
            FileCalls(patch, fail_at=fail_at)
            try:
                commit_through(LocalStore(directory), before)
            except Crash:
                finished = False
            else:
                finished = True
        new_process()
        log = CommitLog(LocalStore(directory))
        found = log.latest()
        versions.append(found.version)
        assert commit(log, found).version == found.version + 1
        if finished:
            break
    assert versions == sorted(versions)
    assert set(versions) == {1, 2}
    assert versions.count(2) > 2  # also before the entry's directory was synced


# Errors that are survived.


@pytest.mark.usefixtures("_checkpoints")
def test_an_error_at_any_store_call_of_a_commit_commits_once_or_not_at_all(
    new_process: Callable[[], None],
) -> None:
    committed = 0
    faults = faults_of_a_commit(ERRORS)
    for kind, number in faults:
        inner = memory_store()
        _, before = create(inner, 2, checkpoint_interval="3")
        new_process()
        ours = part()
        expected = before.parts.part_ids + ours.part_ids
        store = FaultyStore(inner, kind, number)
        try:
            snapshot = commit_through(store, before, added=ours)
        except RowsieveError:
            assert store.failed is not None
            assert store.failed[0] != "put_new"
            new_process()
            assert CommitLog(inner).latest() == before
        else:
            committed += 1
            assert snapshot.parts.part_ids == expected
            assert CommitLog(inner).latest() == snapshot
    assert committed > len(faults) * 0.9


@pytest.mark.parametrize("fault", ERRORS)
def test_invariant_rule_1_our_own_entry_counts_whatever_the_put_reported(fault: Fault) -> None:
    """Seen: our own put behind a 500 and a hidden retry; a 409 with nothing stored."""
    inner = memory_store()
    _, before = create(inner)
    commit_through(inner, before)  # proves the store, so that the next put is the entry's
    before = CommitLog(inner).latest()
    request = upsert()
    counting = FaultyStore(inner)
    CommitLog(counting).commit(upsert(), before, never)
    number = counting.calls.index(("put_new", log_path(2)))
    before = CommitLog(inner).latest()
    store = FaultyStore(inner, fault, number)
    line, after = CommitLog(store).commit(request, before, never)
    assert store.failed == ("put_new", log_path(3))
    assert line.version == after.version == 3
    assert CommitLog(inner).latest() == after
    assert len(CommitLog(inner).history()) == 4


def test_invariant_rule_1_anothers_entry_behind_an_error_means_rebase() -> None:
    inner = memory_store()
    _, before = create(inner, 1)
    theirs = part()

    def is_next(path: str) -> bool:
        return path == log_path(2)

    overtaken = FaultyStore(inner)  # and our put ends in an error that says nothing
    overtaken.overtake(
        lambda: commit(CommitLog(inner), before, added=theirs), "put_new", is_next
    ).meet_where(Fault.UNAVAILABLE, "put_new", is_next, times=1)
    ours = upsert()
    conflicts = []

    def on_conflict(head: Snapshot, entries: Any) -> Any:
        conflicts.append([entry.version for entry in entries])
        return ours

    line, after = CommitLog(overtaken).commit(ours, before, on_conflict)
    assert line.version == 3
    assert conflicts == [[2]]
    assert ours.added is not None
    assert after.parts.part_ids == before.parts.part_ids + theirs.part_ids + ours.added.part_ids


def test_a_commit_that_comes_second_keeps_the_list_that_it_has_stored() -> None:
    inner = memory_store()
    _, before = create(inner, 1)
    store = FaultyStore(inner).overtake(
        lambda: commit(CommitLog(inner), before), "put_new", lambda path: path == log_path(2)
    )
    request = upsert()
    line, _ = CommitLog(store).commit(request, before, keep(request))
    lists = [path for name, path in store.calls if name == "put_new" and path.endswith(".arrow")]
    assert (line.version, len(lists)) == (3, 1)


def test_a_commit_counts_though_it_expired_before_it_was_looked_at() -> None:
    """Others commit after it, and all entries up to it go, before it reads its neighbours."""
    inner = memory_store()
    _, before = create(inner, 1, checkpoint_interval="2")

    def others() -> None:
        log = CommitLog(inner)
        head = log.latest()
        for _ in range(4):
            head = commit(log, head)
        inner.delete([log_path(version) for version in range(3)])

    store = FaultyStore(inner).overtake(others, "get", lambda path: path == log_path(1))
    line, _ = CommitLog(store).commit(upsert(), before, never)
    assert line.version == 2
    assert CommitLog(inner).latest().version == 6


def test_an_outcome_that_stays_unknown_is_told_as_such() -> None:
    inner = memory_store()
    _, before = create(inner, 1)

    def is_entry(path: str) -> bool:
        return path.endswith(".json")

    silent = FaultyStore(inner).meet_where(Fault.UNAVAILABLE, "put_new", is_entry)
    with pytest.raises(StoreError, match=r"could not be written to .*0002.json .* applied; the e"):
        CommitLog(silent).commit(upsert(), before, never)
    gone = FaultyStore(inner).meet_where(Fault.UNAVAILABLE, "put_new", is_entry)
    gone.meet_where(Fault.UNAVAILABLE, "get", lambda _: ("put_new", log_path(2)) in gone.calls)
    with pytest.raises(StoreError, match=r"determine whether .*0002.json .* was written: an err"):
        CommitLog(gone).commit(upsert(), before, never)
    assert CommitLog(inner).latest() == before


def test_a_commit_whose_place_cannot_be_read_is_said_to_be_published() -> None:
    """The put succeeded; only the look at its neighbours fails."""
    inner = memory_store()
    _, before = create(inner, 1)
    store = FaultyStore(inner)
    store.meet_where(Fault.UNAVAILABLE, "get", lambda _: ("put_new", log_path(2)) in store.calls)
    with pytest.raises(StoreError, match=r"was published as .*0002\.json .* readers see it unless"):
        CommitLog(store).commit(upsert(), before, never)
    assert CommitLog(inner).latest().version == 2


# Rule 2: a store that does not keep its promise.


def overwriting() -> tuple[FaultyStore, ObjectStore]:
    """A store that accepts every put, and the honest one behind it."""
    inner = memory_store()
    assert isinstance(inner, RemoteStore)
    unproven = RemoteStore(inner._store, "memory:///overwriting", prefix=inner._prefix)
    return FaultyStore(unproven).meet_where(Fault.UNCONDITIONAL, "put_new"), inner


def test_invariant_rule_2_a_creation_is_refused_before_its_first_part_is_written() -> None:
    store, inner = overwriting()
    with pytest.raises(UnsupportedOperation, match="does not honour create-only puts"):
        CommitLog(store).create(table_info(), SCHEMA, 3, lambda: pytest.fail("a part was written"))
    assert inner.list("") == [create_only.PROBE]


def test_invariant_rule_2_is_proven_once_per_process_and_table(
    new_process: Callable[[], None],
) -> None:
    inner = memory_store()
    _, before = create(inner)
    new_process()
    store = FaultyStore(inner)
    log = CommitLog(store)
    commit(log, commit(log, before))
    puts = [path for name, path in store.calls if name == "put_new" and ".arrow" not in path]
    assert puts == [create_only.PROBE, log_path(1), log_path(2)]


# Rules 3, 4 and 6.


def test_invariant_rule_3_everything_is_synced_before_the_entry_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    _, before = create(store)
    data = f"data/{'0' * 32}.0.parquet"
    calls = FileCalls(monkeypatch)
    store.put_new(data, b"rows")
    line, _ = CommitLog(store).commit(upsert(), before, never)
    monkeypatch.undo()
    log = [(name, target.replace(f"{tmp_path}/", "")) for name, target in calls.log]
    published = log.index(("link", log_path(1)))
    for path in (data, f"_rowsieve/log/{line.commit_id}.arrow"):
        linked = log.index(("link", path))
        assert log[linked - 1][0] == "fsync"  # the file, under its temporary name
        assert ".tmp-" in log[linked - 1][1]
        folder = path.rpartition("/")[0]
        assert log.index(("fsync", folder), linked) < published
    assert log[published - 1][0] == "fsync"
    assert log[-1] == ("fsync", "_rowsieve/log")
    assert log.index(log[-1], published) == len(log) - 1


def test_invariant_rule_4_nothing_is_put_twice_or_over_another() -> None:
    inner = memory_store()
    store = FaultyStore(inner)
    _, head = create(store, 0, checkpoint_interval="2")
    for _ in range(6):
        head = commit(CommitLog(store), head)
    puts = [path for name, path in store.calls if name == "put_new"]
    puts.remove(create_only.PROBE)  # put again on purpose (rule 2)
    assert len(puts) == len(set(puts)) == len(inner.list(""))
    assert {name for name, _ in store.calls} <= {
        "get", "put_new", "list", "children", "exists",
    }  # fmt: skip


def test_invariant_rule_6_a_commit_below_the_end_of_the_log_does_not_count() -> None:
    """A writer slept while the log's old end was removed; its number was free again."""
    awake = memory_store()
    log, before = create(awake, 1, checkpoint_interval="2")
    head = before
    for _ in range(6):
        head = commit(log, head)
    cut = copy(awake, *map(log_path, range(5)))
    request = upsert()
    create_only._proven.put(
        (cut.uri, before.table.uuid), create_only.PROBE, 1
    )  # it was awake before
    with pytest.raises(CommitConflict, match="based on version 1, which was removed"):
        CommitLog(cut).commit(request, before, keep(request))
    assert CommitLog(cut).latest() == head
    assert commit(CommitLog(cut), head).version == 8


def test_invariant_rule_12_without_evidence_a_commit_ends() -> None:
    """The entries that came in between expire between the failed put and the look at them."""
    awake = memory_store()
    log, before = create(awake, 1, checkpoint_interval="2")
    head = before
    for _ in range(6):
        head = commit(log, head)
    expire = partial(awake.delete, [log_path(version) for version in range(5)])
    store = FaultyStore(awake).overtake(expire, "get", lambda path: path == log_path(3))
    request = upsert()
    with pytest.raises(CommitConflict, match=r"based on version 1; .* can no longer be read"):
        CommitLog(store).commit(request, before, keep(request))
    assert CommitLog(awake).latest() == head


def test_invariant_rule_5_a_commit_that_fell_into_a_hole_does_not_count() -> None:
    whole = memory_store()
    log, before = create(whole, 2)
    commit(log, commit(log, before))
    holed = copy(whole, log_path(3))
    with pytest.raises(CorruptData, match=r"0003.json .* had been lost from the log"):
        CommitLog(holed).commit(upsert(), before, never)


def test_threads_that_share_a_log_lose_nothing() -> None:
    log, before = create(memory_store())
    results: list[int] = []

    def work() -> None:
        for _ in range(10):
            results.append(log.commit(request := upsert(), before, keep(request))[0].version)  # noqa: PERF401

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(1, 41))
    assert len(log.latest().parts) == 40
