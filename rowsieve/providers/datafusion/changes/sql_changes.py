"""Executes INSERT, DELETE, UPDATE and TRUNCATE of our session as commits of the table.

DataFusion computes the rows from one version of the table. If a concurrent commit could change
them, the statement runs again from the newest version. Our own reader finds the rows of a DELETE
whose condition translates exactly, and those of an UPDATE in a table without a key.

Soundness: a statement is one commit or none. In a table without a key, DataFusion identifies a row
by its place in the version (`numbered_rows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowsieve import clock
from rowsieve.changes.change import Change, Question
from rowsieve.changes.column_order.order_column import without_order_column
from rowsieve.changes.computed import appended, changes_rows, emptied, keyed_change
from rowsieve.changes.data.ingest import Changes, prepare_appended, prepare_keys, prepare_rows
from rowsieve.changes.defaults import with_defaults
from rowsieve.changes.hiding import hide_places
from rowsieve.changes.mutation import AddsMatches, Check, Mutation, never
from rowsieve.changes.operations import delete_where
from rowsieve.changes.present_keys import without_present
from rowsieve.errors import (
    InvalidInput,
    KeyViolation,
    UnknownColumn,
    UnsupportedOperation,
)
from rowsieve.executor.execute import Execution
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import TRUE, Now, Predicate, walk
from rowsieve.predicate.semantics import Semantics
from rowsieve.properties import COMBINE
from rowsieve.providers.datafusion.changes.assigned_values import assigned, without_views
from rowsieve.providers.datafusion.changes.change_queries import Queries
from rowsieve.providers.datafusion.changes.checked_arithmetic import overflow_checks
from rowsieve.providers.datafusion.changes.numbered_rows import PLACE
from rowsieve.providers.datafusion.changes.returned_rows import ReturnedRows
from rowsieve.providers.datafusion.changes.updated_rows import updated_rows
from rowsieve.statements.read_change import (
    Delete,
    Insert,
    OnConflict,
    Truncate,
    Update,
)
from rowsieve.statements.tokens import Target, quoted
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import Decimal, Int
from rowsieve.types.ordering.column_order import COLUMN_ORDER
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema
from rowsieve.types.shown_values import shown_row

if TYPE_CHECKING:
    from rowsieve.table import Table


def insert(queries: Queries, statement: Insert, returned: ReturnedRows | None = None) -> int:
    """Insert rows; return how many."""
    table = queries.table
    schema, key = table.handle.pinned.schema, table.key
    columns = columns_of(schema, statement.columns)
    if not key and statement.on_conflict is not OnConflict.FAIL:
        raise UnsupportedOperation(
            "sql: the table has no key, so no row can conflict; leave ON CONFLICT or OR REPLACE out"
        )
    check_conflict_columns(statement, key)
    _refuse_combined(table, statement)
    itself = queries.reads_table(statement.source, "" if returned is None else returned.text)
    is_blind = not key or statement.on_conflict is OnConflict.REPLACE
    if is_blind and not itself and returned is None:
        rows = inserted(queries, statement, table.handle.pinned, columns)
        if not key:
            return table.append(rows).rows_written
        return table.upsert(with_defaults(rows, without_order_column(schema))).rows_written
    count = 0

    def build(change: Change, snapshot: Snapshot) -> Mutation | None:
        nonlocal count
        inserts = with_defaults(inserted(queries, statement, snapshot, columns), snapshot.schema)
        reads: Check = changes_rows if itself else never
        if not key:
            count = inserts.num_rows
            rows = prepare_appended(inserts, snapshot.schema)
            _return(returned, rows, snapshot)
            return appended(change, snapshot, rows, reads)
        order = KeyOrder.of(snapshot.schema, key)
        rows = _one_per_key(inserts, statement.on_conflict, snapshot.schema, order)
        if statement.on_conflict is not OnConflict.REPLACE:
            rows = _absent(queries, statement, snapshot, order, rows)
        count = rows.num_rows
        _return(returned, rows, snapshot)
        return keyed_change(change, snapshot, order, Changes(rows, None), reads)

    late = table.handle.commit_computed("insert", build).rows_late
    return count - late


def _refuse_combined(table: Table, statement: Insert) -> None:
    """Raise UnsupportedOperation if rows would replace those whose values the table combines."""
    replaces = statement.on_conflict is OnConflict.REPLACE
    if replaces and COMBINE in table.handle.newest.table.properties:
        raise UnsupportedOperation(
            "sql: this statement replaces rows whose values the table combines by its property "
            "combine; nothing was written. Use upsert or MERGE, or unset the property"
        )


def _return(returned: ReturnedRows | None, rows: pa.Table, snapshot: Snapshot) -> None:
    """Evaluate RETURNING over the rows, if the statement has it."""
    if returned is not None:
        returned.evaluate(rows, snapshot)


def _one_per_key(
    rows: pa.Table, on_conflict: OnConflict, schema: Schema, order: KeyOrder
) -> pa.Table:
    """Prepare the rows; of several with one key, ON CONFLICT DO NOTHING inserts the first."""
    if on_conflict is not OnConflict.IGNORE:
        return prepare_rows(rows, schema, order, "error", "insert")
    backwards = rows.take(pa.array(np.arange(rows.num_rows)[::-1]))
    return prepare_rows(backwards, schema, order, "last", "insert")


def _absent(
    queries: Queries, statement: Insert, snapshot: Snapshot, order: KeyOrder, rows: pa.Table
) -> pa.Table:
    """The rows whose keys are not in the table; KeyViolation if one is, unless ON CONFLICT says."""
    absent = without_present(queries.table.handle.store, snapshot, order, rows)
    if statement.on_conflict is OnConflict.FAIL and absent.num_rows < rows.num_rows:
        keys = rows.select(list(order.names))
        present = keys.num_rows - absent.num_rows
        shown = _first_missing(keys, absent.select(list(order.names)), order)
        raise KeyViolation(
            f"insert: the table has {present} of the {rows.num_rows} keys, such as {shown}; "
            "nothing was written. INSERT OR REPLACE replaces these rows, ON CONFLICT DO NOTHING "
            "keeps them"
        )
    return absent


def _first_missing(keys: pa.Table, absent: pa.Table, order: KeyOrder) -> dict[str, Any]:
    """The first of the keys that is not among `absent`; both are in the same order."""
    for start in range(0, absent.num_rows, 1024):
        size = min(1024, absent.num_rows - start)
        if not keys.slice(start, size).equals(absent.slice(start, size)):
            rows = range(start, start + size)
            other = next(i for i in rows if not keys.slice(i, 1).equals(absent.slice(i, 1)))
            return shown_row(keys, other, order.fields)
    return shown_row(keys, absent.num_rows, order.fields)


def inserted(
    queries: Queries, statement: Insert, snapshot: Snapshot, columns: Sequence[str]
) -> pa.Table:
    """Compute the rows of an INSERT, in the types of the columns."""
    rows = queries.rows(statement.source, snapshot)
    if rows.num_columns != len(columns):
        raise InvalidInput(
            f"insert: the query has {rows.num_columns} columns, for the {len(columns)} columns "
            f"({', '.join(columns)})"
        )
    fields = [snapshot.schema.field(name) for name in columns]
    if statement.source.lstrip().upper().startswith("VALUES"):
        rows = _values_alone(queries, statement, snapshot, columns, rows)
    return assigned(rows.rename_columns(list(columns)), fields)


def _values_alone(
    queries: Queries, statement: Insert, snapshot: Snapshot, columns: Sequence[str], rows: pa.Table
) -> pa.Table:
    """Restore integers that DataFusion's VALUES rounded to floats.

    In VALUES, DataFusion converts a column with integers and fractions to floats, which cannot hold
    all integers. Its INSERT casts each value separately, but drops fractions. Its result is used
    only for columns where both agree as floats.
    """
    if rows.num_rows < 2:
        return rows
    cast: pa.Table | None = None
    for place, name in enumerate(columns):
        wanted = snapshot.schema.field(name)
        column = rows.column(place)
        if not pa.types.is_float64(column.type) or not isinstance(wanted.type, Int | Decimal):
            continue
        cast = queries.cast_rows(statement.plain, snapshot) if cast is None else cast
        values = cast.column(snapshot.schema.names.index(name))
        if values.cast(pa.float64(), safe=False).equals(column):
            rows = rows.set_column(place, rows.schema.field(place).name, values)
    return rows


def delete(queries: Queries, statement: Delete, returned: ReturnedRows | None = None) -> int:
    """Delete the rows that match the condition; return how many."""
    table = queries.table
    key = table.key
    if returned is not None:
        return _delete_returning(queries, statement, returned)
    columns = ", ".join(quoted(name) for name in key) or "1"
    query = selected(columns, statement.target.relation, statement.where)
    count = 0

    def build(change: Change, snapshot: Snapshot) -> Mutation | None:
        nonlocal count
        predicate = queries.condition(query, snapshot) if statement.where else TRUE
        if predicate is not None:
            question = Question(predicate, Semantics.DATAFUSION, clock.now_us())
            mutation = delete_where(change, snapshot, question)
            count = 0 if mutation is None else mutation.request.rows_deleted
            return mutation
        if not key:
            relation = numbered(queries, statement.target, snapshot)
            places = queries.rows(selected(quoted(PLACE), relation, statement.where), snapshot)
            count = places.num_rows
            return hide_places(change, snapshot, places_in(places), None, changes_rows)
        order = KeyOrder.of(snapshot.schema, key)
        keys = queries.rows(query, snapshot)
        count = keys.num_rows
        if not count:
            return None
        gone = prepare_keys(keys, snapshot.schema, order, change.operation)
        return keyed_change(change, snapshot, order, Changes(None, gone), changes_rows)

    table.handle.commit_computed("delete", build)
    return count


def _delete_returning(queries: Queries, statement: Delete, returned: ReturnedRows) -> int:
    """Delete the rows that DataFusion finds; it reads all their columns."""
    table, target = queries.table, statement.target
    count = 0

    def build(change: Change, snapshot: Snapshot) -> Mutation | None:
        nonlocal count
        relation = target.relation if table.key else numbered(queries, target, snapshot)
        rows = queries.rows(selected("*", relation, statement.where), snapshot)
        count = rows.num_rows
        columns = [name for name in rows.column_names if name != PLACE]
        returned.evaluate(without_views(rows.select(columns)), snapshot)
        if not count:
            return None
        if not table.key:
            places = places_in(rows.select([PLACE]))
            return hide_places(change, snapshot, places, None, changes_rows)
        order = KeyOrder.of(snapshot.schema, table.key)
        gone = prepare_keys(rows.select(list(order.names)), snapshot.schema, order, "delete")
        return keyed_change(change, snapshot, order, Changes(None, gone), changes_rows)

    table.handle.commit_computed("delete", build)
    return count


def update(queries: Queries, statement: Update, returned: ReturnedRows | None = None) -> int:
    """Assign columns in the rows that match the condition; return how many.

    A row that a smaller sequence is assigned to, in a table with an event order, is late: it stays.
    """
    table = queries.table
    schema, key = table.handle.pinned.schema, table.key
    columns_of(schema, statement.assignments)
    refuse_key(statement.assignments, key)
    itself = queries.reads_table(statement.where, *statement.assignments.values())
    count = 0

    def build(change: Change, snapshot: Snapshot) -> Mutation | None:
        nonlocal count
        values, predicate = queries.matching_rows(_updating(queries, statement, snapshot), snapshot)
        values = values.select(range(len(statement.assignments) + len(key or (PLACE,))))
        count = values.num_rows
        if not count:
            _return(returned, arrow_schema(snapshot.schema).empty_table(), snapshot)
            return None
        reads: Check = changes_rows
        if not statement.where:
            predicate = TRUE
        reads_more = itself or returned is not None
        if predicate is not None and not reads_more and not _has_now(predicate):
            question = Question(predicate, Semantics.DATAFUSION, clock.now_us())
            reads = AddsMatches(change.store, snapshot, question)
        order = KeyOrder.of(snapshot.schema, key) if key else None
        rows = updated_rows(table, snapshot, order, values, list(statement.assignments))
        if order is None:
            places = places_in(values.select([values.num_columns - 1]))
            rows = prepare_appended(rows, snapshot.schema)
            _return(returned, rows, snapshot)
            return hide_places(change, snapshot, places, rows, reads)
        rows = prepare_rows(rows, snapshot.schema, order, "error", "update")
        _return(returned, rows, snapshot)
        return keyed_change(change, snapshot, order, Changes(rows, None), reads)

    late = table.handle.commit_computed("update", build).rows_late
    return count - late


def _has_now(predicate: Predicate) -> bool:
    """Return whether a condition reads the clock: DataFusion's and ours differ."""
    return any(isinstance(node, Now) for node in walk(predicate))


def _updating(queries: Queries, statement: Update, snapshot: Snapshot) -> str:
    """Build the query of the assigned values, then of the keys, or places, of rows, then checks."""
    target, key = statement.target, queries.table.key
    relation = target.relation if key else numbered(queries, target, snapshot)
    identity = [f"{target.qualifier}.{quoted(name)}" for name in key or (PLACE,)]
    values = [f"({value})" for value in statement.assignments.values()]
    checks = overflow_checks(queries, snapshot, values, relation)
    columns = [f"{text} AS c{place}" for place, text in enumerate([*values, *identity, *checks])]
    return selected(", ".join(columns), relation, statement.where)


def numbered(queries: Queries, target: Target, snapshot: Snapshot) -> str:
    """The changed table in a FROM clause, with the places of its rows."""
    return f"{queries.register_numbered(snapshot)} AS {target.qualifier}"


def places_in(rows: pa.Table) -> np.ndarray:
    """The places in the only column."""
    places: np.ndarray = rows.column(0).to_numpy()
    return places


def truncate(queries: Queries, _statement: Truncate) -> int:
    """Remove all rows; return how many there were."""
    count = 0

    def build(change: Change, snapshot: Snapshot) -> Mutation | None:
        nonlocal count
        plan = plan_scan(
            snapshot, change.store.uri, predicate=TRUE, semantics=Semantics.SQL, now_us=0
        )
        count = Execution(plan, change.store).count()
        return emptied(change, snapshot)

    queries.table.handle.commit_computed("overwrite", build)
    return count


def selected(columns: str, relation: str, where: str) -> str:
    """Build a query of one relation; a condition with unbalanced brackets cannot leave its own."""
    words = ["SELECT", columns, "FROM", relation]
    return " ".join([*words, "WHERE (", where, ")"] if where else words)


def columns_of(schema: Schema, names: Iterable[str] | None) -> list[str]:
    """Check that the names are different columns of the table; None: return all columns."""
    if names is None:
        return list(without_order_column(schema).names)
    columns = list(names)
    if COLUMN_ORDER in columns:
        raise UnsupportedOperation(
            f"sql: column {COLUMN_ORDER!r} says by which sequence the values of a row were set, "
            "and only upsert and apply_changes write it; leave it out"
        )
    for name in columns:
        if name not in schema.names:
            raise UnknownColumn(
                f"sql: the table has no column {name!r}, but ({', '.join(schema.names)}); write "
                "names with upper-case letters in double quotes",
                name=name,
            )
    if len(set(columns)) < len(columns):
        raise InvalidInput(f"sql: a column is named twice: ({', '.join(columns)})")
    return columns


def refuse_key(names: Iterable[str], key: Sequence[str]) -> None:
    """Raise UnsupportedOperation if a key column is assigned."""
    if assigned_key := [name for name in names if name in key]:
        raise UnsupportedOperation(
            f"update cannot assign key column {assigned_key[0]!r}: a key identifies its row; "
            "delete the row and insert one with the new key"
        )


def check_conflict_columns(statement: Insert, key: Sequence[str]) -> None:
    """Raise InvalidInput unless ON CONFLICT names the key or no columns."""
    named = statement.conflict_columns
    if named and sorted(named) != sorted(key):
        raise InvalidInput(
            f"insert: ON CONFLICT ({', '.join(named)}) must name the key of the table, "
            f"({', '.join(key)}); no other columns are unique"
        )
