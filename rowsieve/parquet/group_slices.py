"""Cuts large row groups into slices of rows, which are decoded one after another.

A row group of another writer may have any number of rows, and a dictionary of a few kilobytes may
decode to more than the 2 GiB of text that fit into one array of Arrow. Such a row group is read by
a stream of batches instead of at once: `RowStream` returns any later range of its rows.

Soundness: slices only cut; a stream returns exactly the rows asked for, or raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowsieve.errors import CorruptData

SLICE_ROWS: Final = 65_536
WHOLE_ROWS: Final = 1_048_576  # a row group with more rows is cut
WHOLE_SHARE: Final = 4  # so is one whose columns take more than this part of a read's memory
SLICES_OF_WHOLE: Final = 4  # the bytes that stay whole hold so many slices

_PROBE_ROWS: Final = 1024
_MAX_PROBES: Final = 8
_BUFFER_BYTES: Final = 1024 * 1024
_STORED_WHOLE: Final = frozenset(
    {"PLAIN", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY"}
)
"""Encodings of values that share no bytes with others, and encodings of levels."""
_NUMBER_BYTES: Final = 16  # of a decoded number, at most
_TEXT: Final = "BYTE_ARRAY"

DecodedBytes = Callable[[int], int]
"""Returns the decoded bytes of a leaf of text, which it reads to find out."""


def slice_rows(
    group: Any, leaves: Sequence[int], memory_bytes: int, decoded: DecodedBytes | None
) -> int:
    """The number of rows of each slice of a row group; all of them if it is not cut.

    `leaves`: those that are read, with `memory_bytes` for the whole read. Without `decoded`, values
    are taken to be stored by our writer, which cuts row groups by the decoded bytes.
    """
    rows, all_bytes = int(group.num_rows), int(group.total_byte_size)
    whole_bytes = memory_bytes // WHOLE_SHARE
    stored_whole = decoded is None and all_bytes + rows * _NUMBER_BYTES * len(leaves) <= whole_bytes
    if rows <= WHOLE_ROWS and (stored_whole or rows * all_bytes <= whole_bytes):
        return rows  # even if each value were in all rows
    size_bytes = sum(_leaf_bytes(leaf, group.column(leaf), whole_bytes, decoded) for leaf in leaves)
    if rows <= WHOLE_ROWS and size_bytes <= whole_bytes:
        return rows
    slice_bytes = whole_bytes // SLICES_OF_WHOLE
    return min(SLICE_ROWS, max(1, rows * slice_bytes // max(size_bytes, 1)))


def _leaf_bytes(leaf: int, chunk: Any, whole_bytes: int, decoded: DecodedBytes | None) -> int:
    """About the decoded bytes of a chunk; of text, what is stored if values share no bytes."""
    stored, values = int(chunk.total_uncompressed_size), int(chunk.num_values)
    if chunk.physical_type != _TEXT:
        return max(stored, values * _NUMBER_BYTES)
    if decoded is None or _STORED_WHOLE.issuperset(chunk.encodings):
        return stored
    if values * stored <= whole_bytes // SLICES_OF_WHOLE:  # no value is longer than all of them
        return values * stored
    return decoded(leaf)


def decoded_bytes(source: Any, metadata: pq.FileMetaData, row_group: int, leaf: int) -> int:
    """About the decoded bytes of a chunk of text, whose beginning is read from an open file.

    A dictionary bounds it by its longest value. Of other chunks the first rows are decoded, because
    prefixes that values share may be stored once; the largest of these batches stands for the rest.
    """
    chunk = metadata.row_group(row_group).column(leaf)
    dictionaries = [] if "DELTA_BYTE_ARRAY" in chunk.encodings else [chunk.path_in_schema]
    file = pq.ParquetFile(
        source, metadata=metadata, read_dictionary=dictionaries, buffer_size=_BUFFER_BYTES,
        pre_buffer=False,
    )  # fmt: skip
    values, stored = int(chunk.num_values), int(chunk.total_uncompressed_size)
    largest = 0
    batches = file.reader.iter_batches(
        _PROBE_ROWS, [row_group], column_indices=[leaf], use_threads=False
    )
    for batch in islice(batches, _MAX_PROBES):
        column = batch.column(0)
        if pa.types.is_dictionary(column.type):
            longest = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
            return stored + values * int(longest)
        largest = max(largest, column.nbytes // max(len(column), 1))
    return max(stored, values * largest)


class RowStream:
    """Columns of one row group in batches; a range of rows must lie behind the one before."""

    __slots__ = ("_batches", "_rest", "_where", "position")

    def __init__(self, batches: Iterator[pa.RecordBatch], where: str) -> None:
        self._batches = batches
        self._rest: pa.RecordBatch | None = None
        self._where = where
        self.position = 0

    def read(self, first: int, stop: int) -> pa.Table:
        """The rows [first, stop) of the row group; `first` is at or behind `position`."""
        batches: list[pa.RecordBatch] = []
        while self.position < stop:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            if batch is None:
                raise CorruptData(
                    f"{self._where}: columns decode to {self.position} rows, fewer than the footer "
                    "says; restore the file from a copy"
                )
            start = max(first - self.position, 0)
            taken = min(stop - self.position, batch.num_rows)
            if start < taken:
                batches.append(batch.slice(start, taken - start))
            self._rest = batch.slice(taken) if taken < batch.num_rows else None
            self.position += taken
        return pa.Table.from_batches(batches)
