"""The newest action for each key of some parts: its row, or its tombstone.

For merging parts of an overlap group while older parts of it stay as they are: tombstones must
survive, because they may delete rows of those parts (traps T2 and T24). Deletion vectors do not
matter here, because in tables with a key they only repeat what the keys say (invariant I3). In a
table with an event order, tombstones keep their sequence and the commit_ts that they had first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.executor.merging.windows import windows
from rowsieve.executor.part_sources import PartSource
from rowsieve.executor.read_ahead import ReadAhead
from rowsieve.executor.streams import Streams
from rowsieve.objects import FetchingStore, ObjectStore
from rowsieve.parquet.footer import expect_tails
from rowsieve.planner.split import PlannedPart
from rowsieve.storage.parts.tombstones import DELETED_AT, tombstone_schema
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import Field
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema


def newest_actions(
    store: ObjectStore,
    parts: Sequence[PlannedPart],
    schema: Schema,
    order: KeyOrder,
    memory_bytes: int,
    *,
    at_once: bool,
    sequence: Sequence[Field] = (),
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Read parts, newest first; yield the rows and the deleted keys that survive, in key order.

    No key is in both tables, or in two pairs of tables. `at_once` reads all parts and sorts once,
    which is fastest for many tiny parts. Otherwise parts are merged in windows, and `memory_bytes`
    limits what these buffer. With `sequence`, the deleted keys have the columns of
    `tombstone_schema`.
    """
    if store.overlaps:
        store = FetchingStore(store, memory_bytes // 2)
        refs = (ref for part in parts for ref in (part.data, part.deletes) if ref is not None)
        expect_tails(store, refs, with_pages=True)
    keys = tombstone_schema(schema, order.fields, sequence, dated=True)
    ages = [part.commit_ts for part in parts]
    sources = [PartSource(store, part, schema, None, memory_bytes) for part in parts]
    with ReadAhead(1, 0) as ahead:
        streams = Streams(store, sources, order, keys, memory_bytes, ahead)
        if at_once:
            yield _survivors(list(_all_batches(streams, schema, ages)), schema, order, keys)
            return
        for window in windows(streams.open(schema), order):
            batches = [
                (run.deletes, dated(run.rows, ages[run.stream // 2]) if run.deletes else run.rows)
                for run in window
            ]
            yield _survivors(batches, schema, order, keys)


Batches: TypeAlias = Sequence[tuple[bool, pa.RecordBatch]]
"""Pairs (are they tombstones, rows or keys); newest first, each in key order."""


def dated(deletes: pa.RecordBatch, commit_ts: int) -> pa.RecordBatch:
    """Give tombstones that were never rewritten the commit_ts of their part (invariant I1)."""
    place = deletes.schema.get_field_index(DELETED_AT.name)
    if place < 0 or not deletes.column(place).null_count:
        return deletes
    dates = pc.fill_null(deletes.column(place), pa.scalar(commit_ts, pa.int64()))
    return deletes.set_column(place, deletes.schema.field(place), dates)


def _all_batches(
    streams: Streams, schema: Schema, ages: Sequence[int]
) -> Iterator[tuple[bool, pa.RecordBatch]]:
    """All tombstones and rows of each part; the pages of all parts are requested at once."""
    for number, batches in enumerate(streams.read(schema)):
        for _, batch in batches:
            deletes = number % 2 == 0
            yield deletes, dated(batch, ages[number // 2]) if deletes else batch


def _survivors(
    batches: Batches, schema: Schema, order: KeyOrder, tombstones: Schema
) -> tuple[pa.Table, pa.Table]:
    """The newest rows, and the keys whose newest action is a tombstone, each in key order."""
    names = list(order.names)
    actions = [batch.select(names) for _, batch in batches]
    keys = pa.Table.from_batches(actions, arrow_schema(schema.select(order.names)))
    keys = keys.combine_chunks()
    columns = order.columns(keys)
    ascending = columns.sort()  # stable, so that the newest of equal keys stays first
    newest = ascending[~columns.repeats(ascending)]
    is_row = np.repeat(
        np.array([not deletes for deletes, _ in batches], dtype=bool),
        [batch.num_rows for _, batch in batches],
    )
    places = np.cumsum(is_row) - 1  # of each action that is a row, among all rows
    others = np.cumsum(~is_row) - 1
    rows = pa.Table.from_batches(
        [batch for deletes, batch in batches if not deletes], arrow_schema(schema)
    ).combine_chunks()
    surviving = newest[is_row[newest]]
    deleted = newest[~is_row[newest]]
    gone = pa.Table.from_batches(
        [batch for deletes, batch in batches if deletes], arrow_schema(tombstones)
    ).combine_chunks()
    return rows.take(pa.array(places[surviving])), gone.take(pa.array(others[deleted]))
