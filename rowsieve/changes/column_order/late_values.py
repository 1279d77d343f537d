"""Let late changes of whole rows count in the columns that nothing newer has set.

Merges and SQL compute whole rows and keys to delete, with the sequences of their source. Where none
of them is late they win in every column, and are written as they are. Otherwise those that come at
a sequence of their own are resolved as events. Rows with a column order are the table's own rows,
at the sequence that they had, and never late.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.column_order.order_column import without_order_column
from rowsieve.changes.column_order.resolving_columns import resolve_columns
from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.event_order.late_changes import without_late
from rowsieve.changes.event_order.too_late import OnTooLate
from rowsieve.changes.partial.events import Events, prepare_events
from rowsieve.changes.partial.given_values import GivenValues
from rowsieve.objects import ObjectStore
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.column_order import COLUMN_ORDER
from rowsieve.types.ordering.keys import KeyOrder


def without_late_values(
    store: ObjectStore,
    snapshot: Snapshot,
    changes: Changes,
    operation: str,
    on_too_late: OnTooLate | None,
) -> tuple[Changes, int]:
    """Return what is to be written, and how many of the changes have no effect in any column."""
    timely, late = without_late(store, snapshot, changes, operation, on_too_late)
    if not late:
        return timely, 0
    updated, whole = _split(changes.rows)
    events = _events(snapshot, whole, changes.deletes, operation)
    resolved, late = resolve_columns(store, snapshot, events, operation, on_too_late)
    return Changes(_joined(snapshot, resolved.rows, updated), resolved.deletes), late


def _split(rows: pa.Table | None) -> tuple[pa.Table | None, pa.Table | None]:
    """The rows that keep the sequences of their values, and those that have one for all."""
    if rows is None:
        return None, None
    is_whole = pc.is_null(rows.column(COLUMN_ORDER))
    return rows.filter(pc.invert(is_whole)), rows.filter(is_whole)


def _events(
    snapshot: Snapshot, rows: pa.Table | None, deletes: pa.Table | None, operation: str
) -> Events:
    sequence, schema = snapshot.table.sequence, without_order_column(snapshot.schema)
    tables = [] if rows is None else [rows.drop_columns([COLUMN_ORDER])]
    tables += [] if deletes is None else [deletes]
    table = pa.concat_tables(tables, promote_options="default")
    is_delete = np.arange(table.num_rows) >= (0 if rows is None else rows.num_rows)
    return prepare_events(
        GivenValues(table, {}, keeps=True, lacking={}),
        schema,
        KeyOrder.of(schema, snapshot.table.key),
        operation,
        deletes=is_delete,
        sequence=sequence,
        table_order=sequence,
    )


def _joined(snapshot: Snapshot, rows: pa.Table | None, others: pa.Table | None) -> pa.Table | None:
    """All of these rows, sorted by key."""
    tables = [table for table in (rows, others) if table is not None and table.num_rows]
    if len(tables) < 2:
        return tables[0] if tables else None
    joined = pa.concat_tables([tables[0], tables[1].cast(tables[0].schema)])
    order = KeyOrder.of(snapshot.schema, snapshot.table.key)
    places = order.columns(joined.select(list(order.names))).sort()
    return joined.take(pa.array(places))
