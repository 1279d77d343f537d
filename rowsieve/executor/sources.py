"""A part as streams of key-ordered batches: its rows, and its tombstones' keys.

A batch holds the rows of one row group (65,536), in the table's storage types, with the columns
asked for and no others. Rows that are not visible never leave this file, and a row group without a
visible row is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
    store: ObjectStore,
    part: PlannedPart,
    schema: Schema,
    metrics: ScanMetrics,
    *,
    row_groups: tuple[int, int] | None = None,
    visible: RowSet | None = None,
    threads: bool,
) -> Iterator[pa.RecordBatch]:
    """The rows of one part that are visible, with the columns of `schema`, in file order.

    `visible` is what other parts leave of it, None for all; its deletion vector is applied here.
    """
    if part.data is None:
        return
    if part.dv is not None:
        shown = read_deletion_vector(store, part.dv, part.data.rows).complement()
        visible = shown if visible is None else visible.intersect(shown)
    start, stop = row_range(part, row_groups)
    wanted = [
        group
        for group in range(start // ROW_GROUP_ROWS, -(-stop // ROW_GROUP_ROWS))
        if visible is None or not _within(visible, group, part.data.rows).is_empty
    ]
    metrics.parts_read += 1
    for group, batch in _row_groups(store, part.data, schema, wanted, metrics, threads=threads):
        live = None if visible is None else _within(visible, group, part.data.rows)
        yield batch if live is None or live.is_full else batch.filter(pa.array(live.to_mask()))


def tombstone_batches(
    store: ObjectStore, part: PlannedPart, key: Schema, metrics: ScanMetrics, *, threads: bool
) -> Iterator[pa.RecordBatch]:
    """The deleted keys of one part in key order: batches of the key's columns."""
    if part.deletes is not None:
        for _, batch in _row_groups(store, part.deletes, key, None, metrics, threads=threads):
            yield batch


def row_range(part: PlannedPart, row_groups: tuple[int, int] | None) -> tuple[int, int]:
    """Rows [start, stop) of these row groups of a part, or all of them."""
    rows = 0 if part.data is None else part.data.rows
    if row_groups is None:
        return 0, rows
    start, stop = (min(group * ROW_GROUP_ROWS, rows) for group in row_groups)
    return start, stop


def _within(visible: RowSet, group: int, rows: int) -> RowSet:
    start = group * ROW_GROUP_ROWS
    return visible.slice(start, min(start + ROW_GROUP_ROWS, rows))


def _row_groups(
    store: ObjectStore,
    ref: FileRef,
    schema: Schema,
    groups: Iterable[int] | None,
    metrics: ScanMetrics,
    *,
    threads: bool,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    names = list(schema.names)
    target = arrow_schema(schema)
    with open_parquet(store, ref) as file:
        for group in range(file.num_row_groups) if groups is None else groups:
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


def _stored_bytes(group: object, names: frozenset[str]) -> int:
    columns = (group.column(i) for i in range(group.num_columns))  # type: ignore[attr-defined]
    return sum(
        column.total_compressed_size
        for column in columns
        if column.path_in_schema.split(".", 1)[0] in names or column.path_in_schema in names
    )
