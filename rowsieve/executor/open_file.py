"""A data file that is open for reading: columns by field id, as the table has them now.

A column is looked up by its field id, never by its name, which another column may have had when the
file was written (trap T19). A column that was added later is a constant, its fill default.

Soundness: a value that the column's type now cannot hold is an error, never another value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from threading import Event
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.errors import CorruptData, SchemaMismatch
from rowsieve.locks import ForkSafeLock
from rowsieve.objects import ObjectStore
from rowsieve.parquet.chunks import chunk_span
from rowsieve.parquet.decode import ParquetReader
from rowsieve.parquet.file_mapping import FileMapping, mapping_of
from rowsieve.parquet.footer import read_metadata, reading, starts_of
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.foreign_values import conform_foreign
from rowsieve.parquet.group_slices import (
    RowStream,
    decoded_bytes,
    slice_rows,
)
from rowsieve.parquet.leaf_columns import fields_by_id, leaves_of, names_by_id, schema_id_of
from rowsieve.parquet.nested_columns import NestedColumn, nested_column
from rowsieve.parquet.page_reader import PageReader
from rowsieve.parquet.pages import Pages, page_directory
from rowsieve.parquet.spans import Span, requests
from rowsieve.parquet.stored_forms import check_format, forms_by_name, in_form_of_type
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts.row_versions import ROW_VERSION
from rowsieve.types.encodings import arrow_field, arrow_type
from rowsieve.types.logical import Field, is_nested
from rowsieve.types.schema import Schema
from rowsieve.types.stored_defaults import constant
from rowsieve.types.widening import WIDE_TYPES, widened

_MAX_STREAMS: Final = 4  # of one row group and the same columns, by several threads


class OpenFile:
    """A file that several threads read; each call uses a reader of its own.

    `path`: its path in the store. `starts`: the first row of each row group, and the number of
    rows. `mapping`: the mapping of a foreign file, else None. `forms`: the forms of values by the
    name in the file. `at_once`: whether one read of all columns costs no more than one of some.
    """

    at_once: bool = False
    __slots__ = ("_commit_ts", "_idle", "_leaves", "_lock", "_metadata", "_names", "_pages", "_ref",
                 "_store", "_streams", "fetches_together", "forms", "mapping", "path",
                 "starts")  # fmt: skip

    def __init__(self, store: ObjectStore, ref: FileRef, commit_ts: int | None = None) -> None:
        self._store = store
        self._ref = ref
        self._commit_ts = commit_ts
        self.path = ref.path
        self._metadata = read_metadata(store, ref)
        layout = _layout(self._metadata, ref.path)
        self.forms, self.mapping, self.starts = layout.forms, layout.mapping, layout.starts
        self._leaves, self._names = layout.leaves, layout.names
        self._idle: deque[ParquetReader] = deque()
        self._streams: dict[tuple[int, ...], _Streams] = {}  # by row group and leaves
        self._lock = ForkSafeLock()
        self._pages: PageReader | None = None  # once a page is read
        self.fetches_together = store.overlaps

    @property
    def pages(self) -> PageReader:
        """Reads single pages; only for a file with `page_rows`."""
        if self._pages is None:
            directory = page_directory(self._metadata)
            assert directory is not None
            self._pages = PageReader(self._store, self._ref, directory, self._leaves)
        return self._pages

    @property
    def page_rows(self) -> int:
        """The rows of a page; 0 if single pages cannot be read.

        Decodes the directory of pages at its first use: reads of whole files need none.
        """
        directory = page_directory(self._metadata)
        return 0 if directory is None else directory.page_rows

    def stored(self, columns: Schema) -> list[str | pa.Scalar]:
        """The name in this file of each column, or its value in all rows if the file lacks it.

        Columns are looked up by their ids; a file lacks those that were added after it was written.
        CorruptData if it lacks another one.
        """
        names = self._names
        return [
            names[field.id] if field.id in names else self._fill(field) for field in columns.fields
        ]

    def _fill(self, field: Field) -> pa.Scalar:
        if field.id == ROW_VERSION.id:
            return pa.scalar(self._commit_ts, pa.int64())
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

    def physical(self, fields: Iterable[Field]) -> list[str]:
        """The columns of the file to read for these columns of the table."""
        return [self._names[field.id] for field in fields if field.id in self._names]

    def finished(
        self, table: pa.Table, _fields: Iterable[Field], _runs: Sequence[tuple[int, int]]
    ) -> pa.Table:
        """The columns of the table from those of the file; `_runs` are the numbers of the rows."""
        return table

    def spans(self, row_group: int, columns: Schema, pages: Pages | None) -> list[Span]:
        """The byte ranges that one `read` of all these columns requests from the store."""
        fields = [field for field in columns.fields if field.id in self._names]
        if not fields:
            return []
        if pages is not None:
            return self.pages.spans(row_group, self.physical(fields), pages)
        group = self._metadata.row_group(row_group)
        return requests(chunk_span(group.column(leaf)) for leaf in self._leaves_of(fields))

    def as_now(self, column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
        """Convert a decoded column to the table's type; text may stay in a dictionary."""
        if self.mapping is not None:
            return self._placed(column, field, self.mapping)
        if is_nested(field.type):
            return self._nested(field).adapted(column)
        if self.forms and (form := self.forms.get(self._names[field.id])) is not None:
            return in_form_of_type(column, form, field, self.path)
        if isinstance(field.type, WIDE_TYPES) and column.type != (wide := arrow_type(field.type)):
            return widened(column, wide)
        return column

    def _placed(
        self, column: pa.ChunkedArray, field: Field, mapping: FileMapping
    ) -> pa.ChunkedArray:
        """Convert a column of a foreign file: nested ones as they were first, then now."""
        before = mapping.nested_fields().get(field.id)
        if before is None:
            return _conformed(column, field, mapping, self.path)
        stored = _conformed(column, before, mapping, self.path)
        matched = nested_column(arrow_field(before), field, mapping.schema, self.path, foreign=True)
        return matched.adapted(stored)

    def _nested(self, field: Field) -> NestedColumn:
        known = _nested_columns(self._metadata)
        if (column := known.get(field)) is None:
            stored = fields_by_id(self._metadata)[field.id]
            written_with = schema_id_of(self._metadata)
            column = known[field] = nested_column(stored, field, written_with, self.path)
        return column

    def _leaves_of(self, fields: Iterable[Field]) -> list[int]:
        """The leaf numbers of the columns that the file has, without those of dropped fields."""
        numbers: list[int] = []
        for field in fields:
            if field.id not in self._names:
                continue
            leaves = self._leaves[self._names[field.id]]
            if is_nested(field.type) and self.mapping is None:
                leaves = [leaves[place] for place in self._nested(field).leaves]
            numbers += leaves
        return numbers

    def cuts(
        self, row_group: int, most_rows: int, columns: Schema, memory_bytes: int
    ) -> Sequence[tuple[int, int]]:
        """The first row and the end of each slice of a row group; one slice if it is not large.

        Slices of a large one have at most `most_rows`. `columns` are those that are read, with
        `memory_bytes` for the whole read.
        """
        leaves = self._leaves_of(columns.fields)
        decoded = None if self.mapping is None else partial(self._decoded, row_group)
        rows = slice_rows(self._metadata.row_group(row_group), leaves, memory_bytes, decoded)
        start, stop = self.starts[row_group], self.starts[row_group + 1]
        if rows >= stop - start:
            return [(start, stop)]
        step = max(min(rows, most_rows), 1)
        return [(first, min(first + step, stop)) for first in range(start, stop, step)]

    def _decoded(self, row_group: int, leaf: int) -> int:
        """The decoded bytes of a chunk of a foreign file, which is read to find out."""
        known = _decoded_bytes(self._metadata)
        if (row_group, leaf) not in known:
            with (
                reading(self.path, row_group),
                self._store.open_input(self.path, self._ref.size_bytes) as source,
            ):
                byte_count = decoded_bytes(source, self._metadata, row_group, leaf)
                known[row_group, leaf] = byte_count
        return known[row_group, leaf]

    def read(
        self, row_group: int, columns: Iterable[Field], rows: tuple[int, int] | None = None
    ) -> tuple[pa.Table, int]:
        """Decode columns of a row group, or of a slice of it; also returns the bytes read.

        The result omits columns that the file lacks.
        """
        leaves = self._leaves_of(columns)
        chunks = self._metadata.row_group(row_group)
        size_bytes = sum(chunks.column(leaf).total_compressed_size for leaf in leaves)
        if rows is not None:
            share = (rows[1] - rows[0]) / max(int(chunks.num_rows), 1)
            return self._read_slice(row_group, leaves, rows), int(size_bytes * share)
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = ParquetReader(self._store, self._ref)
        table = reader.read(row_group, leaves)
        self._idle.append(reader)
        return table, size_bytes

    def _read_slice(self, row_group: int, leaves: Sequence[int], rows: tuple[int, int]) -> pa.Table:
        """Read on from the stream that is nearest before the slice; else from a new one.

        Waits for a read that ends nearer before the slice: a second stream would decode all rows
        before it again.
        """
        streams = self._streams.setdefault((row_group, *leaves), _Streams())
        is_last = rows[1] >= self._metadata.row_group(row_group).num_rows
        stream = None
        with self._lock.mutex:
            done = streams.begin(rows[1])
        try:
            while True:
                with self._lock.mutex:
                    stream, nearer = streams.take(rows[0], is_last=is_last)
                if nearer is None:
                    break
                nearer.wait()
            if stream is None:
                reader = ParquetReader(self._store, self._ref, for_streams=True)
                stream = reader.stream(row_group, leaves, rows[1] - rows[0])
            with reading(self.path, row_group, self._metadata):
                table = stream.read(*rows)
            if is_last:
                stream = None  # at its end: it would keep the bytes of its chunks
        except BaseException:
            stream = None
            raise
        finally:
            with self._lock.mutex:
                streams.end(rows[1], done, stream)
        return table


class _Streams:
    """The streams of the same columns of a row group; every call needs the lock of its file.

    Slices are begun nearly in order: once the last one has its stream, no other is kept.
    """

    __slots__ = ("_begun", "_idle", "_keeps")

    def __init__(self) -> None:
        self._idle: list[RowStream] = []
        self._begun: list[tuple[int, Event]] = []  # the last row of each read, also if it waits
        self._keeps = True

    def begin(self, stop: int) -> Event:
        """Note a read up to a row; its event is set at its end."""
        done = Event()
        self._begun.append((stop, done))
        return done

    def take(self, first: int, *, is_last: bool) -> tuple[RowStream | None, Event | None]:
        """Take the nearest idle stream before a row; else name a read that will end nearer."""
        near = max((each.position for each in self._idle if each.position <= first), default=-1)
        nearer = [each for each in self._begun if near < each[0] <= first]
        if nearer:
            return None, max(nearer, key=lambda each: each[0])[1]
        stream = next((each for each in self._idle if each.position == near), None)
        if stream is not None:
            self._idle.remove(stream)
        if first == 0:
            self._keeps = True
        if is_last:
            self._keeps = False
            self._idle.clear()
        return stream, None

    def end(self, stop: int, done: Event, stream: RowStream | None) -> None:
        """Note the end of a read, whose stream is idle then."""
        self._begun.remove((stop, done))
        if stream is not None and self._keeps and len(self._idle) < _MAX_STREAMS:
            self._idle.append(stream)
        done.set()


class _Layout(NamedTuple):
    """What the footer says of a file; `OpenFile` and the functions of these names explain it."""

    forms: Mapping[str, bytes]
    mapping: FileMapping | None
    starts: tuple[int, ...]
    leaves: Mapping[str, list[int]]
    names: Mapping[int, str]


@cached_per_footer
def _layout(metadata: pq.FileMetaData, path: str) -> _Layout:
    """The layout of a file; UnsupportedProtocol for a newer format."""
    check_format(metadata, path)
    forms, mapping = forms_by_name(metadata), mapping_of(metadata)
    return _Layout(forms, mapping, starts_of(metadata), leaves_of(metadata), names_by_id(metadata))


@cached_per_footer
def _decoded_bytes(_: pq.FileMetaData) -> dict[tuple[int, int], int]:
    """The decoded bytes of chunks that were read to find out, by row group and leaf."""
    return {}


@cached_per_footer
def _nested_columns(_: pq.FileMetaData) -> dict[Field, NestedColumn]:
    """The readers of the nested columns of a file, by the table's column."""
    return {}


def _conformed(
    column: pa.ChunkedArray, field: Field, mapping: FileMapping, path: str
) -> pa.ChunkedArray:
    """Convert a column of a foreign file; SchemaMismatch if a value would change."""
    target = arrow_type(field.type)
    try:
        chunks = [
            conform_foreign(chunk, field.type, field.name, instants=mapping.instants)
            for chunk in column.chunks
        ]
    except SchemaMismatch as error:
        raise SchemaMismatch(f"cannot read {path}: {error}") from error
    return pa.chunked_array(chunks, target)
