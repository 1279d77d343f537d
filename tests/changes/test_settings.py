"""Properties change by commit: versioned, merged with what others set, in force from then on."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import CorruptData, InvalidInput, UnsupportedOperation, UnsupportedProtocol
from rowsieve.storage.log import commit_log
from rowsieve.storage.log.log_entry import log_path
from rowsieve.storage.log.replay import replay
from tests.small_tables import appended, files, keyed, kv, meddled, pairs
from tests.storage.log_fixtures import copy


def properties(table: Table) -> dict[str, str]:
    found: dict[str, str] = rowsieve.open_table(table.uri).detail()["properties"]
    return found


def test_properties_are_set_and_unset_by_commits() -> None:
    table = keyed({"k": [1], "v": [1]}, properties={"statistics": "off"})
    commit = table.set_properties({"checkpoint_interval": "8", "audit_percent": "5"})
    assert (commit.version, commit.operation, commit.committed) == (2, "set_properties", True)
    assert (commit.parts_added, commit.parts_removed, commit.rows_written) == (0, 0, 0)
    assert commit.metadata == {"properties": {"checkpoint_interval": "8", "audit_percent": "5"}}
    assert table.version == 2
    everything = {"statistics": "off", "checkpoint_interval": "8", "audit_percent": "5"}
    assert table.detail()["properties"] == properties(table) == everything
    commit = table.unset_properties(["statistics", "audit_percent"], metadata={"why": "done"})
    assert commit.metadata == {
        "properties": {"statistics": None, "audit_percent": None}, "why": "done",
    }  # fmt: skip
    assert properties(table) == {"checkpoint_interval": "8"}
    assert [line.operation for line in table.history(2)] == ["unset_properties", "set_properties"]
    assert pairs(table) == [(1, 1)]


@pytest.mark.parametrize("interval", ["1", "2", "100"])
def test_time_travel_shows_the_properties_of_that_version(interval: str) -> None:
    table = keyed(properties={"checkpoint_interval": interval})
    for percent in ("1", "2", "3"):
        table.set_properties({"audit_percent": percent})
        table.upsert(kv((1, int(percent))))
    for version, expected in enumerate([None, "1", "1", "2", "2", "3", "3"]):
        old = rowsieve.open_table(table.uri, version=version)
        assert old.detail()["properties"].get("audit_percent") == expected
    as_of = rowsieve.open_table(table.uri, as_of=table.history()[3].timestamp)
    assert as_of.detail()["properties"]["audit_percent"] == "2"


def test_nothing_is_committed_where_nothing_changes() -> None:
    table = keyed(properties={"audit_percent": "5"})
    written = files(table)
    assert not table.set_properties({"audit_percent": "5"}).committed
    assert not table.unset_properties(["statistics"]).committed
    assert (table.refresh(), files(table)) == (0, written)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({}, "no property was given"),
        ({"audit_percents": "5"}, "did you mean 'audit_percent'"),
        ({"audit_percent": "101"}, "percentage from 0 to 100"),
        ({"checkpoint_interval": "0"}, "a count from 1"),
        ({"checkpoint_interval": "007"}, "a count from 1"),
        ({"checkpoint_interval": "1000000000"}, "a count from 1"),
        ({"statistics_inline_bytes": "01"}, "a count from 1"),
        ({"isolation": "read committed"}, "serializable or snapshot"),
        ({"critical_columns": "nowhere"}, "nowhere"),
        ({"text_statistics": "v"}, "v"),
        ({"key": "v"}, "parts are sorted and merged by it"),
        ({"mode": "append"}, "it depends on whether the table has a key"),
        ({"uuid": "0"}, "identifies the table in its files"),
    ],
)
def test_properties_that_cannot_be_set_are_rejected_with_a_reason(
    wanted: dict[str, str], message: str
) -> None:
    table = keyed({"k": [1], "v": [1]})
    with pytest.raises(InvalidInput, match=message):
        table.set_properties(wanted)
    names = [name for name in wanted if name in ("key", "mode", "uuid", "audit_percents")]
    if names or not wanted:
        with pytest.raises(InvalidInput, match=message):
            table.unset_properties(names)
    assert table.refresh() == 1


def test_a_table_opened_at_a_version_keeps_its_properties() -> None:
    table = keyed({"k": [1], "v": [1]})
    old = rowsieve.open_table(table.uri, version=0)
    with pytest.raises(UnsupportedOperation, match="read-only"):
        old.set_properties({"audit_percent": "5"})
    with pytest.raises(UnsupportedOperation, match="read-only"):
        old.unset_properties(["audit_percent"])


def test_two_who_set_properties_at_a_time_both_count() -> None:
    table = keyed(properties={"statistics": "off"})
    other = rowsieve.open_table(table.uri)

    def meddle(attempt: int) -> None:
        if attempt == 0:
            other.set_properties({"audit_percent": "7", "checkpoint_interval": "4"})
            other.unset_properties(["statistics"])

    meddled(table, meddle).set_properties({"audit_percent": "9"})
    assert properties(table) == {"audit_percent": "9", "checkpoint_interval": "4"}


def test_restoring_rows_keeps_properties() -> None:
    table = keyed({"k": [1], "v": [1]})
    table.set_properties({"audit_percent": "5"})
    table.restore(0)
    assert (pairs(table), properties(table)) == ([], {"audit_percent": "5"})


def test_a_restore_takes_a_version_or_a_time() -> None:
    table = keyed({"k": [1], "v": [1]})
    created = table.history()[0].timestamp
    table.upsert(kv((2, 2)))
    table.upsert(kv((3, 3)))
    assert table.restore(as_of=created).metadata == {"restored": "1"}
    assert pairs(table) == [(1, 1)]
    for version, as_of in ((None, None), (1, created)):
        with pytest.raises(InvalidInput, match="either a version or as_of="):
            table.restore(version, as_of=as_of)


def test_a_property_applies_to_the_next_write() -> None:
    table = keyed({"k": [1], "v": [1]})
    reader = rowsieve.open_table(table.uri)
    table.set_properties({"statistics": "off"})
    reader.upsert(kv((2, 2)))  # looks for the newest version first
    table.unset_properties(["statistics"])
    table.upsert(kv((3, 3)))
    parts = rowsieve.open_table(table.uri).handle.pinned.parts
    assert parts.column("stats.2.upper").to_pylist() == [1, None, 3]
    assert pairs(table, "v >= 2") == [(2, 2), (3, 3)]


def test_a_property_applies_to_the_next_read() -> None:
    table = keyed({"k": [1], "v": [1]}, {"k": [2], "v": [5]})
    reader = rowsieve.open_table(table.uri)
    scan = reader.scan("v = 1")
    assert scan.to_arrow().num_rows == 1
    assert scan.metrics.audited == 0
    table.set_properties({"audit_percent": "100"})
    scan = reader.scan("v = 1")
    assert scan.to_arrow().num_rows == 1
    assert scan.metrics.audited > 0


def test_a_change_that_reads_starts_again_once_isolation_changed() -> None:
    """The row that it missed came under snapshot; it commits under serializable."""
    table = keyed({"k": [1], "v": [1]}, properties={"isolation": "snapshot"})
    other = rowsieve.open_table(table.uri)

    def meddle(attempt: int) -> None:
        if attempt == 0:
            other.upsert(kv((9, 1)))
        if attempt == 1:
            other.set_properties({"isolation": "serializable"})

    assert meddled(table, meddle).delete("v = 1").rows_deleted == 2
    assert pairs(table) == []


@pytest.mark.parametrize("make", [keyed, appended])
def test_writes_and_rewrites_run_during_a_change_of_properties(
    make: Callable[..., Table],
) -> None:
    table = make({"k": [1], "v": [1]}, {"k": [2], "v": [2]})
    other = rowsieve.open_table(table.uri)

    def meddle(attempt: int) -> None:
        if attempt == 0:
            other.set_properties({"audit_percent": str(other.refresh())})

    handle = meddled(table, meddle)
    (handle.upsert if table.key else handle.append)(kv((3, 3)))
    meddled(table, meddle).compact()
    assert pairs(table) == [(1, 1), (2, 2), (3, 3)]


def test_setting_isolation_keeps_out_writers_that_do_not_know_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = keyed({"k": [1], "v": [1]})
    store = table.handle.store
    first = store.get(log_path(0))
    info = json.loads(first.splitlines()[1])
    assert info["protocol"]["writer"] == 2
    monkeypatch.setattr(commit_log, "WRITER_VERSION", 1)  # the code before
    with pytest.raises(UnsupportedProtocol, match="writer protocol 2"):
        table.upsert(kv((2, 2)))
    assert pairs(table) == [(1, 1)]


def test_an_older_table_that_is_given_an_isolation_level_needs_a_newer_writer() -> None:
    table = keyed({"k": [1], "v": [1]})
    snapshot = table.handle.pinned
    old = dataclasses.replace(snapshot, table=dataclasses.replace(snapshot.table, writer_version=1))
    table.handle.newest = table.handle.pinned = old
    table.set_properties({"audit_percent": "5"})
    assert table.handle.pinned.table.writer_version == 1
    table.set_properties({"isolation": "serializable"})
    assert table.handle.pinned.table.writer_version == 2


@pytest.mark.parametrize("change", [{"key": ("v",)}, {"mode": "append"}, {"uuid": "0" * 32}])
def test_an_entry_that_changes_the_kind_of_table_is_corrupt(change: dict[str, object]) -> None:
    table = keyed({"k": [1], "v": [1]})
    table.set_properties({"audit_percent": "5"})
    log = commit_log.CommitLog(copy(table.handle.store))
    entry = log.entry(2)
    assert entry is not None
    assert entry.info is not None
    wrong = dataclasses.replace(entry, info=dataclasses.replace(entry.info, **change))  # type: ignore[arg-type]
    with pytest.raises(CorruptData, match=r"immutable .uuid, key, mode"):
        replay(log.at(1), [wrong])


def test_a_checkpoint_interval_takes_effect_with_its_commit(tmp_path: Path) -> None:
    table = rowsieve.create_table(str(tmp_path / "t"), pa.table({"k": [1]}), key=["k"])
    table.set_properties({"checkpoint_interval": "1"})
    table.upsert(pa.table({"k": [2]}))
    written = sorted(p.name for p in (tmp_path / "t/_rowsieve/checkpoints").glob("*.json"))
    assert written == [f"{version:020d}.json" for version in (1, 2)]
    assert rowsieve.open_table(table.uri).detail()["properties"] == {"checkpoint_interval": "1"}


def test_an_interval_that_nobody_can_read_does_not_lock_a_table() -> None:
    """Another writer may have put it into the log."""
    table = keyed({"k": [1], "v": [1]})
    snapshot = table.handle.pinned
    info = dataclasses.replace(snapshot.table, properties={"checkpoint_interval": "007"})
    log = commit_log.CommitLog(table.handle.store)
    with pytest.raises(InvalidInput, match="checkpoint_interval"):  # not by us
        log.commit(commit_log.CommitRequest("set_properties", info=info), snapshot, lambda *_: None)  # type: ignore[arg-type]
    strange = dataclasses.replace(snapshot, table=info)
    assert log.latest(strange).version == 1
    assert pairs(table) == [(1, 1)]
