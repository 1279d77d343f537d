"""Changes whose rows an engine computed from one version of the table.

Soundness: the commit is read-modify-write (invariant I7). Under serializable isolation it conflicts
with commits that could change what the engine read: rows that match the condition, rows with some
keys, or any row. Under every isolation level it conflicts with commits that touch its own keys.
"""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from rowsieve.changes.change import Change
from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.mutation import Check, Mutation, TouchesKeys, key_columns_of, never
from rowsieve.changes.operations import is_emptied, overwrite_all
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder


def changes_rows(entry: LogEntry) -> bool:
    """Return whether a commit may have added, changed or hidden any row."""
    return bool(entry.removed) or (entry.added is not None and len(entry.added) > 0)


def only_token(change: Change, rows_late: int = 0) -> Mutation | None:
    """A commit without rows, for the token of a call without effect; None without a token.

    The call may be repeated after later ones, which have given it something to do.
    """
    if change.token is None:
        return None
    request = dataclasses.replace(change.request(None), rows_late=rows_late)
    return Mutation(request, Kind.READING, touched_by=changes_rows)


def keyed_change(
    change: Change,
    snapshot: Snapshot,
    order: KeyOrder,
    changes: Changes,
    reads: Check,
    *,
    overtakes: bool = False,
) -> Mutation | None:
    """Write rows and delete keys; `reads` checks whether a commit changed what they depend on.

    `overtakes`: none of them is late in a table with an event order.
    """
    if changes.is_empty:
        return None
    keys = key_columns_of([changes.rows, changes.deletes], order)
    return Mutation(
        change.write(snapshot, changes, overtakes=overtakes),
        Kind.READING,
        touched_by=TouchesKeys(change.store, snapshot.schema, order, keys),
        matched_by=reads,
    )


def appended(change: Change, snapshot: Snapshot, rows: pa.Table, reads: Check) -> Mutation | None:
    """Append rows, computed from the table itself, to a table without a key."""
    if not rows.num_rows:
        return None
    added = change.new_parts(snapshot, rows)
    request = change.request(added, rows_written=rows.num_rows)
    return Mutation(request, Kind.READING, touched_by=never, matched_by=reads)


def emptied(change: Change, snapshot: Snapshot) -> Mutation | None:
    """Remove all parts of the newest version, and begin its event order anew."""
    if is_emptied(snapshot):
        return None
    request = overwrite_all(change, snapshot, PartTable.empty(), 0)
    return Mutation(request, Kind.REPLACING, touched_by=never)
