"""Compute each kind of change from one snapshot: delete, update, overwrite, restore.

In a table with a key, a change is rows to write and keys to delete. In a table without a key, rows
are hidden by deletion vectors and new versions are appended. The functions return a `Mutation`,
which knows its conflicts, or None if there is nothing to change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.change import Change, Question
from rowsieve.changes.column_changes import check_restorable
from rowsieve.changes.column_order.updated_orders import with_assigned_values
from rowsieve.changes.constraint_changes import check_all
from rowsieve.changes.data.ingest import Changes, prepare_keys
from rowsieve.changes.event_order.stored_floors import widened_floor
from rowsieve.changes.event_order.truncation import truncated_as
from rowsieve.changes.hiding import hide_and_add, hide_and_append, hide_and_update
from rowsieve.changes.mutation import AddsMatches, AnyOf, Mutation, TouchesKeys, key_columns_of
from rowsieve.errors import (
    InvalidData,
    InvalidInput,
    KeyViolation,
    StalePlan,
    UnsupportedOperation,
)
from rowsieve.executor.execute import Execution
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan import OutputColumn, ScanPlan, check_fits
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.ir import TRUE, Cast, Operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.properties import CONSTRAINTS, TRUNCATED
from rowsieve.storage.log.commit_log import CommitRequest
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.log.floors import check_kept
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.vector_columns import VectorRef
from rowsieve.storage.parts.row_versions import noted_restore
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.conform import conform
from rowsieve.types.logical import Field
from rowsieve.types.ordering.column_order import COLUMN_ORDER
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema
from rowsieve.types.shown_values import shown_row


@dataclass(frozen=True, slots=True)
class NewParts:
    """Parts that were written before their commit; `keys` are those of all rows, in any order."""

    parts: PartTable
    rows: int
    keys: pa.Table


def delete_where(change: Change, snapshot: Snapshot, question: Question) -> Mutation | None:
    """Delete every row for which the predicate is TRUE."""
    return delete_planned(change, snapshot, _plan(change.store, snapshot, question))


def delete_planned(change: Change, snapshot: Snapshot, plan: ScanPlan) -> Mutation | None:
    """Delete exactly the rows that a plan of this snapshot returns.

    StalePlan for a plan of another version; InvalidInput for a plan whose result may differ between
    reads.
    """
    _check_determined(change, snapshot, plan)
    if not snapshot.table.key:
        return hide_and_append(change, snapshot, plan, None)
    order = KeyOrder.of(snapshot.schema, snapshot.table.key)
    keys = _rows(change.store, plan.project((*order.names, *snapshot.table.sequence)))
    if not keys.num_rows:
        return None
    keys = prepare_keys(keys, snapshot.schema, order, change.operation, snapshot.table.sequence)
    return _by_key(change, snapshot, order, Changes(None, keys), Question.of(plan))


def _check_determined(change: Change, snapshot: Snapshot, plan: ScanPlan) -> None:
    """Reject a plan of another version, and a plan that may return other rows each time."""
    if plan.version != snapshot.version and plan.table_uuid == snapshot.table.uuid:
        raise StalePlan(
            f"{change.operation}: the plan is of version {plan.version} and the table is at "
            f"version {snapshot.version}; nothing was changed: plan the scan again"
        )
    check_fits(plan, snapshot)
    if plan.limit is not None and not plan.ordered:
        raise InvalidInput(
            f"{change.operation}: a plan with limit={plan.limit} and no order may return other "
            "rows each time it is read; plan the scan with order_by_key=True, or without a limit"
        )


def update_where(
    change: Change, snapshot: Snapshot, question: Question, assignments: Mapping[str, Operand]
) -> Mutation | None:
    """Rewrite every matching row with the assigned columns computed from its old values."""
    plan = _plan(change.store, snapshot, question)
    return update_planned(change, snapshot, plan, assignments)


def update_planned(
    change: Change, snapshot: Snapshot, plan: ScanPlan, assignments: Mapping[str, Operand]
) -> Mutation | None:
    """Rewrite exactly the rows that a plan of this snapshot returns; ignores the plan's columns.

    Errors are those of `delete_planned`. Expressions are computed by the plan's semantics and time.
    """
    _check_determined(change, snapshot, plan)
    key = snapshot.table.key
    output = []
    for column in snapshot.schema:
        if column.name not in assignments:
            output.append(OutputColumn(column.name))
        elif column.name in (*snapshot.table.sequence, COLUMN_ORDER):
            raise UnsupportedOperation(
                f"update cannot assign sequence column {column.name!r}: an update keeps the "
                "sequence of the row that it saw; upsert rows with a new sequence"
            )
        elif column.name in key:
            raise UnsupportedOperation(
                f"update cannot assign key column {column.name!r}: a key identifies its row; "
                "delete the row and upsert one with the new key"
            )
        else:
            operand = Cast(assignments[column.name], column.type)
            output.append(OutputColumn(column.name, operand, is_stored=True))

    def completed(rows: pa.Table) -> pa.Table:
        return conform(with_assigned_values(rows, snapshot, assignments), snapshot.schema)

    if not key:
        return hide_and_update(change, snapshot, plan, tuple(output), completed)
    rows = _rows(change.store, msgspec.structs.replace(plan, columns=tuple(output)))
    if not rows.num_rows:
        return None
    rows = completed(rows)
    order = KeyOrder.of(snapshot.schema, key)
    rows = rows.take(pa.array(order.columns(rows).sort()))
    return _by_key(change, snapshot, order, Changes(rows, None), Question.of(plan))


def overwrite_where(
    change: Change, snapshot: Snapshot, question: Question, rows: pa.Table
) -> Mutation:
    """Replace every matching row with `rows`, which are sorted and in the table's types.

    Each of the `rows` must match the predicate, so the overwrite is idempotent.
    """
    check_inside(rows, question, snapshot.schema)
    if not snapshot.table.key:
        plan = _plan(change.store, snapshot, question)
        mutation = hide_and_append(change, snapshot, plan, rows)
        assert mutation is not None
        return _whatever_the_isolation(mutation)
    order = KeyOrder.of(snapshot.schema, snapshot.table.key)
    sequence = snapshot.table.sequence
    keys = _read(change.store, snapshot, question, _columns((*order.names, *sequence)))
    if keys.num_rows:
        keys = prepare_keys(keys, snapshot.schema, order, change.operation, sequence)
    _refuse_keys_elsewhere(change, snapshot, order, rows, keys)
    gone = _without(keys, rows, order)
    changes = Changes(rows, gone if gone.num_rows else None)
    return _whatever_the_isolation(_by_key(change, snapshot, order, changes, question))


def overwrite_where_by_parts(
    change: Change, snapshot: Snapshot, question: Question, new: NewParts
) -> Mutation:
    """Replace every matching row with the rows of parts, which were checked to match."""
    if not snapshot.table.key:
        plan = _plan(change.store, snapshot, question)
        return _whatever_the_isolation(hide_and_add(change, snapshot, plan, new.parts, new.rows))
    order = KeyOrder.of(snapshot.schema, snapshot.table.key)
    sequence = snapshot.table.sequence
    keys = _read(change.store, snapshot, question, _columns((*order.names, *sequence)))
    if keys.num_rows:
        keys = prepare_keys(keys, snapshot.schema, order, change.operation, sequence)
    _refuse_keys_elsewhere(change, snapshot, order, new.keys, keys)
    gone = _without(keys, new.keys, order)
    added = new.parts
    if gone.num_rows:
        deleted = change.write(snapshot, Changes(None, gone), overtakes=True).added
        assert deleted is not None
        added = added.append(deleted)
    touched = key_columns_of([new.keys, gone], order)
    mutation = Mutation(
        change.request(added, rows_written=new.rows, rows_deleted=gone.num_rows),
        Kind.READING,
        touched_by=TouchesKeys(change.store, snapshot.schema, order, touched),
        matched_by=AddsMatches(change.store, snapshot, question),
    )
    return _whatever_the_isolation(mutation)


def overwrite_all(
    change: Change, snapshot: Snapshot, added: PartTable | None, rows: int
) -> CommitRequest:
    """Replace all parts of the head with new parts, if there are any."""
    hidden = int(pc.sum(snapshot.parts.column("data.rows")).as_py() or 0)
    removed = snapshot.parts.part_ids
    request = change.request(added, removed, rows_written=rows, rows_deleted=hidden)
    return _at_floor(request, snapshot, (), {})


def is_emptied(snapshot: Snapshot) -> bool:
    """Whether an overwrite without rows changes nothing: no parts, nothing overtaken of others."""
    table = snapshot.table
    return not (len(snapshot.parts) or table.late_floor or TRUNCATED in table.properties)


def restore_to(change: Change, head: Snapshot, target: Snapshot) -> CommitRequest:
    """Replace the head's files with those of `target`; parts keep their commit_ts (I1).

    The columns and constraints stay those of the head. SnapshotExpired if the target is below the
    head's floor, ConstraintViolation if a row of the target violates a constraint.
    """
    if target.table.uuid == head.table.uuid:  # a tag keeps its files itself
        check_kept(target.version, head)
    check_restorable(head, target)
    if head.table.properties.get(CONSTRAINTS) != target.table.properties.get(CONSTRAINTS):
        check_all(change.store, head, target.parts, f"restore: version {target.version}")
    wanted = set(identities(target.parts))
    unchanged = {identity[0] for identity in identities(head.parts) if identity in wanted}
    removed = tuple(part_id for part_id in head.parts.part_ids if part_id not in unchanged)
    back = [i for i, part_id in enumerate(target.parts.part_ids) if part_id not in unchanged]
    request = change.request(None, removed, restored=target.parts.take(back))
    fields = target.sequence_fields
    floor = widened_floor(target.table.late_floor, fields, head.sequence_fields)
    return _at_floor(request, head, floor, target.table.properties, fields)


def _at_floor(
    request: CommitRequest,
    head: Snapshot,
    floor: tuple[str, ...],
    properties_of: Mapping[str, str],
    fields: Sequence[Field] = (),
) -> CommitRequest:
    """Set the floor of an event order to that of the tombstones which the new parts lack.

    Tombstones that were dropped before, and truncates, have overtaken nothing of what replaces the
    rows: only those of the version that comes back count, whose properties and `fields` these are.
    """
    properties = truncated_as(
        head.table.properties, properties_of, fields, head.sequence_fields if fields else ()
    )
    if request.restored is not None:
        properties = noted_restore(properties, head.version + 1)
    if head.table.late_floor == floor and properties is head.table.properties:
        return request
    info = dataclasses.replace(head.table, late_floor=floor, properties=properties)
    return dataclasses.replace(request, info=info)


def identities(parts: PartTable) -> list[tuple[str, str | None, VectorRef | None]]:
    """Return each part with its deletion vectors, which together identify the rows of an entry.

    A stored vector of a later version may hide rows that are visible in the target (invariant I4).
    """
    vectors = parts.column("dv.path").to_pylist()
    return list(zip(parts.part_ids, vectors, parts.vectors(), strict=True))


def _by_key(
    change: Change, snapshot: Snapshot, order: KeyOrder, changes: Changes, question: Question
) -> Mutation:
    keys = key_columns_of([changes.rows, changes.deletes], order)
    return Mutation(
        change.write(snapshot, changes, overtakes=True),
        Kind.READING,
        touched_by=TouchesKeys(change.store, snapshot.schema, order, keys),
        matched_by=AddsMatches(change.store, snapshot, question),
    )


def _whatever_the_isolation(mutation: Mutation) -> Mutation:
    """Check added matches under every isolation level.

    After an overwrite, all matching rows must be its own, under snapshot isolation too.
    """
    both = AnyOf((mutation.touched_by, mutation.matched_by))
    return dataclasses.replace(mutation, touched_by=both)


def _columns(names: tuple[str, ...]) -> tuple[OutputColumn, ...]:
    return tuple(OutputColumn(name) for name in names)


def _plan(
    store: ObjectStore,
    snapshot: Snapshot,
    question: Question,
    columns: tuple[OutputColumn, ...] | None = None,
) -> ScanPlan:
    return plan_scan(
        snapshot,
        store.uri,
        predicate=question.predicate,
        columns=columns,
        semantics=question.semantics,
        now_us=question.now_us,
    )


def _read(
    store: ObjectStore, snapshot: Snapshot, question: Question, columns: tuple[OutputColumn, ...]
) -> pa.Table:
    return _rows(store, _plan(store, snapshot, question, columns))


def _rows(store: ObjectStore, plan: ScanPlan) -> pa.Table:
    execution = Execution(plan, store)
    return pa.Table.from_batches(list(execution.read()), schema=execution.schema)


def check_inside(rows: pa.Table, question: Question, schema: Schema) -> None:
    """Raise InvalidData if a row does not match the condition of the overwrite that brings it."""
    predicate = bind(question.predicate, schema, question.semantics, now_us=question.now_us)
    for batch in rows.to_batches():
        outside = np.flatnonzero(~matching(predicate, batch))
        if len(outside):
            row = shown_row(batch, int(outside[0]), schema)
            raise InvalidData(
                f"overwrite: {len(outside)} rows do not match where=, such as {row}; nothing was "
                "written. Such rows could overwrite rows outside of where=: correct the data or "
                "widen where="
            )


def _refuse_keys_elsewhere(
    change: Change, snapshot: Snapshot, order: KeyOrder, rows: pa.Table, replaced: pa.Table
) -> None:
    """Reject keys of existing rows that are not replaced: these rows would be overwritten."""
    new = _without(rows.select(list(order.names)), replaced, order)
    if not new.num_rows:
        return
    everything = Question(TRUE, Semantics.SQL, 0)
    present = _read(change.store, snapshot, everything, _columns(order.names))
    inside = _without(new, present, order)
    if inside.num_rows < new.num_rows:
        moved = shown_row(_without(new, inside, order), 0, order.fields)
        raise KeyViolation(
            f"overwrite: {new.num_rows - inside.num_rows} keys of the data, such as {moved}, "
            "belong to rows that where= does not match; nothing was written. Remove them from the "
            "data or widen where="
        )


def _without(rows: pa.Table, gone: pa.Table, order: KeyOrder) -> pa.Table:
    """Return the rows whose key is not in `gone`; both tables have unique keys."""
    if not gone.num_rows or not rows.num_rows:
        return rows
    names = list(order.names)
    both = pa.concat_tables([gone.select(names), rows.select(names)])
    columns = order.columns(both)
    positions = columns.sort()
    places = positions[columns.repeats(positions)] - gone.num_rows  # stable: rows come second
    mask = np.ones(rows.num_rows, dtype=bool)
    mask[places] = False
    return rows.filter(pa.array(mask))
