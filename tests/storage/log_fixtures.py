"""What the tests of the commit log share: small tables."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from rowsieve.objects import ObjectStore, open_store
from rowsieve.storage.log.commit_log import CommitLog, CommitRequest
from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.storage.manifests.manifest import FileRef, NewPart, PartEntry, PartTable
from rowsieve.storage.snapshot import Snapshot, TableInfo
from rowsieve.types.logical import Field, Int, String
from rowsieve.types.schema import Schema

SCHEMA = Schema(0, (Field(1, "id", Int(64), nullable=False), Field(2, "v", String())))


def memory_store() -> ObjectStore:
    return open_store(f"memory:///{uuid.uuid4().hex}")


def copy(
    store: ObjectStore, *without: str, changed: Mapping[str, bytes] | None = None
) -> ObjectStore:
    """Copy a store's objects but some, with others changed; the copy is at another URI."""
    other = memory_store()
    for path in store.list(""):
        if path not in without:
            other.put_new(path, (changed or {}).get(path, store.get(path)))
    return other


def table_info(**properties: str) -> TableInfo:
    return TableInfo(uuid.uuid4().hex, ("id",), "upsert", properties)


def part(lower: int = 0, upper: int = 9, commit_ts: int | None = None, rows: int = 10) -> PartTable:
    """Make a manifest of one part that has no files; the log does not look at them."""
    part_id = uuid.uuid4().hex
    file = FileRef(f"data/{part_id}.0.parquet", rows, 1000, "xxh3_128:0", 500, "xxh3_128:1")
    entry = PartEntry(
        part_id=part_id,
        base_version=0,
        schema_id=0,
        native_safe=True,
        data=file,
        deletes=None,
        key_lower=(pa.scalar(lower, pa.int64()),),
        key_upper=(pa.scalar(upper, pa.int64()),),
        commit_ts_min=commit_ts,
        commit_ts_max=commit_ts,
    )
    return PartTable.of([NewPart(entry)], SCHEMA, SCHEMA.fields[:1])


def create(store: ObjectStore, commits: int = 0, **properties: str) -> tuple[CommitLog, Snapshot]:
    """Make a table and commit to it `commits` times."""
    log = CommitLog(store)
    snapshot = log.create(table_info(**properties), SCHEMA, 3)
    for _ in range(commits):
        snapshot = commit(log, snapshot)
    return log, snapshot


def commit(log: CommitLog, base: Snapshot, **request: Any) -> Snapshot:
    """Commit one new part, or what `request` says, rebasing freely."""
    wanted = upsert(**request)
    return log.commit(wanted, base, keep(wanted))[1]


def upsert(**request: Any) -> CommitRequest:
    return CommitRequest(**{"operation": "upsert", "added": part(), "rows_written": 10, **request})


def keep(request: CommitRequest) -> Callable[[Snapshot, tuple[LogEntry, ...]], CommitRequest]:
    """Rebase the request as it is."""
    return lambda head, entries: request


def never(head: Snapshot, entries: tuple[LogEntry, ...]) -> CommitRequest:
    raise AssertionError(f"no conflict was expected, but {entries} came in between")


def commit_many(uri: str, writer: int, count: int) -> None:
    """Commit as one of several processes; each commit adds a part with its own range of keys."""
    log = CommitLog(open_store(uri))
    snapshot = log.latest()
    for number in range(count):
        key = writer * 1000 + number
        snapshot = commit(log, snapshot, added=part(key, key), token=(f"writer-{writer}", number))
