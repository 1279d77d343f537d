"""Changes of a table with an event order, as mutations that conflict by key."""

from __future__ import annotations

import dataclasses

from rowsieve.changes.change import Change
from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.event_order.late_changes import NewerKeys, with_sequences, without_late
from rowsieve.changes.mutation import Mutation, TouchesKeys, key_columns_of
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder


def changes_in_order(
    change: Change, snapshot: Snapshot, changes: Changes
) -> tuple[Mutation | None, int]:
    """Write the changes that are not late; return also how many are.

    None if all of them are. Tombstones without sequences delete the rows that the snapshot has.
    """
    wanted = with_sequences(change.store, snapshot, changes)
    in_time, late = without_late(
        change.store, snapshot, wanted, change.operation, change.on_too_late
    )
    if in_time.is_empty:
        return None, late
    order = KeyOrder.of(snapshot.schema, snapshot.table.key)
    touches = TouchesKeys(
        change.store, snapshot.schema, order, key_columns_of([in_time.rows, in_time.deletes], order)
    )
    request = dataclasses.replace(change.write(snapshot, in_time, overtakes=True), rows_late=late)
    check = NewerKeys.of(snapshot, in_time, touches)
    return Mutation(request, Kind.READING, touched_by=check), late
