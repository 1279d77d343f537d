"""Commits of several threads and tables in one put, under every fault of the store."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

import rowsieve as rs
from rowsieve.errors import RowsieveError, StoreError, TableNotFound
from rowsieve.objects import open_store
from rowsieve.objects.shared.group_commit import GroupCommit, Overtaken
from rowsieve.objects.shared.joint import JointCommit
from rowsieve.objects.shared.section_store import Membership, SectionStore
from rowsieve.objects.shared.shared_entry import Section
from rowsieve.objects.shared.shared_log import SharedLog
from rowsieve.objects.shared.shared_tables import SharedTables, shared_tables
from rowsieve.objects.shared.table_pages import new_table_id
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Crash, Fault
from tests.small_tables import fresh_uri, kv, pairs

FAULTS = (
    *(Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.UNAVAILABLE, Fault.LOST_ANSWER),
    *(Fault.EXISTS_BEFORE, Fault.EXISTS_AFTER, Fault.NO_SPACE, Fault.IO_ERROR),
)


def sections_of(log: SharedLog, table: str) -> list[bytes]:
    """The entries of a table, as another process reads them."""
    fresh = SharedLog(log.store)
    state = fresh.latest()
    known = fresh.table(table, state)
    if known is None:
        return []
    return [fresh.data(known, known.first + i, state) or b"" for i in range(len(known.places))]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("call", range(4))
def test_a_section_is_committed_once_whatever_the_store_says(fault: Fault, call: int) -> None:
    store = open_store(fresh_uri())
    log = SharedLog(store)
    log.create()
    table = new_table_id("a")
    GroupCommit(log).commit([Section(table, 0, b"first", "a")])
    faulty = FaultyStore(store)
    group = GroupCommit(SharedLog(faulty))
    group._log.latest()
    faulty.meet(fault, call)
    done = False
    with suppress(Crash, RowsieveError):
        group.commit([Section(table, 1, b"second")])
        done = True
    entries = sections_of(log, table)
    assert entries in ([b"first"], [b"first", b"second"])
    assert not done or len(entries) == 2
    if len(entries) == 2:
        with pytest.raises(Overtaken):
            GroupCommit(log).commit([Section(table, 1, b"other")])
    assert sections_of(log, table) == entries


def test_threads_that_wait_are_committed_together() -> None:
    store = open_store(fresh_uri())
    log = SharedLog(store)
    log.create()
    group = GroupCommit(log)
    tables = [new_table_id(str(number)) for number in range(9)]
    entered, goes_on = threading.Event(), threading.Event()
    put = log.put

    def slow(entry: Any) -> bool:
        entered.set()
        goes_on.wait()
        return put(entry)

    log.put = slow  # type: ignore[method-assign]
    threads = [
        threading.Thread(target=group.commit, args=([Section(table, 0, b"x", f"t{i}")],))
        for i, table in enumerate(tables)
    ]
    threads[0].start()
    entered.wait()
    for thread in threads[1:]:
        thread.start()
    while len(group._waiting) < len(threads) - 1:
        threading.Event().wait(0.001)
    goes_on.set()
    for thread in threads:
        thread.join()
    assert SharedLog(store).latest().version == 2
    assert all(sections_of(log, table) == [b"x"] for table in tables)


def test_an_error_wakes_all_who_wait() -> None:
    store = open_store(fresh_uri())
    SharedLog(store).create()
    faulty = FaultyStore(store)
    group = GroupCommit(SharedLog(faulty))
    group._log.latest()
    errors: list[BaseException] = []

    def commit(number: int) -> None:
        try:
            group.commit([Section(new_table_id("a"), 0, b"x", f"t{number}")])
        except StoreError as error:
            errors.append(error)

    faulty.meet(Fault.NO_SPACE, 0)
    threads = [threading.Thread(target=commit, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert errors
    assert len(SharedLog(store).names(SharedLog(store).latest())) == 5 - len(errors)


def joined(shared: SharedTables, joint: JointCommit, uri: str) -> rs.Table:
    """The table at a place, whose commit is a part of the joint one."""
    from rowsieve.changes.table_handle import Handle
    from rowsieve.storage.log.commit_log import CommitLog

    member = open_store(uri).member  # type: ignore[attr-defined]
    inner = open_store(uri)._inner  # type: ignore[attr-defined]
    store = SectionStore(inner, Membership(member.table, shared.log, joint.hold, {}))
    log = CommitLog(store)
    return rs.Table(Handle(store, log, log.latest()))


def test_two_tables_change_in_one_version() -> None:
    database = rs.Database(fresh_uri())
    uris = [database.create_table(name, kv((0, 0)), ["k"]).uri for name in "ab"]
    shared = shared_tables(open_store(database.uri), None)

    def upsert(joint: JointCommit, uri: str, number: int) -> None:
        joined(shared, joint, uri).upsert(kv((0, number)))

    def both(number: int) -> None:
        joint = JointCommit(shared.group, {})
        joint.run({uri: partial(upsert, joint, uri, number) for uri in uris})

    threads = [threading.Thread(target=both, args=(number,)) for number in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.version <= 2 + 6
    for version in range(2, database.version + 1):
        a, b = (pairs(database.open_table(name, version=version)) for name in "ab")
        assert a == b, version


def test_a_part_that_fails_undoes_the_others() -> None:
    database = rs.Database(fresh_uri())
    tables = [database.create_table(name, kv((0, 0)), ["k"]) for name in "ab"]
    shared = shared_tables(open_store(database.uri), None)
    joint = JointCommit(shared.group, {})
    with pytest.raises(TableNotFound):
        joint.run(
            {
                "a": lambda: joined(shared, joint, tables[0].uri).upsert(kv((0, 1))),
                "b": lambda: database.open_table("absent"),
            }
        )
    assert database.version == 2
    assert pairs(database.open_table("a")) == [(0, 0)]


def test_a_table_that_was_read_is_proved_again() -> None:
    database = rs.Database(fresh_uri())
    tables = [database.create_table(name, kv((0, 0)), ["k"]) for name in "ab"]
    shared = shared_tables(open_store(database.uri), None)
    log, read = shared.log, shared_tables(open_store(database.uri), None).log
    table_id = tables[1].uri.rpartition("/")[2]
    proofs: list[int] = []

    def prove() -> int:
        known = read.table(table_id, read.latest())
        assert known is not None
        proofs.append(known.next_number)
        if len(proofs) == 1:
            tables[1].upsert(kv((0, 7)))  # another commit, after the proof
        return proofs[-1]

    joint = JointCommit(shared.group, {table_id: prove})
    joint.run({"a": lambda: joined(shared, joint, tables[0].uri).upsert(kv((0, 1)))})
    assert proofs == [1, 2]
    assert log.latest().version == 4
    assert pairs(database.open_table("a")) == [(0, 1)]
