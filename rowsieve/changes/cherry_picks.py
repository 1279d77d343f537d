"""Repeats the changes of one commit on the newest version: `Table.cherry_pick`.

Soundness: only blind operations are repeated, which did not depend on the rows of the table (the
conflict matrix). Their rows and keys are read and written again, in new files with a new commit_ts,
so nothing that is known about an older part changes (invariants I1, I4). A commit that the newest
version is built on, or that was picked before, is not repeated: in a table without a key its rows
would occur twice. Rows that are newer than the commit are never overwritten.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rowsieve.changes.data.ingest import Changes, prepare_appended, prepare_keys, prepare_rows
from rowsieve.errors import UnsupportedOperation
from rowsieve.executor.part_sources import PartSource
from rowsieve.objects import ObjectStore
from rowsieve.planner.overlap import overlap_groups
from rowsieve.planner.pieces import planned_part
from rowsieve.storage.log.conflicts import OPERATIONS, Kind
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.tombstones import tombstone_schema
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder

PICKED = "cherry_picked"
"""The name in a commit's metadata of the version that it repeats."""


class AlreadyPicked(Exception):
    """A commit that the newest version is built on has repeated the version."""


def operation_of(log: LogReader, version: int) -> str:
    """The operation of the commit of a version."""
    return _commit(log, version).operation


def is_picked(log: LogReader, head: Snapshot, version: int) -> bool:
    """Return whether a commit repeated the version since it was undone.

    UnsupportedOperation if no restore has undone it.
    """
    current = head.version
    while current > version:
        commit = _commit(log, current)
        if commit.metadata.get(PICKED) == str(version):
            return True
        is_restore = commit.operation == "restore"
        current = int(commit.metadata["restored"]) if is_restore else current - 1
    if current == version:
        raise UnsupportedOperation(
            f"cherry_pick: version {head.version} is built on version {version}, so its changes "
            "are in the table already; only a commit that a restore has undone can be repeated"
        )
    return False


def _commit(log: LogReader, version: int) -> Commit:
    if (entry := log.entry(version)) is None:
        raise UnsupportedOperation(
            f"cherry_pick: the log has no entry of version {version} any more, so what happened "
            "since is unknown; read the rows that you want and write them again"
        )
    return entry.commit


def changes_of(store: ObjectStore, picked: Snapshot, operation: str, head: Snapshot) -> Changes:
    """Read the rows and the deleted keys of the commit of a version.

    UnsupportedOperation if they cannot be repeated on the head: the operation read rows, the
    columns have changed, or newer rows are in the ranges of its keys.
    """
    if OPERATIONS.get(operation) is not Kind.BLIND:
        raise UnsupportedOperation(
            f"cherry_pick: version {picked.version} is by {operation}, which depends on the rows "
            "that it found, so it may mean other rows now; only append, upsert, apply and "
            f"delete_keys can be repeated. Call {operation} again"
        )
    if picked.schema.id != head.schema.id:
        raise UnsupportedOperation(
            f"cherry_pick: the columns have changed since version {picked.version}; read its rows "
            "and write them again"
        )
    newest = np.asarray(picked.parts.numbers("commit_ts_max"))
    parts = picked.parts.take(np.flatnonzero(newest == picked.version))
    if head.table.key:
        _check_not_newer(parts, picked, head)
    return _read(store, parts, head)


def _check_not_newer(parts: PartTable, picked: Snapshot, head: Snapshot) -> None:
    """Raise UnsupportedOperation if the head may have newer rows with the same keys."""
    order = KeyOrder.of(head.schema, head.table.key)
    both = PartTable.empty().append(head.parts, parts)
    newest = np.asarray(both.numbers("commit_ts_max"))
    for members in overlap_groups(both.table, order):
        group = np.asarray(members)
        of_head = group[group < len(head.parts)]
        if len(of_head) < len(group) and (newest[of_head] > picked.version).any():
            raise UnsupportedOperation(
                f"cherry_pick: commits after version {picked.version} wrote keys in the same "
                "ranges, and their rows are newer; nothing was changed. Read the rows that you "
                "want and upsert them"
            )


def _read(store: ObjectStore, parts: PartTable, head: Snapshot) -> Changes:
    schema, operation = head.schema, "cherry_pick"
    order = KeyOrder.of(schema, head.table.key) if head.table.key else None
    rows: list[pa.RecordBatch] = []
    deletes: list[pa.RecordBatch] = []
    sequence = head.sequence_fields
    key = None if order is None else tombstone_schema(schema, order.fields, sequence)
    for entry in parts.entries(range(len(parts))):
        source = PartSource(store, planned_part(entry, head.table.settings), schema)
        rows += [batch for _, batch in source.rows(schema)]
        if entry.deletes is not None and key is not None:
            deletes += [batch for _, batch in source.tombstones(key)]
    table = pa.Table.from_batches(rows) if rows else None
    if order is None or key is None:
        return Changes(None if table is None else prepare_appended(table, schema), None)
    return Changes(
        None if table is None else prepare_rows(table, schema, order, "error", operation),
        prepare_keys(pa.Table.from_batches(deletes), key, order, operation, head.table.sequence)
        if deletes
        else None,
    )
