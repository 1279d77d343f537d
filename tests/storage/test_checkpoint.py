"""Checkpoints: an aid that may be missing or broken, never the truth."""

from __future__ import annotations

import logging
import uuid

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import CorruptData, InvalidInput, StoreError, UnsupportedProtocol
from rowsieve.storage.log import checkpoint
from rowsieve.storage.log.checkpoint import (
    CHECKPOINTS,
    checkpoint_path,
    checkpoint_version_of,
    read_checkpoint,
    write_checkpoint,
)
from rowsieve.storage.log.checkpoint_turns import checkpoint_interval
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import log_path
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Fault
from tests.storage.log_fixtures import commit, copy, create, memory_store
from tests.storage.test_log_entry import sealed


def test_a_checkpoint_holds_everything_of_a_snapshot() -> None:
    log, s0 = create(memory_store(), checkpoint_interval="3")
    s1 = commit(log, s0, token=("app", 4))
    s2 = commit(log, s1)
    s3 = commit(log, s2, operation="compact", removed=s2.parts.part_ids, metadata={"a": 1})
    assert read_checkpoint(log._store, 3) == s3
    assert [path for path in log._store.list(CHECKPOINTS) if path.endswith(".json")] == [
        checkpoint_path(3)
    ]


def test_they_come_every_so_many_versions() -> None:
    log, _ = create(memory_store(), 33)
    names = [path for path in log._store.list(CHECKPOINTS) if path.endswith(".json")]
    assert names == [checkpoint_path(32)]


def test_opening_reads_no_entry_at_or_before_the_newest_checkpoint() -> None:
    log, head = create(memory_store(), 10, checkpoint_interval="4")
    store = FaultyStore(log._store)
    assert CommitLog(store).latest() == head
    read = [path for name, path in store.calls if name == "get"]
    assert checkpoint_path(8) in read
    assert checkpoint_path(4) not in read
    assert [path for path in read if path.startswith("_rowsieve/log/0000000")] == [
        log_path(9), log_path(10), log_path(11),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["0", "-1", "x", "", "1.5", "9999999999"])
def test_an_interval_is_a_positive_number(text: str) -> None:
    with pytest.raises(InvalidInput, match="checkpoint_interval"):
        checkpoint_interval({"checkpoint_interval": text})


def test_a_damaged_checkpoint_is_skipped() -> None:
    log, head = create(memory_store(), 9, checkpoint_interval="4")
    whole = log._store.get(checkpoint_path(8))
    for position in range(0, len(whole), 29):
        bad = whole[:position] + b"\x00" + whole[position + 1 :]
        store = copy(log._store, changed={checkpoint_path(8): bad})
        with pytest.raises(CorruptData):
            read_checkpoint(store, 8)
        assert CommitLog(store).latest() == head
        assert CommitLog(store).as_of(head.timestamp_us - 1) == log.at(8)


def test_a_checkpoint_without_its_parts_is_skipped() -> None:
    log, head = create(memory_store(), 9, checkpoint_interval="4")
    parts = [path for path in log._store.list(CHECKPOINTS) if path.endswith(".arrow")]
    assert len(parts) == 2
    for store in (
        copy(log._store, *parts),
        copy(log._store, changed=dict.fromkeys(parts, b"")),
        copy(log._store, changed=dict.fromkeys(parts, b"junk")),
    ):
        assert CommitLog(store).latest() == head
        assert CommitLog(store).at(8) == log.at(8)


def test_without_any_readable_start_the_table_is_corrupt() -> None:
    log, _ = create(memory_store(), 5, checkpoint_interval="4")
    store = copy(log._store, *map(log_path, range(4)), changed={checkpoint_path(4): b""})
    with pytest.raises(CorruptData, match=r"has a hole: .*0000.json is absent"):
        CommitLog(store).latest()


def test_a_checkpoint_of_a_newer_protocol_is_not_skipped() -> None:
    log, _ = create(memory_store(), 4, checkpoint_interval="4")
    body = log._store.get(checkpoint_path(4)).rpartition(b'{"checksum"')[0]
    newer = sealed(body.replace(b'"reader":1', b'"reader":99'))
    store = copy(log._store, changed={checkpoint_path(4): newer})
    with pytest.raises(UnsupportedProtocol, match="reader protocol 99"):
        CommitLog(store).latest()


def test_failing_to_write_one_does_not_fail_the_commit(caplog: pytest.LogCaptureFixture) -> None:
    inner = memory_store()
    _, s1 = create(inner, 1, checkpoint_interval="2")

    full = FaultyStore(inner).meet_where(
        Fault.UNAVAILABLE, "put_new", lambda path: path.startswith(CHECKPOINTS)
    )
    with caplog.at_level(logging.WARNING):
        s2 = commit(CommitLog(full), s1)
    assert s2.version == 2
    assert "no checkpoint of version 2" in caplog.text
    assert inner.list(CHECKPOINTS) == []
    assert CommitLog(inner).latest() == s2


@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.LOST_ANSWER], ids=lambda f: f.name)
def test_its_put_is_repeated_when_the_connection_breaks(fault: Fault) -> None:
    inner = memory_store()
    _, s1 = create(inner, 1, checkpoint_interval="2")
    broken = FaultyStore(inner).meet_where(fault, "put_new", checkpoint_path(2).__eq__, times=1)
    s2 = commit(CommitLog(broken), s1)
    assert broken.is_over
    assert read_checkpoint(inner, 2) == s2


def test_whatever_fails_while_one_is_written_the_commit_stands(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, s1 = create(memory_store(), 1, checkpoint_interval="2")

    def exhausted(*_: object) -> bool:
        raise MemoryError

    monkeypatch.setattr(checkpoint, "write_checkpoint", exhausted)
    assert commit(log, s1).version == 2
    assert "a background task failed" in caplog.text


def test_one_that_reads_back_other_than_written_does_not_count() -> None:
    inner = memory_store()
    _, s1 = create(inner, 1)

    cut = FaultyStore(inner).meet_where(
        Fault.TRUNCATED, "get", lambda path: path.startswith(CHECKPOINTS)
    )
    with pytest.raises(StoreError, match="does not read back as it was written"):
        write_checkpoint(cut, s1)
    assert not inner.exists(checkpoint_path(1))


def test_writing_one_again_is_harmless() -> None:
    log, head = create(memory_store(), 2)
    write_checkpoint(log._store, head)
    write_checkpoint(log._store, head)
    assert read_checkpoint(log._store, 2) == head


def test_a_change_of_columns_passes_its_turn_on_to_the_next_change_of_rows() -> None:
    table = evolving("2")
    table.append({"id": [1]})
    table.add_column("a", "int64")  # version 2
    table.set_comment("a", "3")
    assert written(table) == []
    again = rs.open_table(table.uri)  # as another process would
    again.append({"id": [1]}, schema_mode="merge")
    assert written(table) == [4]
    assert read_checkpoint(again.handle.store, 4) == again.handle.pinned
    again.append({"id": [1]}, schema_mode="merge")
    again.append({"id": [1]}, schema_mode="merge")
    again.add_column("b", "int64")
    again.append({"id": [1]}, schema_mode="merge")
    assert written(table) == [4, 6, 8]
    assert rs.open_table(table.uri).count() == 5


def test_a_checkpoint_is_late_by_less_than_an_interval() -> None:
    table = evolving("3")
    for number in range(9):
        table.add_column(f"a{number}", "int64")
    assert written(table) == [6]  # 3 passed on, 6 did not, 9 passes on
    table.append({"id": [1]}, schema_mode="merge")
    assert written(table) == [6, 10]
    assert rs.open_table(table.uri).count() == 1


def test_a_late_checkpoint_shows_that_its_entry_is_lost() -> None:
    table = evolving("2")
    table.append({"id": [1]})
    table.add_column("a", "int64")
    before = table.handle.pinned
    table.append({"id": [1]}, schema_mode="merge")
    assert written(table) == [3]
    store = copy(table.handle.store, log_path(3))
    with pytest.raises(CorruptData, match=r"0003\.json is absent"):
        CommitLog(store).latest(before)


def evolving(interval: str) -> rs.Table:
    """Create a table of integers in memory."""
    return rs.create_table(
        f"memory:///{uuid.uuid4().hex}",
        pa.schema({"id": pa.int64()}),
        properties={"checkpoint_interval": interval},
    )


def written(table: rs.Table) -> list[int]:
    """Return the versions that have a checkpoint."""
    versions = map(checkpoint_version_of, table.handle.store.list(CHECKPOINTS))
    return sorted(version for version in versions if version is not None)
