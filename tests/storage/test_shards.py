"""Checkpoints in shards: columns are read when they are named, and damage never changes a part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from rowsieve.errors import CorruptData, UnsupportedProtocol
from rowsieve.objects import LocalStore, ObjectStore
from rowsieve.stats.model import ColumnStatistics
from rowsieve.storage.log.checkpoint import (
    CHECKPOINTS,
    checkpoint_file,
    checkpoint_path,
    read_checkpoint,
)
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import LOG, log_path
from rowsieve.storage.manifests.manifest import NewPart, PartTable
from rowsieve.storage.manifests.manifest_layout import FORMAT_VERSION
from rowsieve.storage.manifests.segments import group_of
from rowsieve.storage.manifests.shards import digest_of_ids
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Field, Int
from tests.faults.stores import FaultyStore
from tests.storage.log_fixtures import commit, copy, create, memory_store, part
from tests.storage.sharded import in_shards, source_of, tiny_shards
from tests.storage.test_log_entry import sealed
from tests.storage.test_manifest import SCHEMA, new_part, table_of

BEFORE_SHARDS = Path(__file__).parent / "before_shards"


@pytest.fixture(autouse=True)
def _tiny_shards() -> Iterator[None]:
    yield from tiny_shards()


def five_parts() -> tuple[CommitLog, Snapshot]:
    """Version 5 has a checkpoint of five parts in three shards; the log is whole."""
    log, snapshot = create(memory_store(), checkpoint_interval="5")
    for i in range(5):
        (entry,) = part(10 * i, 10 * i + 9).entries([0])
        ids = ColumnStatistics(0, None, pa.scalar(10 * i), pa.scalar(10 * i + 9))
        texts = ColumnStatistics(1, None, pa.scalar("a"), pa.scalar(f"b{i}"))
        known = NewPart(entry, {1: ids, 2: texts})
        added = PartTable.of([known], snapshot.schema, snapshot.schema.fields[:1])
        snapshot = commit(log, snapshot, added=added)
    return log, snapshot


def file_of(store: ObjectStore) -> str:
    (path,) = [path for path in store.list(CHECKPOINTS) if path.endswith(".shards")]
    return path


def test_shards_are_read_back_as_written() -> None:
    log, head = five_parts()
    found = read_checkpoint(log._store, 5)
    assert (len(found.parts), found.parts.key_ids) == (5, (1,))
    assert found == head
    assert CommitLog(log._store).latest() == head


@pytest.mark.parametrize("shard_parts", [1, 2, 3, 7])
def test_every_column_and_choice_of_parts_comes_back(shard_parts: int) -> None:
    _, snapshot = create(memory_store())
    parts = table_of(*(new_part(f"p{i}", commit_ts_min=0, commit_ts_max=0) for i in range(7)))
    wanted = Snapshot(
        0, snapshot.commit_id, snapshot.timestamp_us, snapshot.table, SCHEMA, 8, parts, {}
    )
    for chosen in ([], [0], [3, 4], [1, 2, 5, 6], [6, 0, 3, 3], range(7)):
        found = in_shards(wanted, shard_parts).parts
        assert found.take(chosen) == parts.take(chosen)
        assert found.entries(list(chosen)) == parts.entries(list(chosen))
    assert found.without({"p1", "p6"}).append(parts.take([1])).part_ids == (
        "p0", "p2", "p3", "p4", "p5", "p1",
    )  # fmt: skip


def test_only_the_segments_of_named_columns_are_fetched() -> None:
    log, _ = five_parts()
    store = FaultyStore(log._store)
    found = read_checkpoint(store, 5).parts
    assert [name for name, _ in store.calls] == ["get", "get_range"]  # the index alone
    whole = log._store.size(file_of(log._store))
    source = source_of(read_checkpoint(store, 5))
    source.read(["stats.2.lower"], np.array([4]))
    assert set(source._segments) == {("stats.2", 2)}
    source.read(["key.1.lower", "part_id"], np.array([0, 4]))
    assert set(source._segments) == {
        ("stats.2", 2), ("keys", 0), ("keys", 2), ("id", 0), ("id", 2),
    }  # fmt: skip
    before = len(store.calls)
    found.column("key.1.lower")
    found.column("key.1.upper")
    assert len(store.calls) == before + 1  # all shards of a group lie together
    assert whole == log._store.size(file_of(log._store))


def test_a_commit_on_top_adds_and_removes_parts() -> None:
    log, head = five_parts()
    found = CommitLog(log._store).latest()
    removed = commit(log, found, removed=found.parts.part_ids[1:3], operation="compact")
    again = commit(log, head, removed=head.parts.part_ids[3:4], operation="compact")
    assert len(removed.parts) == 4
    assert len(again.parts) == 4
    assert again == CommitLog(log._store).latest()
    assert [places.tolist() for _, places, _ in removed.parts.unions()] == [[0, 1, 2]]


# Damage.


def damaged(store: ObjectStore, byte: int, *without: str) -> ObjectStore:
    path = file_of(store)
    data = bytearray(store.get(path))
    data[byte] ^= 255
    return copy(store, *without, changed={path: bytes(data)})


def segments(store: ObjectStore) -> list[tuple[str, int]]:
    """A byte in each segment, after the group that it is of."""
    source = source_of(read_checkpoint(store, 5))
    return [
        (group, (starts[i] + stops[i]) // 2)
        for group, (starts, stops, _) in source._places.items()
        for i in range(3)
    ]


def test_a_damaged_segment_is_read_from_the_log(caplog: pytest.LogCaptureFixture) -> None:
    log, head = five_parts()
    for group, byte in segments(log._store):
        caplog.clear()
        found = CommitLog(damaged(log._store, byte)).latest()
        first = next(name for name in found.parts.schema.names if group_of(name) == group)
        assert found.parts.column(first).equals(head.parts.column(first))
        assert "rebuilt from the log" in caplog.text
        assert found == head
        assert source_of(found).unreadable == {}


def test_without_the_log_only_statistics_may_be_lost() -> None:
    log, head = five_parts()
    gone = [log_path(version) for version in range(5)]
    for group, byte in segments(log._store):
        found = CommitLog(damaged(log._store, byte, *gone)).latest().parts
        names = [name for name in found.schema.names if group_of(name) == group]
        if not group.startswith("stats."):
            with pytest.raises(CorruptData, match=r"differ from their checksum; restore"):
                found.column(names[0])
            continue
        lost = found.column(names[0]).is_null().to_numpy()
        assert 1 <= lost.sum() <= 2
        assert source_of(CommitLog(damaged(log._store, byte, *gone)).latest()).unreadable == {}
        rest = [name for name in head.parts.schema.names if group_of(name) != group]
        assert found.read(rest).equals(head.parts.read(rest))


def test_lost_statistics_are_counted() -> None:
    log, _ = five_parts()
    byte = next(byte for group, byte in segments(log._store) if group == "stats.1")
    found = CommitLog(damaged(log._store, byte, log_path(2))).latest()
    assert source_of(found).unreadable == {}
    found.parts.column("stats.1.lower")
    found.parts.column("stats.1.upper")
    assert source_of(found).unreadable == {"stats.1": 2}
    assert found.parts.unreadable("stats.1.", "stats.2.") == 2
    assert found.parts.unreadable("stats.2.") == 0


def test_parts_in_another_order_take_no_place_of_damaged_ones() -> None:
    log, head = five_parts()
    turned = head.parts.take([1, 0, 2, 3, 4])
    assert digest_of_ids(turned) != digest_of_ids(head.parts)
    byte = next(byte for group, byte in segments(log._store) if group == "files")
    store = damaged(log._store, byte)
    found = read_checkpoint(store, 5, lambda: turned).parts
    with pytest.raises(CorruptData, match="differ from their checksum"):
        found.column("data.path")
    assert read_checkpoint(store, 5, lambda: head.parts.take(range(5))) == head


def test_a_damaged_index_invalidates_the_checkpoint() -> None:
    log, head = five_parts()
    size = log._store.size(file_of(log._store))
    places = source_of(read_checkpoint(log._store, 5))._places
    index_start = max(stop for _, stops, _ in places.values() for stop in stops)
    for byte in range(index_start, size, 97):
        store = damaged(log._store, byte)
        with pytest.raises(CorruptData, match="index"):
            read_checkpoint(store, 5)
        assert CommitLog(store).latest() == head


def test_a_file_that_is_gone_or_cut_is_read_from_the_log() -> None:
    log, head = five_parts()
    path = file_of(log._store)
    data = log._store.get(path)
    for store in (copy(log._store, path), copy(log._store, changed={path: data[: len(data) // 2]})):
        assert CommitLog(store).latest() == head
    store = copy(log._store)
    found = CommitLog(store).latest()
    store.delete([path])
    assert found == head


def test_a_file_that_is_gone_is_rebuilt_from_the_checkpoint_right_before_it() -> None:
    """Older entries and checkpoints have expired: the parts of no other version are there."""
    log, head = create(memory_store(), 5, checkpoint_interval="1")
    files = {version: file_of_checkpoint(log._store, version) for version in range(1, 6)}
    expired = [log_path(version) for version in range(5)]
    expired += [
        path for version in range(1, 4) for path in (checkpoint_path(version), files[version])
    ]
    store = copy(log._store, *expired)
    opened = CommitLog(store).latest()
    store.delete([files[5]])
    assert opened == head


def file_of_checkpoint(store: ObjectStore, version: int) -> str:
    return f"{CHECKPOINTS}/{checkpoint_file(store, version)}"


def test_a_part_of_a_newer_format_is_not_read() -> None:
    log, head = five_parts()
    body = log._store.get(checkpoint_path(5)).rpartition(b'{"checksum"')[0]
    newest = sealed(body.replace(b'"format":1', b'"format":%d' % FORMAT_VERSION))
    known = copy(log._store, changed={checkpoint_path(5): newest})
    known.delete([log_path(version) for version in range(5)])
    assert CommitLog(known).latest() == head
    newer = sealed(body.replace(b'"format":1', b'"format":4'))
    with pytest.raises(UnsupportedProtocol, match="format version 4"):
        CommitLog(copy(log._store, changed={checkpoint_path(5): newer})).latest()


def test_the_digest_of_ids_is_the_one_in_checkpoints_that_are_there() -> None:
    parts = table_of(*(new_part(name) for name in ("a", "bc", "d")))
    assert digest_of_ids(parts) == "xxh3_128:8cf661dd9f1705fe89290e978f975095"


def test_the_digest_of_ids_does_not_depend_on_chunks() -> None:
    parts = table_of(*(new_part(name) for name in ("a", "bc", "d")))
    pieces = table_of(new_part("a")).append(table_of(new_part("bc"), new_part("d")))
    assert digest_of_ids(parts) == digest_of_ids(pieces)
    sliced = PartTable(table_of(new_part("zz"), *map(new_part, ("a", "bc", "d"))).table.slice(1))
    assert digest_of_ids(parts) == digest_of_ids(sliced)
    assert digest_of_ids(parts) != digest_of_ids(table_of(*map(new_part, ("ab", "c", "d"))))


# What was written before there were shards.


def test_a_checkpoint_from_before_shards_is_read() -> None:
    """Made by the code before: 41 upserts of three rows and a delete, a checkpoint at 40."""
    store = LocalStore(BEFORE_SHARDS)
    assert not store.exists(log_path(40))
    found = CommitLog(store).latest()
    assert (found.version, len(found.parts)) == (41, 42)
    assert found.table.key == ("id",)
    entries = found.parts.entries([0, 40, 41])
    assert [entry.commit_ts_max for entry in entries] == [0, 40, 41]
    assert entries[0].key_lower == (pa.scalar(5),)
    assert entries[1].key_upper == (pa.scalar(411),)
    assert found.parts.column("stats.2.upper").to_pylist()[:2] == ["s01", "s02"]
    assert found.schema.field("id") == Field(1, "id", Int(), nullable=False)
    assert in_shards(found) == found
    assert [path for path in store.list(LOG) if path.endswith(".json")] == [log_path(41)]
