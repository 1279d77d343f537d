"""Decodes one row group of a part column by column, or only its pages with wanted rows.

A column is found by its field id, never by its name, which another column may have had when the
file was written (trap T19). A column that was added later is a constant, its fill default.

Several row groups with few wanted pages are decoded together, like one row group. Text that is
stored with a dictionary is decoded to dictionary arrays, because these are cheaper to filter;
`as_stored` converts batches to the table's storage types.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.errors import CorruptData, SchemaMismatch
from rowsieve.executor.joined_groups import FEW
from rowsieve.executor.repeats import Rows
from rowsieve.executor.text_views import as_output
from rowsieve.metrics import ScanMetrics
from rowsieve.objects import ObjectStore, Place
from rowsieve.parquet.chunks import chunk_span
from rowsieve.parquet.decode import ParquetReader
from rowsieve.parquet.file_mapping import FileMapping, mapping_of
from rowsieve.parquet.footer import read_metadata, starts_of
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.leaf_columns import fields_by_id, leaves_of, names_by_id, schema_id_of
from rowsieve.parquet.nested_columns import NestedColumn, nested_column
from rowsieve.parquet.page_reader import PageReader, read_together
from rowsieve.parquet.pages import PageDirectory, Pages
from rowsieve.parquet.spans import Span, requests
from rowsieve.parquet.stored_forms import check_format, forms_by_name, in_form_of_type
from rowsieve.predicate.arrays import as_type, repeated
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.manifest import FileRef
from rowsieve.types.conform import conform_values
from rowsieve.types.encodings import arrow_field, arrow_type
from rowsieve.types.logical import Field, Timestamp, is_nested
from rowsieve.types.schema import Schema
from rowsieve.types.stored_defaults import constant
from rowsieve.types.widening import WIDE_TYPES, widened

COLUMNS_AT_ONCE = 4  # per decoding call: amortizes the call, and fits into the processor's cache
PAGE_COLUMNS_AT_ONCE = 8  # decoding these costs as much as opening the pages again
PAGES_AT_ONCE = 2  # per row group; decoding the second costs less than opening the pages again
FEW_ROWS = 8_192  # fit into the processor's cache with all their columns
FEW_VALUES = 131_072  # so do these: a megabyte, if they are numbers
BYTES_OF_A_ROUND_TRIP = 512 * 1024  # what a connection transfers in the time of a round trip
MOST = 0.92  # share of the rows; above it, a filter is faster than taking rows by number


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows [start, start + row_count) of a file, from row group `number` on.

    `wanted`: the rows to read; None for all. The rows may extend into the next row groups if few
    pages of each are wanted (`rowsieve.executor.joined_groups`). `mostly_match`: a hint that the
    predicate keeps most of the wanted rows.
    """

    part_id: str
    file: OpenFile
    number: int
    start: int
    row_count: int
    wanted: RowSet | None
    metrics: ScanMetrics
    mostly_match: bool = False

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

    def is_cheap_at_once(self, columns: Schema) -> bool:
        """Whether one read of all these columns costs less than two reads.

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
        """Whether there are few columns, and few wanted pages per row group."""
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
        forms = tuple(file.forms.get(name) for name in names)
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
        for start, stop in self.file.spans(self.number, columns, pages):
            yield self.file.path, start, stop

    def _read(self, columns: Schema, pages: Pages | None) -> pa.RecordBatch:
        """Decode these pages of these columns, in the decoder's types; None for all pages."""
        arrays = list(self._arrays(columns, pages))
        return _as_batch(arrays, columns.names, self._row_count(pages))

    def _pages(self, rows: Rows | RowSet | None) -> Pages | None:
        """The pages with these rows; None if decoding all pages is better."""
        if rows is None or not (page_rows := self.file.page_rows) or self.row_count <= page_rows:
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
        left = self.row_count - int(pages[-1]) * page_rows
        return (len(pages) - 1) * page_rows + min(page_rows, left)

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
        """Decode a few columns per call, or all at once for pages, few rows or a remote store."""
        size_bytes = 0
        stored = self.file.stored(columns)
        few = self.row_count <= FEW_ROWS or self.row_count * len(stored) <= FEW_VALUES
        together = pages is not None or few or self.file.fetches_together
        step = max(len(stored), 1) if together else COLUMNS_AT_ONCE
        for first in range(0, len(stored), step):
            some = stored[first : first + step]
            fields = columns.fields[first : first + step]
            table = None
            if any(isinstance(each, str) for each in some):
                table, read_bytes = self.file.read(self.number, fields, pages)
                size_bytes += read_bytes
            for each, field in zip(some, fields, strict=True):
                if isinstance(each, str):
                    assert table is not None
                    yield _joined(self.file.as_now(table.column(each), field))
                else:
                    yield repeated(each, self._row_count(pages))
        self._note(pages, size_bytes)

    def _note(self, pages: Pages | None, size_bytes: int) -> None:
        """Count a read in the metrics."""
        read = [(self.number, self.row_count)]
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


class OpenFile:
    """A file that several threads read; each call uses a reader of its own.

    `starts`: the first row of each row group, and the number of rows. `mapping`: that of a file
    that is not ours. `forms`: the forms of values by the name in the file.
    """

    __slots__ = ("_idle", "_leaves", "_metadata", "_names", "_pages", "_ref", "_store",
                 "fetches_together", "forms", "mapping", "starts")  # fmt: skip

    def __init__(self, store: ObjectStore, ref: FileRef) -> None:
        self._store = store
        self._ref = ref
        self._metadata = read_metadata(store, ref)
        check_format(self._metadata, ref.path)
        self.forms = forms_by_name(self._metadata)
        self._leaves = leaves_of(self._metadata)
        self._names = names_by_id(self._metadata)
        self._idle: deque[ParquetReader] = deque()
        self._pages: tuple[PageReader | None, int] | None = None
        self.fetches_together = store.overlaps
        self.starts = starts_of(self._metadata)
        self.mapping = mapping_of(self._metadata)

    @property
    def path(self) -> str:
        """The file's path in its store."""
        return self._ref.path

    @property
    def pages(self) -> PageReader | None:
        """Reads single pages; None if these cannot be read."""
        return self._paged()[0]

    @property
    def page_rows(self) -> int:
        """The rows of a page; 0 if single pages cannot be read."""
        return self._paged()[1]

    def _paged(self) -> tuple[PageReader | None, int]:
        """Decode the directory of pages at its first use: reads of whole files need none."""
        if self._pages is None:
            directory = PageDirectory.of(self._metadata)
            if directory is None:
                self._pages = None, 0
            else:
                reader = PageReader(self._store, self._ref, directory, self._leaves)
                self._pages = reader, directory.page_rows
        return self._pages

    def stored(self, columns: Schema) -> list[str | pa.Scalar]:
        """The name in this file of each column, or its value in all rows if the file lacks it.

        Columns are found by their ids; a file lacks those that were added after it was written.
        CorruptData if it lacks another one.
        """
        names = self._names
        return [
            names[field.id] if field.id in names else self._fill(field) for field in columns.fields
        ]

    def _fill(self, field: Field) -> pa.Scalar:
        written_with = schema_id_of(self._metadata)
        mapping = self.mapping
        if mapping is not None and (field.id in mapping.constants or field.added <= mapping.schema):
            return constant(mapping.constants.get(field.id), field.type)
        if written_with is None or written_with >= field.added:
            raise CorruptData(
                f"{self._ref.path} lacks column {field.name!r} (field id {field.id}), which the "
                f"schema {written_with} that it was written with has; restore the file from a copy"
            )
        return constant(field.fill, field.type)

    def spans(self, row_group: int, columns: Schema, pages: Pages | None) -> list[Span]:
        """The byte ranges that one `read` of all these columns requests from the store."""
        fields = [field for field in columns.fields if field.id in self._names]
        if not fields:
            return []
        if pages is not None:
            assert self.pages is not None
            return self.pages.spans(row_group, [self._names[each.id] for each in fields], pages)
        group = self._metadata.row_group(row_group)
        return requests(chunk_span(group.column(leaf)) for leaf in self._leaves_of(fields))

    def group_count(self, row_group: int, pages: Pages) -> int:
        """The number of row groups that these pages belong to."""
        assert self.pages is not None
        return self.pages.group_count(row_group, pages)

    def rows_by_group(self, row_group: int, pages: Pages) -> list[tuple[int, int]]:
        """The row groups that these pages belong to, each with the number of rows in its pages."""
        assert self.pages is not None
        return self.pages.rows_by_group(row_group, pages)

    def as_now(self, column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
        """Convert a decoded column to the table's type; text may stay in a dictionary."""
        if self.mapping is not None:
            return self._placed(column, field, self.mapping)
        if is_nested(field.type):
            return self._nested(field).adapted(column)
        if self.forms and (form := self.forms.get(self._names[field.id])) is not None:
            return in_form_of_type(column, form, field, self.path)
        if isinstance(field.type, WIDE_TYPES):
            return widened(column, arrow_type(field.type))
        return column

    def _placed(
        self, column: pa.ChunkedArray, field: Field, mapping: FileMapping
    ) -> pa.ChunkedArray:
        """Convert a column of a file that is not ours: nested ones as they were first, then now."""
        before = mapping.nested_fields().get(field.id)
        if before is None:
            if mapping.instants and field.type == Timestamp(utc=True):
                column = _as_instants(column)
            return _conformed(column, field, self.path)
        stored = _conformed(column, before, self.path)
        matched = nested_column(arrow_field(before), field, mapping.schema, self.path, foreign=True)
        return matched.adapted(stored)

    def _nested(self, field: Field) -> NestedColumn:
        known = _nested_columns(self._metadata)
        if (found := known.get(field)) is None:
            stored = fields_by_id(self._metadata)[field.id]
            written_with = schema_id_of(self._metadata)
            found = known[field] = nested_column(stored, field, written_with, self.path)
        return found

    def _leaves_of(self, fields: Iterable[Field]) -> list[int]:
        """The leaf numbers of the columns, without those of fields that were dropped."""
        found: list[int] = []
        for field in fields:
            leaves = self._leaves[self._names[field.id]]
            if is_nested(field.type) and self.mapping is None:
                leaves = [leaves[place] for place in self._nested(field).leaves]
            found += leaves
        return found

    def read(
        self, row_group: int, columns: Iterable[Field], pages: Pages | None
    ) -> tuple[pa.Table, int]:
        """Decode columns of a row group, or only these pages; also returns the bytes read.

        Columns that the file lacks are left out. Page 0 is the first of `row_group`; pages may
        belong to the row groups after it.
        """
        fields = [field for field in columns if field.id in self._names]
        if pages is not None:
            assert self.pages is not None
            return self.pages.read(row_group, [self._names[each.id] for each in fields], pages)
        leaves = self._leaves_of(fields)
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = ParquetReader(self._store, self._ref)
        table = reader.read(row_group, leaves)
        self._idle.append(reader)
        chunks = self._metadata.row_group(row_group)
        return table, sum(chunks.column(leaf).total_compressed_size for leaf in leaves)


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


@cached_per_footer
def _nested_columns(_: pq.FileMetaData) -> dict[Field, NestedColumn]:
    """How to read the nested columns of a file, by the table's column."""
    return {}


def _as_instants(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give times without a zone the zone UTC."""
    if not pa.types.is_timestamp(column.type) or column.type.tz is not None:
        return column
    return column.cast(pa.timestamp(column.type.unit, "UTC"))


def _conformed(column: pa.ChunkedArray, field: Field, path: str) -> pa.ChunkedArray:
    """Convert a column of a file that is not ours; SchemaMismatch if a value would change."""
    target = arrow_type(field.type)
    try:
        chunks = [conform_values(chunk, field.type, field.name) for chunk in column.chunks]
    except SchemaMismatch as error:
        raise SchemaMismatch(f"cannot read {path}: {error}") from error
    return pa.chunked_array(chunks, target)


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
