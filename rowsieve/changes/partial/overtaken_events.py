"""Leave out events that a stored version of their key has overtaken.

In a table with an event order, the row that events are resolved with has the greatest sequence of
its key, and a late event changes nothing of it. An event with the stored sequence itself applies,
as the later commit does, unless a rule would count it twice: then it has been applied.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from rowsieve.changes.current_rows import places_of
from rowsieve.changes.event_order.sequence_columns import order_of
from rowsieve.changes.event_order.stored_sequences import newer_versions, stored_versions
from rowsieve.changes.event_order.too_late import OnTooLate, too_late
from rowsieve.changes.partial.events import Events
from rowsieve.objects import ObjectStore
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyColumns, KeyOrder
from rowsieve.types.ordering.sequences import is_above


def without_late_events(
    store: ObjectStore,
    snapshot: Snapshot,
    events: Events,
    rules: Collection[str],
    operation: str,
    on_too_late: OnTooLate | None,
) -> tuple[Events, int]:
    """Return the events that no stored version is newer than, and how many are late."""
    own_sequences = events.sequences
    if own_sequences is None or not len(events):
        return events, 0
    actions = events.keys.take(pa.array(events.owners))
    for name, column in zip(own_sequences.column_names, own_sequences.columns, strict=True):
        actions = actions.append_column(name, column)
    too_low, early = too_late(store, snapshot, actions, operation, on_too_late), 0
    if too_low is not None:
        early, events = int(too_low.sum()), events.select(~too_low)
        own_sequences = events.sequences
        if own_sequences is None or not len(events):
            return events, early
    order, sequences = KeyOrder.of(snapshot.schema, snapshot.table.key), order_of(snapshot)
    counts_twice = "sum" in rules
    firsts = np.flatnonzero(np.diff(events.owners, prepend=-1))  # the least sequence of each key
    lowest = events.keys
    for name in sequences.names:
        column = own_sequences.column(name).take(pa.array(firsts))
        lowest = lowest.append_column(name, column)
    look_up = stored_versions if counts_twice else newer_versions
    stored = look_up(store, snapshot, lowest).versions
    if not stored.num_rows:
        return events, early
    places = places_of(stored, events.keys, order)[events.owners]
    is_stored = places >= 0
    theirs = _taken(sequences.columns(stored), np.maximum(places, 0))
    ours = sequences.columns(own_sequences)
    late = is_above(theirs, ours)
    if counts_twice:
        late |= ~is_above(ours, theirs)
    late &= is_stored
    return events.select(~late), early + int(late.sum())


def _taken(columns: KeyColumns, places: np.ndarray) -> KeyColumns:
    return KeyColumns(tuple(array.take(pa.array(places)) for array in columns.arrays))
