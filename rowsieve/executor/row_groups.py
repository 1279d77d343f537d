"""One row group of a part, decoded column by column.

What is decoded is text in dictionaries where it is stored so, because those are cheaper to filter;
`as_stored` gives the table's storage types.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rowsieve.executor.repeats import Rows
from rowsieve.metrics import ScanMetrics
from rowsieve.objects import ObjectStore
from rowsieve.parquet.reader import ParquetReader
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.manifest import FileRef
from rowsieve.types.schema import Schema

MOST = 0.92  # of the rows: from here on a filter beats taking rows by number


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows [start, start + row_count) of a file; `wanted`: which of them, None for all."""

    part_id: str
    file: OpenFile
    number: int
    start: int
    row_count: int
    wanted: RowSet | None
    metrics: ScanMetrics

    def read(self, columns: Schema) -> pa.RecordBatch:
        """All rows of these columns, as they decode."""
        arrays = list(self._arrays(columns))
        return _as_batch(arrays, columns.names, self.row_count)

    def read_only(
        self, columns: Schema, target: pa.Schema, rows: Rows | RowSet | None
    ) -> pa.RecordBatch:
        """These rows, ascending numbers or a set, None for all, in the types of `target`.

        Each column is filtered as soon as it is decoded, while it is in the processor's cache, and
        text before it leaves its dictionary, because indices are cheaper to move.
        """
        keep = selection(rows, self.row_count)
        arrays = [
            _cast(keep(array), type_)
            for array, type_ in zip(self._arrays(columns), target.types, strict=True)
        ]
        if not arrays:
            return _as_batch([], (), self.row_count if rows is None else len(rows))
        return pa.RecordBatch.from_arrays(arrays, schema=target)

    def _arrays(self, columns: Schema) -> Iterator[pa.Array]:
        """Column by column, or all in one request where requests cost."""
        leaves = [self.file.leaves[name] for name in columns.names]
        together = [leaves] if self.file.fetches_together else [[one] for one in leaves]
        for some in together if leaves else ():
            numbers = [number for column in some for number in column]
            table = self.file.read(self.number, numbers)
            yield from (_joined(column) for column in table.columns)
        chunks = self.file.metadata.row_group(self.number)
        size_bytes = sum(
            chunks.column(number).total_compressed_size for column in leaves for number in column
        )
        place = (self.file.path, self.number)
        self.metrics.note_row_group(self.part_id, place, self.row_count, size_bytes)


class OpenFile:
    """A file that several threads read; a reader serves one at a time, so each has its own."""

    __slots__ = ("_idle", "_ref", "_store", "fetches_together", "leaves", "metadata")

    def __init__(self, store: ObjectStore, ref: FileRef) -> None:
        self._store = store
        self._ref = ref
        first = ParquetReader(store, ref)
        self._idle = deque([first])
        self.metadata, self.leaves = first.metadata, first.leaves
        self.fetches_together = first.fetches_together

    @property
    def path(self) -> str:
        """Where it is in its store."""
        return self._ref.path

    def read(self, row_group: int, leaves: Sequence[int]) -> pa.Table:
        """Decode leaf columns of a row group."""
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = ParquetReader(self._store, self._ref)
        table = reader.read(row_group, leaves)
        self._idle.append(reader)
        return table


def in_pieces(
    read: Callable[[], pa.RecordBatch | None], batch_rows: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """What `read` gives in pieces of up to `batch_rows`, each with the row that it starts at.

    Where one piece is not enough, every piece is read anew and keeps no other rows in memory.
    """
    start = 0
    while (batch := read()) is not None:
        whole = batch.num_rows <= batch_rows
        rows = np.arange(start, min(start + batch_rows, batch.num_rows))
        yield start, batch if whole else batch.take(pa.array(rows))
        start += batch_rows
        if start >= batch.num_rows:
            return


def as_stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the columns of `schema` in exactly these types, and any others as they are."""
    if not schema.names:
        return batch
    if batch.schema.names == schema.names:
        columns = [_cast(*both) for both in zip(batch.columns, schema.types, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    types = dict(zip(schema.names, schema.types, strict=True))
    names = batch.schema.names
    columns = [
        _cast(array, types.get(name, array.type))
        for name, array in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array if array.type == type_ else array.cast(type_)


def _as_batch(arrays: Sequence[pa.Array], names: Sequence[str], row_count: int) -> pa.RecordBatch:
    """One batch; without columns it keeps its row count."""
    if not arrays:
        return pa.RecordBatch.from_arrays([pa.nulls(row_count)], ["row"]).select([])
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def selection(rows: Rows | RowSet | None, row_count: int) -> Callable[[pa.Array], pa.Array]:
    """What takes rows out of an array of `row_count`: in runs where most rows are wanted."""
    if rows is None or len(rows) == row_count:
        return lambda array: array
    if len(rows) <= MOST * row_count:
        numbers = rows.to_ids() if isinstance(rows, RowSet) else rows
        indices = pa.array(numbers.astype(np.uint32))
        return lambda array: array.take(indices)
    if isinstance(rows, RowSet):
        mask = rows.to_mask()
    else:
        mask = np.zeros(row_count, dtype=bool)
        mask[rows] = True
    bits = pa.py_buffer(np.packbits(mask, bitorder="little"))
    wanted = pa.Array.from_buffers(pa.bool_(), row_count, [None, bits], 0)
    return lambda array: array.filter(wanted)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    """One array, without the mask of NULLs that the decoder adds where there are none.

    Filtering is four times as fast without it.
    """
    if column.num_chunks != 1:
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    array = column.chunk(0)
    if array.null_count or array.type.num_fields or pa.types.is_dictionary(array.type):
        return array
    _, *buffers = array.buffers()
    return pa.Array.from_buffers(array.type, len(array), [None, *buffers], 0, array.offset)
