"""Turn the events of a call into changes of one table, and tell what became of each event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal, Protocol, TypeAlias

import pyarrow as pa

from rowsieve.arguments import Example
from rowsieve.changes.change import Change
from rowsieve.changes.column_methods import SchemaMode
from rowsieve.changes.column_order.order_column import without_order_column
from rowsieve.changes.data.ingest import Changes, deletes_in, read_data, reduce_changes
from rowsieve.changes.event_order.too_late import OnTooLate
from rowsieve.changes.event_order.truncating import truncate_before
from rowsieve.changes.partial.events import prepare_events
from rowsieve.changes.partial.given_values import read_given
from rowsieve.changes.partial.resolving import resolve_events
from rowsieve.changes.table_handle import Handle
from rowsieve.envelopes.bad_events import BAD_EVENTS, BadEvents, MessagePlaces
from rowsieve.envelopes.change_batches import ChangeBatch, change_batch
from rowsieve.envelopes.changes_table import Destination
from rowsieve.envelopes.event_formats import FORMATS, EventFormat
from rowsieve.envelopes.merged_schema import with_columns_of
from rowsieve.envelopes.messages import OPERATION, Messages, read_messages
from rowsieve.envelopes.reading_events import read_events
from rowsieve.envelopes.values.readings import TargetColumn
from rowsieve.envelopes.values.text_rules import TextRules, Unit
from rowsieve.errors import InvalidData, InvalidInput, UnsupportedOperation
from rowsieve.input_files.given_paths import events_of_paths, names_files
from rowsieve.properties import COLUMN_ORDER_BY, COMBINE, HISTORY, is_by_column
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.snapshot import Snapshot, TableInfo
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.schema import Schema

Times: TypeAlias = Annotated[
    Unit | Mapping[str, Unit], Example("'us'", "'ms', 'us', 'ns', or a dict of these by column")
]
OnBad: TypeAlias = Literal["error", "collect"]
Decimals: TypeAlias = Literal["string", "base64"]


class RowChanges(Protocol):
    """The methods of a table that applying events needs."""

    handle: Handle

    def apply_changes(
        self,
        data: Any,
        *,
        op: str,
        sequence: str | Sequence[str] | None = None,
        missing: Literal["error", "keep"] = "error",
        unchanged: str | None = None,
        schema_mode: SchemaMode = "strict",
        on_too_late: OnTooLate | None = None,
        metadata: Mapping[str, str] | None = None,
        token: tuple[str, int] | None = None,
    ) -> Commit:
        """Apply changes in one commit."""


@dataclass(frozen=True, slots=True)
class EventOptions:
    """What a caller says of events: their format, what they leave open, and of their commits.

    With `on_bad="collect"`, `bad_table` gets the bad events, if it is given.
    """

    format: EventFormat
    source: str | None = None
    sources: frozenset[str] | None = None
    times: Times | None = None
    decimals: Decimals | None = None
    on_too_late: OnTooLate | None = None
    schema_mode: SchemaMode = "strict"
    on_bad: OnBad = "error"
    bad_table: Any = None
    metadata: Mapping[str, str] | None = None
    token: tuple[str, int] | None = None

    def rules(self, default: TextRules, schema: Schema) -> TextRules:
        """The rules of the format with what the caller says."""
        if self.decimals is not None:
            default = replace(default, decimals=self.decimals)
        if isinstance(self.times, str):
            return replace(default, time_unit=self.times)
        return replace(
            default,
            times={schema.field(name).name: unit for name, unit in (self.times or {}).items()},
        )


@dataclass(frozen=True, slots=True)
class AppliedEvents:
    """What became of the events of one call.

    `changes` counts the changes of rows that were applied, `skipped` the messages that change no
    row, by kind. `bad` are the events that were not applied, see `rowsieve.envelopes.bad_events`.
    """

    commit: Commit
    changes: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    bad: pa.Table = field(default_factory=BAD_EVENTS.empty_table, compare=False)


def read_batch(
    messages: Messages, snapshot: Snapshot, options: EventOptions
) -> tuple[ChangeBatch, BadEvents]:
    """Read the messages of one table, and note the bad ones.

    With `schema_mode="merge"`, for the columns that the table has after it, see `merged_schema`.
    """
    snapshot = replace(snapshot, schema=without_order_column(snapshot.schema))
    if options.schema_mode != "merge":
        return _read_as(messages, snapshot, options)
    format_, ignored = FORMATS[options.format], frozenset[str]()
    evolved = snapshot
    if messages.structs is not None:
        evolved, ignored = with_columns_of(
            snapshot, messages, BadEvents(MessagePlaces(), messages.shown), format_
        )
    while True:
        batch, bad = _read_as(messages, evolved, options, ignored)
        wider, nulls = with_columns_of(evolved, messages, bad, format_)
        if wider is evolved and nulls <= ignored:
            break
        evolved, ignored = wider, ignored | nulls
    if batch.truncated and evolved is not snapshot:
        raise UnsupportedOperation(
            f"{OPERATION}: the events bring columns and truncate the table; nothing was written. "
            "Apply those up to the truncate first, and the others in a call of their own"
        )
    return batch, bad


def _read_as(
    messages: Messages,
    snapshot: Snapshot,
    options: EventOptions,
    ignored: frozenset[str] = frozenset(),
) -> tuple[ChangeBatch, BadEvents]:
    """Read the messages for the columns of the snapshot."""
    schema, table = snapshot.schema, snapshot.table
    format_ = FORMATS[options.format]
    rules = options.rules(format_.rules, schema)
    targets = tuple(TargetColumn(each, rules) for each in schema)
    fills = options.schema_mode == "merge" and format_.whole_rows
    destination = Destination(
        targets,
        table.key,
        table.sequence,
        options.source,
        options.sources,
        ignored,
        fills,
        _why_no_truncates(table),
    )
    bad = BadEvents(messages.places, messages.shown, messages.numbers)
    reading = read_events(messages, format_, destination, bad)
    return change_batch(reading, schema, destination, bad), bad


def _why_no_truncates(table: TableInfo) -> str | None:
    """Why a truncate, which may come late, cannot be undone in the table's rows."""
    if not table.sequence:
        return None
    for name in (COLUMN_ORDER_BY, COMBINE, HISTORY):
        if name in table.properties and (name != COLUMN_ORDER_BY or is_by_column(table.properties)):
            return (
                "may come after changes that it precedes, and a row of the table has values of "
                f"several changes (property {name})"
            )
    return None


def check_dead_letters(options: EventOptions) -> None:
    """Raise InvalidInput for a dead-letter table that would get nothing, or cannot take it."""
    if options.bad_table is None:
        return
    if options.on_bad != "collect":
        raise InvalidInput(f"{OPERATION}: bad= takes bad events only with on_bad='collect'")
    handle = getattr(options.bad_table, "handle", None)
    if not isinstance(handle, Handle) or handle.newest.table.key:
        raise InvalidInput(
            f"{OPERATION}: bad= is a table without a key, with the columns "
            f"({', '.join(BAD_EVENTS.names)})"
        )


def apply_events(table: RowChanges, data: Any, options: EventOptions) -> AppliedEvents:
    """Read the events and commit their changes, once; bad events are stored before."""
    handle = table.handle
    with handle.changing("apply"):
        check_dead_letters(options)
        handle.require_writable(OPERATION)
        handle.order(OPERATION)
        if names_files(data):
            columns = arrow_schema(without_order_column(handle.newest.schema))
            data = events_of_paths(data, OPERATION, columns, handle.storage_options)
        try:
            batch, bad = read_batch(read_messages(data), handle.newest, options)
            if options.on_bad == "error":
                bad.refuse(OPERATION, adds_columns=options.schema_mode == "merge")
        except (InvalidData, UnsupportedOperation):
            if (done := handle.committed_before(options.token)) is None:
                raise
            return AppliedEvents(done)
    return commit_batch(table, batch, bad, options)


def commit_batch(
    table: RowChanges, batch: ChangeBatch, bad: BadEvents, options: EventOptions
) -> AppliedEvents:
    """Store the bad events, then commit the changes."""
    batch.warn_of_order()
    bad_rows = bad.table()
    if options.bad_table is not None and bad_rows.num_rows:
        options.bad_table.append(bad_rows, token=options.token)
    if batch.truncate is not None:
        commit = _truncated(table, batch, options)
    elif batch.truncated:
        commit = _overwritten(table.handle, batch, options)
    else:
        commit = _applied(table, batch, options)
    skipped = {kind.value: count for kind, count in batch.skipped.items()}
    return AppliedEvents(commit, batch.rows.num_rows, skipped, bad_rows)


def _applied(table: RowChanges, batch: ChangeBatch, options: EventOptions) -> Commit:
    return table.apply_changes(
        batch.rows,
        op=batch.op,
        sequence=batch.sequence,
        missing="error" if batch.unchanged is None else "keep",
        unchanged=batch.unchanged,
        schema_mode=options.schema_mode,
        on_too_late=options.on_too_late,
        metadata=options.metadata,
        token=options.token,
    )


def _truncated(table: RowChanges, batch: ChangeBatch, options: EventOptions) -> Commit:
    """Truncate at a place of the event order, then apply the changes after it: two commits.

    The second one has the token. A call that is repeated before it truncates at the same place
    again, which changes nothing.
    """
    handle, place, token = table.handle, batch.truncate, options.token
    assert place is not None
    if (done := handle.committed_before(token)) is not None:
        return done
    with handle.changing("overwrite"):
        of_truncate = None if batch.rows.num_rows else token
        change = handle.change("overwrite", options.metadata, of_truncate)
        truncate = partial(truncate_before, change, place=place)
        commit = handle.commit_mutation(change, truncate)
    if not batch.rows.num_rows:
        return commit
    return _applied(table, batch, options)


def _overwritten(handle: Handle, batch: ChangeBatch, options: EventOptions) -> Commit:
    """Replace all rows by those that were written after the truncate, in one commit."""
    with handle.changing("overwrite"):
        change = handle.change("overwrite", options.metadata, options.token)
        return handle.commit_overwrite(change, _since_empty(handle, change, batch).rows)


def _since_empty(handle: Handle, change: Change, batch: ChangeBatch) -> Changes:
    """Resolve changes against a table without rows and event order, as a truncate leaves it."""
    newest, order = handle.newest, handle.order(OPERATION)
    op, sequence = batch.op, batch.sequence
    if batch.unchanged is None:
        table = read_data(batch.rows, OPERATION, newest.schema, op=op)
        return reduce_changes(table, newest.schema, order, op=op, sequence=sequence)
    rows = read_given(
        batch.rows, OPERATION, newest.schema, keeps=True, unchanged=batch.unchanged, op=op
    )
    events = prepare_events(
        rows,
        newest.schema,
        order,
        OPERATION,
        deletes=deletes_in(rows.table.column(op), op),
        sequence=sequence,
        control=(op, *sequence),
    )
    empty = replace(newest, parts=newest.parts.take([]))
    return resolve_events(change.store, empty, events, {}, OPERATION)
