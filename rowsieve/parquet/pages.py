"""The pages of a file that we wrote: where each one is, and its digest, so that few can be read.

All columns of a row group are cut at the same rows. Parquet's own offset index says where the pages
are but does not cover what they hold, so the footer has a directory besides: per column chunk where
its column index is, then its dictionary and each page by offset and digest (12 bytes, in base64).
Soundness: a directory that does not fit the file's row groups is none, and then whole chunks are
read; what is read by it is compared with its digest first.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import xxhash

from rowsieve.parquet.chunks import chunk_span
from rowsieve.parquet.footer_memo import per_footer
from rowsieve.parquet.seals import blank, fill, sealed
from rowsieve.parquet.spans import Span
from rowsieve.parquet.thrift import ThriftStruct, Wanted, read_fields

Pages: TypeAlias = npt.NDArray[np.int64]
"""The numbers of some pages."""

PAGES_KEY: Final = "rowsieve.pages"
ROWS_KEY: Final = "rowsieve.page_rows"

_ENTRY: Final = np.dtype([("offset", "<u4"), ("digest", "<u8")])
_CHARACTERS: Final = 16  # of an entry
_BEFORE_PAGES: Final = 2  # entries of a chunk: its column index and its dictionary
_NOWHERE: Final = 2**32 - 1  # the offset of a column index that there is not
# Of a footer the row groups; of each its chunks and rows; of a chunk where its indexes are.
_ROW_GROUPS: Final[Wanted] = {4: {1: {4: None, 6: None}, 3: None}}
_LOCATIONS: Final[Wanted] = {1: {1: None, 2: None}}


def blank_pages(row_counts: Sequence[int], leaves: int, page_rows: int) -> dict[str, str]:
    """The key-value pairs to add before a file with these row groups is closed."""
    entries = sum(_entries(rows, page_rows) for rows in row_counts) * leaves
    return {ROWS_KEY: str(page_rows), **blank(PAGES_KEY, entries)}


def seal_pages(file: memoryview, metadata: pq.FileMetaData, tail_start: int) -> None:
    """Put the directory into the blank of a complete file, if its pages are as they should be."""
    page_rows = _page_rows(metadata)
    if not page_rows:
        return
    length = int(metadata.serialized_size)
    tail = bytes(file[tail_start:])
    groups = read_fields(tail, len(tail) - 8 - length, _ROW_GROUPS).get(4, ())
    offsets: list[int] = []
    digests: list[int] = []
    for number, group in enumerate(groups):
        columns = metadata.row_group(number)
        for leaf, chunk in enumerate(group[1]):
            starts = _starts_of(tail, chunk, chunk_span(columns.column(leaf)), tail_start)
            if starts is None or len(starts) != _entries(group[3], page_rows):
                return
            offsets += [chunk[6] - tail_start if 6 in chunk else _NOWHERE]
            offsets += [start - starts[0] for start in starts[:-1]]
            digests += [0, *_digests(file, starts)]
    if not 0 <= min(offsets, default=0) <= max(offsets, default=0) <= _NOWHERE:
        return
    entries = np.zeros(len(offsets), _ENTRY)
    entries["offset"], entries["digest"] = offsets, digests
    text = base64.b64encode(entries.tobytes()).decode()
    fill(file, metadata, PAGES_KEY, [text[i : i + 16] for i in range(0, len(text), _CHARACTERS)])


@dataclass(frozen=True, slots=True)
class ChunkPages:
    """The pages of one column chunk.

    `starts`: (pages + 2,) where its dictionary, which may be empty, its pages and its end are in
    the file; `digests`: (pages + 1,) of dictionary and pages; `index_start`: where its column
    index is behind the file's tail start, None if it has none.
    """

    starts: npt.NDArray[np.int64]
    digests: npt.NDArray[np.uint64]
    index_start: int | None

    def span(self, number: int) -> Span:
        """Where page `number` is; -1: the dictionary."""
        return int(self.starts[number + 1]), int(self.starts[number + 2])

    def is_whole(self, number: int, data: memoryview | bytes) -> bool:
        """Whether these are the bytes of page `number` as they were written; -1: the dictionary."""
        return xxhash.xxh3_64_intdigest(data) == int(self.digests[number + 1])


class PageDirectory:
    """Where the pages of a file are; `page_rows` rows each, the last of a row group may be less."""

    __slots__ = ("_bases", "_entries", "_first_pages", "_leaves", "page_rows")

    def __init__(self, metadata: pq.FileMetaData, page_rows: int, entries: str) -> None:
        groups = range(int(metadata.num_row_groups))
        counts = [_entries(metadata.row_group(i).num_rows, page_rows) for i in groups]
        self._entries = np.frombuffer(base64.b64decode(entries), _ENTRY)
        self._leaves = int(metadata.num_columns)
        self._bases: list[int] = [0, *np.cumsum(np.multiply(counts, self._leaves)).tolist()]
        pages = np.array(counts, dtype=np.int64) - _BEFORE_PAGES
        self._first_pages = np.cumsum(pages) - pages
        self.page_rows = page_rows

    @classmethod
    def of(cls, metadata: pq.FileMetaData) -> PageDirectory | None:
        """The directory of a file; None if it has none, and its chunks must be read whole."""
        return _of_footer(metadata)

    def page_count(self, row_group: int) -> int:
        """How many pages each column of a row group has."""
        entries = self._bases[row_group + 1] - self._bases[row_group]
        return entries // self._leaves - _BEFORE_PAGES

    def by_row_group(self, row_group: int, pages: Pages) -> list[tuple[int, Pages]]:
        """Ascending pages that are counted from the first of `row_group`, by their own row group.

        Each row group with a page, and its pages counted from its own first.
        """
        if not len(pages) or pages[-1] < self.page_count(row_group):
            return [(row_group, pages)]
        numbers = pages + self._first_pages[row_group]
        groups = np.searchsorted(self._first_pages, numbers, side="right") - 1
        cuts = np.flatnonzero(np.diff(groups)) + 1
        own = np.split(numbers - self._first_pages[groups], cuts)
        return list(zip(groups[[0, *cuts]].tolist(), own, strict=True))

    def chunk(self, metadata: pq.FileMetaData, row_group: int, leaf: int) -> ChunkPages:
        """The pages of one leaf column of a row group of the file with this metadata."""
        count = self.page_count(row_group) + _BEFORE_PAGES
        first = self._bases[row_group] + leaf * count
        entries = self._entries[first : first + count]
        start, stop = chunk_span(metadata.row_group(row_group).column(leaf))
        index_start = int(entries["offset"][0])
        starts = np.empty(count, dtype=np.int64)
        starts[:-1] = entries["offset"][1:]
        starts[:-1] += start
        starts[-1] = stop
        return ChunkPages(
            starts, entries["digest"][1:], None if index_start == _NOWHERE else index_start
        )


@per_footer
def _of_footer(metadata: pq.FileMetaData) -> PageDirectory | None:
    page_rows = _page_rows(metadata)
    if not page_rows:
        return None
    groups = range(int(metadata.num_row_groups))
    count = sum(_entries(metadata.row_group(i).num_rows, page_rows) for i in groups)
    seal = sealed(metadata, PAGES_KEY, count * int(metadata.num_columns))
    return None if seal is None else PageDirectory(metadata, page_rows, seal)


def _entries(rows: int, page_rows: int) -> int:
    return _BEFORE_PAGES - (-rows // page_rows)


def _page_rows(metadata: pq.FileMetaData) -> int:
    text = (metadata.metadata or {}).get(ROWS_KEY.encode(), b"").decode()
    return int(text) if text.isascii() and text.isdigit() else 0


def _starts_of(
    tail: bytes, chunk: ThriftStruct, span: tuple[int, int], tail_start: int
) -> list[int] | None:
    """Where dictionary and pages of a column chunk begin, and its end; None if there are gaps."""
    start, stop = span
    if chunk.get(4, 0) < tail_start or stop - start >= _NOWHERE:
        return None
    locations = read_fields(tail, chunk[4] - tail_start, _LOCATIONS)[1]
    starts = [one[1] for one in locations]
    if [one[1] + one[2] for one in locations] != [*starts[1:], stop]:
        return None
    return [start, *starts, stop]


def _digests(file: memoryview, starts: Sequence[int]) -> Iterator[int]:
    for start, stop in pairwise(starts):
        yield xxhash.xxh3_64_intdigest(file[start:stop])
