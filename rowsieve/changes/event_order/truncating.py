"""A truncate of events, at its place in the event order of a table.

All rows with a lower sequence are deleted, and so are those that come later: the commit says from
which sequence on changes count (`rowsieve.changes.event_order.truncation`).

Soundness: the commit replaces the table's content, so that it is computed again after any other,
and every change that was computed before it is computed again (the conflict matrix). So no row
below the sequence is committed after it.
"""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from rowsieve.changes.change import Change
from rowsieve.changes.data.ingest import Changes, prepare_keys
from rowsieve.changes.event_order.sequence_columns import check_sequences, order_of
from rowsieve.changes.event_order.truncation import is_below, truncated_before, with_truncation
from rowsieve.changes.mutation import Mutation, never
from rowsieve.executor.execute import Execution
from rowsieve.planner.plan import OutputColumn
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder


def truncate_before(change: Change, snapshot: Snapshot, place: pa.Table) -> Mutation | None:
    """Delete the rows before a sequence of one row; None if a truncate was as late already."""
    order = order_of(snapshot)
    check_sequences(place, order, change.operation, snapshot.parts)
    before = truncated_before(snapshot)
    if before is not None and not is_below(snapshot, place, before)[0]:
        return None
    gone = _rows_before(change, snapshot, place)
    request = change.write(snapshot, Changes(None, gone), overtakes=True)
    info = with_truncation(snapshot.table, place, order.fields)
    return Mutation(dataclasses.replace(request, info=info), Kind.REPLACING, touched_by=never)


def _rows_before(change: Change, snapshot: Snapshot, place: pa.Table) -> pa.Table | None:
    """The keys and sequences of the rows with a lower one, sorted; None if there are none."""
    order = KeyOrder.of(snapshot.schema, snapshot.table.key)
    names = (*order.names, *snapshot.table.sequence)
    plan = plan_scan(snapshot, change.store.uri, columns=tuple(map(OutputColumn, names)), now_us=0)
    execution = Execution(plan, change.store)
    batches = []
    for batch in execution.read():
        rows = pa.Table.from_batches([batch])
        batches.append(rows.filter(pa.array(is_below(snapshot, place, rows))))
    keys = pa.concat_tables([execution.schema.empty_table(), *batches])
    if not keys.num_rows:
        return None
    sequence = snapshot.table.sequence
    return prepare_keys(keys, snapshot.schema, order, change.operation, sequence)
