"""Dropping a table with its files: beside readers and writers, killed at any call, and no more."""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.catalog import drops
from rowsieve.errors import (
    InvalidInput,
    NamespaceNotFound,
    RowsieveError,
    SnapshotExpired,
    StoreError,
    TableExists,
    TableNotFound,
    UnsupportedOperation,
)
from rowsieve.names.qualified_names import table_name
from rowsieve.objects import RemoteStore, open_store
from rowsieve.retention import dropping
from rowsieve.retention.leases import LEASES
from rowsieve.storage.log import create_only
from rowsieve.storage.log.log_entry import log_path
from rowsieve.storage.log.log_head import _seen
from tests.catalog.test_purge_interleavings import interleaved
from tests.faults.ages import aged
from tests.faults.stores import EveryStore, MortalProcess
from tests.faults.vocabulary import Crash, Fault
from tests.profiles import IS_DEEP
from tests.small_tables import fresh_uri

ROUNDS = 60 if IS_DEEP else 4


def rows_from(start: int, count: int = 3) -> pa.Table:
    return pa.table({"id": range(start, start + count)})


def ids(table: Any) -> list[int]:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


def files_in(uri: str) -> list[str]:
    return open_store(uri).list("")


def test_purge_spares_tables_and_files_inside_the_folder(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    outer = catalog.create_table("db.t", rows_from(0), ["id"])
    folder = tmp_path / "lake/db/t"
    inner = rs.create_table(folder / "inner", rows_from(5))
    below_data = rs.create_table(folder / "data" / "inner", rows_from(6))
    for name in ("note.txt", "data/note.txt", "a file"):
        (folder / name).write_text("mine")
    outer.publish("delta", folder)
    outer.publish("iceberg")
    (folder / "metadata" / "note.json").write_text("mine")
    catalog.drop_table("db.t", purge=True)
    assert (ids(inner), ids(below_data)) == ([5, 6, 7], [6, 7, 8])
    left = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    kept = {path for path in left if "inner/" not in path}
    assert kept == {"note.txt", "data/note.txt", "metadata/note.json", "a file"}
    assert catalog.tables() == []


def test_a_table_with_two_names_is_not_purged_by_one(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    table = catalog.create_table("db.t", rows_from(0))
    catalog.register_table("db.same", table.uri)
    (tmp_path / "db" / "link").symlink_to("t")
    with pytest.raises(UnsupportedOperation, match=r"is db\.same, too"):
        catalog.drop_table("db.t", purge=True)
    for name in ("db.same", "db.link"):
        with pytest.raises(UnsupportedOperation, match="registered or linked"):
            catalog.drop_table(name, purge=True)
    catalog.drop_table("db.same")
    table.append(rows_from(3))
    assert ids(catalog.open_table("db.t")) == list(range(6))


def test_a_lease_that_is_taken_between_the_looks_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = rs.Catalog(fresh_uri())
    table = catalog.create_table("db.t", rows_from(0), ["id"])
    held: list[Any] = []
    closed = dropping._commit_last_floors

    def taken_first(log: Any, head: Any) -> Any:
        held.append(rs.open_table(table.uri).lease())
        pinned = held[0].__enter__()
        head = closed(log, head)
        assert ids(pinned) == [0, 1, 2]
        return head

    monkeypatch.setattr(dropping, "_commit_last_floors", taken_first)
    with pytest.raises(UnsupportedOperation, match="a lease protects version 0"):
        catalog.drop_table("db.t", purge=True)
    assert catalog.tables() == ["db.t"]
    catalog.create_table("db.other", rows_from(0))
    catalog.drop_table("db.other")
    with pytest.raises(TableNotFound):
        catalog.drop_table("db.other", purge=True)  # ends interrupted purges, and this is none
    assert ids(catalog.open_table("db.t")) == [0, 1, 2]
    held[0].__exit__(None, None, None)
    catalog.drop_table("db.t", purge=True)
    assert files_in(table.uri) == []


def test_a_closed_table_takes_no_lease_and_no_change() -> None:
    catalog = rs.Catalog(fresh_uri())
    table = catalog.create_table("db.t", rows_from(0), ["id"])
    late, pinned = rs.open_table(table.uri), table.scan(version=0)
    dropping.close(table.handle.store)
    with pytest.raises(SnapshotExpired, match="was dropped"), late.lease():
        pass
    with pytest.raises(SnapshotExpired, match="was dropped"):
        late.scan(version=0)
    changes = (
        lambda: late.upsert(rows_from(9)),
        lambda: late.delete("id = 1"),
        late.compact,
        lambda: late.set_properties({"pruning": "soft"}),
        lambda: late.add_column("v", "int64"),
        lambda: late.expire_versions(retain_last=1),
        late.remove_orphans,
    )
    before = files_in(table.uri)
    for change in changes[:2] + changes[3:]:
        with pytest.raises(TableNotFound, match="was dropped with all its files"):
            change()
    data = [path for path in files_in(table.uri) if path.startswith("data/")]
    assert len(data) <= len(before)
    dropping.delete_files(table.handle.store, dropping.close(table.handle.store))
    assert files_in(table.uri) == []
    with pytest.raises(SnapshotExpired):
        pinned.to_arrow()
    with pytest.raises(RowsieveError):
        late.upsert(rows_from(9))


@pytest.mark.parametrize("attempt", range(ROUNDS))
def test_readers_with_leases_and_writers_beside_a_purge(tmp_path: Path, attempt: int) -> None:
    """Who holds a lease reads all rows, and no write is lost in silence."""
    catalog = rs.Catalog(tmp_path / str(attempt))
    uri = catalog.create_table("db.t", rows_from(0), ["id"]).uri
    start = threading.Barrier(4, timeout=60)

    def read() -> int:
        start.wait()
        count = 0
        while True:
            try:
                held = rs.open_table(uri).lease(30)
                pinned = held.__enter__()
            except RowsieveError:
                return count
            try:
                assert ids(pinned)[:3] == [0, 1, 2]
            finally:
                held.__exit__(None, None, None)
            count += 1
            if count > 20:
                return count

    def write() -> int:
        table = rs.open_table(uri)
        start.wait()
        for number in range(3, 30):
            try:
                table.upsert(rows_from(number, 1))
            except RowsieveError:
                return number
        return 30

    def drop() -> int:
        start.wait()
        for tries in range(10_000):
            try:
                rs.Catalog(catalog.uri).drop_table("db.t", purge=True)
            except UnsupportedOperation:
                time.sleep(0.01)
                continue
            return tries
        raise AssertionError("never dropped")

    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(job) for job in (read, read, write, drop)]
        assert all(job.result() >= 0 for job in jobs)
    assert catalog.tables() == []
    left = [path for path in files_in(uri) if not path.startswith("data/")]
    assert not [path for path in left if path.startswith(LEASES)]


@pytest.fixture
def dead_leases() -> Iterator[set[str]]:
    """Leases of processes that died: they are a day old."""
    names: set[str] = set()
    with aged(RemoteStore, names.__contains__):
        yield names


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.CRASH_WITHIN])
def test_a_purge_that_is_killed_at_any_call_is_ended_by_the_next(
    fault: Fault, dead_leases: set[str]
) -> None:
    for number in range(100):
        catalog = rs.Catalog(f"memory:///{uuid.uuid4().hex}")
        table = catalog.create_table("db.t", rows_from(0), ["id"])
        table.upsert(rows_from(3))
        catalog.rename_table("db.t", "db.renamed")
        kept = catalog.create_table("db.t", rows_from(7))
        with pytest.MonkeyPatch.context() as patch:
            victim = MortalProcess(patch, fault, number)
            with suppress(Crash):
                rs.Catalog(catalog.uri).drop_table("db.renamed", purge=True)
        _seen.clear()
        create_only._proven.clear()
        dead_leases.update(open_store(table.uri).list(LEASES))
        names = catalog.tables()
        assert "db.t" in names
        if "db.renamed" in names:
            assert ids(catalog.open_table("db.renamed")) == list(range(6))
        try:
            rs.Catalog(catalog.uri).drop_table("db.renamed", purge=True)
        except TableNotFound:
            assert "db.renamed" not in names
        left = files_in(table.uri)
        assert len(left) <= 2, left  # of the newest version, once its entry is gone
        assert catalog.tables() == ["db.t"]
        assert ids(kept) == [7, 8, 9]
        if not victim.is_dead:
            return
    raise AssertionError("the purge never ended")


def test_the_folder_of_a_closed_table_that_no_purge_names_is_ended_by_a_repeated_drop() -> None:
    catalog = rs.Catalog(f"memory:///{uuid.uuid4().hex}")
    store = open_store(catalog.create_table("db.t", rows_from(0), ["id"]).uri)
    catalog.drop_table("db.t")
    dropping.close(store)
    assert store.list("") != []
    catalog.drop_table("db.t", purge=True)
    assert store.list("") == []


def test_a_creation_that_loses_its_name_leaves_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = rs.Catalog(fresh_uri())
    catalog.create_table("db.old", rows_from(0))
    other = rs.Catalog(catalog.uri)
    create = rs.create_table

    def overtaken(*args: Any, **options: Any) -> Any:
        if (names := other.tables()) and "db.t" not in names:
            other.rename_table("db.old", "db.t")
        return create(*args, **options)

    monkeypatch.setattr("rowsieve.catalog.named_tables.create_table", overtaken)
    with pytest.raises(TableExists):
        catalog.create_table("db.t", rows_from(5))
    assert files_in(f"{catalog.uri}/db/t") == []
    other.rename_table("db.t", "db.old")
    monkeypatch.setattr("rowsieve.catalog.named_tables.create_table", overtaken)
    assert ids(catalog.create_table("db.t", rows_from(5), if_exists="ignore")) == [0, 1, 2]
    assert ids(other.open_table("db.t")) == [0, 1, 2]


def test_files_and_links_in_a_catalog_are_passed_over(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    catalog.create_table("db.t", rows_from(0))
    rs.create_table(tmp_path / "elsewhere/t", rows_from(0))
    (tmp_path / "lake/LICENSE").write_text("a file")
    (tmp_path / "lake/db/notes").write_text("a file")
    (tmp_path / "lake/out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "lake/db/out").symlink_to(tmp_path / "elsewhere/t")
    (tmp_path / "lake/db/dangling").symlink_to("nowhere")
    assert catalog.namespaces() == ["db"]
    assert catalog.tables() == ["db.t"]
    assert catalog.tables("LICENSE") == []
    with pytest.raises(InvalidInput, match="not a name"):
        catalog.tables("..")


@pytest.mark.parametrize("number", range(40))
def test_a_rename_at_any_call_of_a_purge_wins_or_finds_no_table(number: int) -> None:
    """A purge that loses to a rename leaves an open table under its new name."""
    one = rs.Catalog(f"memory:///{uuid.uuid4().hex}")
    table = one.create_table("db.t", rows_from(0), ["id"])
    two = rs.Catalog(one.uri)
    is_renamed, is_dropped = False, True

    def rename() -> None:
        nonlocal is_renamed
        with suppress(TableNotFound):
            two.rename_table("db.t", "db.kept")
            is_renamed = True

    def drop() -> None:
        nonlocal is_dropped
        try:
            one.drop_table("db.t", purge=True)
        except TableNotFound:
            is_dropped = False

    interleaved(number, drop, rename)
    assert is_dropped != is_renamed
    if is_renamed:
        assert one.tables() == ["db.kept"]
        kept = one.open_table("db.kept")
        kept.upsert(rows_from(3))
        assert ids(kept) == list(range(6))
        assert len(kept.history()) == 2
        one.drop_table("db.kept", purge=True)
    assert one.tables() == []
    assert files_in(table.uri) == []


def test_a_table_that_a_late_lease_protects_is_not_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = rs.Catalog(fresh_uri())
    table = catalog.create_table("db.t", rows_from(0), ["id"])
    dropping.close(table.handle.store)
    with pytest.raises(TableNotFound, match=r"rename_table: .* was dropped with all its files"):
        catalog.rename_table("db.t", "db.kept")
    catalog.drop_table("db.t", purge=True)
    assert files_in(table.uri) == []


def test_a_name_whose_table_is_gone_can_be_dropped(tmp_path: Path) -> None:
    catalog = rs.Catalog(str(tmp_path / "lake"))
    for name in ("db.here", "db.purged"):
        catalog.create_table(f"{name}_first", rows_from(0))
        catalog.rename_table(f"{name}_first", name)
        shutil.rmtree(tmp_path / "lake" / "db" / f"{name.partition('.')[2]}_first" / "_rowsieve")
    rs.create_table(str(tmp_path / "elsewhere"), rows_from(0))
    catalog.register_table("db.there", str(tmp_path / "elsewhere"))
    shutil.rmtree(tmp_path / "elsewhere")
    with pytest.raises(TableNotFound, match=r"db\.there .* drop_table without purge removes the"):
        catalog.rename_table("db.there", "db.elsewhere")
    for name in ("db.here", "db.there"):
        catalog.drop_table(name)
    catalog.drop_table("db.purged", purge=True)
    assert catalog.tables() == []
    assert ids(catalog.create_table("db.there", rows_from(1))) == [1, 2, 3]


def test_a_name_does_not_come_back_after_another_call_ended_its_purge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = rs.Catalog(f"memory:///{uuid.uuid4().hex}")
    table = one.create_table("db.t", rows_from(0), ["id"])
    two, changes = rs.Catalog(one.uri), 0
    held = rs.open_table(table.uri).lease()
    change, close_now = one._log.change, dropping._commit_last_floors

    def changed(*args: Any) -> Any:
        nonlocal changes
        changes += 1
        if changes == 2:  # the first one removed the name, this one gives it back
            held.__exit__(None, None, None)
            two.drop_table("db.t", purge=True)
        return change(*args)

    def leased_first(log: Any, head: Any) -> Any:
        held.__enter__()
        return close_now(log, head)

    monkeypatch.setattr(one._log, "change", changed)
    monkeypatch.setattr(dropping, "_commit_last_floors", leased_first)
    one.drop_table("db.t", purge=True)
    assert changes == 2
    assert one.tables() == files_in(table.uri) == []
    assert ids(one.create_table("db.t", rows_from(1))) == [1, 2, 3]


def test_a_purge_does_not_end_what_has_its_name_again(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = rs.Catalog(f"memory:///{uuid.uuid4().hex}")
    table = catalog.create_table("db.t", rows_from(0), ["id"])
    place = table.uri.removeprefix(f"{catalog.uri.rstrip('/')}/")
    catalog._log.change("drop_table", lambda now: now.placed({"db.t": None}).with_purge(place))
    two = rs.Catalog(catalog.uri)
    close = dropping.close

    def closed(store: Any) -> Any:
        head = close(store)
        assert two._put_back(table_name("db.t"), place)
        return head

    monkeypatch.setattr(drops, "close", closed)
    with pytest.raises(TableNotFound):
        catalog.drop_table("db.t", purge=True)
    monkeypatch.undo()
    assert catalog.tables() == ["db.t"]
    assert ids(catalog.open_table("db.t")) == [0, 1, 2]
    catalog.drop_table("db.t", purge=True)
    assert catalog.tables() == files_in(table.uri) == []


def test_a_purge_ends_although_a_late_commit_came_after_the_deletion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog = rs.Catalog(f"memory:///{uuid.uuid4().hex}")
    table = catalog.create_table("db.t", rows_from(0), ["id"])
    table.upsert(rows_from(5))
    late = table.handle.store.get(log_path(1))
    EveryStore(monkeypatch, RemoteStore).meet_where(
        Fault.LOST_ANSWER, "delete", lambda paths: log_path(1) in paths
    )
    with pytest.raises(StoreError):
        catalog.drop_table("db.t", purge=True)
    monkeypatch.undo()
    table.handle.store.put_new(log_path(1), late)
    _seen.clear()  # as another process would
    rs.Catalog(catalog.uri).drop_table("db.t", purge=True)
    assert catalog.tables() == files_in(table.uri) == []
    with pytest.raises(TableNotFound):  # nothing is left to be ended
        catalog.drop_table("db.t", purge=True)


@pytest.mark.parametrize("place", ["memory:///", "file"])
def test_a_namespace_that_goes_with_its_last_table_is_dropped(place: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "lake") if place == "file" else f"memory:///{uuid.uuid4().hex}"
    catalog = rs.Catalog(uri)
    catalog.create_table("first.t", rows_from(0))
    catalog.create_table("other.u", rows_from(0))
    catalog.rename_table("other.u", "renamed.u")
    for name in ("first", "renamed"):
        catalog.drop_namespace(name, cascade=True, purge=True)
        assert name not in catalog.namespaces()
        with pytest.raises(NamespaceNotFound):
            catalog.drop_namespace(name, cascade=True, purge=True)
    assert catalog.tables() == []
