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
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import xxhash

from rowsieve.parquet.chunks import chunk_span
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.seals import seal_of
from rowsieve.parquet.spans import Span

Pages: TypeAlias = npt.NDArray[np.int64]
"""Page numbers."""

PAGES_KEY: Final = "rowsieve.pages"
ROWS_KEY: Final = "rowsieve.page_rows"

PAGE_ENTRY: Final = np.dtype([("offset", "<u4"), ("digest", "<u8")])
MAX_CHUNKS: Final = 1_024  # decoded entries of a file that are kept: a few megabytes at most
BEFORE_PAGES: Final = 2  # entries of a chunk before its pages: column index and dictionary
NOWHERE: Final = 2**32 - 1  # the offset of a missing column index


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
        self._entries = np.frombuffer(base64.b64decode(entries), PAGE_ENTRY)
        self._leaves = int(metadata.num_columns)
        self._bases: list[int] = [0, *np.cumsum(np.multiply(counts, self._leaves)).tolist()]
        self._chunks: dict[tuple[int, int], ChunkPages] = {}  # used before
        self.page_rows = page_rows

    def page_count(self, row_group: int) -> int:
        """The number of pages of each column of a row group."""
        entries = self._bases[row_group + 1] - self._bases[row_group]
        return entries // self._leaves - BEFORE_PAGES

    def chunk(self, metadata: pq.FileMetaData, row_group: int, leaf: int) -> ChunkPages:
        """The pages of one column chunk of the file with this metadata; the last ones are kept."""
        place = row_group, leaf
        if (pages := self._chunks.get(place)) is None:
            if len(self._chunks) >= MAX_CHUNKS:
                self._chunks.clear()
            pages = self._chunks[place] = self._chunk(metadata, row_group, leaf)
        return pages

    def _chunk(self, metadata: pq.FileMetaData, row_group: int, leaf: int) -> ChunkPages:
        count = self.page_count(row_group) + BEFORE_PAGES
        first = self._bases[row_group] + leaf * count
        entries = self._entries[first : first + count]
        chunk = metadata.row_group(row_group).column(leaf)
        start, stop = chunk_span(chunk)
        index_start, *offsets = entries["offset"].tolist()
        return ChunkPages(
            [*[start + offset for offset in offsets], stop],
            entries["digest"][1:].tolist(),
            None if index_start == NOWHERE else index_start,
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
    seal = seal_of(metadata, PAGES_KEY, count * int(metadata.num_columns))
    return None if seal is None else PageDirectory(metadata, page_rows, seal)


def _entries(rows: int, page_rows: int) -> int:
    return BEFORE_PAGES - (-rows // page_rows)


def _page_rows(metadata: pq.FileMetaData) -> int:
    text = (metadata.metadata or {}).get(ROWS_KEY.encode(), b"").decode()
    return int(text) if text.isascii() and text.isdigit() else 0
