"""Reads and decodes single pages of row groups, and checks each page against its digest.

All columns of a row group have their page boundaries at the same rows. So the same pages of several
columns form a Parquet file in memory (`rowsieve.parquet.mini_file`), which pyarrow decodes. Opening
that file costs as much as decoding a page, so it may have pages of several row groups.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
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

    __slots__ = ("_directory", "_gap_bytes", "_leaves", "_metadata", "_open", "_source", "_store",
                 "_tail", "path")  # fmt: skip

    def __init__(
        self,
        store: ObjectStore,
        ref: ParquetRef,
        directory: PageDirectory,
        leaves: Mapping[str, Sequence[int]],
    ) -> None:
        tail = read_tail(store, ref)
        self.path = ref.path
        self._metadata = tail.metadata
        self._directory = directory
        self._leaves = leaves
        self._gap_bytes = GAP_BYTES if store.overlaps else 0
        self._tail = tail
        self._store = store
        self._open = partial(store.open_input, ref.path, ref.size_bytes)
        self._source: Any = None  # opened when the first page is read

    def fetch(self, row_group: int, names: Sequence[str], pages: Pages) -> tuple[GroupPages, int]:
        """Read and check these ascending pages of a row group; also returns the bytes read.

        CorruptData if the bytes differ from those that were written.
        """
        with reading(self.path, row_group):
            self._source = self._source or self._open()
            return self._group(row_group, pages.tolist(), names)

    def announce(self, row_group: int, names: Sequence[str], pages: Pages) -> None:
        """Prefetch what `fetch` requests, where the store prefetches and it is not on its way."""
        if self._store.overlaps:
            spans = self.spans(row_group, names, pages)
            self._store.expect((self.path, start, stop) for start, stop in spans)

    def stored_form(self, names: Sequence[str]) -> tuple[bytes, tuple[str, ...]]:
        """The physical form of these columns; pages of files with equal forms decode together."""
        read = set(names)
        dictionaries = [name for name in dictionary_columns(self._metadata) if name in read]
        return FileSchema.of(self._tail).begin(names).data, tuple(dictionaries)

    def decoded(self, groups: Sequence[GroupPages], names: Sequence[str]) -> pa.Table:
        """Decode fetched pages, of this file or of files of the same `stored_form`."""
        file = mini_file(FileSchema.of(self._tail).begin(names), groups)
        _, dictionaries = self.stored_form(names)
        opened = pq.ParquetFile(
            pa.BufferReader(file), read_dictionary=list(dictionaries), pre_buffer=False
        )
        table = opened.reader.read_all(use_threads=False)
        row_count = sum(group.row_count for group in groups)
        if table.num_rows != row_count or table.num_columns != len(names):
            raise CorruptData(
                f"{self.path}: pages of {len(groups)} row groups decode to {table.num_rows} of "
                f"{row_count} rows; restore the file from a copy, or the table to a version "
                "without it"
            )
        return table

    def spans(self, row_group: int, names: Sequence[str], pages: Pages) -> list[Span]:
        """The byte ranges that `fetch` requests."""
        return self._requests(self._chunks(row_group, names), pages.tolist())

    def _chunks(self, row_group: int, names: Sequence[str]) -> list[ChunkPages]:
        """The pages of every leaf of these columns."""
        leaves = (leaf for name in names for leaf in self._leaves[name])
        return [self._directory.chunk(self._metadata, row_group, leaf) for leaf in leaves]

    def _requests(self, chunks: Sequence[ChunkPages], pages: Sequence[int]) -> list[Span]:
        spans = (chunk.span(number) for chunk in chunks for number in (-1, *pages))
        return requests((span for span in spans if span[0] < span[1]), self._gap_bytes)

    def _row_count(self, row_group: int, pages: Sequence[int]) -> int:
        """Count the rows of ascending pages of a row group; only its last page can be shorter."""
        if not pages:
            return 0
        page_rows, last = self._directory.page_rows, pages[-1]
        left = int(self._metadata.row_group(row_group).num_rows) - last * page_rows
        return (len(pages) - 1) * page_rows + min(page_rows, left)

    def _group(
        self, row_group: int, pages: Sequence[int], names: Sequence[str]
    ) -> tuple[GroupPages, int]:
        """The bytes of the pages of every leaf, and the number of bytes read."""
        chunks = self._chunks(row_group, names)
        read = [
            (start, memoryview(self._source.read_at(stop - start, start)))
            for start, stop in self._requests(chunks, pages)
        ]
        starts = [start for start, _ in read]
        columns = [
            ColumnPages(
                chunk,
                self._checked(starts, read, chunk, -1),
                [self._checked(starts, read, chunk, page) for page in pages],
            )
            for chunk in chunks
        ]
        size_bytes = sum(len(data) for _, data in read)
        return GroupPages(columns, self._row_count(row_group, pages)), size_bytes

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
            page = data[start - first : stop - first]
            if len(page) == stop - start and chunk.is_whole(number, page):
                return page
        raise CorruptData(
            f"{self.path}, column {chunk.path!r}, is damaged at bytes {start} to {stop}: they "
            "differ from the page that was written; restore the file from a copy, or the table to "
            "a version without it"
        )


def read_pages(
    wanted: Sequence[tuple[PageReader, int, Pages]], names: Sequence[str]
) -> tuple[pa.Table, list[int]]:
    """Decode ascending pages of row groups by one call; also returns the bytes read of each.

    The row groups may belong to several files, which have equal `stored_form`s of these columns.
    All requests are on their way before the first answer is waited for.
    """
    for reader, row_group, pages in wanted:
        reader.announce(row_group, names, pages)
    fetched = [reader.fetch(row_group, names, pages) for reader, row_group, pages in wanted]
    first, row_group, _ = wanted[0]
    with reading(first.path, row_group if len(wanted) == 1 else None):
        table = first.decoded([group for group, _ in fetched], names)
    return table, [size_bytes for _, size_bytes in fetched]
