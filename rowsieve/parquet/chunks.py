"""The column chunks of a file that we wrote: sealed one by one, checked as they are read.

A chunk's digest covers its pages and their headers, which page checksums leave out, and costs a
fraction of them. `ChunkFile` is what pyarrow's reader reads from: it hands out whole chunks and
compares each with its digest first, so that damaged bytes are `CorruptData` before they are
decoded. Chunks that are wanted together are fetched together where a request costs.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.errors import CorruptData
from rowsieve.parquet.footer import ParquetRef
from rowsieve.parquet.seals import blank, digest, digests, entry_at, fill, sealed
from rowsieve.parquet.spans import Span, requests

SEAL_KEY: Final = "rowsieve.chunks"


def blank_chunks(chunk_count: int) -> dict[str, str]:
    """The key-value pair to add before a file with this many column chunks is closed."""
    return blank(SEAL_KEY, chunk_count)


def seal_chunks(file: memoryview, metadata: pq.FileMetaData) -> None:
    """Put the digests of its column chunks into the blank of a complete file."""
    fill(file, metadata, SEAL_KEY, digests(file, _spans(metadata)))


def are_sealed(metadata: pq.FileMetaData) -> bool:
    """Whether every chunk has its digest."""
    return sealed(metadata, SEAL_KEY, _chunk_count(metadata)) is not None


class ChunkFile(io.RawIOBase):
    """A file of sealed chunks, read chunk by chunk through `source`; for one thread at a time."""

    def __init__(self, source: pa.NativeFile, ref: ParquetRef, metadata: pq.FileMetaData) -> None:
        super().__init__()
        self._source = source
        self._ref = ref
        self._metadata = metadata
        self._seal = sealed(metadata, SEAL_KEY, _chunk_count(metadata)) or ""
        self._position = 0
        self._expected: dict[int, tuple[int, str, int]] = {}
        self._fetched: list[tuple[int, memoryview]] = []

    def expect(self, row_group: int, leaves: Sequence[int], *, together: bool) -> None:
        """Say which chunks are read next; `together` fetches them in as few requests as can be."""
        group = self._metadata.row_group(row_group)
        first = row_group * self._metadata.num_columns
        self._expected = {}
        for leaf in leaves:
            start, stop = chunk_span(group.column(leaf))
            self._expected[start] = (stop, entry_at(self._seal, first + leaf), leaf)
        self._fetched = list(self._fetch()) if together else []

    def read(self, size: int = -1) -> memoryview | bytes:
        """The expected chunk at the current position, which is as long as is asked for."""
        start = self._position
        data = self._bytes(start, size)
        self._position = start + len(data)
        stop, written, leaf = self._expected.get(start, (-1, "", -1))
        if stop - start != size or len(data) != size or digest(data) != written:
            what = f", column {self._metadata.schema.column(leaf).path!r}," if leaf >= 0 else ""
            raise CorruptData(
                f"{self._ref.path}{what} is damaged at bytes {start} to {start + size}: that is "
                "not the column chunk that was written; restore the file from a copy, or the "
                "table to a version without it"
            )
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; sizes are known, so nothing is read."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._ref.size_bytes}
        self._position = base[whence] + offset
        return self._position

    def tell(self) -> int:
        """The current position."""
        return self._position

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def _fetch(self) -> Iterator[tuple[int, memoryview]]:
        for start, stop in requests((start, one[0]) for start, one in self._expected.items()):
            yield start, memoryview(self._source.read_at(stop - start, start))

    def _bytes(self, start: int, size: int) -> memoryview | bytes:
        for first, data in self._fetched:
            if first <= start and start + size <= first + len(data):
                return data[start - first : start - first + size]
        found: bytes = self._source.read_at(size, start)
        return found


def _spans(metadata: pq.FileMetaData) -> list[Span]:
    """Where the chunks are, row group by row group, leaf by leaf."""
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return [
        chunk_span(group.column(leaf)) for group in groups for leaf in range(metadata.num_columns)
    ]


def _chunk_count(metadata: pq.FileMetaData) -> int:
    return int(metadata.num_row_groups * metadata.num_columns)


def chunk_span(chunk: pq.ColumnChunkMetaData) -> Span:
    """Where a chunk is, from its dictionary or first page on."""
    start = int(chunk.data_page_offset)
    if chunk.dictionary_page_offset:
        start = min(start, int(chunk.dictionary_page_offset))
    return start, start + int(chunk.total_compressed_size)
