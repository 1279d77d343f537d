"""A flush that meets a fault at any request: in the end each record is committed exactly once."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import RowsieveError
from rowsieve.objects import ObjectStore
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.writer.flushing import commit_records, through_sequence
from rowsieve.writer.memtables import MemtableEntry
from rowsieve.writer.records import Form
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Crash, Fault
from tests.small_tables import fresh_uri

WAL = "a" * 32
FAULTS = (
    Fault.CRASH_BEFORE,
    Fault.CRASH_AFTER,
    Fault.UNAVAILABLE,
    Fault.LOST_ANSWER,
    Fault.EXISTS_AFTER,
    Fault.NO_SPACE,
)


def table_of_kind(kind: str) -> rs.Table:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
    options = {"keyed": {"key": ["k"]}, "events": {"key": ["k"], "sequence": ["v"]}}
    return rs.create_table(fresh_uri(), schema, **options.get(kind, {}))  # type: ignore[arg-type]


def entries(table: rs.Table, count: int = 4) -> list[MemtableEntry]:
    """Records of the log; in a table with a key, of one key each and of a common one."""
    form = Form.of(table.handle.newest)
    keyed = bool(form.key)
    return [
        MemtableEntry(
            sequence,
            Changes(
                pa.table(
                    {"k": [0, sequence] if keyed else [sequence], "v": [sequence] * (1 + keyed)},
                    schema=table.schema,
                ),
                None,
            ),
            form,
            1 + keyed,
            8,
        )
        for sequence in range(1, count + 1)
    ]


def opened(store: ObjectStore) -> Handle:
    log = CommitLog(store)
    return Handle(store, log, log.latest())


def flush(handle: Handle, records: list[MemtableEntry], through: int) -> None:
    commit_records(
        handle, WAL, lambda after: [e for e in records if after < e.sequence <= through], through
    )


def found(table: rs.Table) -> list[tuple[int, int]]:
    table.refresh()
    rows = table.scan().to_arrow().to_pylist()
    return sorted((row["k"], row["v"]) for row in rows)


def expected(table: rs.Table, through: int) -> list[tuple[int, int]]:
    own = [(sequence, sequence) for sequence in range(1, through + 1)]
    return [(0, through), *own] if table.key else own


@pytest.mark.parametrize("kind", ["appended", "keyed", "events"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_record_is_committed_once(kind: str, fault: Fault) -> None:
    number = 0
    while True:
        table = table_of_kind(kind)
        records = entries(table)
        faulty = FaultyStore(table.handle.store)
        handle = opened(faulty)
        faulty.meet(fault, number)
        with suppress(RowsieveError, Crash):
            flush(handle, records, 2)
        successor = opened(table.handle.store)
        flush(successor, records, 4)
        assert found(table) == expected(table, 4), (number, faulty.failed)
        assert through_sequence(successor.newest, WAL) == 4
        if faulty.failed is None and number > len(faulty.calls):
            break
        number += 1
    assert number > 3


@pytest.mark.parametrize("kind", ["appended", "keyed", "events"])
@pytest.mark.parametrize("theirs", [1, 2, 3])
def test_another_writer_of_the_log_commits_in_between(
    kind: str, theirs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A former owner commits some of the records right before the commit of its successor."""
    table = table_of_kind(kind)
    records = entries(table)
    store = table.handle.store
    former, successor = opened(store), opened(store)
    publish, overtaken = CommitLog.publish, list[bool]()

    def overtaking(log: CommitLog, entry: object) -> object:
        if log is successor.log and not overtaken:
            overtaken.append(True)
            flush(former, records, theirs)
        return publish(log, entry)  # type: ignore[arg-type]

    monkeypatch.setattr(CommitLog, "publish", overtaking)
    flush(successor, records, 4)
    assert overtaken
    assert found(table) == expected(table, 4)


def test_a_commit_of_a_fenced_writer_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has nothing left to commit, and must not bring an older value back."""
    table = table_of_kind("keyed")
    records = entries(table)
    store = table.handle.store
    former, successor = opened(store), opened(store)
    publish, overtaken = CommitLog.publish, list[bool]()

    def overtaking(log: CommitLog, entry: object) -> object:
        if log is former.log and not overtaken:
            overtaken.append(True)
            flush(successor, records, 4)
        return publish(log, entry)  # type: ignore[arg-type]

    monkeypatch.setattr(CommitLog, "publish", overtaking)
    flush(former, records, 2)
    assert overtaken
    assert found(table) == expected(table, 4)
