"""Expiry: which versions stay, which files go, and what readers of the others are told."""

from __future__ import annotations

import json
import logging
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    SnapshotExpired,
    StoreError,
    UnsupportedOperation,
    VersionNotFound,
)
from rowsieve.objects import LocalStore
from rowsieve.objects.remote import RemoteStore
from rowsieve.retention.removed_files import RemovedFiles, kind_of
from rowsieve.scan import Scan
from rowsieve.storage.log.checkpoint import checkpoint_path
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.floors import floors_of
from rowsieve.storage.log.log_entry import log_path
from tests.faults.stores import EveryStore
from tests.faults.vocabulary import Fault
from tests.retention.small_histories import expected, paths, rows_of, table_of, with_history
from tests.storage.sharded import tiny_shards


def data_of(table: Table) -> set[str]:
    return set(table.files()["path"].to_pylist())


def test_the_files_that_only_expired_versions_had_are_deleted_and_no_others() -> None:
    table = with_history(versions=6)
    table.compact()
    before = paths(table.handle.store)
    removed = table.expire_versions(retain_last=1)
    assert removed.versions == 6
    assert removed.oldest_version == 6
    assert removed.files == {"data": 6, "list": 6, "entry": 6}
    assert set(removed.sizes) == before - paths(table.handle.store)
    assert paths(table.handle.store, "data") == data_of(table)
    assert rows_of(table) == expected(5)
    assert rows_of(rowsieve.open_table(table.uri)) == expected(5)
    table.upsert(table_of((9, 9)))
    assert rows_of(rowsieve.open_table(table.uri))[-1] == {"id": 9, "v": 9}


def test_each_expired_entry_and_its_list_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = with_history(versions=12)
    table.compact()
    lists = {path for path in paths(table.handle.store, "_rowsieve/log") if path.endswith(".arrow")}
    read: Counter[str] = Counter()
    get = RemoteStore.get

    def counted(store: RemoteStore, path: str) -> bytes:
        read[path] += 1
        return get(store, path)

    monkeypatch.setattr(RemoteStore, "get", counted)
    table.expire_versions(retain_last=1, dry_run=True)  # a checkpoint reads the log, too
    expired = [log_path(version) for version in range(12)]
    assert [read[path] for path in (*expired, *sorted(lists))] == [1] * (12 + len(lists))


def test_many_upserts_leave_a_dozen_files(tmp_path: Path) -> None:
    table = with_history(tmp_path / "t", versions=70)
    table.compact()
    table.vacuum(retain_last=1)
    fresh = rowsieve.create_table(tmp_path / "fresh", table.to_arrow(), key=["id"])
    assert len(paths(table.handle.store)) <= 12
    kept, written = (
        sum(
            detail.size_bytes
            for folder in ("data",)
            for detail in each.handle.store.details(folder).values()
        )
        for each in (table, fresh)
    )
    assert kept <= 1.3 * written


@pytest.mark.parametrize("retain_last", [1, 2, 4, 6, 7, 100])
def test_the_last_versions_are_kept_and_read_as_before(retain_last: int) -> None:
    table = with_history(versions=6)
    table.expire_versions(retain_last=retain_last)
    oldest = max(0, 6 - retain_last)
    for version in range(6):
        if version >= oldest:
            assert rows_of(table.scan(version=version)) == expected(version)
            assert rows_of(rowsieve.open_table(table.uri, version=version)) == expected(version)
        else:
            with pytest.raises(SnapshotExpired, match=f"versions {oldest} to"):
                table.scan(version=version)
            with pytest.raises(SnapshotExpired, match=f"versions {oldest} to"):
                rowsieve.open_table(table.uri, version=version)
    listed = [commit.version for commit in rowsieve.open_table(table.uri).history()]
    assert listed == list(range(table.version, oldest - 1, -1))


def test_commits_of_retention_do_not_count_as_versions() -> None:
    table = with_history(versions=4)
    first = table.vacuum(retain_last=1)
    assert first.versions == 3
    version = table.version
    for _ in range(3):
        again = table.vacuum(retain_last=1)
        assert (again.versions, again.file_count) == (0, 0)
    assert table.version == version
    table.upsert(table_of((7, 7)))
    assert table.vacuum(retain_last=2).oldest_version == 3
    for version in range(8, 12):
        table.upsert(table_of((version, version)))
        newest = table.version
        for _ in range(2):
            assert table.vacuum(retain_last=1).oldest_version == newest
    table.expire_versions(older_than=table.history()[0].timestamp)
    assert table.vacuum(older_than=table.history()[0].timestamp).versions == 0


def test_every_time_from_older_than_on_stays_readable() -> None:
    table = with_history(versions=6)
    times = [commit.timestamp for commit in reversed(table.history())]
    between = times[2] + (times[3] - times[2]) / 2
    assert table.expire_versions(older_than=between).oldest_version == 2
    assert rows_of(table.scan(as_of=between)) == expected(2)
    assert rows_of(table.scan(as_of=times[4])) == expected(4)
    with pytest.raises(SnapshotExpired, match="versions 2 to"):
        table.scan(as_of=times[1])
    with pytest.raises(SnapshotExpired):
        table.scan(as_of=times[0] - timedelta(days=1))


def test_both_arguments_keep_what_either_keeps() -> None:
    table = with_history(versions=6)
    times = [commit.timestamp for commit in reversed(table.history())]
    assert table.expire_versions(older_than=times[4], retain_last=4).oldest_version == 2
    table = with_history(versions=6)
    times = [commit.timestamp for commit in reversed(table.history())]
    assert table.expire_versions(older_than=times[1], retain_last=2).oldest_version == 1


def test_without_arguments_the_versions_of_the_last_week_are_kept() -> None:
    table = with_history(versions=6)
    assert table.expire_versions() == RemovedFiles("expire_versions")
    assert table.version == 5
    for older_than in ("1971-01-01T00:00:00+00:00", datetime.min.replace(tzinfo=UTC)):
        assert table.expire_versions(older_than=older_than).versions == 0
    assert table.version == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"retain_last": 0}, "keep at least 1 version"),
        ({"retain_last": -3}, "keep at least 1 version"),
        ({"older_than": "2999-01-01T00:00:00+00:00"}, "in the future"),
        ({"older_than": "2020-01-01"}, "no time zone"),
        ({"retain_last": 1, "grace_s": -1.0}, "number of seconds from 0"),
        ({"retain_last": 1, "grace_s": float("nan")}, "number of seconds from 0"),
    ],
)
def test_arguments_that_would_keep_nothing_are_refused(arguments: Any, message: str) -> None:
    table = with_history(versions=3)
    before = paths(table.handle.store)
    with pytest.raises(InvalidInput, match=message):
        table.expire_versions(**arguments)
    with pytest.raises(InvalidInput, match=message):
        table.vacuum(**arguments)
    assert paths(table.handle.store) == before


def test_a_dry_run_names_the_same_files_and_changes_nothing() -> None:
    table = with_history(versions=40, checkpoint_interval="4")
    table.compact()
    before = paths(table.handle.store)
    shown = table.expire_versions(retain_last=1, dry_run=True)
    assert shown.dry_run
    assert "would remove" in repr(shown)
    assert (paths(table.handle.store), table.version) == (before, 40)
    removed = table.expire_versions(retain_last=1)
    assert dict(removed.sizes) == dict(shown.sizes)
    assert (removed.versions, removed.oldest_version) == (shown.versions, shown.oldest_version)
    assert {"data", "list", "entry", "checkpoint"} == set(removed.files)


def test_a_table_without_a_key_keeps_the_vectors_of_kept_versions() -> None:
    table = rowsieve.create_table(
        f"{with_history(versions=1).uri}-append", table_of((1, 1), (2, 2), (3, 3))
    )
    table.append(table_of((4, 4)))
    for gone in (1, 2, 4):
        table.delete(f"id = {gone}")
    removed = table.expire_versions(retain_last=2)
    assert removed.files["vector"] == 1
    assert rows_of(table) == [{"id": 3, "v": 3}]
    assert rows_of(table.scan(version=3)) == [{"id": 3, "v": 3}, {"id": 4, "v": 4}]
    table.restore(3)
    assert rows_of(table) == [{"id": 3, "v": 3}, {"id": 4, "v": 4}]
    table.expire_versions(retain_last=1)
    assert rows_of(rowsieve.open_table(table.uri)) == [{"id": 3, "v": 3}, {"id": 4, "v": 4}]


def test_files_that_came_back_by_a_restore_are_kept() -> None:
    """Expired versions had them, the oldest kept one has not, and a later one has them again."""
    table = with_history(versions=3)
    table.overwrite(table_of((7, 7)))
    table.restore(2)
    removed = table.expire_versions(retain_last=2)
    assert removed.oldest_version == 3
    assert "data" not in removed.files
    assert rows_of(table.scan(version=3)) == [{"id": 7, "v": 7}]
    assert rows_of(rowsieve.open_table(table.uri)) == expected(2)


def test_an_expired_version_is_not_restored() -> None:
    table = with_history(versions=4)
    late = rowsieve.open_table(table.uri)
    target = CommitLog(table.handle.store).at(1)
    table.expire_versions(retain_last=2)
    with pytest.raises(SnapshotExpired, match="versions 2 to 4 are available"):
        table.restore(1)
    with pytest.MonkeyPatch.context() as patch:  # it was read before the others expired
        patch.setattr(late.handle.log, "at", lambda _: target)
        with pytest.raises(SnapshotExpired):
            late.restore(1)
    table.restore(2)
    assert rows_of(table) == expected(2)


def test_a_reader_without_a_lease_is_told_that_its_version_has_expired(tmp_path: Path) -> None:
    table = with_history(tmp_path / "t", versions=4)
    scan, dataset = table.scan(version=1), table.to_dataset(version=1)
    split = table.scan(version=1).plan().splits_to_bytes()[0]
    table.compact()
    table.expire_versions(retain_last=1)
    with pytest.raises(SnapshotExpired, match="versions 4 to 5 are available"):
        scan.to_arrow()
    with pytest.raises(SnapshotExpired, match="versions 4 to 5 are available"):
        rowsieve.read_split(split).read_all()
    with pytest.raises((SnapshotExpired, OSError)):
        dataset.to_table()


def test_a_file_of_a_kept_version_that_somebody_deleted_is_no_expiry(tmp_path: Path) -> None:
    table = with_history(tmp_path / "t", versions=4)
    table.expire_versions(retain_last=2)
    for path in data_of(table):
        (tmp_path / "t" / path).unlink()
    with pytest.raises(CorruptData, match="is missing"):
        rowsieve.open_table(table.uri).to_arrow()


def test_the_floors_are_set_by_retention_alone() -> None:
    table = with_history(versions=4)
    table.expire_versions(retain_last=1)
    for name in ("rowsieve.oldest_version", "rowsieve.oldest_base"):
        with pytest.raises(InvalidInput, match="is kept by Rowsieve"):
            table.set_properties({name: "0"})
        with pytest.raises(InvalidInput, match="is kept by Rowsieve"):
            table.unset_properties([name])
        with pytest.raises(InvalidInput, match="is kept by Rowsieve"):
            rowsieve.create_table("memory:///floors", ROWS_SCHEMA, properties={name: "0"})
    table.set_properties({"checkpoint_interval": 7})
    table.unset_properties(["checkpoint_interval"])
    table.add_column("w", "int64")
    table.restore(5)
    assert floors_of(table.detail()["properties"]).oldest_version == 3


ROWS_SCHEMA = pa.schema({"id": pa.int64()})


def test_a_writer_of_an_older_protocol_refuses_the_table(tmp_path: Path) -> None:
    table = with_history(tmp_path / "t", versions=3)
    assert table.handle.pinned.table.writer_version == 2
    table.expire_versions(retain_last=1)
    text = (tmp_path / "t" / log_path(3)).read_text()
    protocol = [json.loads(line) for line in text.splitlines()][1]["protocol"]
    assert (protocol["reader"], protocol["writer"]) == (1, 3)


def test_a_version_that_is_not_there_yet_is_no_expired_one() -> None:
    table = with_history(versions=3)
    table.expire_versions(retain_last=1)
    with pytest.raises(VersionNotFound):
        table.scan(version=9)
    with pytest.raises(VersionNotFound):
        table.scan(version=-1)


def test_a_read_only_table_expires_nothing(tmp_path: Path) -> None:
    table = with_history(tmp_path / "t", versions=3)
    pinned = rowsieve.open_table(table.uri, version=1)
    for method in (pinned.expire_versions, pinned.remove_orphans, pinned.vacuum):
        with pytest.raises(UnsupportedOperation, match="read-only"):
            method()


def test_a_folder_that_cannot_be_changed_fails_before_anything_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = with_history(tmp_path / "t", versions=3)
    before = paths(table.handle.store)
    EveryStore(monkeypatch, LocalStore).meet_where(Fault.DENIED, "put_new")
    monkeypatch.setattr("rowsieve.objects.durable.pause", lambda *_, **__: None)
    with pytest.raises(StoreError, match="not permitted"):
        table.vacuum(retain_last=1)
    assert paths(table.handle.store) == before


# The log


@pytest.mark.parametrize("interval", ["2", "5", "1000"])
def test_the_log_begins_at_a_verified_checkpoint_of_the_oldest_version(interval: str) -> None:
    table = with_history(versions=11, checkpoint_interval=interval)
    table.expire_versions(retain_last=3)
    names = paths(table.handle.store, "_rowsieve/log", "_rowsieve/checkpoints")
    entries = {version for version in range(20) if log_path(version) in names}
    checkpoints = {version for version in range(20) if checkpoint_path(version) in names}
    assert entries == {8, 9, 10, 11}
    assert min(checkpoints) == 8
    assert len(checkpoints) >= 2  # one more, to fall back to
    for damaged in checkpoints:
        table.handle.store.delete([checkpoint_path(damaged)])
        fresh = CommitLog(table.handle.store).latest()
        assert fresh.version == 11
        break


@pytest.mark.parametrize("damage", ["missing parts", "other commit"])
def test_a_checkpoint_that_does_not_read_back_keeps_the_log(
    damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = with_history(versions=7, checkpoint_interval="3")
    store = table.handle.store
    if damage == "missing parts":
        content = store.get(checkpoint_path(3))
        name = json.loads(content.splitlines()[-2])["add"]["file"]
        store.delete([f"_rowsieve/checkpoints/{name}"])
    else:
        store.delete([checkpoint_path(3)])
        store.put_new(
            checkpoint_path(3),
            with_history(versions=4, checkpoint_interval="3").handle.store.get(checkpoint_path(3)),
        )
    with caplog.at_level(logging.WARNING):
        removed = table.expire_versions(retain_last=4)
    assert removed.oldest_version == 3
    assert "entry" not in removed.files
    for version in range(3, 7):
        assert rows_of(rowsieve.open_table(table.uri, version=version)) == expected(version)
    assert caplog.text


def test_a_table_in_shards_is_read_by_processes_that_opened_it_before() -> None:
    """They have read few columns of the parts from the checkpoint by which they opened it."""
    for _ in tiny_shards(1):
        table = with_history(versions=10, checkpoint_interval="4")
        pinned = rowsieve.open_table(table.uri, version=9)
        idle, refreshing = (rowsieve.open_table(table.uri) for _ in range(2))
        assert not idle.handle.pinned.parts.in_memory
        table.expire_versions(retain_last=1)  # supersedes the checkpoint of version 8
        assert rows_of(pinned) == expected(9)
        for version in (10, 11, 12):
            table.upsert(table_of((0, version), (version, version)))
            table.expire_versions(retain_last=1)
        assert checkpoint_path(8) not in paths(table.handle.store)
        assert rows_of(refreshing) == expected(12)
        assert rows_of(rowsieve.open_table(table.uri)) == expected(12)
        with pytest.raises(SnapshotExpired):
            Scan(idle.handle.store, idle.handle.pinned, where="v < 9").to_arrow()


def test_a_handle_in_shards_reads_the_newest_checkpoint_after_an_expiry() -> None:
    """It follows entry by entry, and its columns come from a checkpoint that has gone."""
    for _ in tiny_shards(1):
        table = with_history(versions=6, checkpoint_interval="4")
        early = rowsieve.open_table(table.uri)
        for version in range(6, 10):
            table.upsert(table_of((0, version), (version, version)))
        assert early.refresh() == 9
        table.upsert(table_of((0, 10), (10, 10)))
        table.expire_versions(retain_last=2)
        assert checkpoint_path(4) not in paths(table.handle.store)
        assert log_path(9) in paths(table.handle.store)
        assert rows_of(early) == expected(10)


def test_an_entry_published_below_the_oldest_one_is_no_version() -> None:
    """A writer that slept finds its number free again: nobody reads its entry there."""
    table = with_history(versions=9)
    store = table.handle.store
    old = store.get(log_path(2))
    table.expire_versions(retain_last=2)
    store.put_new(log_path(2), old)
    fresh = rowsieve.open_table(table.uri)
    assert rows_of(fresh) == expected(8)
    with pytest.raises(SnapshotExpired):
        fresh.scan(version=4)
    assert fresh.history()[-1].version == 7
    fresh.upsert(table_of((0, 9), (9, 9)))
    assert log_path(2) in fresh.expire_versions(retain_last=1).sizes


def test_tokens_outlive_their_entries() -> None:
    table = with_history(versions=1)
    first = table.upsert(table_of((1, 1)), token=("loader", 5))
    for version in range(2, 5):
        table.upsert(table_of((version, version)))
    table.expire_versions(retain_last=1)
    again = rowsieve.open_table(table.uri).upsert(table_of((1, 7)), token=("loader", 5))
    assert (again.version, again.commit_id) == (first.version, first.commit_id)
    assert {"id": 1, "v": 7} not in rows_of(table)


def test_a_schema_that_changed_is_kept_with_its_old_files() -> None:
    table = with_history(versions=3)
    table.rename_column("v", "w")
    table.add_column("x", "int64", default=50)
    table.upsert(pa.table({"id": [7], "w": [7], "x": [7]}))
    table.expire_versions(retain_last=2)
    found = rowsieve.open_table(table.uri).to_arrow().sort_by("id").to_pylist()
    assert found == [
        *({"id": i, "w": i or 2, "x": 50} for i in range(3)),
        {"id": 7, "w": 7, "x": 7},
    ]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("data/" + "a" * 32 + ".7.parquet", "data"),
        ("data/" + "a" * 32 + ".7.deletes.parquet", "deletes"),
        ("data/" + "a" * 32 + ".7.dv", "vector"),
        ("data/part-0.parquet", "other"),
        ("data/.tmp-x", "temporary"),
        (log_path(3), "entry"),
        ("_rowsieve/log/" + "a" * 32 + ".arrow", "list"),
        ("_rowsieve/log/" + "a" * 32 + ".stats", "statistics"),
        (checkpoint_path(3), "checkpoint"),
    ],
)
def test_files_are_reported_by_kind(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_the_clock_of_a_writer_may_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    table = with_history(versions=3)
    now = table.history()[0].timestamp
    before_ns = round((now - timedelta(days=30)).timestamp() * 1e9)
    monkeypatch.setattr("time.time_ns", lambda: before_ns)
    table.upsert(table_of((0, 3), (3, 3)))
    assert table.history()[0].timestamp > now
    assert table.expire_versions().versions == 0  # older than the clock: nothing is old
    table.expire_versions(retain_last=1)
    assert rows_of(rowsieve.open_table(table.uri)) == expected(3)


def test_older_than_may_be_as_far_ahead_as_clocks_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    table = with_history(versions=2)
    now = table.history()[0].timestamp + timedelta(days=1)
    monkeypatch.setattr("time.time_ns", lambda: round(now.timestamp() * 1e6) * 1000)
    limit = now + timedelta(minutes=1)
    with pytest.raises(InvalidInput, match="in the future"):
        table.expire_versions(older_than=limit + timedelta(microseconds=1))
    assert table.expire_versions(older_than=limit, dry_run=True).versions == 1


@pytest.mark.parametrize("is_trimmed", [False, True])
def test_files_that_a_compaction_replaced_before_a_checkpoint_go_with_their_versions(
    *, is_trimmed: bool
) -> None:
    """Of a log from its beginning, and of one that begins with a checkpoint."""
    table = with_history(versions=2, checkpoint_interval="4")
    if is_trimmed:
        table.expire_versions(retain_last=1)
    for _ in range(2):
        table.compact()
        for version in range(5):
            table.upsert(table_of((0, version)))
        table.compact()
        table.upsert(table_of((0, 9)))
        table.expire_versions(retain_last=1, grace_s=0)
        assert paths(table.handle.store, "data") == {*table.files().column("path").to_pylist()}
