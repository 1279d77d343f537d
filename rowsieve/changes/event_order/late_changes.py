"""Leave out the changes of a batch that a stored version of their key has overtaken.

What is committed last wins for every reader. So before each commit, changes with a sequence below
the stored one of their key are left out and counted, tombstones included: then the order of commits
is the order of events (invariants 36 and 38), and no read needs to know the sequences.

Soundness: the result holds for the version that was looked at. The commit must fail if another one
has written a newer version of one of the keys since (`NewerKeys`), and is computed again then.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.event_order.sequence_columns import check_sequences, order_of
from rowsieve.changes.event_order.stored_sequences import (
    StoredVersions,
    may_be_above,
    newer_versions,
    stored_versions,
)
from rowsieve.changes.event_order.too_late import OnTooLate, too_late
from rowsieve.objects import ObjectStore
from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyColumns, KeyOrder
from rowsieve.types.ordering.sequences import is_above, least

Mask = npt.NDArray[np.bool_]


def actions_of(changes: Changes, names: tuple[str, ...]) -> pa.Table:
    """These columns of the rows, then of the tombstones."""
    tables = [table.select(list(names)) for table in (changes.rows, changes.deletes) if table]
    return pa.concat_tables(tables)


def without_late(
    store: ObjectStore,
    snapshot: Snapshot,
    changes: Changes,
    operation: str,
    on_too_late: OnTooLate | None,
) -> tuple[Changes, int]:
    """Return the changes that no stored version of their key is newer than, and how many are."""
    sequences = order_of(snapshot)
    for table in (changes.rows, changes.deletes):
        if table is not None and table.num_rows:
            check_sequences(table, sequences, operation, snapshot.parts)
    if changes.is_empty:
        return changes, 0
    key = snapshot.table.key
    actions = actions_of(changes, (*key, *snapshot.table.sequence))
    late = too_late(store, snapshot, actions, operation, on_too_late)
    stored = newer_versions(store, snapshot, actions)
    if stored.versions.num_rows:
        overtaken = _overtaken(actions, stored, KeyOrder.of(snapshot.schema, key), sequences)
        late = overtaken if late is None else late | overtaken
    if late is None or not late.any():
        return changes, 0
    return _filtered(changes, ~late), int(late.sum())


def with_sequences(store: ObjectStore, snapshot: Snapshot, changes: Changes) -> Changes:
    """Give tombstones without sequences those of the rows that they delete; others are left out."""
    deletes, names = changes.deletes, snapshot.table.sequence
    if deletes is None or set(names) <= set(deletes.column_names):
        return changes
    stored = stored_versions(store, snapshot, deletes)
    live = stored.versions.filter(pa.array(~stored.is_deleted))
    return dataclasses.replace(changes, deletes=live if live.num_rows else None)


def _overtaken(
    actions: pa.Table, stored: StoredVersions, order: KeyOrder, sequences: KeyOrder
) -> Mask:
    """(n,) whether the stored version of an action's key has a greater sequence."""
    names, count = list(order.names), stored.versions.num_rows
    theirs = stored.versions.select(names)
    keys = order.columns(pa.concat_tables([theirs, actions.select(names).cast(theirs.schema)]))
    positions = keys.sort()  # stable: stored versions come first
    repeats = np.flatnonzero(keys.repeats(positions))
    ours, matched = positions[repeats] - count, positions[repeats - 1]
    late = np.zeros(actions.num_rows, dtype=bool)
    late[ours] = is_above(
        _taken(sequences.columns(stored.versions), matched),
        _taken(sequences.columns(actions), ours),
    )
    return late


def _taken(columns: KeyColumns, places: npt.NDArray[Any]) -> KeyColumns:
    return KeyColumns(tuple(array.take(pa.array(places)) for array in columns.arrays))


def _filtered(changes: Changes, mask: Mask) -> Changes:
    count = 0 if changes.rows is None else changes.rows.num_rows
    rows, deletes = changes.rows, changes.deletes
    if rows is not None:
        rows = rows.filter(pa.array(mask[:count]))
    if deletes is not None:
        deletes = deletes.filter(pa.array(mask[count:]))
    return Changes(rows if rows else None, deletes if deletes else None)


@dataclass(frozen=True, slots=True)
class NewerKeys:
    """A check that is True if a commit wrote one of these keys with a greater sequence.

    `touches` finds whether it wrote one of the keys; parts whose sequences are all below ours are
    not looked at.
    """

    touches: Callable[[LogEntry], bool]
    sequences: KeyOrder
    bound: KeyColumns

    @classmethod
    def of(
        cls, snapshot: Snapshot, changes: Changes, touches: Callable[[LogEntry], bool]
    ) -> NewerKeys:
        """The check of changes that are not empty."""
        sequences = order_of(snapshot)
        lowest = least(actions_of(changes, sequences.names), sequences)
        return cls(touches, sequences, sequences.columns(lowest))

    def __call__(self, entry: LogEntry) -> bool:
        """Compare bounds, then keys."""
        if entry.added is None:
            return False
        added = entry.added.without(entry.removed)
        above = np.flatnonzero(may_be_above(added, self.sequences, self.bound))
        if not len(above):
            return False
        return bool(self.touches(dataclasses.replace(entry, added=added.take(above), removed=())))
