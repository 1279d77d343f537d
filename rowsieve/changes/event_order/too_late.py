"""Changes at or below the floor of a table with an event order: too late to be known as newest.

Compaction drops tombstones that are older than the property `late_horizon`, and raises the floor to
the greatest of their sequences. A change that is not above the floor could be one that a dropped
tombstone had overtaken. It is never applied: the property `on_too_late` says whether it is an
error or left out and counted, unless the call says it. Only a change with the very sequence of the
stored version of its key is not too late: changes by condition keep that sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.changes.event_order.sequence_columns import order_of
from rowsieve.changes.event_order.stored_sequences import stored_versions
from rowsieve.errors import InvalidData
from rowsieve.objects import ObjectStore
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import Field
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.ordering.sequences import is_above
from rowsieve.types.schema import Schema
from rowsieve.types.shown_values import python_value, shown_row
from rowsieve.types.stored_defaults import constant, constant_text, widened_text

ON_TOO_LATE: Final = "on_too_late"
OnTooLate: TypeAlias = Literal["error", "drop"]
Mask = npt.NDArray[np.bool_]


def floor_of(snapshot: Snapshot) -> pa.Table | None:
    """The table's floor as one row of the sequence columns; None if nothing was dropped yet."""
    texts = snapshot.table.late_floor
    return floor_row(texts, snapshot.sequence_fields) if texts else None


def floor_row(texts: Sequence[str], fields: tuple[Field, ...]) -> pa.Table:
    """The row that `floor_texts` stores as these texts."""
    values = [constant(text, field.type) for text, field in zip(texts, fields, strict=True)]
    schema = arrow_schema(Schema(0, fields))
    return pa.table([pa.array([v], t) for v, t in zip(values, schema.types, strict=True)], schema)


def floor_texts(floor: pa.Table, fields: Sequence[Field]) -> tuple[str, ...]:
    """The texts that the log stores for a floor of one row."""
    texts = [constant_text(floor.column(f.name)[0], f.type, f.name) for f in fields]
    return tuple(text for text in texts if text is not None)


def widened_floor(
    texts: Sequence[str], old: Sequence[Field], new: Sequence[Field]
) -> tuple[str, ...]:
    """The texts of a floor whose columns had the types of `old`, in those that they were given."""
    widened = (
        widened_text(text, before.type, after.type, after.name)
        for text, before, after in zip(texts, old, new, strict=bool(texts))
    )
    return tuple(text for text in widened if text is not None)


def too_late(
    store: ObjectStore,
    snapshot: Snapshot,
    actions: pa.Table,
    operation: str,
    on_too_late: OnTooLate | None,
) -> Mask | None:
    """(n,) which actions are at or below the floor; None if none is.

    InvalidData if there are some, unless `on_too_late`, or without it the property, is "drop".
    """
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
