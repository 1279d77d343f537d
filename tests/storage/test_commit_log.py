"""The commit log where nothing fails: versions, times, tokens, identity, rebasing."""

from __future__ import annotations

import dataclasses
import itertools
import time
import types
from datetime import UTC
from pathlib import Path
from typing import Any, cast

import pytest

from rowsieve.errors import (
    CommitConflict,
    CorruptData,
    InvalidInput,
    SnapshotExpired,
    TableExists,
    TableNotFound,
    UnsupportedProtocol,
    VersionNotFound,
)
from rowsieve.objects import Details, open_store
from rowsieve.storage.log.commit_log import CommitLog, CommitRequest
from rowsieve.storage.log.log_entry import LogEntry, log_path
from rowsieve.storage.log.log_head import LogHead, _seen
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import WRITER_VERSION, Snapshot
from tests.faults.listings import ChangedListings
from tests.storage.log_fixtures import (
    SCHEMA,
    commit,
    copy,
    create,
    keep,
    memory_store,
    never,
    part,
    table_info,
    upsert,
)

# Creating and reading back.


def test_the_version_right_before_the_head_stays_in_memory() -> None:
    log, first = create(memory_store())
    second = commit(log, first)
    uuid = first.table.uuid
    assert log.in_memory(0, uuid) is first
    third = commit(log, second)
    assert (log.in_memory(1, uuid), log.in_memory(2, uuid)) == (second, third)
    assert log.in_memory(0, uuid) is None


def test_a_new_table_reads_back_as_it_was_made() -> None:
    store = memory_store()
    info = table_info(checkpoint_interval="7")
    first = part()
    made = CommitLog(store).create(info, SCHEMA, 3, lambda: first, {"who": "me"})
    read = CommitLog(store).latest()
    assert read == made
    assert (read.version, read.table, read.schema, read.next_field_id) == (0, info, SCHEMA, 3)
    assert read.parts.part_ids == first.part_ids
    (line,) = CommitLog(store).history()
    assert (line.version, line.operation, line.rows_written, line.parts_added) == (
        0,
        "create",
        10,
        1,
    )
    assert line.metadata == {"who": "me"}
    assert line.timestamp.tzinfo is UTC


def test_exists_tells_a_table_from_an_empty_place() -> None:
    store = memory_store()
    assert not CommitLog(store).exists()
    log, _ = create(store)
    assert log.exists()
    log, _ = create(memory_store(), 4, checkpoint_interval="2")
    expired = copy(log._store, *(log_path(version) for version in range(5)))
    assert CommitLog(expired).exists()


def test_a_second_creation_is_refused(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    create(store)
    with pytest.raises(TableExists, match=r"a table already exists at file://"):
        create(store)


@pytest.mark.parametrize("name", ["part-0.parquet", "_delta_log/0.json", "data/mine.parquet"])
def test_a_table_is_not_made_among_foreign_files(name: str) -> None:
    store = memory_store()
    store.put_new(name, b"")
    with pytest.raises(InvalidInput, match=r"is not a table and contains .*; give a new or empty"):
        create(store)
    assert store.list("") == [name]


def test_leftovers_of_a_failed_creation_are_ignored() -> None:
    store = memory_store()
    store.put_new(f"data/{'0' * 32}.0.parquet", b"")
    store.put_new(f"_rowsieve/log/{'a' * 32}.arrow", b"")
    assert create(store)[1].version == 0


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "nothing is there; create_table makes one"),
        (["a.parquet", "b.parquet"], r"holds a.parquet, b.parquet but no _rowsieve/log/"),
        (["_delta_log/0.json"], "looks like a Delta table.*; from_delta reads it"),
        (["a.parquet"], "a folder of Parquet files.*; open_parquet reads it"),
        (["metadata/v1.json", "data/x"], "looks like an Iceberg table"),
        ([f"data/{'0' * 32}.0.parquet"], "holds data"),
    ],
)
def test_a_missing_and_a_foreign_directory_raise_different_errors(
    names: list[str], message: str
) -> None:
    store = memory_store()
    for name in names:
        store.put_new(name, b"")
    for read in (CommitLog(store).latest, CommitLog(store).history, lambda: CommitLog(store).at(0)):
        with pytest.raises(TableNotFound, match=message):
            read()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "ring"}, "mode is 'ring'"),
        ({"key": ()}, "has a key"),
        ({"mode": "append"}, "has no key"),
        ({"properties": {"checkpoint_interval": "0"}}, "checkpoint_interval is '0'"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    store = memory_store()
    info = dataclasses.replace(table_info(), **change)
    with pytest.raises(InvalidInput, match=message):
        CommitLog(store).create(info, SCHEMA, 3)
    assert store.list("") == []


# Committing.


def test_commits_add_and_remove_parts() -> None:
    log, s0 = create(memory_store())
    first, second, third = part(), part(), part()
    s1 = commit(log, s0, added=first)
    s2 = commit(log, s1, added=second)
    s3 = commit(log, s2, operation="compact", added=third, removed=s2.parts.part_ids)
    assert s2.parts.part_ids == first.part_ids + second.part_ids
    assert s3.parts.part_ids == third.part_ids
    assert [log.at(version) for version in range(4)] == [s0, s1, s2, s3]
    assert CommitLog(log._store).latest() == s3 == log.latest(s0)
    line = log.history()[0]
    assert (line.operation, line.parts_added, line.parts_removed) == ("compact", 1, 2)


def test_invariant_1_commit_ts_is_the_log_version() -> None:
    log, s0 = create(memory_store(), 2)
    snapshot = commit(log, s0)  # rebased from 0 to 3
    assert snapshot.version == 3
    for column in ("commit_ts_min", "commit_ts_max"):
        assert snapshot.parts.table.column(column).to_pylist() == [1, 2, 3]
    stored = PartTable.from_ipc(log._store.get(f"_rowsieve/log/{snapshot.commit_id}.arrow"))
    assert stored.table.column("commit_ts_max").to_pylist() == [None]


def test_invariant_1_restored_parts_keep_their_commit_ts() -> None:
    log, s2 = create(memory_store(), 2)
    back = s2.parts.take([0])
    s3 = commit(log, s2, operation="overwrite", added=None, removed=s2.parts.part_ids)
    s4 = commit(log, s3, operation="restore", added=part(), restored=back)
    assert s4.parts.table.column("commit_ts_max").to_pylist() == [4, 1]
    assert CommitLog(log._store).latest() == s4


def test_invariant_1_a_commit_ts_of_the_future_is_refused() -> None:
    log, snapshot = create(memory_store(), 2)
    for request in ({"added": part(commit_ts=3)}, {"restored": part(commit_ts=3)}):
        with pytest.raises(InvalidInput, match="commit_ts 3, which is after version 2"):
            commit(log, snapshot, **request)
    with pytest.raises(InvalidInput, match="restores a part that has no commit_ts"):
        commit(log, snapshot, restored=part())
    assert log.latest().version == 2


def test_invariant_2_a_snapshot_does_not_change_after_it_was_read() -> None:
    log, s1 = create(memory_store(), 1)
    ids = s1.parts.part_ids
    commit(log, commit(log, s1), added=None, removed=ids)
    assert s1.parts.part_ids == ids
    assert log.at(1) == s1


def test_a_commit_without_parts_is_a_commit() -> None:
    log, s0 = create(memory_store())
    s1 = commit(log, s0, added=PartTable.empty(), rows_written=0)
    assert (s1.version, len(s1.parts)) == (1, 0)
    assert log.latest() == s1


def test_only_new_entries_reach_on_conflict_with_their_parts() -> None:
    log, s0 = create(memory_store())
    others = [commit(log, s0), commit(log, s0)]
    calls: list[tuple[int, list[int]]] = []
    request = upsert()

    def on_conflict(head: Snapshot, entries: tuple[LogEntry, ...]) -> CommitRequest:
        calls.append((head.version, [entry.version for entry in entries]))
        assert head == others[-1]
        for entry in entries:
            assert entry.added is not None
            assert entry.added.table.column("commit_ts_min").to_pylist() == [entry.version]
        if len(calls) == 1:  # someone comes first again
            others.append(commit(log, head))
        return request

    line, snapshot = log.commit(request, s0, on_conflict)
    assert calls == [(2, [1, 2]), (3, [3])]
    assert line.version == snapshot.version == 4


def test_a_request_made_anew_is_stored_under_a_new_id() -> None:
    log, s0 = create(memory_store())
    commit(log, s0)
    anew = part()
    line, snapshot = log.commit(upsert(), s0, lambda head, entries: upsert(added=anew))
    assert snapshot.parts.part_ids[-1:] == anew.part_ids
    assert log._store.exists(f"_rowsieve/log/{line.commit_id}.arrow")
    assert CommitLog(log._store).latest() == snapshot


def test_a_conflict_writes_no_entry() -> None:
    log, s0 = create(memory_store())
    commit(log, s0)

    def conflict(head: Snapshot, entries: tuple[LogEntry, ...]) -> CommitRequest:
        raise CommitConflict("theirs wins")

    with pytest.raises(CommitConflict, match="theirs wins"):
        log.commit(upsert(), s0, conflict)
    assert log.latest().version == 1


def test_invariant_rule_13_a_part_replaced_meanwhile_cannot_be_replaced_again() -> None:
    """Its id may be live again with more rows hidden: a removal is for what was read."""
    log = CommitLog(memory_store())
    without_a_key = dataclasses.replace(table_info(), key=(), mode="append")
    s1 = commit(log, log.create(without_a_key, SCHEMA, 3))
    (part_id,) = s1.parts.part_ids
    same_part = PartTable(s1.parts.table)
    commit(log, s1, operation="delete", added=None, restored=same_part, removed=(part_id,))
    request = upsert(operation="compact", removed=(part_id,))
    with pytest.raises(CommitConflict, match=f"part {part_id} was replaced"):
        log.commit(request, s1, keep(request))
    assert log.latest().version == 2


def test_a_part_with_a_key_that_only_got_a_vector_meanwhile_can_be_replaced() -> None:
    """Keys decide which rows are hidden, so an entry that was removed and added is the same."""
    log, s1 = create(memory_store(), 1)
    (part_id,) = s1.parts.part_ids
    same_part = PartTable(s1.parts.table)
    commit(log, s1, added=None, restored=same_part, removed=(part_id,))
    request = upsert(operation="compact", removed=(part_id,))
    assert log.commit(request, s1, keep(request))[0].version == 3


def test_removing_a_part_that_is_gone_is_a_conflict() -> None:
    log, s1 = create(memory_store(), 1)
    s2 = commit(log, s1, operation="compact", removed=s1.parts.part_ids)
    with pytest.raises(CommitConflict, match="not in version 2"):
        commit(log, s2, removed=s1.parts.part_ids)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"operation": "Up sert"}, "not a lower-case word"),
        ({"removed": ("a", "a")}, "removes a part twice"),
        ({"token": ("", 1)}, "idempotency token"),
        ({"token": ("app", -1)}, "idempotency token"),
        ({"metadata": {"x": object()}}, "cannot be written to the log as JSON"),
        ({"metadata": {"x": "y" * 1_100_000}}, "the limit is 1048576"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(request_: dict[str, Any], message: str) -> None:
    log, s0 = create(memory_store())
    before = log._store.list("")
    with pytest.raises(InvalidInput, match=message):
        commit(log, s0, **request_)
    assert log._store.list("") == before


def test_metadata_agrees_with_history() -> None:
    log, s0 = create(memory_store())
    request = upsert(metadata={"a": (1, 2), "b": {"c": None}, "z": "ä\u2028\r\n"})
    line, _ = log.commit(request, s0, never)
    assert line.metadata == {"a": [1, 2], "b": {"c": None}, "z": "ä\u2028\r\n"}
    assert log.history()[0] == line


def test_a_newer_writer_protocol_is_read_but_not_written() -> None:
    store = memory_store()
    log = CommitLog(store)
    snapshot = log.create(
        dataclasses.replace(table_info(), writer_version=WRITER_VERSION + 1), SCHEMA, 3
    )
    assert log.latest() == snapshot
    with pytest.raises(UnsupportedProtocol, match=f"writer protocol {WRITER_VERSION + 1}"):
        commit(log, snapshot)


# Idempotency tokens.


def test_a_repeated_token_writes_nothing() -> None:
    log, s0 = create(memory_store())
    first, s1 = log.commit(upsert(token=("app", 5)), s0, never)
    before = log._store.list("")
    for base, sequence in ((s1, 5), (s1, 3), (s0, 5)):
        again, snapshot = log.commit(upsert(token=("app", sequence)), base, never)
        assert (again, snapshot) == (first, s1)
    left = [path for path in log._store.list("") if path not in before]
    assert all(path.endswith(".arrow") for path in left)  # staged on the old base, never named
    assert commit(log, s1, token=("app", 6)).version == 2
    assert commit(log, s1, token=("other", 5)).version == 3


def test_invariant_rule_7_tokens_outlive_checkpoints_and_the_log() -> None:
    log, snapshot = create(memory_store(), checkpoint_interval="2")
    snapshot = commit(log, snapshot, token=("app", 9))
    for _ in range(3):
        snapshot = commit(log, snapshot)
    expired = copy(log._store, *(log_path(version) for version in range(4)))
    read = CommitLog(expired).latest()
    assert read == snapshot
    line, same = CommitLog(expired).commit(upsert(token=("app", 9)), read, never)
    assert (line.version, line.operation, same) == (1, "upsert", read)
    assert (line.rows_written, line.rows_deleted, line.parts_added, line.parts_removed) == (0,) * 4


# Versions and times.


def test_versions_of_the_future_and_of_no_kind_are_refused() -> None:
    log, _ = create(memory_store(), 2)
    for version in (3, 10**15, -1):
        with pytest.raises(VersionNotFound, match=f"no version {version}"):
            log.at(version)
    with pytest.raises(VersionNotFound, match="no version 3: the newest is 2"):
        log.at(3)
    for wrong in ("1", 1.0, True, None):
        with pytest.raises(InvalidInput, match="give a whole number"):
            log.at(wrong)  # type: ignore[arg-type]


def test_expired_versions_raise_their_own_error() -> None:
    log, head = create(memory_store(), 9, checkpoint_interval="4")
    expired = CommitLog(copy(log._store, *(log_path(version) for version in range(7))))
    assert expired.latest() == head
    assert expired.at(8) == log.at(8)
    assert expired.at(4) == log.at(4)  # the older checkpoint still holds it
    for version in (0, 3, 5, 7):
        with pytest.raises(SnapshotExpired, match=f"version {version} of .* were removed"):
            expired.at(version)
    assert [line.version for line in expired.history()] == [9, 8, 7]


def test_a_manifest_that_is_gone_is_expired_not_empty() -> None:
    log, _ = create(memory_store(), 3)
    gone = CommitLog(copy(log._store, f"_rowsieve/log/{log.at(1).commit_id}.arrow"))
    with pytest.raises(SnapshotExpired, match="version 2"):
        gone.at(2)
    with pytest.raises(CorruptData, match="has a hole"):
        gone.latest()


def test_as_of_finds_the_newest_commit_at_or_before(monkeypatch: pytest.MonkeyPatch) -> None:
    log, snapshot = create(memory_store(), checkpoint_interval="3")
    snapshots = [snapshot] + [snapshot := commit(log, snapshot) for _ in range(11)]
    for earlier, later in itertools.pairwise(snapshots):
        assert log.as_of(earlier.timestamp_us) == earlier
        assert log.as_of(later.timestamp_us - 1) == earlier
    assert log.as_of(snapshots[-1].timestamp_us + 10**12) == snapshots[-1]
    with pytest.raises(VersionNotFound, match="it was created at"):
        log.as_of(snapshots[0].timestamp_us - 1)


def test_as_of_before_the_log_expired() -> None:
    log, _ = create(memory_store(), 9, checkpoint_interval="4")
    times = [log.at(version).timestamp_us for version in range(10)]
    expired = CommitLog(copy(log._store, *(log_path(version) for version in range(7))))
    assert expired.as_of(times[8]) == log.at(8)
    for version in (0, 3, 5):
        with pytest.raises(SnapshotExpired):
            expired.as_of(times[version])


def test_invariant_rule_8_commit_times_grow_though_the_clock_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, s0 = create(memory_store())
    monkeypatch.setattr(time, "time_ns", lambda: s0.timestamp_us * 1000 - 10**12)
    s1 = commit(log, s0)
    s2 = commit(log, s0)  # rebased
    assert [s1.timestamp_us, s2.timestamp_us] == [s0.timestamp_us + 1, s0.timestamp_us + 2]
    assert s2.timestamp.microsecond == s2.timestamp_us % 1_000_000


def test_history_is_newest_first_and_may_be_limited() -> None:
    log, _ = create(memory_store(), 70)
    assert [line.version for line in log.history()] == list(range(70, -1, -1))
    assert [line.version for line in log.history(3)] == [70, 69, 68]
    assert [line.version for line in log.history(40)] == list(range(70, 30, -1))
    assert log.history(0) == []
    with pytest.raises(InvalidInput, match="limit"):
        log.history(-1)


# Finding the head.


def test_refreshing_from_far_behind_uses_a_checkpoint() -> None:
    log, s0 = create(memory_store(), 0)
    head = s0
    for _ in range(100):
        head = commit(log, head)
    expired = CommitLog(copy(log._store, *(log_path(version) for version in range(90))))
    assert expired.latest(s0) == head
    assert log.latest(s0) == head


def test_invariant_rule_5_listings_are_sorted_and_their_gaps_fetched() -> None:
    log, head = create(memory_store(), 6)
    for hidden in ((), (3,), (6,), (5, 6), (0, 2, 4), tuple(range(7))):
        paths = {*map(log_path, hidden)}

        def shuffled(_: str, listed: Details, hidden: set[str] = paths) -> Details:
            return {path: each for path, each in reversed(listed.items()) if path not in hidden}

        store: Any = ChangedListings(log._store, shuffled)
        assert CommitLog(store).latest() == head


def test_a_table_exists_though_listings_do_not_have_it_yet() -> None:
    log, _ = create(memory_store())
    store: Any = ChangedListings(log._store, lambda *_: {})
    assert CommitLog(store).exists()


def test_invariant_rule_5_a_hole_is_an_error() -> None:
    log, _ = create(memory_store(), 6)
    for version in range(6):
        holed = CommitLog(copy(log._store, log_path(version)))
        with pytest.raises(CorruptData, match=rf"has a hole: .*{version:020d}.json is absent"):
            holed.latest()


def test_invariant_rule_5_no_read_goes_below_a_version_seen_before(tmp_path: Path) -> None:
    log, head = create(open_store(str(tmp_path)), 5)
    (tmp_path / log_path(5)).unlink()
    with pytest.raises(CorruptData, match=r"0005.json was read before and is absent"):
        CommitLog(open_store(str(tmp_path))).latest()
    with pytest.raises(CorruptData, match="was read before"):
        log.latest(head)
    known = log.at(3)
    (tmp_path / log_path(4)).unlink()
    with pytest.raises(CorruptData, match=r"0004.json was read before and is absent"):
        log.latest(known)
    with pytest.raises(CorruptData, match="older copy of the table here, open it in a new process"):
        CommitLog(open_store(str(tmp_path))).latest()
    _seen.clear()  # as another process would
    assert CommitLog(open_store(str(tmp_path))).latest() == known


def test_invariant_rule_5_holds_where_the_versions_seen_have_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = memory_store()
    log, head = create(store, 3)
    monkeypatch.setattr(_seen, "_limit_bytes", 20_000)
    for number in range(200):
        other = types.SimpleNamespace(uri=f"memory:///other-{number}")
        LogHead(cast("Any", other)).remember(head)
    assert _seen.usage().size_bytes <= 20_000
    assert 10 <= len(_seen) < 20
    store.delete([log_path(3)])
    with pytest.raises(CorruptData, match="was read before"):
        log.latest()  # by what this object has read
    assert CommitLog(store).latest().version == 2


def test_one_place_keeps_the_versions_of_a_few_tables() -> None:
    log, head = create(memory_store(), 1)
    for number in range(50):
        other = dataclasses.replace(head.table, uuid=f"{number:032x}")
        log.remember(dataclasses.replace(head, table=other))
    log.remember(head)
    assert len(log._seen_versions()) <= 9
    assert log._seen_versions()[head.table.uuid] == 1


def test_invariant_rule_22_another_table_at_the_same_place_is_noticed(tmp_path: Path) -> None:
    log, s2 = create(open_store(str(tmp_path)), 2)
    for commits in (0, 2, 5):
        for path in sorted(tmp_path.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        create(open_store(str(tmp_path)), commits)
        with pytest.raises(TableNotFound, match=f"table {s2.table.uuid} is gone"):
            log.latest(s2)


def test_invariant_6_entries_of_another_log_are_refused() -> None:
    log, _ = create(memory_store(), 3)
    other, _ = create(memory_store(), 3)
    mixed = copy(log._store, log_path(3))
    mixed.put_new(log_path(3), other._store.get(log_path(3)))
    with pytest.raises(CorruptData, match="belongs to table"):
        CommitLog(mixed).latest()


def test_invariant_6_entries_chain_to_their_predecessor() -> None:
    store = memory_store()
    log, s1 = create(store, 1)
    fork = copy(store)
    commit(CommitLog(fork), s1)
    commit(log, s1)
    commit(log, s1)
    mixed = copy(store, log_path(2))
    mixed.put_new(log_path(2), fork.get(log_path(2)))
    for path in fork.list(""):
        if path.endswith(".arrow") and not mixed.exists(path):
            mixed.put_new(path, fork.get(path))
    with pytest.raises(CorruptData, match=r"0003.json follows commit .*, but version 2 is commit"):
        CommitLog(mixed).latest()


def test_invariant_6_a_snapshot_of_a_forked_log_is_not_followed() -> None:
    store = memory_store()
    log, s1 = create(store, 1)
    theirs = commit(CommitLog(copy(store)), s1)
    ours = commit(log, s1)
    assert log.latest(theirs) == ours


def test_many_appends_keep_few_chunks() -> None:
    log, head = create(memory_store(), 150)
    assert head.parts.table.column("part_id").num_chunks <= 65
    assert CommitLog(log._store).latest() == head
