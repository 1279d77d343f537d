"""Completes rows that DataFusion has computed with the columns that a statement does not assign.

DataFusion computes only the assigned values and the identity of each row: its key, or its place in
a table without one. The time that it takes to plan a query grows with the square of the number of
columns (DataFusion 55), and our reader's does not.

Soundness: the columns are those of the same version in which DataFusion read the rows. Each
identity has exactly one row there; otherwise the change fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowsieve.changes.column_order.updated_orders import with_assigned_values
from rowsieve.changes.current_rows import current_rows
from rowsieve.errors import RowsieveError
from rowsieve.providers.datafusion.changes.assigned_values import assigned, without_views
from rowsieve.providers.datafusion.changes.numbered_rows import rows_at
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.conform import canonical_key, conform
from rowsieve.types.encodings import arrow_type
from rowsieve.types.ordering.column_order import COLUMN_ORDER
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

if TYPE_CHECKING:
    from rowsieve.table import Table


def updated_rows(
    table: Table,
    snapshot: Snapshot,
    order: KeyOrder | None,
    matched: pa.Table,
    assigned_names: Sequence[str],
) -> pa.Table:
    """The rows that DataFusion computed, after the assignment, with all columns, in their order.

    `matched` has the values of the assigned columns, and then the key of each row in the order of
    `order`, or its place in a table without a key.
    """
    schema, count = snapshot.schema, len(assigned_names)
    others = [name for name in schema.names if name not in assigned_names]
    identity = matched.select(range(count, matched.num_columns))
    if order is None:
        old = _columns_by_place(table, snapshot, identity.column(0).to_numpy(), others)
    else:
        keys = stored_keys(identity.rename_columns(list(order.names)), order, schema)
        current = current_rows(table.handle.store, snapshot, order, keys, others)
        if not current.is_present.all():
            raise _another_number(keys.num_rows, int(current.is_present.sum()))
        old = current.rows.take(pa.array(current.places))
    values = matched.select(range(count)).rename_columns(list(assigned_names))
    new = assigned(values, [schema.field(name) for name in assigned_names])
    columns = dict(zip(others, old.columns, strict=True))
    columns |= dict(zip(assigned_names, new.columns, strict=True))
    if COLUMN_ORDER in columns and any(name in snapshot.table.sequence for name in assigned_names):
        none = pa.nulls(matched.num_rows, arrow_type(schema.field(COLUMN_ORDER).type))
        columns[COLUMN_ORDER] = none  # all values of the row have its new sequence
        return pa.table({name: columns[name] for name in schema.names})
    rows = pa.table({name: columns[name] for name in schema.names})
    return with_assigned_values(rows, snapshot, assigned_names)


def stored_keys(keys: pa.Table, order: KeyOrder, schema: Schema) -> pa.Table:
    """Convert keys to the types of the table; keeps their order."""
    stored = conform(without_views(keys), schema.select(order.names))
    return pa.table([canonical_key(column) for column in stored.columns], names=stored.column_names)


def _columns_by_place(
    table: Table, snapshot: Snapshot, places: np.ndarray, names: Sequence[str]
) -> pa.Table:
    """These columns of the rows at these places, in their order."""
    numbers, rows = rows_at(table, snapshot, places, names)
    order = np.argsort(numbers)
    at = np.searchsorted(numbers[order], places)
    if len(numbers) != len(np.unique(places)):
        raise _another_number(len(places), len(numbers))
    return rows.take(pa.array(order[at]))


def _another_number(wanted: int, count: int) -> RowsieveError:
    return RowsieveError(
        f"sql: DataFusion found {wanted} rows to change, and Rowsieve {count} of them; nothing was "
        "changed. Please report the statement"
    )
