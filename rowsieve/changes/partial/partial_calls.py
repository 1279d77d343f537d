"""The calls that give some columns of rows, or bring columns, from their arguments to their commit.

Soundness: the rows are resolved against the version that the commit follows, with the columns that
the commit adds or widens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.arguments.annotations import Metadata, Token
from rowsieve.changes.change import Change, nothing_done
from rowsieve.changes.column_changes import alter_columns
from rowsieve.changes.column_methods import SchemaMode
from rowsieve.changes.column_order.order_column import without_order_column
from rowsieve.changes.column_order.resolving_columns import resolve_columns
from rowsieve.changes.computed import keyed_change, only_token
from rowsieve.changes.data.ingest import (
    Changes,
    OnDuplicate,
    check_change_columns,
    deletes_in,
    reduce_changes,
)
from rowsieve.changes.defaults import with_defaults
from rowsieve.changes.event_order.sequence_columns import sequence_names
from rowsieve.changes.event_order.too_late import OnTooLate
from rowsieve.changes.merged_columns import changes_with_data
from rowsieve.changes.mutation import Mutation, never
from rowsieve.changes.partial.combine_rules import check_rules, table_rules
from rowsieve.changes.partial.events import Events, prepare_events
from rowsieve.changes.partial.given_values import GivenValues, read_given
from rowsieve.changes.partial.overtaken_events import without_late_events
from rowsieve.changes.partial.resolving import resolve_events
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import InvalidInput
from rowsieve.properties import COMBINE, is_by_column
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import ColumnNames, Schema
from rowsieve.types.stored_defaults import constant


@dataclass(frozen=True, slots=True)
class PartialWrite:
    """What a call says about values that its data does not give whole.

    `keeps`: what the data lacks keeps its value; otherwise it must be there or, with `merges`, has
    its default. `merges`: columns are added and widened for the data.
    """

    operation: str
    keeps: bool
    merges: bool
    combine: Mapping[str, str]
    unchanged: str | None

    @property
    def reads_rows(self) -> bool:
        """Whether the result depends on rows that the table has."""
        return self.keeps or bool(self.combine) or self.unchanged is not None


def upsert_given(
    handle: Handle,
    data: object,
    *,
    keeps: bool,
    combine: Mapping[str, str] | None,
    unchanged: str | None,
    on_duplicate: OnDuplicate,
    schema_mode: SchemaMode,
    on_too_late: OnTooLate | None,
    metadata: Metadata | None,
    token: Token | None,
) -> Commit:
    """Upsert rows that keep or combine values of the rows that the table has."""
    write = PartialWrite("upsert", keeps, schema_mode == "merge", dict(combine or {}), unchanged)
    change = handle.change("upsert", metadata, token, RETRY_TIMEOUT_S, on_too_late)
    key = handle.order("upsert").names
    schema = without_order_column(handle.newest.schema)
    rows = read_given(
        data,
        "upsert",
        schema,
        keeps=keeps,
        unchanged=unchanged,
        storage_options=handle.storage_options,
    )

    sequence = handle.newest.table.sequence

    def events(schema: Schema) -> Events:
        return prepare_events(
            rows,
            schema,
            KeyOrder.of(schema, key),
            "upsert",
            sequence=sequence,
            table_order=sequence,
            on_duplicate=on_duplicate,
        )

    return _commit(handle, change, write, rows.table, events)


def apply_given(
    handle: Handle,
    data: object,
    *,
    op: str,
    sequence: str | Sequence[str] | None,
    keeps: bool,
    combine: Mapping[str, str] | None,
    unchanged: str | None,
    schema_mode: SchemaMode,
    on_too_late: OnTooLate | None,
    metadata: Metadata | None,
    token: Token | None,
) -> Commit:
    """Apply a change stream whose rows keep or combine values, or bring columns."""
    merges = schema_mode == "merge"
    write = PartialWrite("apply_changes", keeps, merges, dict(combine or {}), unchanged)
    change = handle.change("apply", metadata, token, RETRY_TIMEOUT_S, on_too_late)
    key, schema = handle.order("apply_changes").names, without_order_column(handle.newest.schema)
    changed_rows = read_given(
        data,
        "apply_changes",
        schema,
        keeps=keeps,
        fills=merges,
        unchanged=unchanged,
        op=op,
        storage_options=handle.storage_options,
    )
    if not changed_rows.table.num_rows:
        return nothing_done("apply", handle.newest)
    table_order = handle.newest.table.sequence
    names = sequence_names(sequence, table_order)
    check_change_columns(changed_rows.table, {op: "op", **dict.fromkeys(names, "sequence")})
    control = [name for name in dict.fromkeys((op, *names)) if name not in schema.names]
    control = [name for name in control if name.lower() not in map(str.lower, table_order)]
    rows = changed_rows.table.drop_columns(control)

    def filled(schema: Schema) -> GivenValues:
        return changed_rows if keeps or not merges else _with_defaults(changed_rows, schema)

    def reduced(schema: Schema) -> Changes:
        table, order = filled(schema).table, KeyOrder.of(schema, key)
        return reduce_changes(table, schema, order, op=op, sequence=names)

    def events(schema: Schema) -> Events:
        return prepare_events(
            filled(schema),
            schema,
            KeyOrder.of(schema, key),
            "apply_changes",
            deletes=deletes_in(changed_rows.table.column(op), op),
            sequence=names,
            table_order=table_order,
            control=control,
        )

    combines = COMBINE in handle.newest.table.properties
    if not write.reads_rows and not table_order and not combines:
        return handle.commit_merging(change, rows, reduced)
    return _commit(handle, change, write, rows, events)


def delete_given(
    handle: Handle,
    keys: object,
    on_too_late: OnTooLate | None,
    metadata: Metadata | None,
    token: Token | None,
) -> Commit:
    """Delete keys, which have their sequences, from a table with an order of each column."""
    write = PartialWrite("delete", keeps=True, merges=False, combine={}, unchanged=None)
    change = handle.change("delete_keys", metadata, token, RETRY_TIMEOUT_S, on_too_late)
    key, sequence = handle.order("delete by key").names, handle.newest.table.sequence
    rows = read_given(
        keys,
        "delete",
        handle.newest.schema.select((*key, *sequence)),
        keeps=True,
        storage_options=handle.storage_options,
    )

    def events(schema: Schema) -> Events:
        return prepare_events(
            rows,
            schema.select((*key, *sequence)),
            KeyOrder.of(schema, key),
            "delete",
            deletes=np.ones(rows.table.num_rows, dtype=bool),
            sequence=sequence,
            table_order=sequence,
            on_duplicate="last",
        )

    return _commit(handle, change, write, rows.table, events)


def _with_defaults(rows: GivenValues, schema: Schema) -> GivenValues:
    """Give what the data lacks its default; what a row says is unchanged stays absent."""
    table = with_defaults(rows.table, schema)
    defaults = {field.name: field for field in schema if field.default is not None}
    names = ColumnNames(schema.names)
    for place, name in enumerate(rows.table.column_names):
        field, lacking = defaults.get(names.column(name)), rows.lacking.get(name)
        if field is None or lacking is None:
            continue
        default, column = constant(field.default, field.type), table.column(place)
        column = column.cast(default.type) if pa.types.is_null(column.type) else column
        filled = pc.if_else(pa.array(lacking), default.cast(column.type), column)
        table = table.set_column(place, name, filled)
    return replace(rows, table=table)


def _commit(
    handle: Handle,
    change: Change,
    write: PartialWrite,
    rows: pa.Table,
    events: Callable[[Schema], Events],
) -> Commit:
    """Resolve and commit the events; `rows` has the columns of the data that are the table's."""
    late = 0

    def build(snapshot: Snapshot) -> Mutation | None:
        nonlocal late
        evolved, altered = snapshot, None
        if write.merges and (wanted := changes_with_data(snapshot.schema, rows)):
            altered = alter_columns(change, snapshot, snapshot, wanted)
            assert altered.schema is not None
            assert altered.next_field_id is not None
            evolved = replace(snapshot, schema=altered.schema, next_field_id=altered.next_field_id)
        order = KeyOrder.of(evolved.schema, snapshot.table.key)
        changes, late = _resolved(change, evolved, events, write)
        mutation = keyed_change(change, evolved, order, changes, never, overtakes=True)
        if mutation is None:
            return only_token(change, late)
        request = replace(mutation.request, rows_late=late, keeps_rules=True)
        if altered is not None:
            request = replace(
                request,
                info=altered.info,
                schema=altered.schema,
                next_field_id=altered.next_field_id,
            )
        return replace(mutation, request=request)

    commit = handle.commit_mutation(change, build)
    return commit if commit.committed else replace(commit, rows_late=late)


def _resolved(
    change: Change, snapshot: Snapshot, events: Callable[[Schema], Events], write: PartialWrite
) -> tuple[Changes, int]:
    """Whole rows and keys to delete, and how many events are late."""
    schema, info, store = snapshot.schema, snapshot.table, change.store
    fixed = (*info.key, *info.sequence)
    rules = table_rules(info.properties, schema, fixed)
    rules |= check_rules(write.combine, schema, fixed, write.operation)
    if is_by_column(info.properties):
        if rules:
            raise InvalidInput(
                f"{write.operation}: combine= has rules, and each column of the table has its "
                "newest value (column_order='each'); nothing was written. Leave it out"
            )
        unordered = events(without_order_column(schema))
        return resolve_columns(store, snapshot, unordered, write.operation, change.on_too_late)
    timely, late = without_late_events(
        store, snapshot, events(schema), rules.values(), write.operation, change.on_too_late
    )
    return resolve_events(store, snapshot, timely, rules, write.operation), late
