"""`Table.clone`: a copy of a live table that opens, whatever others do meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import CorruptData, InvalidInput, SnapshotExpired, TableExists
from rowsieve.objects import ObjectStore
from rowsieve.storage.log.checkpoint import checkpoint_path
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_head import LogHead
from tests.retention.small_histories import expected, paths, rows_of, table_of, with_history
from tests.small_tables import fresh_uri, kv, pairs


@pytest.mark.parametrize("key", [False, True])
def test_every_version_is_copied_with_its_rows(key: bool) -> None:
    table = rs.create_table(fresh_uri(), kv((1, 1), (2, 2), (3, 3)), key=["k"] if key else None)
    (table.upsert if key else table.append)(kv((3, 30), (4, 4)))
    table.delete("k = 2")
    if key:
        table.build_deletion_vectors()
    table.add_column("w", "int64", default=5)
    table.compact()
    for version in range(table.version + 1):
        copy = table.clone(fresh_uri(), version=version)
        rows = rs.open_table(table.uri, version=version).to_arrow()
        assert sorted(map(str, copy.to_arrow().to_pylist())) == sorted(map(str, rows.to_pylist()))
        assert copy.version == version
        assert copy.schema == rs.open_table(table.uri, version=version).schema
        assert [commit.operation for commit in copy.history()] == ["create"]
        assert copy.history()[0].metadata["version"] == version
        fresh = rs.open_table(copy.uri)
        fresh.delete("k = 3")
        fresh.compact()
        fresh.vacuum(retain_last=1, grace_s=0)
        assert rs.open_table(copy.uri).scan("k = 3").count() == 0
        assert len(rs.open_table(copy.uri)) == len([r for r in rows["k"].to_pylist() if r != 3])
        if version:
            with pytest.raises(SnapshotExpired):
                fresh.scan(version=version - 1)
    assert len(table.history()) == table.version + 1


class Busy:
    """A store with which others do something before one of the calls that read it."""

    def __init__(self, store: ObjectStore, number: int, other: Any) -> None:
        self._store, self._left, self._other = store, number, other

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in ("get", "list", "details", "exists", "put_new"):
            return method

        def call(*args: Any) -> Any:
            self._left -= 1
            if self._left == -1:
                self._other()
            return method(*args)

        return call


def test_commits_expiry_and_orphans_at_any_moment_change_no_copy() -> None:
    number, done = 0, False
    while not done:
        table = with_history(versions=5, checkpoint_interval="2")
        other = rs.open_table(table.uri)

        def meanwhile(other: rs.Table = other) -> None:
            other.upsert(table_of((0, 5), (5, 5)))
            other.compact()
            other.vacuum(retain_last=1, grace_s=0)

        store: Any = Busy(table.handle.store, number, meanwhile)
        log = CommitLog(store)
        busy = rs.Table(Handle(store, log, log.latest()))
        try:
            copy = busy.clone(fresh_uri(), version=3)
        except SnapshotExpired:  # before the lease
            pass
        else:
            assert rows_of(rs.open_table(copy.uri)) == expected(3)
        assert rows_of(rs.open_table(table.uri)) == expected(5 if store._left < 0 else 4)
        done, number = store._left >= 0, number + 1
    assert number > 5


def test_a_copy_whose_checkpoint_is_lost_is_not_an_empty_table() -> None:
    table = with_history(versions=3)
    for version in (0, 2):
        copy = table.clone(fresh_uri(), version=version)
        copy.handle.store.delete([checkpoint_path(version)])
        if version == 0:
            assert rows_of(rs.open_table(copy.uri)) == expected(0)
        else:
            with pytest.raises(CorruptData):
                rs.open_table(copy.uri)


def test_a_copy_is_opened_without_a_listing_which_may_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    table = rs.create_table(fresh_uri(), kv((1, 1)), key=["k"])
    table.upsert(kv((2, 2)))
    monkeypatch.setattr(LogHead, "_load", lambda _: pytest.fail("it lists the log"))
    copy = table.clone(fresh_uri())
    assert (pairs(copy), copy.version) == ([(1, 1), (2, 2)], 1)
    copy.upsert(kv((3, 3)))
    assert (pairs(copy), copy.version) == ([(1, 1), (2, 2), (3, 3)], 2)


def test_a_folder_with_a_table_or_other_files_is_refused(tmp_path: Path) -> None:
    table = with_history(versions=3)
    other = with_history(versions=2)
    with pytest.raises(TableExists):
        table.clone(other.uri)
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(InvalidInput, match=r"note\.txt"):
        table.clone(tmp_path)
    assert rows_of(rs.open_table(other.uri)) == expected(1)


def test_a_damaged_file_makes_no_copy() -> None:
    table = with_history(versions=3)
    path = min(paths(table.handle.store, "data"))
    data = bytearray(table.handle.store.get(path))
    data[7] ^= 1
    table.handle.store.delete([path])
    table.handle.store.put_new(path, bytes(data))
    uri = fresh_uri()
    with pytest.raises(CorruptData, match="does not match its checksum"):
        table.clone(uri)
    with pytest.raises(rs.errors.TableNotFound):
        rs.open_table(uri)


def test_a_damaged_vector_in_a_file_of_several_makes_no_copy() -> None:
    """Each stored vector has a checksum of its own bytes."""
    table = with_history(versions=3)
    table.build_deletion_vectors()
    vectors = [ref for ref in table.handle.pinned.parts.vectors() if ref and ref.path]
    (path,) = {ref.path for ref in vectors}
    assert path is not None
    last = max(vectors, key=lambda ref: ref.start)
    table.clone(fresh_uri())
    data = table.handle.store.get(path)
    damaged = bytearray(data)
    damaged[last.start + last.size_bytes - 1] ^= 1
    for content in (bytes(damaged), data[: last.start + last.size_bytes - 1]):
        table.handle.store.delete([path])
        table.handle.store.put_new(path, content)
        with pytest.raises(CorruptData, match="does not match its checksum"):
            table.clone(fresh_uri())


def test_imported_files_stay_where_they_are(tmp_path: Path) -> None:
    file = tmp_path / "outside" / "a.parquet"
    file.parent.mkdir()
    pq.write_table(kv((1, 1), (2, 2)), file)
    table = rs.from_parquet(str(file), tmp_path / "t", key=["k"])
    table.upsert(kv((2, 3)))
    copy = table.clone(tmp_path / "copy")
    assert pairs(copy) == [(1, 1), (2, 3)]
    copy.compact()
    copy.vacuum(retain_last=1, grace_s=0)
    assert pairs(rs.open_table(table.uri)) == [(1, 1), (2, 3)]


def test_a_copy_has_an_identity_of_its_own() -> None:
    table = with_history(versions=3)
    copy = table.clone(fresh_uri())
    assert copy.handle.pinned.table.uuid != table.handle.pinned.table.uuid
    copy.upsert(table_of((0, 9)))
    table.upsert(table_of((0, 7)))
    assert rows_of(copy.scan("id = 0")) == [{"id": 0, "v": 9}]
    assert rows_of(table.scan("id = 0")) == [{"id": 0, "v": 7}]
