"""Reads the column chunks of files that our writer made, and checks their digests.

A chunk's digest covers its pages and their headers, which page checksums leave out, and costs less
than page checksums. pyarrow's reader reads from a `ChunkFile`, which compares each chunk with its
digest before it returns the bytes: damaged bytes raise `CorruptData` before they are decoded. From
a remote store, the chunks of one read are fetched together.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.errors import CorruptData
from rowsieve.parquet.footer import ParquetRef
from rowsieve.parquet.seals import CHUNKS_KEY, digest, digest_of, entry_at, seal_of
from rowsieve.parquet.spans import Span, requests

_PIECE_BYTES: Final = 4 * 1024 * 1024


def chunk_seal(metadata: pq.FileMetaData) -> str | None:
    """The digests of all chunks; None if the file does not have them."""
    return seal_of(metadata, CHUNKS_KEY, int(metadata.num_row_groups * metadata.num_columns))


class ChunkFile(io.RawIOBase):
    """A file whose chunks have digests, read chunk by chunk from `source`; not thread-safe.

    `seal` is the file's `chunk_seal`.
    """

    def __init__(
        self, source: pa.NativeFile, ref: ParquetRef, metadata: pq.FileMetaData, seal: str
    ) -> None:
        super().__init__()
        self._source = source
        self._ref = ref
        self._metadata = metadata
        self._seal = seal
        self._position = 0
        self._expected: dict[int, tuple[int, str, int]] = {}
        self._fetched: list[tuple[int, memoryview]] = []

    def expect(self, row_group: int, leaves: Sequence[int], *, together: bool) -> None:
        """Set the chunks that are read next; `together` fetches them in the fewest requests."""
        group = self._metadata.row_group(row_group)
        first = row_group * self._metadata.num_columns
        self._expected = {}
        for leaf in leaves:
            start, stop = chunk_span(group.column(leaf))
            self._expected[start] = (stop, entry_at(self._seal, first + leaf), leaf)
        self._fetched = list(self._fetch()) if together else []

    def check(self) -> None:
        """Compare the expected chunks with their digests, a piece of a chunk at a time."""
        for start, (stop, written, leaf) in self._expected.items():
            pieces = range(start, stop, _PIECE_BYTES)
            actual_digest = digest_of(
                self._source.read_at(min(_PIECE_BYTES, stop - first), first) for first in pieces
            )
            if actual_digest != written:
                raise self._damaged(start, stop, leaf)

    def read(self, size: int = -1) -> memoryview | bytes:
        """Read the expected chunk at the current position; its length must be `size`."""
        start = self._position
        for first, fetched in self._fetched:
            if first <= start and start + size <= first + len(fetched):
                data: memoryview | bytes = fetched[start - first : start - first + size]
                break
        else:
            data = self._source.read_at(size, start)
        self._position = start + len(data)
        stop, written, leaf = self._expected.get(start, (-1, "", -1))
        if stop - start != size or len(data) != size or digest(data) != written:
            raise self._damaged(start, start + size, leaf)
        return data

    def _damaged(self, start: int, stop: int, leaf: int) -> CorruptData:
        what = f", column {self._metadata.schema.column(leaf).path!r}," if leaf >= 0 else ""
        return CorruptData(
            f"{self._ref.path}{what} is damaged at bytes {start} to {stop}: they differ from the "
            "column chunk that was written; restore the file from a copy, or the table to a "
            "version without it"
        )

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position; reads nothing, because all sizes are known."""
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


def chunk_span(chunk: pq.ColumnChunkMetaData) -> Span:
    """The byte range of a chunk, from its dictionary or first page on."""
    start = int(chunk.data_page_offset)
    if chunk.dictionary_page_offset:
        start = min(start, int(chunk.dictionary_page_offset))
    return start, start + int(chunk.total_compressed_size)
