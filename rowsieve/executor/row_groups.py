"""One row group of a part, decoded column by column, or only the pages that hold wanted rows.

Of several row groups with few wanted pages those pages are decoded at once, as if of one row group.
What is decoded is text in dictionaries where it is stored so, because those are cheaper to filter;
`as_stored` gives the table's storage types.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from rowsieve.executor.joined_groups import FEW
from rowsieve.executor.repeats import Rows
from rowsieve.metrics import ScanMetrics
from rowsieve.objects import ObjectStore, Place
from rowsieve.parquet.chunks import chunk_span
from rowsieve.parquet.columns import leaves_of
from rowsieve.parquet.footer import read_metadata
from rowsieve.parquet.page_reader import PageReader
from rowsieve.parquet.pages import PageDirectory, Pages
from rowsieve.parquet.reader import ParquetReader
from rowsieve.parquet.spans import Span, requests
from rowsieve.predicate.arrays import as_type
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.manifest import FileRef
from rowsieve.types.schema import Schema

AT_ONCE = 4  # columns: a call costs about as much as filtering four, whose bytes are in the cache
AT_ONCE_OF_A_PAGE = 8  # columns: decoding as many costs as much as opening pages once more
FEW_ROWS = 8_192  # fit into the processor's cache with all their columns
BYTES_OF_A_ROUND_TRIP = 512 * 1024  # what a connection carries while it waits for an answer
MOST = 0.92  # of the rows: from here on a filter beats taking rows by number


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows [start, start + row_count) of a file; `wanted`: which of them, None for all.

    They are those of row group `number`, and may go on into those after it: then few pages of each
    are wanted (`rowsieve.executor.joined_groups`).
    """

    part_id: str
    file: OpenFile
    number: int
    start: int
    row_count: int
    wanted: RowSet | None
    metrics: ScanMetrics

    def runs(self, columns: Schema) -> Iterator[tuple[int, Callable[[], pa.RecordBatch]]]:
        """Where rows one after another begin, and how to decode them.

        They are the pages with a wanted row, or all rows where most pages have one.
        """
        pages = self._pages(self.wanted)
        if pages is None:
            yield 0, partial(self._read, columns, None)
            return
        for run in _runs(pages):
            yield int(run[0]) * self.file.page_rows, partial(self._read, columns, run)

    def read_only(
        self, columns: Schema, target: pa.Schema | None, rows: Rows | RowSet | None
    ) -> pa.RecordBatch:
        """These rows, ascending numbers or a set, None for all, in the types of `target`.

        Without it, as they decode.

        Columns are filtered as soon as they are decoded, while they are in the processor's cache,
        and text before it leaves its dictionary, because indices are cheaper to move.
        """
        if not columns:
            return _as_batch([], (), self.row_count if rows is None else len(rows))
        pages = self._pages(rows)
        decoded = self.row_count
        if pages is not None:
            rows, decoded = self._within(rows, pages)
        keep = selection(rows, decoded)
        kept = (keep(array) for array in self._arrays(columns, pages))
        if target is None:
            return pa.RecordBatch.from_arrays(list(kept), names=list(columns.names))
        arrays = [as_type(array, type_) for array, type_ in zip(kept, target.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=target)

    def is_cheap_at_once(self, columns: Schema) -> bool:
        """Whether reading what is wanted of all these columns costs less than reading twice.

        It is so of one page, or one of each row group, of few columns, and where a round trip costs
        more than the bytes.
        """
        pages = self._pages(self.wanted)
        if pages is not None and len(columns) <= AT_ONCE_OF_A_PAGE:
            groups = self.file.rows_by_group(self.number, pages)
            if len(pages) == len(groups):
                return True
        if not self.file.fetches_together:
            return False
        spans = self.file.spans(self.number, columns.names, pages)
        return sum(stop - start for start, stop in spans) <= BYTES_OF_A_ROUND_TRIP

    def places(self, columns: Schema) -> Iterator[Place]:
        """What `read_only` of the wanted rows asks the store for."""
        return self._places(columns, self._pages(self.wanted))

    def places_of_runs(self, columns: Schema) -> Iterator[Place]:
        """What `runs` ask the store for."""
        pages = self._pages(self.wanted)
        for run in [None] if pages is None else _runs(pages):
            yield from self._places(columns, run)

    def _places(self, columns: Schema, pages: Pages | None) -> Iterator[Place]:
        for start, stop in self.file.spans(self.number, columns.names, pages):
            yield self.file.path, start, stop

    def _read(self, columns: Schema, pages: Pages | None) -> pa.RecordBatch:
        """These pages of these columns, None for all, as they decode."""
        row_count = self.row_count if pages is None else self._rows_of(pages)
        return _as_batch(list(self._arrays(columns, pages)), columns.names, row_count)

    def _pages(self, rows: Rows | RowSet | None) -> Pages | None:
        """The pages that hold these rows; None where it is better to decode all."""
        page_rows = self.file.page_rows
        if rows is None or not page_rows or self.row_count <= page_rows:
            return None
        if len(rows) > FEW * self.row_count:  # as many rows are in more pages
            return None
        edges = np.arange(-(-self.row_count // page_rows) + 1) * page_rows
        if isinstance(rows, RowSet):
            starts, stops = rows.ranges()
            held = np.searchsorted(starts, edges[1:]) > np.searchsorted(stops, edges[:-1], "right")
        else:
            held = np.diff(np.searchsorted(rows, edges)) > 0
        pages = np.flatnonzero(held)
        few = len(pages) * page_rows <= FEW * self.row_count
        return pages if few else None

    def _rows_of(self, pages: Pages) -> int:
        page_rows = self.file.page_rows
        return int((np.minimum((pages + 1) * page_rows, self.row_count) - pages * page_rows).sum())

    def _within(self, rows: Rows | RowSet | None, pages: Pages) -> tuple[Rows | None, int]:
        """Where the rows are among those of the pages, None for all, and how many these are."""
        assert rows is not None
        decoded = self._rows_of(pages)
        if len(rows) == decoded:
            return None, decoded
        numbers = rows.to_ids() if isinstance(rows, RowSet) else rows
        page_rows = self.file.page_rows
        before = (pages - np.arange(len(pages))) * page_rows  # rows left out
        return numbers - before[np.searchsorted(pages, numbers // page_rows)], decoded

    def _arrays(self, columns: Schema, pages: Pages | None) -> Iterator[pa.Array]:
        """A few columns at a time, or all where there are few rows or requests cost."""
        size_bytes = 0
        few = self.row_count <= FEW_ROWS
        together = pages is not None or few or self.file.fetches_together
        names = columns.names
        step = max(len(names), 1) if together else AT_ONCE
        for first in range(0, len(names), step):
            table, read_bytes = self.file.read(self.number, names[first : first + step], pages)
            size_bytes += read_bytes
            yield from (_joined(column) for column in table.columns)
        read = [(self.number, self.row_count)]
        if pages is not None:
            read = self.file.rows_by_group(self.number, pages)
        for number, rows in read:  # bytes are counted once
            self.metrics.note_row_group(self.part_id, (self.file.path, number), rows, size_bytes)
            size_bytes = 0


class OpenFile:
    """A file that several threads read; a reader serves one at a time, so each has its own.

    `page_rows`: the rows of a page; 0 where single pages cannot be read.
    """

    __slots__ = ("_idle", "_leaves", "_metadata", "_pages", "_ref", "_store", "fetches_together",
                 "page_rows")  # fmt: skip

    def __init__(self, store: ObjectStore, ref: FileRef) -> None:
        self._store = store
        self._ref = ref
        self._metadata = read_metadata(store, ref)
        self._leaves = leaves_of(self._metadata)
        self._idle: deque[ParquetReader] = deque()
        directory = PageDirectory.of(self._metadata)
        self._pages = None if directory is None else PageReader(store, ref, directory, self._leaves)
        self.page_rows = 0 if directory is None else directory.page_rows
        self.fetches_together = store.overlaps

    @property
    def path(self) -> str:
        """Where it is in its store."""
        return self._ref.path

    def spans(self, row_group: int, names: Sequence[str], pages: Pages | None) -> list[Span]:
        """What `read` asks the store for, if it asks for all these columns at once."""
        if pages is not None:
            assert self._pages is not None
            return self._pages.spans(row_group, names, pages)
        group = self._metadata.row_group(row_group)
        leaves = (leaf for name in names for leaf in self._leaves[name])
        return requests(chunk_span(group.column(leaf)) for leaf in leaves)

    def rows_by_group(self, row_group: int, pages: Pages) -> list[tuple[int, int]]:
        """Which row groups these pages are of, and how many rows of each they have."""
        assert self._pages is not None
        return self._pages.rows_by_group(row_group, pages)

    def read(
        self, row_group: int, names: Sequence[str], pages: Pages | None
    ) -> tuple[pa.Table, int]:
        """Decode columns of a row group, or pages of them; and how many bytes were read.

        Pages are counted from the first of `row_group`, and may go on into those after it.
        """
        if pages is not None:
            assert self._pages is not None
            return self._pages.read(row_group, names, pages)
        leaves = [leaf for name in names for leaf in self._leaves[name]]
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = ParquetReader(self._store, self._ref)
        table = reader.read(row_group, leaves)
        self._idle.append(reader)
        chunks = self._metadata.row_group(row_group)
        return table, sum(chunks.column(leaf).total_compressed_size for leaf in leaves)


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
        columns = [as_type(*both) for both in zip(batch.columns, schema.types, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    types = dict(zip(schema.names, schema.types, strict=True))
    names = batch.schema.names
    columns = [
        as_type(array, types.get(name, array.type))
        for name, array in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _as_batch(arrays: Sequence[pa.Array], names: Sequence[str], row_count: int) -> pa.RecordBatch:
    """One batch; without columns it keeps its row count."""
    if not arrays:
        return pa.RecordBatch.from_arrays([pa.nulls(row_count)], ["row"]).select([])
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def selection(rows: Rows | RowSet | None, row_count: int) -> Callable[[pa.Array], pa.Array]:
    """What takes rows out of an array of `row_count`: in runs where most rows are wanted."""
    if rows is None or len(rows) == row_count:
        return lambda array: array
    first, stop = _span(rows)
    if stop - first == len(rows) > row_count // 2:  # holds on to what it is a slice of
        return lambda array: array.slice(first, stop - first)
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


def _span(rows: Rows | RowSet) -> tuple[int, int]:
    if isinstance(rows, RowSet):
        return rows.span
    return (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)


def _runs(pages: Pages) -> list[Pages]:
    """Pages one after another."""
    return np.split(pages, np.flatnonzero(np.diff(pages) > 1) + 1)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    """One array, without the mask of NULLs that the decoder adds where there are none.

    Filtering is four times as fast without it.
    """
    if not column.num_chunks:
        return pa.array([], column.type)
    array = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    if array.null_count or array.type.num_fields or pa.types.is_dictionary(array.type):
        return array
    _, *buffers = array.buffers()
    return pa.Array.from_buffers(array.type, len(array), [None, *buffers], 0, array.offset)
