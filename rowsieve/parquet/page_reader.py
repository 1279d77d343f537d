"""Reads and decodes single pages of row groups, and checks each page against its digest.

All columns of a row group have their page boundaries at the same rows. So the same pages of several
columns form a Parquet file in memory (`rowsieve.parquet.mini_file`), which pyarrow decodes. Opening
that file costs as much as decoding a page, so it may have pages of several row groups.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore
from rowsieve.parquet.footer import ParquetRef, read_tail, reading
from rowsieve.parquet.leaf_columns import dictionary_columns
from rowsieve.parquet.mini_file import ColumnPages, FileSchema, GroupPages, mini_file
from rowsieve.parquet.pages import ChunkPages, PageDirectory, Pages
from rowsieve.parquet.spans import GAP_BYTES, Span, requests


class PageReader:
    """Reads pages of one file with a page directory; thread-safe.

    `leaves`: the leaf numbers of each column, by name, in the file's order.
    """

    __slots__ = ("_directory", "_gap_bytes", "_leaves", "_metadata", "_open", "_path", "_source",
                 "_tail")  # fmt: skip

    def __init__(
        self,
        store: ObjectStore,
        ref: ParquetRef,
        directory: PageDirectory,
        leaves: Mapping[str, Sequence[int]],
    ) -> None:
        tail = read_tail(store, ref)
        self._path = ref.path
        self._metadata = tail.metadata
        self._directory = directory
        self._leaves = leaves
        self._gap_bytes = GAP_BYTES if store.overlaps else 0
        self._tail = tail
        self._open = partial(store.open_input, ref.path, ref.size_bytes)
        self._source: Any = None  # opened when the first page is read

    def read(self, row_group: int, names: Sequence[str], pages: Pages) -> tuple[pa.Table, int]:
        """Decode these ascending pages of these columns; also returns the bytes read.

        Page 0 is the first of `row_group`; pages may belong to the row groups after it. CorruptData
        if the bytes differ from those that were written.
        """
        groups, size_bytes = self.fetch(row_group, names, pages)
        with reading(self._path, row_group if len(groups) == 1 else None):
            return self._decoded(groups, names), size_bytes

    def fetch(
        self, row_group: int, names: Sequence[str], pages: Pages
    ) -> tuple[list[GroupPages], int]:
        """Read and check the bytes of these pages, by row group; also returns the bytes read."""
        parts = self._directory.by_row_group(row_group, pages)
        with reading(self._path, row_group if len(parts) == 1 else None):
            self._source = self._source or self._open()
            return self._groups(parts, names)

    def stored_form(self, names: Sequence[str]) -> tuple[bytes, tuple[str, ...]]:
        """The physical form of these columns; pages of files with equal forms decode together."""
        read = set(names)
        dictionaries = [name for name in dictionary_columns(self._metadata) if name in read]
        return FileSchema.of(self._tail).begin(names).data, tuple(dictionaries)

    def _decoded(self, groups: Sequence[GroupPages], names: Sequence[str]) -> pa.Table:
        file = mini_file(FileSchema.of(self._tail).begin(names), groups)
        _, dictionaries = self.stored_form(names)
        opened = pq.ParquetFile(
            pa.BufferReader(file), read_dictionary=list(dictionaries), pre_buffer=False
        )
        table = opened.reader.read_all(use_threads=False)
        row_count = sum(group.row_count for group in groups)
        if table.num_rows != row_count or table.num_columns != len(names):
            raise CorruptData(
                f"{self._path}: pages of {len(groups)} row groups decode to {table.num_rows} of "
                f"{row_count} rows; restore the file from a copy, or the table to a version "
                "without it"
            )
        return table

    def spans(self, row_group: int, names: Sequence[str], pages: Pages) -> list[Span]:
        """The byte ranges that `read` requests."""
        leaves = self._leaves_of(names)
        parts = self._directory.by_row_group(row_group, pages)
        return self._requests((places, own) for own, places in self._places(parts, leaves))

    def rows_by_group(self, row_group: int, pages: Pages) -> list[tuple[int, int]]:
        """The row groups of these pages, numbered as for `read`, each with their row count."""
        parts = self._directory.by_row_group(row_group, pages)
        return [(group, self._row_count(group, own)) for group, own in parts]

    def group_count(self, row_group: int, pages: Pages) -> int:
        """The number of row groups that hold these pages, numbered as for `read`."""
        return len(self._directory.by_row_group(row_group, pages))

    def _leaves_of(self, names: Sequence[str]) -> list[int]:
        return [leaf for name in names for leaf in self._leaves[name]]

    def _places(
        self, parts: Sequence[tuple[int, list[int]]], leaves: Sequence[int]
    ) -> Iterator[tuple[list[int], list[ChunkPages]]]:
        """The pages of each row group, and the positions of every leaf's pages."""
        for group, pages in parts:
            yield pages, [self._directory.chunk(self._metadata, group, leaf) for leaf in leaves]

    def _requests(self, wanted: Iterable[tuple[list[ChunkPages], list[int]]]) -> list[Span]:
        spans = (span for places, own in wanted for place in places for span in _spans(place, own))
        return requests(spans, self._gap_bytes)

    def _row_count(self, row_group: int, pages: Sequence[int]) -> int:
        """Count the rows of ascending pages of a row group; only its last page can be shorter."""
        if not pages:
            return 0
        page_rows, last = self._directory.page_rows, pages[-1]
        left = int(self._metadata.row_group(row_group).num_rows) - last * page_rows
        return (len(pages) - 1) * page_rows + min(page_rows, left)

    def _groups(
        self, parts: Sequence[tuple[int, list[int]]], names: Sequence[str]
    ) -> tuple[list[GroupPages], int]:
        """The bytes of the pages of every leaf, by row group, and the number of bytes read."""
        placed = list(self._places(parts, self._leaves_of(names)))
        spans = [
            span
            for pages, chunks in placed
            for chunk in chunks
            for number in (-1, *pages)
            if (span := chunk.span(number))[0] < span[1]
        ]
        read = [
            (start, memoryview(self._source.read_at(stop - start, start)))
            for start, stop in requests(spans, self._gap_bytes)
        ]
        starts = [start for start, _ in read]
        groups = []
        for (number, own), (pages, chunks) in zip(parts, placed, strict=True):
            columns = [
                ColumnPages(
                    chunk,
                    self._checked(starts, read, chunk, -1),
                    [self._checked(starts, read, chunk, page) for page in pages],
                )
                for chunk in chunks
            ]
            groups.append(GroupPages(columns, self._row_count(number, own)))
        return groups, sum(len(data) for _, data in read)

    def _checked(
        self,
        starts: Sequence[int],
        read: Sequence[tuple[int, memoryview]],
        chunk: ChunkPages,
        number: int,
    ) -> memoryview | bytes:
        """The bytes of a page or of the dictionary; CorruptData if they differ from the digest.

        `starts` are as in `read`.
        """
        start, stop = chunk.span(number)
        if start == stop:
            return b""
        if at := bisect_right(starts, start):
            first, data = read[at - 1]
            found = data[start - first : stop - first]
            if len(found) == stop - start and chunk.is_whole(number, found):
                return found
        raise CorruptData(
            f"{self._path}, column {chunk.path!r}, is damaged at bytes {start} to {stop}: they "
            "differ from the page that was written; restore the file from a copy, or the table to "
            "a version without it"
        )


def read_together(
    wanted: Sequence[tuple[PageReader, int, Pages]], names: Sequence[str]
) -> tuple[pa.Table, list[int]]:
    """Decode pages of several files, as `PageReader.read` those of one; their order is kept.

    The files have equal `stored_form`s of these columns. Also returns the bytes read of each.
    """
    fetched = [reader.fetch(row_group, names, pages) for reader, row_group, pages in wanted]
    first = wanted[0][0]
    groups = [group for found, _ in fetched for group in found]
    with reading(first._path):
        return first._decoded(groups, names), [size_bytes for _, size_bytes in fetched]


def _spans(place: ChunkPages, pages: Sequence[int]) -> list[Span]:
    return [span for number in (-1, *pages) if (span := place.span(number))[0] < span[1]]
