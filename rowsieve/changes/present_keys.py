"""Find which of some keys a version of a table has."""

from __future__ import annotations

import pyarrow as pa

from rowsieve.changes.current_rows import current_rows
from rowsieve.objects import ObjectStore
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder


def without_present(
    store: ObjectStore, snapshot: Snapshot, order: KeyOrder, rows: pa.Table
) -> pa.Table:
    """Return the rows whose key the version lacks; `rows` have the table's types, unique keys."""
    if not rows.num_rows or not len(snapshot.parts):
        return rows
    present = current_rows(store, snapshot, order, rows, ())
    return rows.filter(pa.array(~present.is_present))
