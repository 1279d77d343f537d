"""Decodes one row group of a part column by column, or only its pages with wanted rows.

`open_file` finds the columns of a file. Row groups with few wanted pages may be decoded by one
call, those of several files too. Text that is stored with a dictionary is decoded to dictionary
arrays, because these are cheaper to filter; `as_stored` converts batches to storage types.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from operator import add, methodcaller

import numpy as np
import pyarrow as pa

from rowsieve.errors import UnsupportedOperation
from rowsieve.executor.memory_file import MemoryFile
from rowsieve.executor.merging.repeats import Rows
from rowsieve.executor.open_file import OpenFile
from rowsieve.executor.text_views import as_output
from rowsieve.metrics import ScanMetrics
from rowsieve.objects import Place
from rowsieve.parquet.page_reader import read_pages
from rowsieve.parquet.pages import Pages
from rowsieve.predicate.arrays import as_type, repeated
from rowsieve.predicate.rowset import RowSet
from rowsieve.types.logical import Field, is_nested
from rowsieve.types.schema import Schema

COLUMNS_AT_ONCE = 4  # per decoding call: amortizes the call, and fits into the processor's cache
PAGE_COLUMNS_AT_ONCE = 8  # decoding these costs as much as opening the pages again
PAGES_AT_ONCE = 2  # per row group; decoding the second costs less than opening the pages again
WHOLE_GROUP_ABOVE_SHARE = 0.75  # of the pages; then decoding all of them is cheaper
IN_CACHE_UP_TO_ROWS = 8_192  # fit into the processor's cache with all their columns
IN_CACHE_UP_TO_VALUES = 131_072  # so do these: a megabyte, if they are numbers
BYTES_OF_A_ROUND_TRIP = 512 * 1024  # what a connection transfers in the time of a round trip
_LARGEST_ARRAY_BYTES = 2**31 - 1  # offsets of text have 32 bits
FILTERED_ABOVE_SHARE = 0.92  # of the rows: then a filter is faster than taking rows by number


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows [start, start + row_count) of a file, which are row group `number`.

    `wanted`: the rows to read; None for all. `mostly_match`: a hint that the predicate keeps most
    of the wanted rows. `group_start`: the first row of the row group if this is a slice of a large
    one (`rowsieve.parquet.group_slices`), else None.
    """

    part_id: str
    file: OpenFile | MemoryFile
    number: int
    start: int
    row_count: int
    wanted: RowSet | None
    metrics: ScanMetrics
    mostly_match: bool = False
    group_start: int | None = None
    pages: Pages | None = field(init=False)
    """The pages with wanted rows; None if decoding all pages is better."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pages", self._pages(self.wanted))

    def runs(self, columns: Schema) -> Iterator[tuple[int, Callable[[], pa.RecordBatch]]]:
        """Runs of consecutive rows: the first row of each, and a function that decodes the run.

        The runs cover the pages with a wanted row, or all rows if most pages have one.
        """
        if self.pages is None:
            yield 0, partial(self._read, columns, None)
            return
        for run in _runs(self.pages):
            yield int(run[0]) * self.file.page_rows, partial(self._read, columns, run)

    @property
    def page_rows(self) -> int:
        """The number of rows in the pages with wanted rows; 0 if the whole row group is read."""
        return 0 if self.pages is None else self._rows_of(self.pages)

    def form(self, columns: Schema) -> Hashable:
        """A key that is equal for row groups whose pages of these columns one call can decode.

        Those of several files only if our writer stored each column in all of them; nested columns
        may have other fields in each file.
        """
        file = self.file
        names = [each for each in file.stored(columns) if isinstance(each, str)]
        is_alone = file.mapping is not None or file.fetches_together or len(names) < len(columns)
        is_alone = is_alone or file.at_once
        if is_alone or not names or any(is_nested(each.type) for each in columns.fields):
            return file.path
        return tuple(names), tuple(map(file.forms.get, names)), file.pages.stored_form(names)

    def places(self, columns: Schema) -> Iterator[Place]:
        """The byte ranges that `read_only` of the wanted rows requests from the store."""
        return self._places(columns, self.pages)

    def places_of_runs(self, columns: Schema) -> Iterator[Place]:
        """The byte ranges that `runs` request from the store."""
        for run in [None] if self.pages is None else _runs(self.pages):
            yield from self._places(columns, run)

    def _places(self, columns: Schema, pages: Pages | None) -> Iterator[Place]:
        if self.group_start not in (None, self.start):
            return  # the first slice requests the whole row group
        for start, stop in self.file.spans(self.number, columns, pages):
            yield self.file.path, start, stop

    def _read(self, columns: Schema, pages: Pages | None) -> pa.RecordBatch:
        """Decode these pages of these columns, in the decoder's types; None for all pages."""
        arrays = list(_arrays([self], [pages], columns))
        return _as_batch(arrays, columns.names, self._row_count(pages))

    def _pages(self, rows: Rows | RowSet | None) -> Pages | None:
        """The pages with these rows; None if decoding all pages is better."""
        if rows is None or self.group_start is not None:
            return None
        if not (page_rows := self.file.page_rows) or self.row_count <= page_rows:
            return None
        if len(rows) > WHOLE_GROUP_ABOVE_SHARE * self.row_count:
            return None
        edges = np.arange(-(-self.row_count // page_rows) + 1) * page_rows
        if isinstance(rows, RowSet):
            starts, stops = rows.ranges()
            has_rows = np.searchsorted(starts, edges[1:]) > np.searchsorted(
                stops, edges[:-1], "right"
            )
        else:
            has_rows = np.diff(np.searchsorted(rows, edges)) > 0
        pages = np.flatnonzero(has_rows)
        few = len(pages) * page_rows <= WHOLE_GROUP_ABOVE_SHARE * self.row_count
        return pages if few else None

    def _numbers_of(self, pages: Pages | None) -> list[tuple[int, int]]:
        """The first row in the file, and the number of rows, of each of these pages."""
        if pages is None:
            return [(self.start, self.row_count)]
        size = self.file.page_rows
        starts = [int(page) * size for page in pages]
        return [(self.start + at, min(size, self.row_count - at)) for at in starts]

    def _row_count(self, pages: Pages | None) -> int:
        return self.row_count if pages is None else self._rows_of(pages)

    def _rows_of(self, pages: Pages) -> int:
        """Count the rows of ascending pages; only the last page can be shorter."""
        if not len(pages):
            return 0
        page_rows = self.file.page_rows
        last_rows = self.row_count - int(pages[-1]) * page_rows
        return (len(pages) - 1) * page_rows + min(page_rows, last_rows)

    def _within(
        self, rows: Rows | RowSet | None, pages: Pages | None
    ) -> tuple[Rows | RowSet | None, int]:
        """The positions of the rows within the pages, and the number of rows in the pages.

        The positions are None if all rows of the pages are wanted.
        """
        if rows is None or pages is None:
            return rows, self._row_count(pages)
        decoded = self._rows_of(pages)
        if len(rows) == decoded:
            return None, decoded
        numbers = rows.to_ids() if isinstance(rows, RowSet) else rows
        page_rows = self.file.page_rows
        before = (pages - np.arange(len(pages))) * page_rows  # rows in skipped pages before each
        return numbers - before[np.searchsorted(pages, numbers // page_rows)], decoded

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

    def _note(self, pages: Pages | None, size_bytes: int) -> None:
        """Count a read in the metrics; the first slice of a row group counts all of its rows."""
        rows = self.row_count
        if self.group_start is not None:
            starts = self.file.starts
            rows = starts[self.number + 1] - starts[self.number]
        if pages is not None:
            rows = self._rows_of(pages)
        self.metrics.note_row_group(self.part_id, (self.file.path, self.number), rows, size_bytes)


def read_rows(
    groups: Sequence[RowGroup],
    rows: Sequence[Rows | RowSet | None],
    columns: Schema,
    target: pa.Schema | None,
) -> pa.RecordBatch:
    """Decode these rows of a row group, or of several of one form, as one batch.

    `rows` of each group: ascending numbers or a set; None for all. The batch has the types of
    `target`, or those of the decoder if it is None. Columns are filtered right after decoding,
    while they are in the processor's cache. Text is filtered as dictionary indices, which are
    cheaper to move, and converted afterwards.
    """
    some, pages, within, count = [], [], [], 0
    for group, group_rows in zip(groups, rows, strict=True):
        more = group.row_count if group_rows is None else len(group_rows)
        if more or len(groups) == 1:
            some.append(group)
            pages.append(group.pages if group_rows is group.wanted else group._pages(group_rows))
            within.append(group._within(group_rows, pages[-1]))
            count += more
    if not columns.fields:
        return _as_batch([], (), count)
    keep = selection(*within[0]) if len(within) == 1 else _joint_selection(within)
    columns_read = map(keep, _arrays(some, pages, columns))
    if target is None:
        return pa.RecordBatch.from_arrays(list(columns_read), names=list(columns.names))
    arrays = [as_output(*each) for each in zip(columns_read, target.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def is_cheap_at_once(groups: Sequence[RowGroup], columns: Schema) -> bool:
    """Return whether one read of all these columns costs less than two reads.

    This holds in memory and for rows of a codec, if most rows match, for few columns with few
    wanted pages per row group, and for a remote store if the bytes cost less than a second round
    trip.
    """
    if groups[0].mostly_match or groups[0].file.at_once:
        return True
    is_few, page_count, size_bytes = len(columns.fields) <= PAGE_COLUMNS_AT_ONCE, 0, 0
    for group in groups:
        is_few = is_few and group.pages is not None
        page_count += 0 if group.pages is None else len(group.pages)
    if is_few and page_count <= PAGES_AT_ONCE * len(groups):
        return True
    if not groups[0].file.fetches_together:
        return False
    for group in groups:
        for start, stop in group.file.spans(group.number, columns, group.pages):
            size_bytes += stop - start
    return size_bytes <= BYTES_OF_A_ROUND_TRIP


def _arrays(
    groups: Sequence[RowGroup], pages: Sequence[Pages | None], columns: Schema
) -> Iterator[pa.Array]:
    """Decode a few columns per call, or all at once for few rows or a remote store."""
    first = groups[0]
    sizes = [0] * len(groups)
    stored = first.file.stored(columns)
    row_count = sum(map(RowGroup._row_count, groups, pages))
    few = row_count <= IN_CACHE_UP_TO_ROWS or row_count * len(stored) <= IN_CACHE_UP_TO_VALUES
    step = COLUMNS_AT_ONCE if pages[0] is None else PAGE_COLUMNS_AT_ONCE
    if few or first.file.fetches_together or first.file.at_once:
        step = max(len(stored), 1)
    for start in range(0, len(stored), step):
        some, fields = stored[start : start + step], columns.fields[start : start + step]
        table = None
        if any(isinstance(each, str) for each in some):
            table, read = _decoded(groups, pages, fields)
            sizes = list(map(add, sizes, read))
        for each, column in zip(some, fields, strict=True):
            if isinstance(each, str):
                assert table is not None
                yield first._one_array(table.column(each), column)
            else:
                yield repeated(each, row_count)
    for group, group_pages, size_bytes in zip(groups, pages, sizes, strict=True):
        group._note(group_pages, size_bytes)


def _decoded(
    groups: Sequence[RowGroup],
    pages: Sequence[Pages | None],
    fields: Sequence[Field],
) -> tuple[pa.Table, list[int]]:
    """Decode the columns that the file has; also returns the bytes read of each row group."""
    first = groups[0]
    if pages[0] is None:
        rows = None
        if first.group_start is not None:
            begin = first.start - first.group_start
            rows = begin, begin + first.row_count
        table, size_bytes = first.file.read(first.number, fields, rows)
        runs = [(first.start, first.row_count)]
        return first.file.finished(table, fields, runs), [size_bytes]
    wanted = [
        (group.file.pages, group.number, group_pages)
        for group, group_pages in zip(groups, pages, strict=True)
        if group_pages is not None
    ]
    table, sizes = read_pages(wanted, first.file.physical(fields))
    runs = [
        run
        for group, group_pages in zip(groups, pages, strict=True)
        for run in group._numbers_of(group_pages)
    ]
    return first.file.finished(table, fields, runs), sizes


def _joint_selection(
    within: Sequence[tuple[Rows | RowSet | None, int]],
) -> Callable[[pa.Array], pa.Array]:
    """`selection` of consecutive arrays, each with its rows and its length."""
    ends = list(accumulate(count for _, count in within))
    places = [
        (np.arange(count) if rows is None else rows) + end - count
        for (rows, count), end in zip(within, ends, strict=True)
        if not isinstance(rows, RowSet)  # rows of few pages are numbers
    ]
    return selection(np.concatenate(places), ends[-1])


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
        return _unchanged
    if isinstance(rows, RowSet):
        first, stop = rows.span
    else:
        first, stop = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
    if stop - first == len(rows):
        if len(rows) > row_count // 2:  # a slice keeps the whole array in memory
            return methodcaller("slice", first, stop - first)
        return partial(_copied, first=first, stop=stop)
    if len(rows) <= FILTERED_ABOVE_SHARE * row_count:
        numbers = rows.to_ids() if isinstance(rows, RowSet) else rows
        indices = pa.array(numbers.astype(np.uint32))
        return methodcaller("take", indices)
    if isinstance(rows, RowSet):
        mask = rows.to_mask()
    else:
        mask = np.zeros(row_count, dtype=bool)
        mask[rows] = True
    bits = pa.py_buffer(np.packbits(mask, bitorder="little"))
    wanted = pa.Array.from_buffers(pa.bool_(), row_count, [None, bits], 0)
    return methodcaller("filter", wanted)


def _unchanged(array: pa.Array) -> pa.Array:
    return array


def _copied(whole: pa.Array, first: int, stop: int) -> pa.Array:
    """Rows [first, stop), without the other rows of the buffers."""
    array = whole.slice(first, stop - first)
    if not len(array) or array.type.num_fields:  # nested arrays keep their members' buffers
        return array.take(pa.array(np.arange(len(array), dtype=np.uint32)))
    return pa.concat_arrays([array])


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
