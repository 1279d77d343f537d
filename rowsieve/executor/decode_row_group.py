"""Decodes one row group of a part column by column, or only its pages with wanted rows.

`open_file` finds the columns of a file. Several row groups with few wanted pages are decoded
together, like one row group. Text that is stored with a dictionary is decoded to dictionary arrays,
because these are cheaper to filter; `as_stored` converts batches to the table's storage types.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np
import pyarrow as pa

from rowsieve.errors import UnsupportedOperation
from rowsieve.executor.joined_groups import FEW
from rowsieve.executor.open_file import OpenFile
from rowsieve.executor.repeats import Rows
from rowsieve.executor.text_views import as_output
from rowsieve.metrics import ScanMetrics
from rowsieve.objects import Place
from rowsieve.parquet.page_reader import read_together
from rowsieve.parquet.pages import Pages
from rowsieve.predicate.arrays import as_type, repeated
from rowsieve.predicate.rowset import RowSet
from rowsieve.types.logical import Field, is_nested
from rowsieve.types.schema import Schema

COLUMNS_AT_ONCE = 4  # per decoding call: amortizes the call, and fits into the processor's cache
PAGE_COLUMNS_AT_ONCE = 8  # decoding these costs as much as opening the pages again
PAGES_AT_ONCE = 2  # per row group; decoding the second costs less than opening the pages again
FEW_ROWS = 8_192  # fit into the processor's cache with all their columns
FEW_VALUES = 131_072  # so do these: a megabyte, if they are numbers
BYTES_OF_A_ROUND_TRIP = 512 * 1024  # what a connection transfers in the time of a round trip
_LARGEST_ARRAY_BYTES = 2**31 - 1  # offsets of text have 32 bits
MOST = 0.92  # share of the rows; above it, a filter is faster than taking rows by number


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows [start, start + row_count) of a file, from row group `number` on.

    `wanted`: the rows to read; None for all. The rows may extend into the next row groups if few
    pages of each are wanted (`rowsieve.executor.joined_groups`). `mostly_match`: a hint that the
    predicate keeps most of the wanted rows. `group_start`: the first row of the row group if this
    is a slice of a large one (`rowsieve.parquet.group_slices`), else None.
    """

    part_id: str
    file: OpenFile
    number: int
    start: int
    row_count: int
    wanted: RowSet | None
    metrics: ScanMetrics
    mostly_match: bool = False
    group_start: int | None = None

    def runs(self, columns: Schema) -> Iterator[tuple[int, Callable[[], pa.RecordBatch]]]:
        """Runs of consecutive rows: the first row of each, and a function that decodes the run.

        The runs cover the pages with a wanted row, or all rows if most pages have one.
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
        """Decode these rows in the types of `target`, or in the decoder's types if it is None.

        `rows`: ascending numbers or a set; None for all. Columns are filtered right after decoding,
        while they are in the processor's cache. Text is filtered as dictionary indices, which are
        cheaper to move, and converted afterwards.
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
        arrays = [as_output(*each) for each in zip(kept, target.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=target)

    @property
    def reads_pages(self) -> bool:
        """True if the pages with wanted rows are read, and not the whole row group."""
        return self._pages(self.wanted) is not None

    def is_cheap_at_once(self, columns: Schema) -> bool:
        """Return whether one read of all these columns costs less than two reads.

        This holds if most rows match, for few columns with few wanted pages per row group, and for
        a remote store if the bytes cost less than a second round trip.
        """
        if self.mostly_match:
            return True
        pages = self._pages(self.wanted)
        if pages is not None and self._has_few_pages(columns, pages):
            return True
        if not self.file.fetches_together:
            return False
        spans = self.file.spans(self.number, columns, pages)
        return sum(stop - start for start, stop in spans) <= BYTES_OF_A_ROUND_TRIP

    def _has_few_pages(self, columns: Schema, pages: Pages) -> bool:
        """Return whether there are few columns, and few wanted pages per row group."""
        if len(columns) > PAGE_COLUMNS_AT_ONCE:
            return False
        return len(pages) <= PAGES_AT_ONCE * self.file.group_count(self.number, pages)

    def joinable(self, columns: Schema) -> tuple[FewPages, Hashable] | None:
        """The wanted pages, and a key that is equal for pages which can be decoded together.

        None unless one read of these columns costs less than two, and our writer stored each of
        them in the file; nested columns may have other fields in each file.
        """
        pages, file = self._pages(self.wanted), self.file
        if pages is None or file.fetches_together or not self._has_few_pages(columns, pages):
            return None
        names = [each for each in file.stored(columns) if isinstance(each, str)]
        if file.pages is None or file.mapping is not None or not names:
            return None
        if len(names) < len(columns) or any(is_nested(each.type) for each in columns.fields):
            return None
        rows, decoded = self._within(self.wanted, pages)
        few = FewPages(self, pages, np.arange(decoded) if rows is None else rows, decoded)
        forms = tuple(map(file.forms.get, names))
        return few, (tuple(names), forms, file.pages.stored_form(names))

    def places(self, columns: Schema) -> Iterator[Place]:
        """The byte ranges that `read_only` of the wanted rows requests from the store."""
        return self._places(columns, self._pages(self.wanted))

    def places_of_runs(self, columns: Schema) -> Iterator[Place]:
        """The byte ranges that `runs` request from the store."""
        pages = self._pages(self.wanted)
        for run in [None] if pages is None else _runs(pages):
            yield from self._places(columns, run)

    def _places(self, columns: Schema, pages: Pages | None) -> Iterator[Place]:
        if self.group_start not in (None, self.start):
            return  # the first slice requests the whole row group
        for start, stop in self.file.spans(self.number, columns, pages):
            yield self.file.path, start, stop

    def _read(self, columns: Schema, pages: Pages | None) -> pa.RecordBatch:
        """Decode these pages of these columns, in the decoder's types; None for all pages."""
        arrays = list(self._arrays(columns, pages))
        return _as_batch(arrays, columns.names, self._row_count(pages))

    def _pages(self, rows: Rows | RowSet | None) -> Pages | None:
        """The pages with these rows; None if decoding all pages is better."""
        if rows is None or self.group_start is not None:
            return None
        if not (page_rows := self.file.page_rows) or self.row_count <= page_rows:
            return None
        if len(rows) > FEW * self.row_count:  # then more than this share of the pages is wanted
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

    def _row_count(self, pages: Pages | None) -> int:
        return self.row_count if pages is None else self._rows_of(pages)

    def _rows_of(self, pages: Pages) -> int:
        """Count the rows of ascending pages; only the last page can be shorter."""
        if not len(pages):
            return 0
        page_rows = self.file.page_rows
        last_rows = self.row_count - int(pages[-1]) * page_rows
        return (len(pages) - 1) * page_rows + min(page_rows, last_rows)

    def _within(self, rows: Rows | RowSet | None, pages: Pages) -> tuple[Rows | None, int]:
        """The positions of the rows within the pages, and the number of rows in the pages.

        The positions are None if all rows of the pages are wanted.
        """
        assert rows is not None
        decoded = self._rows_of(pages)
        if len(rows) == decoded:
            return None, decoded
        numbers = rows.to_ids() if isinstance(rows, RowSet) else rows
        page_rows = self.file.page_rows
        before = (pages - np.arange(len(pages))) * page_rows  # rows in skipped pages before each
        return numbers - before[np.searchsorted(pages, numbers // page_rows)], decoded

    def _arrays(self, columns: Schema, pages: Pages | None) -> Iterator[pa.Array]:
        """Decode a few columns per call, or all at once for few rows or a remote store."""
        size_bytes = 0
        stored, row_count = self.file.stored(columns), self._row_count(pages)
        few = row_count <= FEW_ROWS or row_count * len(stored) <= FEW_VALUES
        step = COLUMNS_AT_ONCE if pages is None else PAGE_COLUMNS_AT_ONCE
        if few or self.file.fetches_together:
            step = max(len(stored), 1)
        for first in range(0, len(stored), step):
            some = stored[first : first + step]
            fields = columns.fields[first : first + step]
            table = None
            if any(isinstance(each, str) for each in some):
                table, read_bytes = self.file.read(self.number, fields, pages, self._slice())
                size_bytes += read_bytes
            for each, field in zip(some, fields, strict=True):
                if isinstance(each, str):
                    assert table is not None
                    yield self._one_array(table.column(each), field)
                else:
                    yield repeated(each, row_count)
        self._note(pages, size_bytes)

    def _one_array(self, column: pa.ChunkedArray, field: Field) -> pa.Array:
        """The column as one array, of the table's type or in a dictionary."""
        try:
            return _joined(self.file.as_now(column, field))
        except pa.ArrowInvalid as error:
            if column.nbytes < _LARGEST_ARRAY_BYTES:
                raise
            raise UnsupportedOperation(
                f"{self.file.path}, row group {self.number}: column {field.name!r} has more than "
                f"2 GiB in {self.row_count:,} rows, which one array cannot hold ({error}); write "
                "the file again with smaller row groups"
            ) from error

    def _slice(self) -> tuple[int, int] | None:
        """The rows within the row group, if this is a slice."""
        if self.group_start is None:
            return None
        first = self.start - self.group_start
        return first, first + self.row_count

    def _note(self, pages: Pages | None, size_bytes: int) -> None:
        """Count a read in the metrics; the first slice of a row group counts all of its rows."""
        read = [(self.number, self.row_count)]
        if self.group_start is not None:
            starts = self.file.starts
            read = [(self.number, starts[self.number + 1] - starts[self.number])]
        if pages is not None:
            read = self.file.rows_by_group(self.number, pages)
        for number, rows in read:  # the first row group counts all bytes
            self.metrics.note_row_group(self.part_id, (self.file.path, number), rows, size_bytes)
            size_bytes = 0


@dataclass(frozen=True, slots=True)
class FewPages:
    """Wanted pages of a row group: `rows` are positions in their `row_count` rows."""

    group: RowGroup
    pages: Pages
    rows: Rows
    row_count: int


def read_few_pages(units: Sequence[FewPages], columns: Schema) -> pa.RecordBatch:
    """Decode the wanted rows of units with equal keys (`joinable`), in the decoder's types.

    The units may belong to several files, whose pages are decoded by one call.
    """
    first = units[0].group.file
    names = [each for each in first.stored(columns) if isinstance(each, str)]
    wanted = [
        (unit.group.file.pages, unit.group.number, unit.pages)
        for unit in units
        if unit.group.file.pages is not None
    ]
    table, sizes = read_together(wanted, names)
    for unit, size_bytes in zip(units, sizes, strict=True):
        unit.group._note(unit.pages, size_bytes)
    ends = list(accumulate(unit.row_count for unit in units))
    rows = [unit.rows + end - unit.row_count for unit, end in zip(units, ends, strict=True)]
    keep = selection(np.concatenate(rows), ends[-1])
    arrays = [
        keep(_joined(first.as_now(table.column(name), field)))
        for name, field in zip(names, columns.fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns.names))


def in_slices(
    read: Callable[[], pa.RecordBatch | None], batch_rows: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Cut the batch of `read` into slices of up to `batch_rows`, each with its first row.

    If there are several slices, each one calls `read` again and keeps no other rows in memory.
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
    """Cast the columns that `schema` names to its types; other columns stay unchanged."""
    if not schema.names:
        return batch
    if batch.schema.names == schema.names:
        columns = [as_output(*both) for both in zip(batch.columns, schema.types, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    types = dict(zip(schema.names, schema.types, strict=True))
    names = batch.schema.names
    if all(batch.schema.field(name).type == type_ for name, type_ in types.items()):
        return batch
    columns = [
        as_type(array, types.get(name, array.type))
        for name, array in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _as_batch(arrays: Sequence[pa.Array], names: Sequence[str], row_count: int) -> pa.RecordBatch:
    """One batch, which has `row_count` rows even without columns."""
    if not arrays:
        return pa.RecordBatch.from_arrays([pa.nulls(row_count)], ["row"]).select([])
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def selection(rows: Rows | RowSet | None, row_count: int) -> Callable[[pa.Array], pa.Array]:
    """Return a function that selects these rows of an array of length `row_count`.

    It slices consecutive rows, and copies few of them so that the others can be freed; otherwise it
    takes rows by number, or filters if it selects nearly all rows.
    """
    if rows is None or len(rows) == row_count:
        return lambda array: array
    first, stop = _span(rows)
    if stop - first == len(rows):
        if len(rows) > row_count // 2:  # a slice keeps the whole array in memory
            return lambda array: array.slice(first, stop - first)
        return lambda array: _copied(array.slice(first, stop - first))
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


def _copied(array: pa.Array) -> pa.Array:
    """The same values without the rest of the buffers that they are a slice of."""
    if not len(array) or array.type.num_fields:  # nested arrays keep their members' buffers
        return array.take(pa.array(np.arange(len(array), dtype=np.uint32)))
    return pa.concat_arrays([array])


def _span(rows: Rows | RowSet) -> tuple[int, int]:
    if isinstance(rows, RowSet):
        return rows.span
    return (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)


def _runs(pages: Pages) -> list[Pages]:
    """Split the pages into runs of consecutive numbers."""
    return np.split(pages, np.flatnonzero(np.diff(pages) > 1) + 1)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    """Combine the chunks into one array, and drop the validity bitmap if no value is NULL.

    The decoder always adds the bitmap; filtering is four times as fast without it.
    """
    if not column.num_chunks:
        return pa.array([], column.type)
    array = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    if array.null_count or array.type.num_fields or pa.types.is_dictionary(array.type):
        return array
    _, *buffers = array.buffers()
    return pa.Array.from_buffers(array.type, len(array), [None, *buffers], 0, array.offset)
