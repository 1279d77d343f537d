"""Orphans: files that no version has go, whatever is under way, and nothing else does."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import CommitConflict, CorruptData, InvalidInput, UnsupportedOperation
from rowsieve.objects import ObjectStore
from rowsieve.retention import retaining
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.floors import floors_of, raised
from rowsieve.storage.log.log_head import _seen
from rowsieve.storage.parts.part_writer import write_parts
from rowsieve.storage.versioned_names import base_of_id, new_id
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Crash, Fault
from tests.retention.small_histories import expected, paths, rows_of, table_of, with_history


def through(table: Table, store: ObjectStore) -> Table:
    """The same table behind another store."""
    log = CommitLog(store)
    return Table(Handle(store, log, log.latest()))


def interrupted(table: Table, number: int) -> bool:
    """Upsert and die at one store call; whether it came that far."""
    faulty = FaultyStore(table.handle.store)
    victim = through(table, faulty)
    faulty.meet(Fault.CRASH_AFTER, number)
    try:
        victim.upsert(table_of((0, 77), (77, 77)))
    except Crash:
        return True
    return False


def test_what_interrupted_writes_leave_goes_and_the_table_stays() -> None:
    table = with_history(versions=4)
    number, left = 0, 0
    while interrupted(table, number):
        number += 1
        table.refresh()
        before, rows = paths(table.handle.store), rows_of(table)
        removed = table.remove_orphans(grace_s=0)
        left += removed.file_count
        assert set(removed.sizes) == before - paths(table.handle.store)
        assert paths(table.handle.store, "data") == set(all_files(table))
        assert rows_of(rowsieve.open_table(table.uri)) == rows
    assert number > 5
    assert left >= 3  # rows; then rows and a list
    assert table.remove_orphans(grace_s=0).file_count == 0


def all_files(table: Table) -> list[str]:
    versions = (rowsieve.open_table(table.uri, version=i) for i in range(table.version + 1))
    parts = (version.handle.pinned.parts for version in versions)
    return [path for each in parts for path in each.column("data.path").to_pylist()]


def test_a_table_without_orphans_gets_no_commit() -> None:
    table = with_history(versions=4)
    assert table.remove_orphans(grace_s=0).sizes == {}
    assert table.remove_orphans().sizes == {}
    assert table.version == 3


def left_behind(table: Table, base: int | None = None) -> str:
    """A file of rows that no commit refers to."""
    snapshot = table.handle.pinned
    fields = tuple(snapshot.schema.field(name) for name in snapshot.table.key)
    parts = write_parts(
        table.handle.store,
        snapshot.schema,
        fields,
        table_of((500, 500)),
        None,
        base_version=snapshot.version if base is None else base,
        properties={},
    )
    return str(parts.column("data.path")[0])


def test_the_grace_is_patience_with_slow_writers() -> None:
    table = with_history(versions=4)
    path = left_behind(table)
    assert table.remove_orphans().sizes == {}
    assert table.remove_orphans(grace_s=3600).sizes == {}
    assert path in table.remove_orphans(grace_s=0, dry_run=True).sizes
    assert path in paths(table.handle.store)
    assert set(table.remove_orphans(grace_s=0).sizes) == {path}
    assert path not in paths(table.handle.store)
    assert table.remove_orphans(grace_s=0).sizes == {}


def test_a_dry_run_changes_nothing() -> None:
    table = with_history(versions=4)
    left_behind(table)
    before = paths(table.handle.store)
    assert table.vacuum(retain_last=1, grace_s=0, dry_run=True).file_count > 1
    assert (paths(table.handle.store), table.version) == (before, 3)


class Waiting:
    """A store whose creation of the next log entry waits until others are done."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.reached, self.go_on = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_new(self, path: str, data: bytes | memoryview) -> None:
        is_entry = path.startswith("_rowsieve/log/") and path.endswith(".json")
        if is_entry and not self.reached.is_set():
            self.reached.set()
            assert self.go_on.wait(60)
        self._store.put_new(path, data)


CHANGES: dict[str, Any] = {
    "upsert": lambda t: t.upsert(table_of((0, 9), (9, 9))),
    "delete_keys": lambda t: t.delete(keys=pa.table({"id": [1]})),
    "delete": lambda t: t.delete("id = 1"),
    "update": lambda t: t.update({"v": "v + 1"}, where="id = 1"),
    "overwrite": lambda t: t.overwrite(table_of((5, 5))),
    "overwrite where": lambda t: t.overwrite(table_of((1, 8)), where="id = 1"),
    "merge": lambda t: t.upsert(pa.table({"id": [9], "v": [9], "w": [9]}), schema_mode="merge"),
    "compact": lambda t: t.compact(),
    "restore": lambda t: t.restore(2),
    "alter": lambda t: t.add_column("x", "int64"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_under_way_writes_its_files_again(name: str) -> None:
    """Invariant 15: its files may be gone when it comes to commit."""
    calm, table = with_history(versions=4), with_history(versions=4)
    CHANGES[name](calm)
    store = Waiting(table.handle.store)
    slow = through(table, store)
    errors: list[BaseException] = []

    def change() -> None:
        try:
            CHANGES[name](slow)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=change)
    thread.start()
    assert store.reached.wait(60)
    orphan = left_behind(table)  # so that there is something to remove in any case
    removed = table.remove_orphans(grace_s=0)
    assert orphan in removed.sizes
    store.go_on.set()
    thread.join(60)
    assert errors == []
    fresh = rowsieve.open_table(table.uri)
    assert sorted(map(str, fresh.to_arrow().to_pylist())) == sorted(
        map(str, calm.to_arrow().to_pylist())
    )
    files = set(fresh.files()["path"].to_pylist())
    assert files <= paths(table.handle.store)
    assert files.isdisjoint(removed.sizes)


def test_what_is_committed_just_before_the_floor_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    table = with_history(versions=4)
    store = Waiting(table.handle.store)
    slow = through(table, store)
    thread = threading.Thread(target=slow.upsert, args=(table_of((0, 4), (4, 4)),))
    thread.start()
    assert store.reached.wait(60)
    raise_floor = retaining._raise_floors

    def between(*args: Any, **options: Any) -> Any:
        store.go_on.set()
        thread.join(60)
        return raise_floor(*args, **options)

    monkeypatch.setattr(retaining, "_raise_floors", between)
    shown = set(table.remove_orphans(grace_s=0, dry_run=True).sizes)
    assert len(shown) == 2  # its rows and its list of parts, not committed yet
    assert table.remove_orphans(grace_s=0).sizes == {}
    assert shown <= paths(table.handle.store)
    assert rows_of(rowsieve.open_table(table.uri)) == expected(4)


def test_files_based_below_the_floor_are_refused() -> None:
    table = with_history(versions=4)
    left_behind(table)
    table.remove_orphans(grace_s=0)
    snapshot = table.handle.pinned
    fields = tuple(snapshot.schema.field(name) for name in snapshot.table.key)
    parts = write_parts(
        table.handle.store,
        snapshot.schema,
        fields,
        table_of((500, 500)),
        None,
        base_version=3,
        properties={},
    )
    with pytest.raises(CommitConflict, match="on a version before 4"):
        CommitLog(table.handle.store).commit(
            CommitRequest("upsert", parts), snapshot, lambda *_: pytest.fail("no conflict")
        )
    with pytest.raises(InvalidInput, match="lowers a floor"):
        CommitLog(table.handle.store).commit(
            CommitRequest("set_properties", info=raised(with_info(snapshot), oldest_base=1)),
            snapshot,
            lambda *_: pytest.fail("no conflict"),
        )


def with_info(snapshot: Any) -> Any:
    return dataclasses.replace(snapshot.table, properties={})


def test_foreign_files_and_tables_inside_are_left_alone(tmp_path: Path) -> None:
    table = with_history(tmp_path / "t", versions=4)
    foreign = {
        "data/part-0.parquet": b"not ours",
        f"data/{uuid.uuid4().hex}.parquet": b"no base",
        f"data/sub/{uuid.uuid4().hex}.0.parquet": b"in a folder",
        "data/README.md": b"#",
        "notes.txt": b"x",
        f"_rowsieve/log/{uuid.uuid4().hex}.txt": b"x",
    }
    for path, content in foreign.items():
        (tmp_path / "t" / path).parent.mkdir(exist_ok=True)
        (tmp_path / "t" / path).write_bytes(content)
    inner = with_history(tmp_path / "t" / "data" / "inner", versions=3)
    beside = with_history(tmp_path / "t" / "inner", versions=3)
    table.compact()
    table.vacuum(retain_last=1, grace_s=0)
    table.remove_orphans(grace_s=0)
    for path, content in foreign.items():
        assert (tmp_path / "t" / path).read_bytes() == content
    for other in (inner, beside):
        assert rows_of(rowsieve.open_table(other.uri, version=1)) == expected(1)
        assert rows_of(rowsieve.open_table(other.uri)) == expected(2)


def test_temporary_files_go_after_the_grace_and_an_hour(tmp_path: Path) -> None:
    """One in use may look like a leftover: the put that loses it would fail."""
    table = with_history(tmp_path / "t", versions=2)
    folder = tmp_path / "t" / "data"
    days = {age: folder / f".tmp-{uuid.uuid4().hex}" for age in (3.0, 0.5, 0.0)}
    for age, path in days.items():
        path.write_bytes(b"half")
        moment = time.time() - age * 86_400
        os.utime(path, (moment, moment))
    removed = table.remove_orphans()
    assert (removed.files, removed.size_bytes) == ({"temporary": 1}, 4)
    assert [path.exists() for path in days.values()] == [False, True, True]
    assert table.remove_orphans(grace_s=0).files == {"temporary": 1}
    assert [path.exists() for path in days.values()] == [False, False, True]
    assert table.version == 1


def test_lists_of_lost_commits_go_and_those_of_older_writers() -> None:
    table = with_history(versions=4)
    store = table.handle.store
    lost = [f"_rowsieve/log/{new_id(2)}.arrow", f"_rowsieve/log/{uuid.uuid4().hex}.stats"]
    unfinished = f"_rowsieve/checkpoints/{new_id(1)}.arrow"
    for path in (*lost, unfinished):
        store.put_new(path, b"x")
    assert set(table.remove_orphans(grace_s=0).sizes) == {*lost}
    table.vacuum(retain_last=1, grace_s=0)
    assert unfinished not in paths(store)
    assert rows_of(rowsieve.open_table(table.uri)) == expected(3)
    assert floors_of(table.detail()["properties"]).oldest_base == 4


def test_ids_name_the_version_they_are_based_on() -> None:
    for version in (0, 1, 12345, 2**48 - 1):
        assert base_of_id(new_id(version)) == version
        assert uuid.UUID(new_id(version)).version == 8
    assert base_of_id(uuid.uuid4().hex) is None
    assert len({new_id(3) for _ in range(1000)}) == 1000
    for wrong in (-1, 2**48):
        with pytest.raises(ValueError, match="cannot name"):
            new_id(wrong)


def test_files_that_were_imported_in_place_are_never_deleted(tmp_path: Path) -> None:
    """Invariant 15: they are not ours, even if their names look so."""
    outside = tmp_path / "outside" / "data"
    outside.mkdir(parents=True)
    file = outside / f"{uuid.uuid4().hex}.0.parquet"
    pq.write_table(table_of((1, 1), (2, 2)), file)
    table = rowsieve.from_parquet(str(file), tmp_path / "t", key=["id"])
    table.upsert(table_of((2, 3)))
    table.compact()
    table.vacuum(retain_last=1, grace_s=0)
    assert file.exists()
    assert rows_of(rowsieve.open_table(table.uri)) == [{"id": 1, "v": 1}, {"id": 2, "v": 3}]
    pinned = rowsieve.open_parquet(str(file))
    with pytest.raises(UnsupportedOperation), pinned.lease():
        pass
    for method in (pinned.vacuum, pinned.expire_versions, pinned.remove_orphans):
        with pytest.raises(UnsupportedOperation):
            method()


@pytest.mark.parametrize("lost", [1, 2])
def test_files_that_name_a_later_version_say_that_the_log_lost_entries(lost: int) -> None:
    """The newest entry alone leaves no proof: its files are based on the version before it."""
    table = with_history(versions=6)
    table.handle.store.delete([f"_rowsieve/log/{5 - number:020d}.json" for number in range(lost)])
    before = paths(table.handle.store)
    _seen.clear()  # as another process would
    late = rowsieve.open_table(table.uri)
    assert late.version == 5 - lost
    if lost == 1:
        late.remove_orphans(dry_run=True)
        return
    for call in (late.remove_orphans, late.vacuum):
        with pytest.raises(CorruptData, match=r"written on version 4, but the newest version .* 3"):
            call(grace_s=0)
    assert {path for path in paths(table.handle.store) if "leases" not in path} == before
    assert rows_of(rowsieve.open_table(table.uri)) == expected(3)
