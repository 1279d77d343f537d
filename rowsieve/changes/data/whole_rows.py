"""Changes that bring whole rows, or keys: they depend on no row that the table has.

Each reads the data of a call, prepares it for the columns of the newest version, and commits it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rowsieve.arguments.annotations import Metadata, Token
from rowsieve.changes.change import Change
from rowsieve.changes.column_methods import SchemaMode
from rowsieve.changes.column_order.order_column import without_order_column
from rowsieve.changes.data.ingest import (
    Changes,
    OnDuplicate,
    prepare_appended,
    prepare_keys,
    prepare_rows,
    read_data,
    reduce_changes,
    refuse_null_keys,
)
from rowsieve.changes.event_order.sequence_columns import has_sequences, sequence_names
from rowsieve.changes.partial.partial_calls import delete_given
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import SchemaMismatch
from rowsieve.properties import is_by_column
from rowsieve.storage.log.log_entry import Commit
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import ColumnNames, Schema


def upsert_whole(
    handle: Handle,
    change: Change,
    data: Any,
    on_duplicate: OnDuplicate,
    schema_mode: SchemaMode,
) -> Commit:
    """Insert rows, or replace the rows that have the same key; see `Table.upsert`."""
    key = handle.order("upsert").names
    schema, sequence = handle.newest.schema, handle.newest.table.sequence
    table = read_data(data, "upsert", schema, storage_options=handle.storage_options)

    def prepare(schema: Schema) -> Changes:
        order = KeyOrder.of(schema, key)
        if not set(schema.names).issubset(table.column_names):
            refuse_null_keys(table, order, "upsert")  # `prepare_rows` does it for complete rows
            _refuse_lacking(table, schema)
        rows = prepare_rows(table, schema, order, on_duplicate, "upsert", sequence)
        return Changes(rows, None)

    if schema_mode == "merge":
        return handle.commit_merging(change, table, prepare)
    return handle.commit_blind(change, prepare(schema))


def append_rows(handle: Handle, change: Change, data: Any, schema_mode: SchemaMode) -> Commit:
    """Add rows to a table without a key; see `Table.append`."""
    schema = handle.newest.schema
    table = read_data(data, "append", schema, appends=True, storage_options=handle.storage_options)

    def prepare(schema: Schema) -> Changes:
        return Changes(prepare_appended(table, schema), None)

    if schema_mode == "merge":
        return handle.commit_merging(change, table, prepare)
    return handle.commit_blind(change, prepare(schema))


def apply_whole(
    handle: Handle, change: Change, data: Any, op: str, sequence: str | Sequence[str] | None
) -> Commit:
    """Apply a stream of whole rows and keys to delete; see `Table.apply_changes`."""
    order = handle.order("apply_changes")
    schema, table_order = handle.newest.schema, handle.newest.table.sequence
    table = read_data(data, "apply_changes", schema, op=op, storage_options=handle.storage_options)
    names = sequence_names(sequence, table_order)
    reduced = reduce_changes(table, schema, order, op=op, sequence=names, table_order=table_order)
    return handle.commit_blind(change, reduced)


def delete_keys(
    handle: Handle, change: Change, keys: Any, metadata: Metadata | None, token: Token | None
) -> Commit:
    """Delete the rows with these keys, with their sequences if the data has them."""
    order = handle.order("delete by key")
    schema, sequence = handle.newest.schema, handle.newest.table.sequence
    rows = read_data(
        keys,
        "delete",
        schema.select((*order.names, *sequence)),
        storage_options=handle.storage_options,
    )
    if sequence and not has_sequences(rows, sequence, "delete"):
        sequence = ()
    if sequence and is_by_column(handle.newest.table.properties):
        return delete_given(handle, rows, change.on_too_late, metadata, token)
    table = prepare_keys(rows, schema, order, "delete", sequence)
    return handle.commit_blind(change, Changes(None, table))


def _refuse_lacking(table: pa.Table, schema: Schema) -> None:
    """Say how to keep stored values, if rows of known columns lack some of the table's."""
    names = set(ColumnNames(schema.names).columns(table.column_names))
    lacking = [name for name in without_order_column(schema).names if name not in names]
    if lacking and names <= set(schema.names):
        raise SchemaMismatch(
            f"upsert: the data lacks column{'s' if len(lacking) > 1 else ''} "
            f"{', '.join(map(repr, lacking))}; it has ({', '.join(table.column_names)}), and must "
            "have every column of the table: absent is not NULL. Nothing was written; "
            'columns="given" keeps what the table has in them, also with schema_mode="merge"'
        )
