"""Incremental checkpoints: whatever happens to them, the same version is read."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.errors import CorruptData
from rowsieve.objects import RemoteStore
from rowsieve.storage.changes_since import ChangesSince
from rowsieve.storage.log import checkpoint_turns, incremental_checkpoint, log_head
from rowsieve.storage.log.checkpoint import (
    CHECKPOINTS,
    checkpoint_path,
    read_checkpoint,
    write_checkpoint,
)
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.incremental_checkpoint import (
    incremental_path,
    newest_incremental,
    versions_of_incremental,
)
from rowsieve.storage.log.inline_parts import with_inline_protocol
from rowsieve.storage.log.log_entry import log_path
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from tests import profiles
from tests.faults.stores import FaultyStore
from tests.storage.log_fixtures import SCHEMA, commit, copy, memory_store, part, table_info


@pytest.fixture(autouse=True)
def across_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests overlap, no table is small, and checkpoints are written before a commit returns."""
    monkeypatch.setattr(RemoteStore, "overlaps", property(lambda _: True))
    monkeypatch.setattr(incremental_checkpoint, "in_background", lambda _, task: task())
    monkeypatch.setattr(checkpoint_turns, "_SMALL_BYTES", -1)


def create(commits: int, **properties: str) -> tuple[CommitLog, Snapshot]:
    """A table that has many parts for these tests."""
    log = CommitLog(memory_store())
    snapshot = log.create(with_inline_protocol(table_info(**properties)), SCHEMA, 3)
    for _ in range(commits):
        snapshot = commit(log, snapshot)
    return log, snapshot


def changed(log: CommitLog, snapshot: Snapshot, drawn: random.Random) -> Snapshot:
    """Commit some of: new parts, removals, a part again with other values, a token, a column."""
    ids = snapshot.parts.column("part_id").to_pylist()
    gone = drawn.sample(ids, min(len(ids), drawn.choice([0, 0, 1, 3])))
    request: dict[str, Any] = {
        "removed": tuple(gone),
        "operation": drawn.choice(["upsert", "delete"]),
    }
    added = [part(drawn.randrange(9)) for _ in range(drawn.randrange(3))]
    if gone and drawn.random() < 0.5:  # as a delete of an append table does
        again = snapshot.parts.chosen(gone[:1]).table
        place = again.schema.get_field_index("schema_id")
        other = pa.array([snapshot.version], again.schema.field(place).type)
        added.append(PartTable(again.set_column(place, again.schema.field(place), other)))
    request["added"] = added[0].append(*added[1:]) if added else None
    if drawn.random() < 0.3:
        request["token"] = (drawn.choice("ab"), snapshot.version)
    return commit(log, snapshot, **request)


def facts_of(snapshot: Snapshot) -> tuple[Snapshot, pa.Table]:
    """A version without its parts, and these with their columns by name.

    Lists in checkpoints and entries leave out empty columns, which come last when they are read.
    """
    table = snapshot.parts.table
    by_name = table.select(sorted(table.column_names)).combine_chunks()
    return replace(snapshot, parts=PartTable.empty()), by_name


def _incremental(log: CommitLog) -> list[str]:
    return [path for path in log.store.list(CHECKPOINTS) if versions_of_incremental(path)]


@pytest.mark.parametrize("seed", range(64 if profiles.IS_DEEP else 4))
def test_a_version_read_by_one_equals_the_replayed_log(seed: int) -> None:
    drawn = random.Random(seed)
    log, snapshot = create(0)
    for _ in range(44):
        if drawn.random() < 0.3:  # another process goes on
            log = CommitLog(log.store)
            snapshot = log.latest()
        snapshot = changed(log, snapshot, drawn)
        counting = FaultyStore(log.store)
        opened = CommitLog(counting).latest()
        assert len(counting.calls) <= 6
        replayed = CommitLog(copy(log.store, *log.store.list(CHECKPOINTS))).latest()
        assert facts_of(opened) == facts_of(snapshot) == facts_of(replayed)


def test_opening_reads_a_checkpoint_one_of_them_and_one_entry_at_most() -> None:
    log, snapshot = create(0)
    for _ in range(47):
        snapshot = commit(log, snapshot)
        store = FaultyStore(log.store)
        assert facts_of(CommitLog(store).latest()) == facts_of(snapshot)
        assert len(store.calls) <= 6
    assert log._checkpoints() == [2, 32]


def test_one_of_every_two_versions_follows_the_last_checkpoint() -> None:
    log, snapshot = create(32)
    old = _incremental(log)
    assert old == [incremental_path(version, 2) for version in range(4, 32, 2)]
    for _ in range(15):
        snapshot = commit(log, snapshot)
        expected = [incremental_path(version, 32) for version in range(34, 33 + 15, 2)]
        assert _incremental(log)[len(old) :] == [
            path for path in expected if path <= incremental_path(snapshot.version, 32)
        ]


@pytest.mark.parametrize("step", [1, 7])
def test_a_damaged_one_is_skipped(step: int) -> None:
    log, head = create(35)
    path = incremental_path(34, 32)
    whole = log.store.get(path)
    for position in range(0, len(whole), len(whole) // 24 + step):
        bad = whole[:position] + b"\x00" + whole[position + 1 :]
        assert facts_of(CommitLog(copy(log.store, changed={path: bad})).latest()) == facts_of(head)
    assert facts_of(CommitLog(copy(log.store, changed={path: b""})).latest()) == facts_of(head)


def test_one_of_another_commit_or_table_is_skipped() -> None:
    log, head = create(35)
    other, _ = create(34)
    path = incremental_path(34, 32)
    assert facts_of(
        CommitLog(copy(log.store, changed={path: other.store.get(path)})).latest()
    ) == facts_of(head)
    moved = copy(log.store)
    moved.put_new(incremental_path(35, 32), log.store.get(path))
    assert facts_of(CommitLog(moved).latest()) == facts_of(head)


def test_one_that_a_dropped_table_left_is_skipped() -> None:
    log, head = create(35)
    other, _ = create(48)
    left = copy(log.store)
    left.put_new(incremental_path(48, 32), other.store.get(incremental_path(48, 32)))
    assert facts_of(CommitLog(left).latest()) == facts_of(head)


def test_one_whose_checkpoint_is_damaged_or_gone_is_skipped() -> None:
    log, head = create(35)
    base = checkpoint_path(32)
    assert facts_of(CommitLog(copy(log.store, base)).latest()) == facts_of(head)
    assert facts_of(CommitLog(copy(log.store, changed={base: b"junk"})).latest()) == facts_of(head)


def test_one_that_lost_a_part_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    log, snapshot = create(33)
    lost = ChangesSince.followed_by
    monkeypatch.setattr(
        ChangesSince, "followed_by", lambda self, gone, added: lost(self, gone, None)
    )
    snapshot = commit(log, snapshot)
    assert log.store.exists(incremental_path(34, 32))
    assert facts_of(CommitLog(log.store).latest()) == facts_of(snapshot)


def test_the_newest_of_a_listed_checkpoint_counts() -> None:
    paths = [incremental_path(6, 4), incremental_path(8, 4), incremental_path(9, 5)]
    assert newest_incremental(paths, [4]) == (8, 4)
    assert newest_incremental(paths, [4, 5]) == (9, 5)
    assert newest_incremental(paths, [4, 8]) is None
    assert newest_incremental(paths, []) is None


def test_a_lost_entry_after_one_is_found() -> None:
    log, _ = create(37)
    later = [incremental_path(36, 32)]
    for lost, without in ((35, later), (33, [*_incremental(log), checkpoint_path(32)])):
        with pytest.raises(CorruptData, match="hole"):
            CommitLog(copy(log.store, log_path(lost), *without)).latest()


def test_a_lost_entry_of_a_long_log_is_found_without_the_one_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_head, "_LISTED", 10)
    log, head = create(36)
    other, _ = create(48)
    junk = {incremental_path(36, 32): b"junk"}
    left = copy(log.store)
    left.put_new(incremental_path(48, 32), other.store.get(incremental_path(48, 32)))
    for store in (copy(log.store, changed=junk), left):
        assert facts_of(CommitLog(store).latest()) == facts_of(head)
        with pytest.raises(CorruptData, match="is absent"):
            CommitLog(copy(store, log_path(34))).latest()


@pytest.mark.parametrize("properties", [{"checkpoint_interval": "8"}, {}])
def test_a_stated_interval_and_older_tables_have_none(properties: dict[str, str]) -> None:
    log = CommitLog(memory_store())
    info = table_info(**properties)
    snapshot = log.create(with_inline_protocol(info) if properties else info, SCHEMA, 3)
    for _ in range(40):
        snapshot = commit(log, snapshot)
    assert not _incremental(log)


def test_older_releases_see_no_checkpoint_in_the_name() -> None:
    log, _ = create(34)
    write_checkpoint(log.store, log.at(33))
    assert read_checkpoint(log.store, 32) == log.at(32)
    assert incremental_path(34, 32) in log.store.list(CHECKPOINTS)
    assert log._checkpoints() == [2, 32, 33]
