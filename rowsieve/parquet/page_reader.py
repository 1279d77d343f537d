"""Decoding single pages of a row group: only they are read, each compared with its digest first.

All columns of a row group are cut at the same rows, so the same pages of several columns make a
Parquet file of their own (`rowsieve.parquet.mini_file`), which pyarrow decodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore
from rowsieve.parquet.columns import dictionary_columns
from rowsieve.parquet.footer import ParquetRef, read_tail, reading
from rowsieve.parquet.mini_file import ColumnPages, FileSchema, mini_file
from rowsieve.parquet.pages import ChunkPages, PageDirectory
from rowsieve.parquet.spans import GAP_BYTES, Span, requests

Pages = npt.NDArray[np.int64]


class PageReader:
    """The pages of one file that has a directory of them; several threads may read at once.

    `leaves`: the numbers of each column's leaves, by name, in the file's order.
    """

    __slots__ = ("_dictionaries", "_directory", "_gap_bytes", "_leaves", "_metadata",
        "_open", "_path",
                 "_schema", "_source")  # fmt: skip

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
        self._schema = FileSchema.of(tail)
        self._dictionaries = dictionary_columns(tail.metadata)
        self._open = partial(store.open_input, ref.path, ref.size_bytes)
        self._source: Any = None  # opened when the first page is read

    def read(self, row_group: int, names: Sequence[str], pages: Pages) -> tuple[pa.Table, int]:
        """These pages, ascending, of these columns; and how many bytes were read.

        CorruptData if they are not what was written.
        """
        row_count = self._row_count(row_group, pages)
        with reading(self._path, row_group):
            self._source = self._source or self._open()
            columns, size_bytes = self._columns(row_group, names, pages)
            file = mini_file(self._schema.only(names), columns, row_count)
            dictionaries = [name for name in self._dictionaries if name in names]
            opened = pq.ParquetFile(pa.BufferReader(file), read_dictionary=dictionaries)
            table = opened.read(use_threads=False)
        if table.num_rows != row_count or table.num_columns != len(names):
            raise CorruptData(
                f"{self._path}, row group {row_group}: {len(pages)} pages decode to "
                f"{table.num_rows} of {row_count} rows; restore the file from a copy, or the "
                "table to a version without it"
            )
        return table, size_bytes

    def spans(self, row_group: int, names: Sequence[str], pages: Pages) -> list[Span]:
        """What `read` asks for."""
        places = (
            self._directory.chunk(self._metadata, row_group, leaf)
            for leaf in self._leaves_of(names)
        )
        return self._requests(places, pages)

    def _leaves_of(self, names: Sequence[str]) -> list[int]:
        return [leaf for name in names for leaf in self._leaves[name]]

    def _requests(self, places: Iterable[ChunkPages], pages: Pages) -> list[Span]:
        spans = (span for place in places for span in _spans(place, pages))
        return requests(spans, self._gap_bytes)

    def _row_count(self, row_group: int, pages: Pages) -> int:
        rows, page_rows = self._metadata.row_group(row_group).num_rows, self._directory.page_rows
        return int((np.minimum((pages + 1) * page_rows, rows) - pages * page_rows).sum())

    def _columns(
        self, row_group: int, names: Sequence[str], pages: Pages
    ) -> tuple[list[ColumnPages], int]:
        """The pages of every leaf of the columns, and how many bytes were read."""
        leaves = self._leaves_of(names)
        places = [self._directory.chunk(self._metadata, row_group, leaf) for leaf in leaves]
        read = [
            (start, memoryview(self._source.read_at(stop - start, start)))
            for start, stop in self._requests(places, pages)
        ]
        columns = []
        group = self._metadata.row_group(row_group)
        for leaf, place in zip(leaves, places, strict=True):
            dictionary, *data = (
                self._checked(read, place, number, leaf) for number in (-1, *pages.tolist())
            )
            repeats = self._metadata.schema.column(leaf).max_repetition_level > 0
            columns.append(ColumnPages(group.column(leaf), repeats, dictionary, data))
        return columns, sum(len(data) for _, data in read)

    def _checked(
        self, read: Sequence[tuple[int, memoryview]], place: ChunkPages, number: int, leaf: int
    ) -> memoryview:
        """The bytes of a page, or of the dictionary, as they were written."""
        start, stop = place.span(number)
        if start == stop:
            return memoryview(b"")
        for first, data in read:
            if first <= start and stop <= first + len(data):
                found = data[start - first : stop - first]
                if place.is_whole(number, found):
                    return found
        raise CorruptData(
            f"{self._path}, column {self._metadata.schema.column(leaf).path!r}, is damaged at "
            f"bytes {start} to {stop}: that is not the page that was written; restore the file "
            "from a copy, or the table to a version without it"
        )


def _spans(place: ChunkPages, pages: Pages) -> list[Span]:
    return [span for number in (-1, *pages.tolist()) if (span := place.span(number))[0] < span[1]]
