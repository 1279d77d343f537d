"""The page directory of a file of our writer: position and digest of each page.

It makes single pages readable. All columns of a row group have their page boundaries at the same
rows. Parquet's own offset index has positions but no checksums, so the footer also has a directory:
for each column chunk the position of its column index, then offset and digest of its dictionary and
of each page (12 bytes per entry, in base64). Soundness: a directory that does not fit the file's
row groups is ignored, and whole chunks are read. Each page is compared with its digest.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from operator import itemgetter
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import xxhash

from rowsieve.parquet.chunks import chunk_span
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.seals import CHUNKS_KEY, ReadSpan, blank, fill, sealed
from rowsieve.parquet.spans import Span
from rowsieve.parquet.thrift import ThriftStruct, Wanted, read_fields

Pages: TypeAlias = npt.NDArray[np.int64]
"""Page numbers."""

PAGES_KEY: Final = "rowsieve.pages"
ROWS_KEY: Final = "rowsieve.page_rows"

_ENTRY: Final = np.dtype([("offset", "<u4"), ("digest", "<u8")])
MAX_CHUNKS: Final = 1_024  # decoded entries of a file that are kept: a few megabytes at most
_READ_BYTES: Final = 8 * 1024 * 1024  # of a chunk at once while its digests are computed
_BEFORE_PAGES: Final = 2  # entries of a chunk before its pages: column index and dictionary
_NOWHERE: Final = 2**32 - 1  # the offset of a missing column index
# The footer's row groups; the chunks and row count of each; the index positions of each chunk.
_ROW_GROUPS: Final[Wanted] = {4: {1: {4: None, 6: None}, 3: None}}
_LOCATIONS: Final[Wanted] = {1: {1: None, 2: None}}


def blank_pages(row_counts: Sequence[int], leaves: int, page_rows: int) -> dict[str, str]:
    """Blank key-value pairs for these row groups, to add before the file is closed."""
    entries = sum(map(_entries, row_counts, repeat(page_rows))) * leaves
    return {ROWS_KEY: str(page_rows), **blank(PAGES_KEY, entries)}


def seal_chunks_and_pages(
    tail: bytearray, metadata: pq.FileMetaData, tail_start: int, read: ReadSpan
) -> None:
    """Write the digests of a complete file's chunks and pages into the blanks in its tail.

    Reads each chunk once. Without the expected page boundaries there is no directory.
    """
    content = bytes(tail)
    footer_start = len(content) - 8 - int(metadata.serialized_size)
    page_rows, is_whole = _page_rows(metadata), True
    of_chunks: list[str] = []
    of_pages: list[tuple[int, int]] = []
    for number, group in enumerate(read_fields(content, footer_start, _ROW_GROUPS).get(4, ())):
        columns = metadata.row_group(number)
        for leaf, chunk in enumerate(group[1]):
            span = chunk_span(columns.column(leaf))
            starts = _starts_of(content, chunk, span, tail_start) if page_rows else None
            if starts is not None and len(starts) != _entries(group[3], page_rows):
                starts = None
            of_chunk, digests = _digests(read, span, starts)
            of_chunks.append(of_chunk)
            if starts is None:
                is_whole = False
            else:
                index_start = chunk[6] - tail_start if 6 in chunk else _NOWHERE
                of_pages.append((index_start, 0))
                of_pages += zip(map((-span[0]).__add__, starts[:-1]), digests, strict=True)
    fill(tail, metadata, CHUNKS_KEY, "".join(of_chunks))
    if is_whole:
        _seal_pages(tail, metadata, of_pages)


def _seal_pages(
    tail: bytearray, metadata: pq.FileMetaData, entries: Sequence[tuple[int, int]]
) -> None:
    offsets = list(map(itemgetter(0), entries))
    if 0 <= min(offsets, default=0) <= max(offsets, default=0) <= _NOWHERE:
        text = base64.b64encode(np.array(entries, _ENTRY).tobytes()).decode()
        fill(tail, metadata, PAGES_KEY, text)


@dataclass(frozen=True, slots=True)
class ChunkPages:
    """The pages of one column chunk.

    `starts`: (pages + 2,) positions in the file of the dictionary, which may be empty, of each page
    and of the chunk's end. `digests`: (pages + 1,) of the dictionary and each page. `index_start`:
    the position of the column index relative to the tail; None if it has none. `path`, `physical`
    and `codec` are Parquet's names; `repeats`: whether a row may have several values.
    """

    starts: Sequence[int]
    digests: Sequence[int]
    index_start: int | None
    path: str
    physical: str
    codec: str
    repeats: bool

    def span(self, number: int) -> Span:
        """The byte range of page `number`; -1: the dictionary."""
        return self.starts[number + 1], self.starts[number + 2]

    def is_whole(self, number: int, data: memoryview | bytes) -> bool:
        """Return whether these bytes have the digest of page `number`; -1: the dictionary."""
        return xxhash.xxh3_64_intdigest(data) == self.digests[number + 1]


class PageDirectory:
    """The pages of a file; each has `page_rows` rows, the last of a row group may have fewer."""

    __slots__ = ("_bases", "_chunks", "_entries", "_leaves", "page_rows")

    def __init__(self, metadata: pq.FileMetaData, page_rows: int, entries: str) -> None:
        groups = range(int(metadata.num_row_groups))
        counts = [_entries(metadata.row_group(i).num_rows, page_rows) for i in groups]
        self._entries = np.frombuffer(base64.b64decode(entries), _ENTRY)
        self._leaves = int(metadata.num_columns)
        self._bases: list[int] = [0, *np.cumsum(np.multiply(counts, self._leaves)).tolist()]
        self._chunks: dict[tuple[int, int], ChunkPages] = {}  # used before
        self.page_rows = page_rows

    def page_count(self, row_group: int) -> int:
        """The number of pages of each column of a row group."""
        entries = self._bases[row_group + 1] - self._bases[row_group]
        return entries // self._leaves - _BEFORE_PAGES

    def chunk(self, metadata: pq.FileMetaData, row_group: int, leaf: int) -> ChunkPages:
        """The pages of one column chunk of the file with this metadata; the last ones are kept."""
        place = row_group, leaf
        if (pages := self._chunks.get(place)) is None:
            if len(self._chunks) >= MAX_CHUNKS:
                self._chunks.clear()
            pages = self._chunks[place] = self._chunk(metadata, row_group, leaf)
        return pages

    def _chunk(self, metadata: pq.FileMetaData, row_group: int, leaf: int) -> ChunkPages:
        count = self.page_count(row_group) + _BEFORE_PAGES
        first = self._bases[row_group] + leaf * count
        entries = self._entries[first : first + count]
        chunk = metadata.row_group(row_group).column(leaf)
        start, stop = chunk_span(chunk)
        index_start, *offsets = entries["offset"].tolist()
        return ChunkPages(
            [*[start + offset for offset in offsets], stop],
            entries["digest"][1:].tolist(),
            None if index_start == _NOWHERE else index_start,
            chunk.path_in_schema,
            chunk.physical_type,
            chunk.compression,
            metadata.schema.column(leaf).max_repetition_level > 0,
        )


@cached_per_footer
def page_directory(metadata: pq.FileMetaData) -> PageDirectory | None:
    """The directory of a file; None if it has none, so that chunks must be read whole."""
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
    """The start of a chunk's dictionary and pages, and its end; None if there are gaps."""
    start, stop = span
    if chunk.get(4, 0) < tail_start or stop - start >= _NOWHERE:
        return None
    starts, end = [start], None
    for location in read_fields(tail, chunk[4] - tail_start, _LOCATIONS)[1]:
        if end not in (None, location[1]):
            return None
        starts.append(location[1])
        end = location[1] + location[2]
    return [*starts, stop] if end == stop else None


def _digests(read: ReadSpan, span: Span, starts: Sequence[int] | None) -> tuple[str, list[int]]:
    """Return the digest of a chunk, and of its pages; without `starts`, of pieces of it.

    A long chunk is read page by page, so that memory does not grow with it.
    """
    start, stop = span
    bounds = starts or [*range(start, stop, _READ_BYTES), stop]
    whole = read(start, stop) if stop - start <= _READ_BYTES else None
    chunk, of_each = xxhash.xxh3_64(), []
    for first, last in pairwise(bounds):
        piece = read(first, last) if whole is None else whole[first - start : last - start]
        chunk.update(piece)
        of_each.append(xxhash.xxh3_64_intdigest(piece))
    return str(chunk.hexdigest()), of_each
