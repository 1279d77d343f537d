"""Resolve changes that give some columns: read the rows of their keys, and make whole rows.

Of a key, the events apply in their order: a delete ends the row, so that what comes after it starts
a new one; the first event of a new row gives its values, and its other columns get their defaults.
Only columns that keep or combine a value are read, and only rows whose events do not begin with a
delete.

Soundness: the result depends on the rows of these keys alone. So the commit conflicts with others
that write or delete one of the keys, and is resolved again (invariant I7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rowsieve.changes.current_rows import current_rows
from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.partial import meeting_values as choices
from rowsieve.changes.partial.events import Events
from rowsieve.changes.partial.exact_sums import SumOverflow, total
from rowsieve.changes.partial.given_values import Mask
from rowsieve.changes.partial.json_merges import BadJson, merged
from rowsieve.changes.partial.list_unions import union
from rowsieve.changes.partial.meeting_values import Candidates, Places
from rowsieve.errors import InvalidData, SchemaMismatch
from rowsieve.objects import ObjectStore
from rowsieve.predicate.arrays import repeated
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.conform import conform
from rowsieve.types.encodings import arrow_schema, arrow_type
from rowsieve.types.logical import Field, type_name
from rowsieve.types.ordering.keys import KeyOrder, flat
from rowsieve.types.schema import Schema
from rowsieve.types.shown_values import shown_row
from rowsieve.types.stored_defaults import constant

_NO_PLACES = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that events make: `n` of them.

    `live` are the events of these rows, and `owners` the row of each, ascending. `keys` are theirs;
    `current` has the columns that were read of rows which are there, and `places` (n,) the row of
    each key in it, or -1. `firsts` (n,) is the first event of each row.
    """

    keys: pa.Table
    live: Places
    owners: Places
    firsts: Places
    current: pa.Table
    places: Places

    def __len__(self) -> int:
        return len(self.places)


def resolve_events(
    store: ObjectStore,
    snapshot: Snapshot,
    events: Events,
    rules: Mapping[str, str],
    operation: str,
) -> Changes:
    """Return the rows to write and the keys to delete; the snapshot has the commit's columns."""
    order = KeyOrder.of(snapshot.schema, snapshot.table.key)
    key_count = events.keys.num_rows
    deletes = np.flatnonzero(events.deletes)
    ends = np.full(key_count, -1, dtype=np.int64)
    ends[events.owners[deletes]] = deletes  # ascending: the last one of each key stays
    live = np.flatnonzero(~events.deletes & (np.arange(len(events)) > ends[events.owners]))
    is_written = np.zeros(key_count, dtype=bool)
    is_written[events.owners[live]] = True
    deleted = _deleted(snapshot, events, ~is_written, ends)
    if not len(live):
        return Changes(None, deleted)
    owners = (np.cumsum(is_written) - 1)[events.owners[live]]
    keys = events.keys.filter(pa.array(is_written))
    starts = np.concatenate([[True], owners[1:] != owners[:-1]])
    continues = (ends < 0)[is_written]
    names = _columns_to_read(snapshot, events, rules, live, owners, continues)
    current, places = _current(store, snapshot, order, keys, continues, names)
    rows = _Rows(keys, live, owners, live[starts], current, places)
    return Changes(_whole_rows(rows, snapshot.schema, events, rules, operation), deleted)


def _deleted(snapshot: Snapshot, events: Events, is_gone: Mask, ends: Places) -> pa.Table | None:
    """The keys to delete, with the sequences of their last events in a table that has an order."""
    if not is_gone.any():
        return None
    gone = events.keys.filter(pa.array(is_gone))
    if events.sequences is None:
        return gone
    last = events.sequences.take(pa.array(ends[is_gone]))
    columns = snapshot.schema.select((*gone.column_names, *snapshot.table.sequence))
    return pa.table([*gone.columns, *last.columns], schema=arrow_schema(columns))


def _columns_to_read(
    snapshot: Snapshot,
    events: Events,
    rules: Mapping[str, str],
    live: Places,
    owners: Places,
    continues: Mask,
) -> list[str]:
    """The columns of rows that keep or combine a value which the table has."""
    names = []
    for field in snapshot.schema:
        if field.name in snapshot.table.key:
            continue
        is_given = np.zeros(len(continues), dtype=bool)
        if field.name in events.gives:
            is_given[owners[events.gives[field.name][live]]] = True
        if rules.get(field.name, "last") != "last":
            is_given[:] = False
        if (continues & ~is_given).any():
            names.append(field.name)
    return names


def _current(
    store: ObjectStore,
    snapshot: Snapshot,
    order: KeyOrder,
    keys: pa.Table,
    continues: Mask,
    names: list[str],
) -> tuple[pa.Table, Places]:
    places = np.full(keys.num_rows, -1, dtype=np.int64)
    if not names or not continues.any() or not len(snapshot.parts):
        return arrow_schema(snapshot.schema.select(tuple(names))).empty_table(), places
    some = keys if continues.all() else keys.filter(pa.array(continues))
    current = current_rows(store, snapshot, order, some, names)
    places[continues] = current.places
    return current.rows, places


def _whole_rows(
    rows: _Rows, schema: Schema, events: Events, rules: Mapping[str, str], operation: str
) -> pa.Table:
    columns = []
    for field in schema:
        if field.name in rows.keys.column_names:
            columns.append(flat(rows.keys.column(field.name)))
            continue
        columns.append(_column(rows, field, events, rules.get(field.name, "last"), operation))
    arrow = arrow_schema(schema)
    for field, column in zip(schema, columns, strict=True):
        if not field.nullable and column.null_count:
            _refuse_null(rows, field, column, operation)
    return conform(pa.table(columns, names=arrow.names), schema)


def _column(rows: _Rows, field: Field, events: Events, rule: str, operation: str) -> pa.Array:
    candidates, initial = _candidates(rows, field, events)
    try:
        match rule:
            case "first":
                return choices.first(candidates)
            case "last_not_null":
                return choices.last_not_null(candidates)
            case "min":
                return choices.least(candidates)
            case "max":
                return choices.greatest(candidates)
            case "sum":
                return total(candidates)
            case "union_of_lists":
                return union(candidates, initial)
            case "json_merge":
                return merged(candidates, initial)
            case _:
                return choices.last(candidates)
    except SumOverflow as error:
        raise InvalidData(
            f"{operation}: the sum of column {field.name!r} for the key "
            f"{shown_row(rows.keys, error.owner)} is beyond its type {type_name(field.type)}; "
            "nothing was written. Widen the column, or correct the data"
        ) from error
    except BadJson as error:
        raise InvalidData(
            f"{operation}: column {field.name!r} for the key {shown_row(rows.keys, error.owner)} "
            f"cannot be merged: {error.reason}; nothing was written"
        ) from error


def _candidates(rows: _Rows, field: Field, events: Events) -> tuple[Candidates, Places]:
    """The values of a column by row, and the place (n,) of the one before the events, or -1."""
    pieces = [repeated(constant(field.default, field.type), 1)]
    initial = np.full(len(rows), -1, dtype=np.int64)
    if field.name in rows.current.column_names:
        pieces.append(flat(rows.current.column(field.name)))
        initial = np.where(rows.places >= 0, 1 + rows.places, -1)
    gives = events.gives.get(field.name)
    giving, first_gives = _NO_PLACES, np.zeros(len(rows), dtype=bool)
    offset = sum(map(len, pieces))
    if gives is not None:
        giving, first_gives = np.flatnonzero(gives[rows.live]), gives[rows.firsts]
        pieces.append(flat(events.values.column(field.name)))
    if field.nullable or field.default is not None:
        initial[(rows.places < 0) & ~first_gives] = 0
    has_initial = initial >= 0
    owners = np.concatenate([np.flatnonzero(has_initial), rows.owners[giving]])
    members = np.concatenate([initial[has_initial], offset + rows.live[giving]])
    in_order = np.argsort(owners, kind="stable")
    type_ = arrow_type(field.type)
    pool = pa.concat_arrays([each if each.type == type_ else each.cast(type_) for each in pieces])
    candidates = Candidates(pool, field.type, members[in_order], owners[in_order], len(rows))
    return candidates, initial


def _refuse_null(rows: _Rows, field: Field, column: pa.Array, operation: str) -> None:
    place = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
    raise SchemaMismatch(
        f"{operation}: no change of the new row with the key {shown_row(rows.keys, place)} gives "
        f"column {field.name!r}, which is NOT NULL and has no default; nothing was written. Give "
        "the column a value in this row, or a default"
    )
