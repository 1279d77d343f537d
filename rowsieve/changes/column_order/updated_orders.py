"""Which sequence the values have that an update by a condition assigns.

A value keeps that of the value which it replaces, as a row keeps its sequence (invariant 38). One
that no event has set has none to keep: it gets that of the row, the newest that the update saw.
Otherwise any late event would replace what was assigned.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from rowsieve.changes.column_order.column_entries import ColumnEntries, entries_column
from rowsieve.changes.column_order.ranked_sequences import NEVER, ranked
from rowsieve.changes.event_order.sequence_columns import order_of
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_type
from rowsieve.types.ordering.column_order import COLUMN_ORDER


def with_assigned_values(rows: pa.Table, snapshot: Snapshot, assigned: Collection[str]) -> pa.Table:
    """Return the new rows of an update with the sequences of their values.

    In the column `COLUMN_ORDER` they have those of the rows before it; without the column they
    are returned as they are.
    """
    if COLUMN_ORDER not in rows.column_names:
        return rows
    order, schema = order_of(snapshot), snapshot.schema
    entries = ColumnEntries.read(rows.column(COLUMN_ORDER), order)
    sequences = ranked([rows.select(list(order.names)), entries.sequences], order)
    of_rows, of_entries = sequences.ranks
    fixed = (*snapshot.table.key, *order.names, COLUMN_ORDER)
    ids = [field.id for field in schema if field.name not in fixed]
    ranks = {
        field_id: entries.ranks_of(field_id, of_rows, of_entries)
        for field_id in (*ids, snapshot.next_field_id)
    }
    for name in assigned:
        column_ranks = ranks[schema.field(name).id]
        ranks[schema.field(name).id] = np.where(column_ranks == NEVER, of_rows, column_ranks)
    type_ = arrow_type(schema.field(COLUMN_ORDER).type)
    place = rows.column_names.index(COLUMN_ORDER)
    column = entries_column(ranks, of_rows, sequences, type_)
    return rows.set_column(place, COLUMN_ORDER, column)
