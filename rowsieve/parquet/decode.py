"""Decodes columns of row groups, and checks them against damage.

Files of our writer have digests of chunks (`rowsieve.parquet.chunks`); in other files, the CRCs of
pages are verified if they exist. Text and bytes with a dictionary are decoded to dictionary arrays,
because filtering and casting these is faster than decoding every value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
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
        if self._chunks is None:
            batches = self._levels(row_group, leaves).checked(batches)
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
        if self._chunks is None:
            self._levels(row_group, leaves).add(table.columns, table.num_rows)
        return table

    def _levels(self, row_group: int, leaves: Sequence[int]) -> _LevelCounts:
        where = f"{self._path}, row group {row_group}"
        return _LevelCounts(self.metadata, row_group, leaves, where)


def _check_lengths(table: pa.Table, row_count: int, path: str, row_group: int) -> None:
    """Fail if a column lacks rows: page CRCs exclude headers, and damage there skips values."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if len(column) != row_count:
            raise CorruptData(
                f"{path}, row group {row_group}: column {name!r} decodes to {len(column)} of "
                f"{row_count} rows, so the header of a page is damaged; restore the file from a "
                "copy, or the table to a version without it"
            )


class _LevelCounts:
    """Counts the values that lists and maps took from their chunks in one row group.

    A decoder takes the number of values of a page from its header. One that says too few leaves out
    the last values of a list: the number of rows is right, and no error is raised. A footer that
    counts fewer values than there are misleads no reader, and is not an error.
    """

    __slots__ = ("_counts", "_expected", "_leaves", "_names", "_rest", "_where")

    def __init__(
        self, metadata: pq.FileMetaData, row_group: int, leaves: Sequence[int], where: str
    ) -> None:
        group, schema = metadata.row_group(row_group), metadata.schema
        self._leaves = leaves
        self._expected = {
            leaf: int(group.column(leaf).num_values)
            for leaf in leaves
            if schema.column(leaf).max_repetition_level > 0
        }
        self._names = {leaf: schema.column(leaf).path for leaf in self._expected}
        self._counts = np.zeros(len(leaves), np.int64)
        self._rest = int(group.num_rows)
        self._where = where

    def add(self, columns: Iterable[pa.Array | pa.ChunkedArray], row_count: int) -> None:
        """Add decoded rows, in order; CorruptData if the row group ends and a leaf lacks values."""
        if not self._expected:
            return
        counts = [_levels(column) for column in columns]
        self._counts += np.array([each for of_column in counts for each in of_column], np.int64)
        self._rest -= row_count
        if self._rest > 0:
            return
        for leaf, count in zip(self._decoded_leaves(map(len, counts)), self._counts, strict=True):
            if count < (expected := self._expected.get(leaf, 0)):
                raise CorruptData(
                    f"{self._where}: column {self._names[leaf]!r} decodes to {count} of "
                    f"{expected} values, so the header of a page is damaged; restore the file "
                    "from a copy"
                )

    def _decoded_leaves(self, leaf_counts: Iterable[int]) -> list[int]:
        """The leaves as they are decoded: columns as requested, inside of one as in the file."""
        requested = iter(self._leaves)
        return [leaf for count in leaf_counts for leaf in sorted(islice(requested, count))]

    def checked(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches, each after it was added."""
        for batch in batches:
            self.add(batch.columns, batch.num_rows)
            yield batch


def _levels(column: pa.Array | pa.ChunkedArray) -> list[int]:
    """The levels of each leaf of a column: its values, and one for each NULL or empty list."""
    if isinstance(column, pa.ChunkedArray):
        of_chunks = [_levels(chunk) for chunk in column.chunks or [pa.array([], column.type)]]
        return [sum(counts) for counts in zip(*of_chunks, strict=True)]
    if isinstance(column, pa.ExtensionArray):
        return _levels(column.storage)
    type_ = column.type
    if pa.types.is_struct(type_):
        return [count for i in range(type_.num_fields) for count in _levels(column.field(i))]
    if pa.types.is_dictionary(type_) or not type_.num_fields:
        return [len(column)]
    if pa.types.is_fixed_size_list(type_):
        inner = [column.flatten()]
        empty = column.null_count if type_.list_size else len(column)
    else:
        offsets = column.offsets.to_numpy()
        start, stop = int(offsets[0]), int(offsets[-1])
        inner = [column.keys, column.items] if pa.types.is_map(type_) else [column.values]
        inner = [each.slice(start, stop - start) for each in inner]
        empty = int((offsets[1:] == offsets[:-1]).sum())
    return [empty + count for each in inner for count in _levels(each)]
