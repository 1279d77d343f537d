"""Decodes columns of row groups, and checks them against damage.

Files of our writer have digests of chunks (`rowsieve.parquet.chunks`); in other files, the CRCs of
pages are verified if they exist. Text and bytes with a dictionary are decoded to dictionary arrays,
because filtering and casting these is faster than decoding every value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore
from rowsieve.parquet.chunks import ChunkFile, chunk_seal
from rowsieve.parquet.footer import ParquetRef, read_metadata, reading
from rowsieve.parquet.group_slices import RowStream
from rowsieve.parquet.leaf_columns import dictionary_columns, leaves_of

_PIECE_BYTES: Final = 4 * 1024 * 1024


class ParquetReader:
    """Reads one file; not thread-safe.

    `leaves`: the leaf numbers of each column, by name. `fetches_together`: whether one request for
    several columns is cheaper, as in a remote store. Otherwise a reader `for_streams` reads chunks
    piece by piece, after it has compared them with their digests.
    """

    __slots__ = (
        "_chunks",
        "_file",
        "_in_pieces",
        "_path",
        "fetches_together",
        "leaves",
        "metadata",
    )

    def __init__(self, store: ObjectStore, ref: ParquetRef, *, for_streams: bool = False) -> None:
        self._path = ref.path
        self.metadata = read_metadata(store, ref)
        self.leaves = leaves_of(self.metadata)
        self.fetches_together = store.overlaps
        self._in_pieces = for_streams and not store.overlaps
        with reading(ref.path):
            source = store.open_input(ref.path, ref.size_bytes)
            self._chunks: ChunkFile | None = None
            if (seal := chunk_seal(self.metadata)) is not None:
                self._chunks = ChunkFile(source, ref, self.metadata, seal)
            self._file = pq.ParquetFile(
                source if self._chunks is None or self._in_pieces else self._chunks,
                metadata=self.metadata,
                read_dictionary=dictionary_columns(self.metadata),
                pre_buffer=self._chunks is None and self.fetches_together,
                buffer_size=_PIECE_BYTES if self._in_pieces else 0,
                page_checksum_verification=self._chunks is None,
            )

    def stream(self, row_group: int, leaves: Sequence[int], batch_rows: int) -> RowStream:
        """Leaf columns of one row group as a stream, which only the caller may use with `self`.

        At most `batch_rows` are decoded at once.
        """
        with reading(self._path, row_group, self.metadata):
            if self._chunks is not None:
                self._chunks.expect(row_group, leaves, together=self.fetches_together)
                if self._in_pieces:
                    self._chunks.check()
            batches = self._file.reader.iter_batches(
                batch_rows, [row_group], column_indices=list(leaves), use_threads=False
            )
        return RowStream(batches, f"{self._path}, row group {row_group}")

    def read(self, row_group: int, leaves: Sequence[int]) -> pa.Table:
        """Decode leaf columns of one row group; CorruptData if their bytes are damaged."""
        with reading(self._path, row_group, self.metadata):
            if self._chunks is not None:
                self._chunks.expect(row_group, leaves, together=self.fetches_together)
            table = self._file.reader.read_row_group(
                row_group, column_indices=list(leaves), use_threads=False
            )
        _check_lengths(table, self.metadata.row_group(row_group).num_rows, self._path, row_group)
        return table


def _check_lengths(table: pa.Table, row_count: int, path: str, row_group: int) -> None:
    """Fail if a column lacks rows: page CRCs exclude headers, and damage there skips values."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if len(column) != row_count:
            raise CorruptData(
                f"{path}, row group {row_group}: column {name!r} decodes to {len(column)} of "
                f"{row_count} rows, so the header of a page is damaged; restore the file from a "
                "copy, or the table to a version without it"
            )
