"""Tables that move into a database and out of it: one log goes on, and nothing is copied."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

import rowsieve as rs
from rowsieve.errors import (
    TableExists,
    TableMoved,
    TableNotFound,
    TransactionConflict,
    UnsupportedOperation,
    UnsupportedProtocol,
)
from rowsieve.objects import ObjectNotFound, open_store
from rowsieve.objects.shared.group_commit import GroupCommit, Overtaken
from rowsieve.objects.shared.section_store import SectionStore
from rowsieve.objects.shared.shared_entry import Section
from rowsieve.storage.log.moves import Mark, mark_of, with_mark
from rowsieve.storage.snapshot import MOVES_PROTOCOL
from tests.faults.interrupts import interrupted
from tests.small_tables import files, fresh_uri, kv, pairs


@pytest.fixture
def database() -> rs.Database:
    database = rs.Database(fresh_uri())
    database.create_table("born", kv((1, 100)), ["k"])
    return database


def test_a_mark_keeps_older_readers_and_writers_out() -> None:
    """And never lets one in that the table had kept out before."""
    info = rs.create_table(fresh_uri(), kv((1, 1)), ["k"]).handle.pinned.table
    for version in (1, MOVES_PROTOCOL + 1):
        before = replace(info, reader_version=version, writer_version=version)
        marked = with_mark(before, Mark("memory:///d", "t"))
        needed = max(version, MOVES_PROTOCOL)
        assert (marked.reader_version, marked.writer_version) == (needed, needed)
        assert mark_of(with_mark(marked, None).properties) is None


def lived() -> rs.Table:
    """A table with a history, a token, a tag and a branch."""
    table = rs.create_table(fresh_uri(), kv((1, 1)), ["k"], properties={"checkpoint_interval": 2})
    table.upsert(kv((2, 2)), token=("job", 1))
    table.tag("q3")
    table.branch("audit").upsert(kv((9, 9)))
    table.upsert(kv((3, 3)))
    return table


@pytest.mark.parametrize("elsewhere", [False, True], ids=["own log", "other database"])
def test_a_version_with_a_table_that_has_left_gets_no_tag(
    database: rs.Database, *, elsewhere: bool
) -> None:
    database.create_table("stays", kv((1, 1)), ["k"])
    version = database.version
    left = database.move_out("born")
    if elsewhere:
        rs.Database(fresh_uri()).move_in("there", left.uri)
    with pytest.raises(UnsupportedOperation, match=r"dropped or have left since: born\. "):
        database.tag("q3", version=version)
    assert database.refs().num_rows == 0
    assert list(database.tag("q3")) == ["stays"]


@pytest.mark.parametrize("writes", [False, True])
def test_a_transaction_whose_table_moves_into_another_database_runs_again(
    database: rs.Database, *, writes: bool
) -> None:
    database.create_table("stays", kv((1, 1)), ["k"])
    other = rs.Database(fresh_uri())
    runs = []

    def work(tx: Any) -> None:
        runs.append(1)
        table = tx.table("born")
        assert table.count() == 1
        if writes:
            table.upsert(kv((7, 7)))
        tx.table("stays").upsert(kv((2, 2)))
        if len(runs) == 1:
            other.move_in("there", database.move_out("born").uri)

    with pytest.raises(TableNotFound, match="no table 'born'"):
        rs.run_transaction(work, database)
    assert len(runs) == 2
    assert pairs(database.open_table("stays")) == [(1, 1)]
    assert pairs(other.open_table("there")) == [(1, 100)]


def test_a_table_moves_in_with_all_that_it_is(database: rs.Database) -> None:
    table = lived()
    before = set(files(table))
    moved = database.move_in("shop.t", table.uri)
    assert set(files(table)) >= before
    assert (moved.version, pairs(moved)) == (table.version + 1, [(1, 1), (2, 2), (3, 3)])
    assert [each.operation for each in moved.history()][:2] == ["move", "upsert"]
    assert database.tables() == ["born", "shop.t"]
    assert not moved.upsert(kv((2, 5)), token=("job", 1)).version > moved.version
    moved.upsert(kv((4, 4)))
    assert pairs(database.open_table("shop.t@q3")) == [(1, 1), (2, 2)]
    assert pairs(database.open_table("shop.t", ref="audit")) == [(1, 1), (2, 2), (9, 9)]
    assert pairs(rs.open_table(table.uri, version=0)) == [(1, 1)]
    assert rs.open_table(table.uri, ref="q3").count() == 2
    assert rs.open_table(table.uri).uri == moved.uri == database.uri_of("shop.t")
    changed = moved.changes(0).read_all().column("_change_type").to_pylist()
    assert len(changed) == 4
    with database.transaction() as tx:
        tx.table("shop.t").upsert(kv((5, 5)))
        tx.table("born").upsert(kv((5, 5)))
    moved.compact()
    assert pairs(rs.open_table(moved.uri)) == [(i, i) for i in range(1, 6)]
    database.tag("both")
    assert database.open_table("shop.t", ref="both").count() == 5


def test_the_former_place_takes_no_commit_and_deletes_nothing(database: rs.Database) -> None:
    table = lived()
    stale, stale_branch = rs.open_table(table.uri), rs.open_table(table.uri, ref="audit")
    moved = database.move_in("t", table.uri)
    for _ in range(4):
        moved.upsert(kv((1, 7)))
    calls: list[Any] = [
        lambda: stale.upsert(kv((8, 8))),
        lambda: stale.vacuum(retain_last=1, grace_s=0),
        stale.compact,
        stale.refresh,
        lambda: stale.set_properties({"audit_percent": 1}),
        lambda: stale_branch.vacuum(retain_last=1, grace_s=0),
        lambda: rs.drop_table(table.uri),
        lambda: rs.create_table(table.uri, kv(), ["k"], if_exists="replace"),
        lambda: stale.drop_ref("q3"),
    ]
    for call in calls:
        with pytest.raises(TableMoved) as raised:
            call()
        assert raised.value.uri == moved.uri
    assert pairs(moved) == [(1, 7), (2, 2), (3, 3)]
    assert pairs(moved.at_ref("q3")) == [(1, 1), (2, 2)]
    with pytest.raises(TableMoved, match="in the database"):
        rs.Database(fresh_uri()).move_in("t", table.uri)
    with pytest.raises(TableExists):
        database.move_in("again", table.uri)


def test_retention_of_the_database_keeps_and_deletes(database: rs.Database) -> None:
    table = lived()
    moved = database.move_in("t", table.uri)
    for value in range(3):
        moved.upsert(kv((1, value)))
    moved.compact()
    moved.drop_ref("audit")
    moved.vacuum(retain_last=1, grace_s=0)
    database.vacuum(retain_s=0)
    assert pairs(database.open_table("t")) == [(1, 2), (2, 2), (3, 3)]
    assert pairs(moved.at_ref("q3")) == [(1, 1), (2, 2)]
    moved.drop_ref("q3")
    moved.vacuum(retain_last=1, grace_s=0)
    assert pairs(rs.Database(database.uri).open_table("t")) == [(1, 2), (2, 2), (3, 3)]
    foreign = open_store(table.uri)
    foreign.put_new("notes.txt", b"not of the table")
    database.drop_table("t", purge=True)
    assert open_store(table.uri).list("") == ["notes.txt"]
    assert database.vacuum(retain_s=0).tables == 0


@pytest.mark.parametrize("is_born", [False, True])
def test_a_table_leaves_with_its_history(database: rs.Database, is_born: bool) -> None:
    own = lived()
    inside = database.open_table("born") if is_born else database.move_in("t", own.uri)
    name = "born" if is_born else "t"
    inside.upsert(kv((6, 6)))
    version, expected = database.version, pairs(inside)
    operations = [each.operation for each in inside.history()]
    out = database.move_out(name)
    assert is_born or out.uri == own.uri
    assert name not in database.tables()
    assert [each.operation for each in out.history()] == ["move", *operations]
    out.upsert(kv((7, 7)))
    inside.upsert(kv((8, 8)))  # a handle from before goes on, too
    assert pairs(rs.open_table(out.uri)) == [*expected, (7, 7), (8, 8)]
    assert pairs(rs.open_table(out.uri, version=0)) == ([(1, 100)] if is_born else [(1, 1)])
    assert pairs(database.open_table(name, version=version)) == expected
    database.create_table(name, kv((1, 0)), ["k"])
    database.vacuum(retain_s=0)
    out.compact()
    out.vacuum(retain_last=1, grace_s=0)
    assert pairs(rs.open_table(out.uri)) == [*expected, (7, 7), (8, 8)]
    assert pairs(database.open_table(name)) == [(1, 0)]
    with pytest.raises(TableNotFound):
        database.move_out("none")
    back = rs.Database(fresh_uri()).move_in("x", out.uri)
    back.upsert(kv((9, 9)))
    assert pairs(rs.open_table(out.uri)) == [*expected, (7, 7), (8, 8), (9, 9)]


@pytest.mark.parametrize("is_born", [False, True])
@pytest.mark.parametrize("returns", [False, True])
def test_older_versions_of_the_database_have_a_table_that_went_elsewhere(
    database: rs.Database, is_born: bool, returns: bool
) -> None:
    if not is_born:
        database.move_in("t", lived().uri)
    name = "born" if is_born else "t"
    expected, version = pairs(database.open_table(name)), database.version
    place = database.move_out(name).uri
    elsewhere = database if returns else rs.Database(fresh_uri())
    elsewhere.move_in("moved", place).upsert(kv((7, 7)))
    old = database.open_table(name, version=version)
    assert pairs(old) == pairs(database.open_table(f"{name}@v{version}")) == expected
    with pytest.raises(UnsupportedOperation, match=r"read-only|opened at a version"):
        old.upsert(kv((8, 8)))


def test_an_interrupted_move_in_is_repeated(
    database: rs.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lived()
    with interrupted(GroupCommit, "commit"):
        database.move_in("t", table.uri)
    with pytest.raises(TableMoved):
        table.upsert(kv((5, 5)))
    with pytest.raises(TableMoved, match="on its way into the database"):
        rs.open_table(table.uri)
    with pytest.raises(TableExists):
        database.move_in("born", table.uri)
    database.move_in("other", table.uri).upsert(kv((5, 5)))
    assert pairs(rs.open_table(table.uri)) == [(1, 1), (2, 2), (3, 3), (5, 5)]


@pytest.mark.parametrize("survivor", ["former place", "handle of the database"])
def test_an_interrupted_move_out_is_completed_by_the_next_commit(
    database: rs.Database, survivor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lived()
    moved = database.move_in("t", table.uri)
    moved.upsert(kv((5, 5)))
    with interrupted(SectionStore, "complete"):
        database.move_out("t")
    found = moved if survivor == "handle of the database" else rs.open_table(table.uri)
    found.upsert(kv((6, 6)))
    assert pairs(rs.open_table(table.uri)) == [(1, 1), (2, 2), (3, 3), (5, 5), (6, 6)]
    assert rs.open_table(table.uri).uri == table.uri
    newest = rs.open_table(table.uri).version
    entries = {f"_rowsieve/log/{version:020d}.json" for version in range(moved.version, newest + 1)}
    assert entries <= {*files(rs.open_table(table.uri))}  # the database is no longer needed


@pytest.mark.parametrize("name", ["t", "born"])
@pytest.mark.parametrize("is_same", [True, False], ids=["same database", "another database"])
def test_a_table_moves_in_after_a_move_out_that_was_interrupted(
    database: rs.Database, name: str, *, is_same: bool
) -> None:
    uri = lived().uri if name == "t" else database.uri_of("born")
    if name == "t":
        database.move_in("t", uri)
    database.open_table(name).upsert(kv((5, 5)))
    rows = pairs(database.open_table(name))
    with interrupted(SectionStore, "complete"):
        database.move_out(name)
    target = database if is_same else rs.Database(fresh_uri())
    target.move_in("again", uri).upsert(kv((6, 6)))
    assert pairs(target.open_table("again")) == [*rows, (6, 6)]
    assert pairs(rs.open_table(uri)) == [*rows, (6, 6)]
    assert rs.open_table(uri).verify().is_whole
    with pytest.raises(TableExists if is_same else TableMoved, match=r"is in .*memory"):
        database.move_in("third", uri)


def test_a_move_out_that_another_process_completes_meanwhile_is_no_error(
    database: rs.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.open_table("born").upsert(kv((5, 5)))
    uri = database.uri_of("born")
    with interrupted(SectionStore, "complete"):
        database.move_out("born")
    store, other, section = open_store(uri), open_store(uri), SectionStore._section
    assert isinstance(store, SectionStore)
    assert isinstance(other, SectionStore)

    def overtaken(self: SectionStore, log: Any, number: int, path: str) -> bytes:
        monkeypatch.setattr(SectionStore, "_section", section)
        other.complete()
        self.inner.delete([path])  # by retention
        raise ObjectNotFound("the shared entry has gone", path=path)

    monkeypatch.setattr(SectionStore, "_section", overtaken)
    store.complete()
    entries = store.inner.list("_rowsieve/log")
    assert [path[-7:-5] for path in entries if path.endswith(".json")] == ["01", "02"]


def test_no_entry_of_a_table_that_has_left_is_in_the_shared_log(database: rs.Database) -> None:
    """Invariant 40: not even the next one, of a writer that has not seen that it left."""
    born = database.open_table("born")
    store = born.handle.store
    assert isinstance(store, SectionStore)
    database.move_out("born")
    number = rs.open_table(born.uri).version + 1
    with pytest.raises(Overtaken):
        GroupCommit(store.member.log).commit([Section(store.member.table, number, b"late")])


def test_a_move_is_ordered_among_commits(database: rs.Database) -> None:
    table = rs.create_table(fresh_uri(), kv((0, 0)), ["k"])

    def write(start: int) -> list[int]:
        done = list[int]()
        other: rs.Table | None = None
        for key in range(start, start + 6):
            while key not in done:
                try:
                    other = rs.open_table(table.uri) if other is None else other
                    other.upsert(kv((key, key)))
                    done.append(key)
                except TableMoved:  # twice, and to whoever opens it in the middle of a move
                    other = None
        return done

    with ThreadPoolExecutor(3) as pool:
        tasks = [pool.submit(write, 100 * each) for each in (1, 2)]
        moves = pool.submit(lambda: [database.move_in("t", table.uri), database.move_out("t")])
        keys = sorted(key for task in tasks for key in task.result())
        moves.result()
    assert pairs(rs.open_table(table.uri)) == [(0, 0), *((key, key) for key in keys)]


def test_a_transaction_over_a_table_that_leaves_commits_nothing(database: rs.Database) -> None:
    database.create_table("stays", kv((1, 1)), ["k"])
    tx = database.transaction()
    tx.table("born").upsert(kv((2, 2)))
    tx.table("stays").upsert(kv((2, 2)))
    out = database.move_out("born")
    with pytest.raises((TableNotFound, TransactionConflict)):
        tx.commit()
    assert pairs(out) == [(1, 100)]
    assert pairs(database.open_table("stays")) == [(1, 1)]


def test_what_cannot_move_is_refused(database: rs.Database) -> None:
    table = lived()
    with pytest.raises(UnsupportedOperation, match="branch or tag"):
        database.move_in("t", table.at_ref("audit").uri)
    with pytest.raises(UnsupportedOperation, match="is in the database"):
        database.move_in("t", database.uri_of("born"))
    with pytest.raises(TableExists):
        database.move_in("born", table.uri)
    assert pairs(table) == [(1, 1), (2, 2), (3, 3)]
    table.upsert(kv((4, 4)))


def test_older_versions_refuse_a_table_that_moved(
    database: rs.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lived()
    database.move_in("t", table.uri)
    with monkeypatch.context() as patch:
        patch.setattr("rowsieve.storage.log.log_entry.READER_VERSION", 10)
        with pytest.raises(UnsupportedProtocol):
            rs.open_table(table.uri)
    monkeypatch.setattr("rowsieve.objects.shared.shared_entry._FORMAT", 1)
    assert Section("t" * 32, leaves=True).leaves
    with pytest.raises(UnsupportedProtocol):
        rs.Database(database.uri)._shared.log.entry(database.version)
