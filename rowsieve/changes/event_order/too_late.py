"""Changes at or below the floor of a table with an event order: too late to be known as newest.

Compaction drops tombstones that are older than the property `late_horizon`, and raises the floor to
the greatest of their sequences. A change that is not above the floor could be one that a dropped
tombstone had overtaken. It is never applied: the property `on_too_late` says whether it is an
error or left out and counted, unless the call says it. Only a change with the very sequence of the
stored version of its key is not too late: changes by condition keep that sequence.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.changes.event_order.sequence_columns import order_of
from rowsieve.changes.event_order.stored_floors import floor_row
from rowsieve.changes.event_order.stored_sequences import stored_versions
from rowsieve.changes.event_order.truncation import is_below, truncated_before
from rowsieve.errors import InvalidData
from rowsieve.objects import ObjectStore
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.ordering.sequences import is_above
from rowsieve.types.shown_values import python_value, shown_row

ON_TOO_LATE: Final = "on_too_late"
OnTooLate: TypeAlias = Literal["error", "drop"]
Mask = npt.NDArray[np.bool_]


def floor_of(snapshot: Snapshot) -> pa.Table | None:
    """The table's floor as one row of the sequence columns; None if nothing was dropped yet."""
    texts = snapshot.table.late_floor
    return floor_row(texts, snapshot.sequence_fields) if texts else None


def too_late(
    store: ObjectStore,
    snapshot: Snapshot,
    actions: pa.Table,
    operation: str,
    on_too_late: OnTooLate | None,
) -> Mask | None:
    """(n,) which actions are at or below the floor, or before a truncate; None if none is.

    InvalidData if it is unknown whether one was overtaken, unless `on_too_late`, or without it the
    property, is "drop".
    """
    place = truncated_before(snapshot)
    if place is None:
        return _below_floor(store, snapshot, actions, operation, on_too_late)
    overtaken = is_below(snapshot, place, actions)
    others = np.flatnonzero(~overtaken)
    low = _below_floor(store, snapshot, actions.take(pa.array(others)), operation, on_too_late)
    if low is not None:
        overtaken[others[low]] = True
    return overtaken if overtaken.any() else None


def _below_floor(
    store: ObjectStore,
    snapshot: Snapshot,
    actions: pa.Table,
    operation: str,
    on_too_late: OnTooLate | None,
) -> Mask | None:
    floor = floor_of(snapshot)
    if floor is None:
        return None
    sequences = order_of(snapshot)
    low = ~is_above(sequences.columns(actions), sequences.columns(floor))
    if not low.any():
        return None
    places = np.flatnonzero(low)
    stored = stored_versions(store, snapshot, actions.take(pa.array(places)))
    low[places[_are_stored(snapshot, actions.take(pa.array(places)), stored.versions)]] = False
    if not low.any():
        return None
    if (on_too_late or snapshot.table.properties.get(ON_TOO_LATE)) != "drop":
        row = shown_row(actions, int(np.argmax(low)), snapshot.schema)
        raise InvalidData(
            f"{operation}: {int(low.sum())} changes, such as {row}, are not above the floor "
            f"({', '.join(str(python_value(column[0])) for column in floor.columns)}) of the "
            "table: deletes up to that sequence "
            "are forgotten since late_horizon has passed, so that it is unknown whether these "
            "changes were overtaken. Nothing was written; on_too_late='drop', also as a property, "
            "leaves such changes out and counts them"
        )
    return low


def _are_stored(snapshot: Snapshot, actions: pa.Table, stored: pa.Table) -> Mask:
    """(n,) whether the stored version of the action's key has its very sequence."""
    names = [*snapshot.table.key, *snapshot.table.sequence]
    order = KeyOrder(tuple(map(snapshot.schema.field, names)))
    theirs = stored.select(names)
    both = order.columns(pa.concat_tables([theirs, actions.select(names).cast(theirs.schema)]))
    positions = both.sort()  # stable: stored versions come first
    matched = positions[both.repeats(positions)] - stored.num_rows
    result = np.zeros(actions.num_rows, dtype=bool)
    result[matched] = True
    return result
