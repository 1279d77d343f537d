"""The call that keeps history, from its arguments to its commit.

Soundness: new versions depend on all stored ones of their keys. So the commit conflicts with every
other that writes a version of one of the keys, and is computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.arguments.annotations import Metadata, Token
from rowsieve.changes.change import nothing_done
from rowsieve.changes.current_rows import near_keys, places_of
from rowsieve.changes.data.ingest import check_change_columns, deletes_in
from rowsieve.changes.history.history_columns import HistoryColumns, history_columns
from rowsieve.changes.history.version_folding import folded
from rowsieve.changes.mutation import Mutation, TouchesKeys
from rowsieve.changes.partial.events import Events, prepare_events
from rowsieve.changes.partial.given_values import read_given
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import InvalidInput, SchemaMismatch
from rowsieve.executor.execute import Execution
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import Column, Comparison, ComparisonOp, IsNull, Literal, Or, conjoin
from rowsieve.predicate.semantics import Semantics
from rowsieve.properties import HISTORY
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder, flat
from rowsieve.types.schema import Schema

_OPERATION = "apply_changes"


def apply_history(
    handle: Handle,
    data: object,
    op: str,
    sequence: str | Sequence[str] | None,
    history: Sequence[str] | None,
    metadata: Metadata | None,
    token: Token | None,
) -> Commit:
    """Apply a change stream to a table that keeps every version of a row."""
    change = handle.change("apply", metadata, token, RETRY_TIMEOUT_S)
    key, schema = handle.order(_OPERATION).names, handle.newest.schema
    columns = history_columns(handle.newest, history, _OPERATION)
    times = (sequence,) if isinstance(sequence, str) else tuple(sequence or ())
    if len(times) != 1:
        raise InvalidInput(
            f"{_OPERATION}: sequence= must name one column with history=, the event time at which "
            f"a version begins, and names {len(times)}"
        )
    business = schema.select(tuple(n for n in schema.names if n != columns.start.name))
    rows = read_given(
        data, _OPERATION, business, keeps=False, op=op, storage_options=handle.storage_options
    )
    if not rows.table.num_rows:
        return nothing_done("apply", handle.newest)
    check_change_columns(rows.table, {op: "op", times[0]: "sequence"})
    table = _with_start(rows.table, times[0], columns, schema)
    without_end = Schema(schema.id, tuple(field for field in schema if field != columns.end))
    order = columns.business_order(schema, key)
    events = prepare_events(
        replace(rows, table=table),
        without_end,
        order,
        _OPERATION,
        deletes=deletes_in(table.column(op), op),
        sequence=(columns.start.name,),
        table_order=(columns.start.name,),
        control=() if op in without_end.names else (op,),
    )

    def build(snapshot: Snapshot) -> Mutation | None:
        checked = history_columns(snapshot, history, _OPERATION)
        stored = _stored(change.store, snapshot, order, events, checked)
        changes = folded(stored, events, snapshot.schema, key, checked)
        if changes.is_empty:
            return None
        request = replace(change.write(snapshot, changes), keeps_history=True)
        if HISTORY not in snapshot.table.properties:
            properties = {**snapshot.table.properties, HISTORY: checked.text}
            request = replace(request, info=replace(snapshot.table, properties=properties))
        touches = TouchesKeys(
            change.store, snapshot.schema, order, order.columns(events.keys.combine_chunks())
        )
        return Mutation(request, Kind.READING, touched_by=touches)

    return handle.commit_mutation(change, build)


def _with_start(table: pa.Table, time: str, columns: HistoryColumns, schema: Schema) -> pa.Table:
    """The data with the time of its events in the column in which versions begin."""
    start = columns.start.name
    for name in table.column_names:
        is_start = name.lower() == start.lower() and name != time
        if is_start or name.lower() == columns.end.name.lower():
            raise SchemaMismatch(
                f"{_OPERATION}: the data has column {name!r}, which history= computes from "
                f"sequence={time!r}; leave it out"
            )
    if time == start:
        return table
    table = table.append_column(start, table.column(time))
    return table if time in schema.names else table.drop_columns([time])


def _stored(
    store: ObjectStore,
    snapshot: Snapshot,
    order: KeyOrder,
    events: Events,
    columns: HistoryColumns,
) -> pa.Table:
    """The versions of the events' keys that hold at the first of the events, or later."""
    assert events.sequences is not None
    first = pc.min(flat(events.sequences.column(columns.start.name)))
    end = Column(columns.end.name)
    value = first.value if pa.types.is_temporal(first.type) else first.as_py()
    ends_later = Comparison(ComparisonOp.GE, end, Literal(value, columns.end.type))
    plan = plan_scan(
        snapshot,
        store.uri,
        predicate=conjoin((near_keys(events.keys, order), Or((IsNull(end), ends_later)))),
        semantics=Semantics.SQL,
        now_us=0,
    )
    execution = Execution(plan, store)
    batches = []
    for batch in execution.read():
        rows = pa.Table.from_batches([batch])
        near = places_of(events.keys, rows, order) >= 0
        batches.append(rows if np.all(near) else rows.filter(pa.array(near)))
    return pa.concat_tables(batches) if batches else execution.schema.empty_table()
