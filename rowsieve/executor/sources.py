"""A part as streams of key-ordered batches: its rows, and its tombstones' keys.

A batch holds the rows of one row group (65,536), in the table's storage types, with the columns
asked for and no others. Rows that a deletion vector hides never leave this file.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from rowsieve.metrics import ScanMetrics
from rowsieve.objects import ObjectStore
from rowsieve.parquet.footer import open_parquet, read_row_group
from rowsieve.planner.plan import PlannedPart
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.deletion_vectors import read_deletion_vector
from rowsieve.storage.manifest import FileRef
from rowsieve.storage.part_writer import ROW_GROUP_ROWS
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.schema import Schema


def row_batches(
    store: ObjectStore, part: PlannedPart, schema: Schema, metrics: ScanMetrics, *, threads: bool
) -> Iterator[pa.RecordBatch]:
    """The visible rows of one part with the columns of `schema`, in file order."""
    if part.data is None:
        return
    if part.dv is None:
        live = None
    else:
        live = read_deletion_vector(store, part.dv, part.data.rows).complement()
    start, stop = part.row_groups or (0, None)
    metrics.parts_read += 1
    for group, batch in _row_groups(store, part.data, schema, start, stop, metrics, threads):
        yield batch if live is None else _only(batch, live, group * ROW_GROUP_ROWS)


def tombstone_batches(
    store: ObjectStore, part: PlannedPart, key: Schema, metrics: ScanMetrics, *, threads: bool
) -> Iterator[pa.RecordBatch]:
    """The deleted keys of one part in key order: batches of the key's columns."""
    if part.deletes is not None:
        for _, batch in _row_groups(store, part.deletes, key, 0, None, metrics, threads):
            yield batch


def _row_groups(
    store: ObjectStore,
    ref: FileRef,
    schema: Schema,
    start: int,
    stop: int | None,
    metrics: ScanMetrics,
    threads: bool,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    names = list(schema.names)
    target = arrow_schema(schema)
    with open_parquet(store, ref, keep_dictionaries=True) as file:
        for group in range(start, file.num_row_groups if stop is None else stop):
            table = read_row_group(file, ref.path, group, names, use_threads=threads)
            metrics.row_groups_read += 1
            metrics.rows_decoded += table.num_rows
            metrics.bytes_read += _stored_bytes(file.metadata.row_group(group), frozenset(names))
            yield group, _as_batch(table.select(names), target)


def _as_batch(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """One batch of exactly `schema`; a table without columns keeps its row count."""
    if not schema.names:
        return pa.RecordBatch.from_arrays([pa.nulls(table.num_rows)], ["row"]).select([])
    columns = []
    for column, field in zip(table.columns, schema, strict=True):
        array = column.chunk(0) if column.num_chunks == 1 else _joined(column)
        columns.append(array if array.type == field.type else array.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _only(batch: pa.RecordBatch, live: RowSet, offset: int) -> pa.RecordBatch:
    here = live.slice(offset, offset + batch.num_rows)
    return batch if here.is_full else batch.filter(pa.array(here.to_mask()))


def _stored_bytes(group: object, names: frozenset[str]) -> int:
    columns = (group.column(i) for i in range(group.num_columns))  # type: ignore[attr-defined]
    return sum(
        column.total_compressed_size
        for column in columns
        if column.path_in_schema.split(".", 1)[0] in names or column.path_in_schema in names
    )
