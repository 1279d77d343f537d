"""Resolve events by column: of each column, the value with the greatest sequence counts.

A row starts with the defaults of its columns. An event sets the columns that it gives, and a delete
sets all of them to their defaults. So a late event changes only what nothing newer has set, and a
late delete clears what was set before it. The row is there if its newest event is no delete. This
is the fold of the events in the order of their sequences, whatever order they come in.

Soundness: the stored sequence of a value is that of the event that set it (`column_entries`). The
result depends on the stored versions of these keys alone, so the commit conflicts with others that
write or delete one of them, and is resolved again (invariants I7 and 38).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.changes.column_order.column_entries import ColumnEntries, entries_column
from rowsieve.changes.column_order.ranked_sequences import (
    NEVER,
    RankedSequences,
    Ranks,
    ranked,
)
from rowsieve.changes.current_rows import current_rows, places_of
from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.event_order.sequence_columns import order_of
from rowsieve.changes.event_order.stored_sequences import stored_versions
from rowsieve.changes.event_order.too_late import OnTooLate, too_late
from rowsieve.changes.partial.events import Events
from rowsieve.objects import ObjectStore
from rowsieve.predicate.arrays import repeated
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.conform import conform
from rowsieve.types.encodings import arrow_schema, arrow_type
from rowsieve.types.logical import Field
from rowsieve.types.ordering.column_order import COLUMN_ORDER
from rowsieve.types.ordering.keys import KeyOrder, flat
from rowsieve.types.stored_defaults import constant

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Stored:
    """What the table has of n keys.

    `rows` are the rows that are there, and `places` (n,) the row of each key, or -1. `versions`
    (n,) are the ranks of the keys' newest versions, tombstones too, `events` (m,) those of the
    events, and `entries` those of the rows' column orders.
    """

    rows: pa.Table
    places: Places
    sequences: RankedSequences
    versions: Ranks
    events: Ranks
    orders: ColumnEntries
    entries: Ranks

    def column(self, field_id: int) -> Ranks:
        """(n,) the ranks of the values of a column; of a deleted row, that of the delete."""
        result = self.versions.copy()
        here = np.flatnonzero(self.places >= 0)
        rows = np.empty(self.rows.num_rows, dtype=np.int64)
        rows[self.places[here]] = self.versions[here]
        ranks = self.orders.ranks_of(field_id, rows, self.entries)
        result[here] = ranks[self.places[here]]
        return result


@dataclass(frozen=True, slots=True)
class _Winner:
    """The event (n,) that sets a column of each key, or -1, and the rank of the value then."""

    events: Places
    ranks: Ranks


def resolve_columns(
    store: ObjectStore,
    snapshot: Snapshot,
    events: Events,
    operation: str,
    on_too_late: OnTooLate | None,
) -> tuple[Changes, int]:
    """Return the rows to write and the keys to delete, and how many events changed nothing.

    The snapshot has the commit's columns.
    """
    events, early = _above_floor(store, snapshot, events, operation, on_too_late)
    if not len(events):
        return Changes(None, None), early
    stored = _stored(store, snapshot, events)
    fields = [
        field
        for field in snapshot.schema
        if field.name not in (*snapshot.table.key, *snapshot.table.sequence, COLUMN_ORDER)
    ]
    newest = _last_events(events, np.ones(len(events), dtype=bool))
    comes_last = stored.events[newest] >= stored.versions
    is_row = np.where(comes_last, ~events.deletes[newest], stored.places >= 0)
    takes_effect = stored.events >= stored.versions[events.owners]
    none, winners, is_changed = np.zeros(len(events), dtype=bool), {}, comes_last.copy()
    masks = {field.id: events.gives.get(field.name, none) for field in fields}
    masks[snapshot.next_field_id] = np.logical_and.reduce([~none, *masks.values()])  # later columns
    for field_id, gives in masks.items():
        sets, before = events.deletes | gives, stored.column(field_id)
        takes_effect |= sets & (stored.events >= before[events.owners])
        winners[field_id] = winner = _winner(events, sets, stored.events, before)
        is_changed |= winner.events >= 0
    late = int((~takes_effect).sum())
    written = np.flatnonzero(is_changed & is_row)
    ranks = np.maximum(stored.versions, stored.events[newest])
    deletes = _deletes(snapshot, events, stored, np.flatnonzero(is_changed & ~is_row), ranks)
    if not len(written):
        return Changes(None, deletes), early + late
    rows = _rows(snapshot, fields, events, stored, winners, written, ranks)
    return Changes(rows, deletes), early + late


def _above_floor(
    store: ObjectStore,
    snapshot: Snapshot,
    events: Events,
    operation: str,
    on_too_late: OnTooLate | None,
) -> tuple[Events, int]:
    """The events that the floor allows, and how many it does not."""
    if not len(events):
        return events, 0
    actions = events.keys.take(pa.array(events.owners))
    assert events.sequences is not None
    for name, column in zip(snapshot.table.sequence, events.sequences.columns, strict=True):
        actions = actions.append_column(name, column)
    low = too_late(store, snapshot, actions, operation, on_too_late)
    return (events, 0) if low is None else (events.select(~low), int(low.sum()))


def _stored(store: ObjectStore, snapshot: Snapshot, events: Events) -> _Stored:
    order, sequence = KeyOrder.of(snapshot.schema, snapshot.table.key), order_of(snapshot)
    columns = [name for name in snapshot.schema.names if name not in snapshot.table.key]
    current = current_rows(store, snapshot, order, events.keys, columns)
    versions = arrow_schema(snapshot.schema.select(sequence.names)).empty_table()
    places = np.full(events.keys.num_rows, -1, dtype=np.int64)
    if snapshot.parts.numbers("deletes.rows").any():
        of_keys = stored_versions(store, snapshot, events.keys).versions
        places, versions = places_of(of_keys, events.keys, order), of_keys.select(sequence.names)
    deleted = (current.places < 0) & (places >= 0)
    orders = ColumnEntries.read(current.rows.column(COLUMN_ORDER), sequence)
    assert events.sequences is not None
    stored = events.sequences.rename_columns(list(sequence.names))
    sources = [current.rows.select(sequence.names), versions, stored, orders.sequences]
    sequences = ranked(sources, sequence)
    of_rows, of_versions, of_events, of_entries = sequences.ranks
    ranks = np.full(events.keys.num_rows, NEVER, dtype=np.int64)
    here = np.flatnonzero(current.is_present)
    ranks[here] = of_rows[current.places[here]]
    ranks[deleted] = of_versions[places[deleted]]
    return _Stored(current.rows, current.places, sequences, ranks, of_events, orders, of_entries)


def _last_events(events: Events, chosen: Mask) -> Places:
    """(n,) the last of the chosen events of each key, -1 for none."""
    places = np.full(events.keys.num_rows, -1, dtype=np.int64)
    chosen_places = np.flatnonzero(chosen)
    places[events.owners[chosen_places]] = chosen_places  # ascending: the last one stays
    return places


def _winner(events: Events, sets: Mask, ranks: Ranks, before: Ranks) -> _Winner:
    """The events that set a column and are not below the value that is there."""
    last = _last_events(events, sets)
    winner_ranks = np.where(last >= 0, ranks[last], NEVER)
    wins = (last >= 0) & (winner_ranks >= before)
    return _Winner(np.where(wins, last, -1), np.where(wins, winner_ranks, before))


def _deletes(
    snapshot: Snapshot, events: Events, stored: _Stored, gone: Places, ranks: Ranks
) -> pa.Table | None:
    """The tombstones of these keys."""
    if not len(gone):
        return None
    keys, sequences = events.keys.take(pa.array(gone)), stored.sequences.taken(ranks[gone])
    columns = snapshot.schema.select((*keys.column_names, *snapshot.table.sequence))
    return pa.table([*keys.columns, *sequences.columns], schema=arrow_schema(columns))


def _rows(
    snapshot: Snapshot,
    fields: list[Field],
    events: Events,
    stored: _Stored,
    winners: dict[int, _Winner],
    written: Places,
    ranks: Ranks,
) -> pa.Table:
    """The rows of these keys."""
    keys = events.keys.take(pa.array(written))
    columns = {name: flat(keys.column(name)) for name in keys.column_names}
    sequences = stored.sequences.taken(ranks[written])
    columns |= {name: flat(sequences.column(name)) for name in snapshot.table.sequence}
    for field in fields:
        won = winners[field.id].events[written]
        columns[field.name] = _values(field, events, stored, won, stored.places[written])
    type_ = arrow_type(snapshot.schema.field(COLUMN_ORDER).type)
    columns[COLUMN_ORDER] = entries_column(
        {field_id: winner.ranks[written] for field_id, winner in winners.items()},
        ranks[written],
        stored.sequences,
        type_,
    )
    names = arrow_schema(snapshot.schema).names
    return conform(pa.table([columns[name] for name in names], names=names), snapshot.schema)


def _values(field: Field, events: Events, stored: _Stored, won: Places, places: Places) -> pa.Array:
    """(n,) the values of a column: of the event that sets it, of the row, or the default."""
    type_ = arrow_type(field.type)
    pool = [repeated(constant(field.default, field.type), 1), flat(stored.rows.column(field.name))]
    at = np.where(places >= 0, 1 + places, 0)
    sets = won >= 0
    at[sets] = 0  # a delete
    if field.name in events.gives:
        offset = sum(map(len, pool))
        pool.append(flat(events.values.column(field.name)))
        gives = sets & ~events.deletes[won]
        at[gives] = offset + won[gives]
    values = pa.concat_arrays([each if each.type == type_ else each.cast(type_) for each in pool])
    return values.take(pa.array(at))
