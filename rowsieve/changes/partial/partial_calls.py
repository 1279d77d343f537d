"""The calls that give some columns of rows, from their arguments to their commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rowsieve.arguments.annotations import Metadata, Token
from rowsieve.changes.change import Change
from rowsieve.changes.column_methods import SchemaMode
from rowsieve.changes.computed import keyed_change
from rowsieve.changes.data.ingest import (
    OnDuplicate,
    check_change_columns,
    deletes_in,
    sequences_of,
)
from rowsieve.changes.event_order.sequence_columns import sequence_names
from rowsieve.changes.mutation import Mutation, never
from rowsieve.changes.partial.combine_rules import check_rules
from rowsieve.changes.partial.events import Events, prepare_events
from rowsieve.changes.partial.given_values import GivenValues, read_given
from rowsieve.changes.partial.resolving import resolve_events
from rowsieve.changes.table_handle import Handle, nothing_done
from rowsieve.errors import UnsupportedOperation
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema


def upsert_given(
    handle: Handle,
    data: object,
    *,
    keeps: bool,
    combine: Mapping[str, str] | None,
    unchanged: str | None,
    on_duplicate: OnDuplicate,
    schema_mode: SchemaMode,
    metadata: Metadata | None,
    token: Token | None,
) -> Commit:
    """Upsert rows that keep or combine values of the rows that the table has."""
    if schema_mode == "merge":
        raise UnsupportedOperation(
            "upsert: schema_mode='merge' takes whole rows; nothing was written. Add the columns "
            "with add_column first, or leave out columns=, unchanged= and combine="
        )
    change = handle.change("upsert", metadata, token, RETRY_TIMEOUT_S)
    order, schema = handle.order("upsert"), handle.newest.schema
    rules = check_rules(combine or {}, schema, order.names, "upsert")
    given = read_given(data, "upsert", schema, keeps=keeps, unchanged=unchanged)
    events = prepare_events(given, schema, order, "upsert", on_duplicate=on_duplicate)
    return _commit(handle, change, events, rules, "upsert")


def apply_given(
    handle: Handle,
    data: object,
    *,
    op: str,
    sequence: str | Sequence[str] | None,
    keeps: bool,
    combine: Mapping[str, str] | None,
    unchanged: str | None,
    metadata: Metadata | None,
    token: Token | None,
) -> Commit:
    """Apply a change stream whose rows keep or combine values of the rows that the table has."""
    change = handle.change("apply", metadata, token, RETRY_TIMEOUT_S)
    order, schema = handle.order("apply_changes"), handle.newest.schema
    rules = check_rules(combine or {}, schema, order.names, "apply_changes")
    given = read_given(data, "apply_changes", schema, keeps=keeps, unchanged=unchanged, op=op)
    if not given.table.num_rows:
        return nothing_done("apply", handle.newest)
    names = sequence_names(sequence, handle.newest.table.sequence, "apply_changes")
    events = _stream(given, schema, order, op, names)
    return _commit(handle, change, events, rules, "apply_changes")


def _stream(
    given: GivenValues, schema: Schema, order: KeyOrder, op: str, names: Sequence[str]
) -> Events:
    check_change_columns(given.table, {op: "op", **dict.fromkeys(names, "sequence")})
    sequences = sequences_of(given.table, schema, names, ())
    control: Sequence[str] = [name for name in {op, *names} if name not in schema.names]
    return prepare_events(
        given,
        schema,
        order,
        "apply_changes",
        deletes=deletes_in(given.table.column(op), op),
        sequences=sequences,
        control=control,
    )


def _commit(
    handle: Handle, change: Change, events: Events, rules: Mapping[str, str], operation: str
) -> Commit:
    def build(snapshot: Snapshot) -> Mutation | None:
        if snapshot.table.sequence:
            raise UnsupportedOperation(
                f"{operation}: the table has an event order, and this call keeps or "
                "combines values of the row that is there, which a late change must not; nothing "
                "was written. Give whole rows"
            )
        order = KeyOrder.of(snapshot.schema, snapshot.table.key)
        changes = resolve_events(change.store, snapshot, snapshot.schema, events, rules, operation)
        return keyed_change(change, snapshot, order, changes, never)

    return handle.commit_mutation(change, build)
