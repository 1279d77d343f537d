"""Fold events into versions of rows: which begin, end, split and go.

The stored versions of a key are its events: each begins with one, and one that ends where no other
begins was ended by a delete. A delete that ends no version is stored as an empty interval, so that
an earlier event that comes later still ends there. So all events of a key can be told from its
versions, and the new versions are those of all events, in their order: no result depends on the
order in which they came.

Only versions that hold at the first new event of the batch, or later, are needed: what ended before
it neither changes nor ends a new version.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.data.same_rows import same_values
from rowsieve.changes.history.history_columns import HistoryColumns
from rowsieve.changes.partial.events import Events
from rowsieve.predicate.arrays import repeated
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.ordering.keys import KeyColumns, KeyOrder, flat, sort_form
from rowsieve.types.schema import Schema
from rowsieve.types.stored_defaults import constant

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_DERIVED, _STORED, _NEW = range(3)  # of two events at one time the later one counts


@dataclass(frozen=True, slots=True)
class _Timeline:
    """Events of keys at ranks of time, by key and time, each once.

    `sources` are rows of the pool, -1 for a delete without a row. `twins` are the stored rows that
    begin at the same time, or -1.
    """

    owners: Places
    ranks: Places
    deletes: Mask
    sources: Places
    twins: Places


def folded(
    stored: pa.Table,
    events: Events,
    schema: Schema,
    key: tuple[str, ...],
    columns: HistoryColumns,
) -> Changes:
    """Return the versions to write and those to delete; `stored` are those of the events' keys."""
    order = columns.business_order(schema, key)
    assert events.sequences is not None
    pool = _pool(stored, events, schema, columns)
    times = pa.concat_arrays(
        [
            flat(stored.column(columns.start.name)),
            flat(stored.column(columns.end.name)),
            flat(events.sequences.column(columns.start.name)),
        ]
    )
    ranks, by_rank = _ranked(times, columns)
    starts, ends, new = np.split(ranks, [stored.num_rows, 2 * stored.num_rows])
    owners = _owners(pool, order)
    timeline = _timeline(owners, starts, ends, new, events.deletes)
    examples = np.zeros(len(pool), dtype=np.int64)  # a row of each key
    examples[owners] = np.arange(len(owners))
    written = _Written(timeline, pool, ends, by_rank, examples[timeline.owners])
    return _changes(written, schema, key, columns)


def _pool(stored: pa.Table, events: Events, schema: Schema, columns: HistoryColumns) -> pa.Table:
    """The stored rows, then one for each event, then one of defaults."""
    arrow, keys = arrow_schema(schema), events.keys.take(pa.array(events.owners))
    arrays = []
    for field, to in zip(schema, arrow, strict=True):
        if field.name in keys.column_names:
            new = flat(keys.column(field.name))
        elif field.name in events.values.column_names and field != columns.start:
            new = flat(events.values.column(field.name))
        else:
            new = pa.nulls(len(events), to.type)
        default = repeated(constant(field.default, field.type), 1)
        pieces = [flat(stored.column(field.name)), new, default]
        arrays.append(pa.concat_arrays([each.cast(to.type) for each in pieces]))
    return pa.table(arrays, names=arrow.names)


def _ranked(times: pa.Array, columns: HistoryColumns) -> tuple[Places, pa.Array]:
    """The rank of each time, -1 for NULL, and the time of each rank."""
    valid = np.flatnonzero(times.is_valid().to_numpy(zero_copy_only=False))
    known_times = times.take(pa.array(valid))
    form = KeyColumns((sort_form(known_times, columns.start.type),))
    in_order = form.sort()
    rises = ~form.repeats(in_order)
    ranks = np.full(len(times), -1, dtype=np.int64)
    ranks[valid[in_order]] = np.cumsum(rises) - 1
    return ranks, known_times.take(pa.array(in_order[rises]))


def _owners(pool: pa.Table, order: KeyOrder) -> Places:
    """The number of the key of each row of the pool but the last."""
    keys = order.columns(pool.slice(0, pool.num_rows - 1))
    in_order = keys.sort()
    owners = np.empty(len(in_order), dtype=np.int64)
    owners[in_order] = np.cumsum(~keys.repeats(in_order)) - 1
    return owners


def _timeline(
    owners: Places, starts: Places, ends: Places, new: Places, deletes: Mask
) -> _Timeline:
    count = len(starts)
    is_marker = starts == ends
    ended = np.flatnonzero((ends >= 0) & ~is_marker)
    none = np.full(len(ended), -1, dtype=np.int64)
    owner = np.concatenate([owners[ended], owners])
    rank = np.concatenate([ends[ended], starts, new])
    kind = np.repeat([_DERIVED, _STORED, _NEW], [len(ended), count, len(new)])
    deleted = np.concatenate([np.ones(len(ended), dtype=bool), is_marker, deletes])
    source = np.concatenate([none, np.arange(count + len(new))])
    in_order = np.lexsort((kind, rank, owner))
    owner, rank, kind = owner[in_order], rank[in_order], kind[in_order]
    begins = np.ones(len(owner), dtype=bool)
    begins[1:] = (owner[1:] != owner[:-1]) | (rank[1:] != rank[:-1])
    group = np.cumsum(begins) - 1
    twins = np.full(int(group[-1]) + 1 if len(group) else 0, -1, dtype=np.int64)
    is_stored = kind == _STORED
    twins[group[is_stored]] = source[in_order][is_stored]
    last = np.append(begins[1:], True)[: len(owner)]
    return _Timeline(
        owner[last], rank[last], deleted[in_order][last], source[in_order][last], twins
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """A timeline with what its events become rows of; `keys` has a row with the key of each."""

    timeline: _Timeline
    pool: pa.Table
    ends: Places
    by_rank: pa.Array
    keys: Places


def _changes(
    written: _Written, schema: Schema, key: tuple[str, ...], columns: HistoryColumns
) -> Changes:
    timeline = written.timeline
    continues = np.zeros(len(timeline.owners), dtype=bool)  # the event before has the same key
    continues[1:] = timeline.owners[1:] == timeline.owners[:-1]
    closes = continues.copy()  # the event before began a version, which ends here
    closes[1:] &= ~timeline.deletes[:-1]
    until = np.full(len(continues), -1, dtype=np.int64)
    until[:-1][continues[1:]] = timeline.ranks[1:][continues[1:]]
    until = np.where(timeline.deletes, timeline.ranks, until)
    is_row = ~timeline.deletes | ~closes
    is_twin = timeline.twins >= 0
    same = is_twin.copy()
    same[is_twin] &= until[is_twin] == written.ends[timeline.twins[is_twin]]
    same &= _same_values(timeline, written.pool, schema, key, columns)
    rows = _rows(written, np.flatnonzero(is_row & ~same), until, schema, key, columns)
    gone = timeline.twins[is_twin & ~is_row]
    deletes = written.pool.select(list(key)).take(pa.array(gone))
    order = KeyOrder.of(schema, key)
    return Changes(_sorted(rows, order, schema), _sorted(deletes, order, schema.select(key)))


def _same_values(
    timeline: _Timeline,
    pool: pa.Table,
    schema: Schema,
    key: tuple[str, ...],
    columns: HistoryColumns,
) -> Mask:
    """(n,) whether an event gives the values that the stored version at its time has."""
    same = np.ones(len(timeline.owners), dtype=bool)
    compared = np.flatnonzero(
        (timeline.twins >= 0) & (timeline.sources != timeline.twins) & ~timeline.deletes
    )
    if not len(compared):
        return same
    ours, theirs = pa.array(timeline.sources[compared]), pa.array(timeline.twins[compared])
    for field in schema:
        if field.name not in key and field != columns.end:
            column = flat(pool.column(field.name))
            same[compared] &= same_values(column.take(ours), column.take(theirs))
    return same


def _rows(
    written: _Written,
    chosen: Places,
    until: Places,
    schema: Schema,
    key: tuple[str, ...],
    columns: HistoryColumns,
) -> pa.Table:
    """The versions to write; those that delete have defaults in all columns but the key."""
    timeline, pool, ends = written.timeline, written.pool, until[chosen]
    values = np.where(timeline.deletes[chosen], pool.num_rows - 1, timeline.sources[chosen])
    arrays = []
    for field in schema:
        column = flat(pool.column(field.name))
        if field == columns.start:
            arrays.append(written.by_rank.take(pa.array(timeline.ranks[chosen])))
        elif field == columns.end:
            arrays.append(written.by_rank.take(pa.array(ends, mask=ends < 0)))
        elif field.name in key:
            arrays.append(column.take(pa.array(written.keys[chosen])))
        else:
            arrays.append(column.take(pa.array(values)))
    return pa.table(arrays, schema=arrow_schema(schema))


def _sorted(rows: pa.Table, order: KeyOrder, schema: Schema) -> pa.Table | None:
    if not rows.num_rows:
        return None
    rows = pa.table(rows.columns, schema=arrow_schema(schema))
    return rows.take(pa.array(order.columns(rows).sort()))
