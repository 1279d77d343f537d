"""The newest action for each key of some parts: its row, or its tombstone.

For merging parts of an overlap group while older parts of it stay as they are: tombstones must
survive, because they may delete rows of those parts (traps T2 and T24). Deletion vectors do not
matter here, because in tables with a key they only repeat what the keys say (invariant I3).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rowsieve.executor.repeats import Rows
from rowsieve.executor.sources import PartSource
from rowsieve.objects import FetchingStore, ObjectStore
from rowsieve.parquet.footer import expect_tails
from rowsieve.planner.plan import PlannedPart
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.keys import KeyOrder
from rowsieve.types.schema import Schema


def newest_actions(
    store: ObjectStore,
    parts: Sequence[PlannedPart],
    schema: Schema,
    order: KeyOrder,
    memory_bytes: int,
) -> tuple[pa.Table, pa.Table]:
    """Read parts, newest first; return the rows and the deleted keys that survive, in key order.

    No key is in both tables. All rows are in memory at once. A remote store prefetches up to
    `memory_bytes`.
    """
    if store.overlaps:
        store = FetchingStore(store, memory_bytes)
        refs = (ref for part in parts for ref in (part.data, part.deletes) if ref is not None)
        expect_tails(store, refs)
    names, keys = list(order.names), schema.select(order.names)
    rows: list[pa.RecordBatch] = []
    actions: list[pa.RecordBatch] = []  # the keys of rows and tombstones, newest first
    is_row: list[bool] = []
    for part in parts:
        source = PartSource(store, part, schema)
        deleted = [batch for _, batch in source.tombstones(keys)]
        written = [batch for _, batch in source.rows(schema)]
        rows += written
        actions += [*deleted, *(batch.select(names) for batch in written)]
        is_row += [False] * len(deleted) + [True] * len(written)
    lengths = [batch.num_rows for batch in actions]
    all_keys = pa.Table.from_batches(actions, arrow_schema(keys)).combine_chunks()
    newest = _newest(all_keys, order)
    of_rows = np.repeat(np.array(is_row, dtype=bool), lengths)
    places = np.cumsum(of_rows) - 1  # of each action that is a row, among all rows
    kept = newest[of_rows[newest]]
    data = pa.Table.from_batches(rows, arrow_schema(schema)).combine_chunks()
    return data.take(pa.array(places[kept])), all_keys.take(pa.array(newest[~of_rows[newest]]))


def _newest(keys: pa.Table, order: KeyOrder) -> Rows:
    """(n,) the position of the first action for each key, in key order."""
    columns = order.columns(keys)
    ascending = columns.sort()  # stable, so that the newest of equal keys stays first
    return np.asarray(ascending[~columns.repeats(ascending)])
