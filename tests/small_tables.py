"""Tables for one story each, in memory, and a store that lets others act amid a call."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.changes.table_handle import Handle
from rowsieve.objects import ObjectStore
from rowsieve.storage.log.commit_log import CommitLog

Values = Mapping[str, Sequence[Any]]
KV = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.int64())])


def fresh_uri() -> str:
    return f"memory:///{uuid.uuid4().hex}"


def keyed(*batches: Values, schema: pa.Schema = KV, **options: Any) -> Table:
    """A table with key `k`, and each batch upserted."""
    table = rowsieve.create_table(fresh_uri(), schema, key=["k"], **options)
    for batch in batches:
        table.upsert(pa.table(batch, schema=schema))
    return table


def appended(*batches: Values, schema: pa.Schema = KV, **options: Any) -> Table:
    """A table without a key, and each batch appended."""
    table = rowsieve.create_table(fresh_uri(), schema, **options)
    for batch in batches:
        table.append(pa.table(batch, schema=schema))
    return table


def kv(*pairs: tuple[Any, Any]) -> pa.Table:
    """Rows of `KV`."""
    return pa.table({"k": [k for k, _ in pairs], "v": [v for _, v in pairs]}, schema=KV)


def pairs(table: Table, where: Any = None, **options: Any) -> list[tuple[Any, Any]]:
    """The rows of a `KV` table in order; `count` must agree, and pruning must not matter."""
    scan = table.scan(where, **options)
    found = sorted((row["k"], row["v"]) for row in scan.to_arrow().to_pylist())
    unpruned = table.scan(where, pruning="off", **options).to_arrow().to_pylist()
    assert found == sorted((row["k"], row["v"]) for row in unpruned)
    assert scan.count() == len(found)
    return found


def apply(table: Table, *changes: tuple[str, Any, Any]) -> None:
    """(op, k, v) in this order, as one commit."""
    data = pa.table(
        {
            "k": pa.array([k for _, k, _ in changes], pa.int64()),
            "v": pa.array([v for _, _, v in changes], pa.int64()),
            "op": [op for op, _, _ in changes],
            "lsn": list(range(len(changes))),
        }
    )
    table.apply_changes(data, op="op", sequence="lsn")


class NoStream:
    """Data that promises a stream and has none."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> None:
        """Give nothing."""


class Meddled:
    """A store in which something happens right before each entry of the log is put.

    `meddle` gets the number of the try, from 0; what it does itself goes through other handles.
    """

    def __init__(self, store: ObjectStore, meddle: Callable[[int], None]) -> None:
        self._store = store
        self._meddle = meddle
        self._tries = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_new(self, path: str, data: bytes | memoryview) -> None:
        is_entry = path.startswith("_rowsieve/log/") and path.endswith(".json")
        # Putting what stands there again is a question to the store, not a commit.
        if is_entry and not (self._store.exists(path) and self._store.get(path) == bytes(data)):
            self._tries += 1
            self._meddle(self._tries - 1)
        self._store.put_new(path, data)


def meddled(table: Table, meddle: Callable[[int], None]) -> Table:
    """A handle on the same table whose commits are interrupted by `meddle`."""
    store: Any = Meddled(table.handle.store, meddle)
    log = CommitLog(store)
    return Table(Handle(store, log, log.latest()))


def overtake(table: Table, patch: pytest.MonkeyPatch, other: Callable[[Table], Any]) -> None:
    """Let another handle act once, right before this one puts its next entry of the log."""
    publish = table.handle.log.publish
    done: list[bool] = []

    def first_the_other(entry: Any) -> Any:
        if not done:
            done.append(True)
            other(rowsieve.open_table(table.uri))
        return publish(entry)

    patch.setattr(table.handle.log, "publish", first_the_other)


def files(table: Table) -> list[str]:
    """Everything that the store holds for this table."""
    return [*table.handle.store.list("_rowsieve"), *table.handle.store.list("data")]
