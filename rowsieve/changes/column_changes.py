"""Change the columns of a table: a commit without rows, which writes no data file.

Soundness: a schema change is computed on the newest version. It takes effect on that version's
columns only: if a concurrent commit changes the columns, this one is a CommitConflict. The first
change makes the table need a reader that finds columns by id, or fields inside them as well, so
that an older Rowsieve refuses the table instead of reading it by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from rowsieve.bridges.sql.alterations import TableChange, of_columns
from rowsieve.bridges.sql.constraint_actions import AddConstraint, DropConstraint
from rowsieve.changes.change import Change, Question
from rowsieve.changes.column_order.order_column import check_order_column
from rowsieve.changes.constraint_changes import (
    Proof,
    change_constraints,
    check_evolution,
    drops_constraint,
)
from rowsieve.changes.event_order.stored_floors import widened_floor
from rowsieve.changes.event_order.truncation import truncated_as
from rowsieve.changes.expiry_condition import EXPIRE_ROWS_WHEN, ids_used
from rowsieve.changes.history.history_columns import named_history
from rowsieve.changes.partial.combine_rules import table_rules
from rowsieve.errors import CommitConflict, InvalidInput, InvalidSchemaChange, UnsupportedOperation
from rowsieve.executor.execute import Execution
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan import OutputColumn
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.ir import And, Column, FieldAccess, IsNull, Not, Operand, Predicate
from rowsieve.properties import COMBINE, HISTORY
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.selection import PROPERTIES_WITH_COLUMNS, named_ids
from rowsieve.storage.differential import as_updates, evolved_columns, is_differential
from rowsieve.storage.log.commit_log import CommitRequest
from rowsieve.storage.parts.memory_statistics import with_memory_statistics
from rowsieve.storage.snapshot import FIELD_CHANGES, KIND_CHANGES, SCHEMA_CHANGES, Snapshot
from rowsieve.types.evolution import (
    SchemaChange,
    changes_fields,
    changes_kinds,
    evolve,
    why_not_held,
)
from rowsieve.types.field_paths import Chain, all_fields, shown
from rowsieve.types.logical import Date, Field, Nanos, Struct, Timestamp, type_name
from rowsieve.types.ordering.sort_order import CLUSTER_BY, cluster_order
from rowsieve.types.schema import Schema
from rowsieve.types.widening import greatest_day


def alter_columns(
    change: Change,
    base: Snapshot,
    head: Snapshot,
    changes: Sequence[TableChange],
    proof: Proof | None = None,
) -> CommitRequest:
    """Apply changes to the columns of the head, and to its constraints.

    `base` is the version that the changes were made for. Attempts of one call share the `proof`.
    """
    if head.schema.id != base.schema.id:
        raise CommitConflict(
            f"the columns of the table were changed by another commit after version "
            f"{base.version}; nothing was changed: look at the columns of version {head.version} "
            "and make the change again"
        )
    columns = of_columns(changes)
    of_constraints = _of_constraints(changes, head)
    proof = proof or Proof()
    dropped = [each for each in of_constraints if drops_constraint(head, each)]
    if dropped:  # first, because a column of one of them may be dropped
        info = change_constraints(change.store, head, dropped, proof)
        head = dataclasses.replace(head, table=info)
    if columns:
        request = _altered(change, head, columns)
        assert request.schema is not None
        assert request.info is not None
        head = dataclasses.replace(head, schema=request.schema, table=request.info)
    else:
        request = change.request(None)
    if not of_constraints:
        return request
    others = [each for each in of_constraints if each not in dropped]
    info = change_constraints(change.store, head, others, proof)
    return dataclasses.replace(request, info=info)


def _of_constraints(
    changes: Sequence[TableChange], head: Snapshot
) -> list[AddConstraint | DropConstraint]:
    """The changes of constraints; UnsupportedOperation for a differential table."""
    chosen = [each for each in changes if isinstance(each, AddConstraint | DropConstraint)]
    if chosen and is_differential(head.table):
        raise UnsupportedOperation(
            "constraint: the table is differential, and a constraint would hold for its updates, "
            "not for the rows that they add up to; nothing was changed. Check the rows before you "
            "append them"
        )
    return chosen


def _altered(change: Change, head: Snapshot, changes: Sequence[SchemaChange]) -> CommitRequest:
    required = (*head.table.key, *head.table.sequence)
    schema, next_field_id = evolve(head.schema, changes, head.next_field_id, required)
    if is_differential(head.table):
        schema = evolved_columns(head.schema, schema)
    if name := far_dates(head, schema.fields):
        raise InvalidSchemaChange(
            f"cannot widen column {name!r} from date to a time: by the statistics of the parts it "
            "may have dates that no time of the new type has: a timestamp ends 292,000 years from "
            "1970, one of nanoseconds in 2262; add a column of the new type, and update it from "
            "the old one"
        )
    check_order_column(head.schema, schema, head.table)
    _check_not_null(change.store, as_updates(head), schema)
    _check_properties(head, schema)
    check_evolution(head.schema, schema, head.table)
    names = {field.id: field.name for field in schema}
    key = tuple(names[head.schema.field(name).id] for name in head.table.key)
    sequence = tuple(names[field.id] for field in head.sequence_fields)
    needed = {SCHEMA_CHANGES}
    if changes_fields(head.schema, schema, head.table.key):
        needed.add(FIELD_CHANGES)
    if changes_kinds(head.schema, schema):
        needed.add(KIND_CHANGES)
    features = tuple(sorted({*head.table.features, *needed}))
    types = head.sequence_fields, tuple(map(schema.field, sequence))
    properties = head.table.properties
    info = dataclasses.replace(
        head.table,
        features=features,
        key=key,
        sequence=sequence,
        late_floor=widened_floor(head.table.late_floor, *types),
        properties=truncated_as(properties, properties, *types),
    )
    return dataclasses.replace(
        change.request(None), info=info, schema=schema, next_field_id=next_field_id
    )


def check_same_columns(operation: str, schema_id: int, head: Snapshot) -> None:
    """Raise CommitConflict if the head's columns differ from the schema that data was prepared for.

    Names in a condition and in the data refer to the columns of that schema.
    """
    if head.schema.id != schema_id:
        raise CommitConflict(
            f"{operation}: the columns of the table were changed by another commit, up to version "
            f"{head.version}: they are ({', '.join(head.schema.names)}) now. Nothing was written; "
            "check the data and the condition, and do it again"
        )


def check_same_meaning(
    operation: str, before: Schema, head: Snapshot, reads: Callable[[], Iterable[Field]]
) -> None:
    """Raise CommitConflict if a column that a change reads or assigns is another one in the head.

    `before` is the schema that the change was written for, `reads` returns its columns. Other
    columns may have come or gone: the change is computed from the head's rows, which have them.
    """
    if head.schema.id == before.id:
        return
    now = {field.name: (field.id, field.type) for field in head.schema}
    if any(now.get(field.name) != (field.id, field.type) for field in reads()):
        check_same_columns(operation, before.id, head)


def columns_read(
    schema: Schema, question: Question, assigned: Mapping[str, Operand]
) -> tuple[Field, ...]:
    """Return the columns that a condition and assignments read or assign."""
    semantics, now_us = question.semantics, question.now_us
    bound = bind(question.predicate, schema, semantics, now_us=now_us, simplified=False)
    names = [column.name for column in bound.columns]
    for name, operand in assigned.items():
        of_operand = bind_operand(operand, schema, semantics, now_us=now_us)
        names += [name, *(column.name for column in of_operand.columns)]
    return tuple(map(schema.field, names))


def check_restorable(head: Snapshot, target: Snapshot) -> None:
    """Raise UnsupportedOperation if the head lacks a column of the version to restore."""
    why = why_not_held(target.schema.fields, head.schema.fields)
    if not why and (name := far_dates(target, head.schema.fields)):
        why = f"widened {name}, which had dates that its type now does not have,"
    if why:
        raise UnsupportedOperation(
            f"restore: the table has {why} since version {target.version}, so the rows of that "
            f"version would not come back whole; read it with scan(version={target.version}) and "
            "write what you need"
        )


def far_dates(snapshot: Snapshot, fields: Iterable[Field]) -> str:
    """Return a date column that is a time in `fields` and may have dates beyond its range.

    Empty if there is none. Hidden rows count as well: they are decoded with the others.
    """
    now = {field.id: field.type for field in all_fields(fields)}
    widened = [
        (field, wide)
        for field in all_fields(snapshot.schema)
        if isinstance(field.type, Date) and isinstance(wide := now.get(field.id), Timestamp | Nanos)
    ]
    if not widened:
        return ""
    parts = with_memory_statistics(snapshot.parts, snapshot.schema)
    statistics = PartStatistics(parts, snapshot.schema)
    has_rows = parts.data_rows() > 0
    for field, wide in widened:
        known = statistics.subject(field.id)
        if known is None:
            if has_rows.any():
                return field.name
            continue
        matter = pa.array(~known.empty & has_rows)
        days = pa.concat_arrays([known.lower.filter(matter), known.upper.filter(matter)])
        last = greatest_day(wide)
        far = np.abs(days.cast(pa.int32()).fill_null(last + 1).to_numpy()) > last
        if far.any():
            return field.name
    return ""


def _check_not_null(store: ObjectStore, head: Snapshot, schema: Schema) -> None:
    """Raise InvalidSchemaChange if a column becomes NOT NULL, and a row of the head has NULL in it.

    A field of a struct may be NULL where the struct is. Rows are read only where statistics do not
    show that there is none.
    """
    now = {field.id: field for field in all_fields(schema)}
    for chain in _chains(head.schema.fields):
        field = chain[-1]
        if not field.nullable or now.get(field.id, field).nullable:
            continue
        known = PartStatistics(head.parts, head.schema).subject(field.id)
        has_rows = head.parts.data_rows() > 0
        if not has_rows.any() or (known is not None and not known.may_be_null[has_rows].any()):
            continue
        plan = plan_scan(
            head,
            store.uri,
            predicate=_is_null_inside(chain),
            columns=(OutputColumn(chain[0].name),),
            now_us=0,
        )
        rows = sum(batch.num_rows for batch in Execution(plan, store).read())
        if rows:
            raise InvalidSchemaChange(
                f"cannot disallow NULL in column {shown(chain)!r}: {rows:,} rows of version "
                f"{head.version} have NULL in it; update or delete them first"
            )


def _chains(fields: Sequence[Field], outer: Chain = ()) -> Iterator[Chain]:
    """Yield the columns and the fields of structs in them, each with the structs it is in."""
    for field in fields:
        chain = (*outer, field)
        yield chain
        if isinstance(field.type, Struct):
            yield from _chains(field.type.fields, chain)


def _is_null_inside(chain: Chain) -> Predicate:
    """The condition that the last field is NULL, and the struct that it is in is not."""
    operand: Operand = Column(chain[0].name)
    condition: Predicate = IsNull(operand)
    for field in chain[1:]:
        inner = FieldAccess(operand, field.name)
        condition, operand = And((Not(IsNull(operand)), IsNull(inner))), inner
    return condition


def _check_properties(head: Snapshot, schema: Schema) -> None:
    """Raise InvalidSchemaChange if a property names a column that is dropped or renamed."""
    properties = head.table.properties
    try:
        after = _named(properties, schema)
    except InvalidInput as error:
        raise InvalidSchemaChange(
            f"{error}; unset the property first (unset_properties), and set it again after the "
            "change"
        ) from error
    if _named(properties, head.schema) != after:
        names = (*PROPERTIES_WITH_COLUMNS, CLUSTER_BY, EXPIRE_ROWS_WHEN, HISTORY, COMBINE)
        named = ", ".join(name for name in names if name in properties)
        raise InvalidSchemaChange(
            f"the properties {named} name a column whose name becomes another column's; unset them "
            "first, and set them again after the change"
        )
    _check_history(properties, head.schema, schema)


def _check_history(properties: Mapping[str, str], schema: Schema, altered: Schema) -> None:
    """Raise InvalidSchemaChange if versions of rows could not be kept in the altered columns."""
    times, after = named_history(properties, schema), named_history(properties, altered)
    if not times or _hold_versions(*after) or not _hold_versions(*times):
        return
    start, end = (field.name for field in after)
    types = " and ".join(type_name(field.type) for field in after)
    raise InvalidSchemaChange(
        f"the table keeps its history in ({start}, {end}), which must have one type, and {end} may "
        f"be NULL; after the change they would be {types}. Widen both in one change: with "
        f"table.alter() as change: change.widen_column({start!r}, ...); "
        f"change.widen_column({end!r}, ...)"
    )


def _hold_versions(start: Field, end: Field) -> bool:
    return start.type == end.type and end.nullable


def _named(properties: Mapping[str, str], schema: Schema) -> tuple[int, ...]:
    """The ids of the columns that properties name; InvalidInput if they cannot use one of them."""
    order = cluster_order(properties, schema)
    clustered = () if order is None else order.columns
    return (
        *named_ids(properties, schema),
        *(schema.field(name).id for name in clustered),
        *ids_used(properties, schema),
        *(field.id for field in named_history(properties, schema)),
        *(schema.field(name).id for name in table_rules(properties, schema, ())),
    )
