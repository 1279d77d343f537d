"""Cuts large row groups into slices of rows, which are decoded one after another.

A row group of another writer may have any number of rows, and a dictionary of a few kilobytes may
decode to more than the 2 GiB of text that fit into one array of Arrow. Such a row group is read by
a stream of batches instead of at once: `RowStream` returns any later range of its rows.

Soundness: slices only cut; a stream returns exactly the rows asked for, or raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowsieve.errors import CorruptData

SLICE_ROWS: Final = 65_536
WHOLE_ROWS: Final = 1_048_576  # a row group with more rows is cut
WHOLE_BYTES: Final = 1024 * 1024 * 1024  # one with more in all columns, or in a column of text
SLICE_BYTES: Final = 256 * 1024 * 1024  # of a column of text in a slice

_PROBE_ROWS: Final = 1024
_STORED_WHOLE: Final = frozenset(
    {"PLAIN", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY"}
)
"""Encodings of values that share no bytes with others, and encodings of levels."""

DecodedBytes = Callable[[int], int]
"""Returns an upper bound of the decoded bytes of a leaf, which it reads to find out."""


def slice_rows(group: Any, text_leaves: Sequence[int], decoded: DecodedBytes | None) -> int:
    """The number of rows of each slice of a row group; all of them if it is not cut.

    `text_leaves` are the leaves of text and bytes. Without `decoded`, values are taken to be stored
    by our writer, which cuts row groups by the decoded bytes.
    """
    rows, all_bytes = int(group.num_rows), int(group.total_byte_size)
    most_bytes = (
        all_bytes if decoded is None else rows * all_bytes
    )  # if each value were in all rows
    if rows <= WHOLE_ROWS and most_bytes <= WHOLE_BYTES:
        return rows
    text_bytes = max(
        [_text_bytes(leaf, group.column(leaf), decoded) for leaf in text_leaves], default=0
    )
    if rows <= WHOLE_ROWS and max(text_bytes, all_bytes) <= WHOLE_BYTES:
        return rows
    return min(SLICE_ROWS, max(1, rows * SLICE_BYTES // max(text_bytes, 1)))


def text_leaves_of(metadata: pq.FileMetaData) -> list[int]:
    """The numbers of the leaves that are stored as byte arrays."""
    schema = metadata.schema
    leaves = range(metadata.num_columns)
    return [leaf for leaf in leaves if schema.column(leaf).physical_type == "BYTE_ARRAY"]


def _text_bytes(leaf: int, chunk: Any, decoded: DecodedBytes | None) -> int:
    """An upper bound of the decoded bytes of a chunk of text."""
    stored, values = int(chunk.total_uncompressed_size), int(chunk.num_values)
    if decoded is None or _STORED_WHOLE.issuperset(chunk.encodings):
        return stored
    if values * stored <= WHOLE_BYTES:  # no value is longer than all of them
        return values * stored
    return decoded(leaf)


def decoded_bytes(source: Any, metadata: pq.FileMetaData, row_group: int, leaf: int) -> int:
    """An upper bound of the decoded bytes of a chunk of text, which is read from an open file.

    A dictionary bounds it by its longest value. Other chunks are decoded once, a few rows at a
    time, because prefixes that values share may be stored once.
    """
    chunk = metadata.row_group(row_group).column(leaf)
    dictionaries = [] if "DELTA_BYTE_ARRAY" in chunk.encodings else [chunk.path_in_schema]
    file = pq.ParquetFile(source, metadata=metadata, read_dictionary=dictionaries)
    decoded = 0
    batches = file.reader.iter_batches(
        _PROBE_ROWS, [row_group], column_indices=[leaf], use_threads=False
    )
    for batch in batches:
        column = batch.column(0)
        if pa.types.is_dictionary(column.type):
            longest = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
            return int(chunk.total_uncompressed_size) + int(chunk.num_values) * int(longest)
        decoded += column.nbytes
    return decoded


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
        found: list[pa.RecordBatch] = []
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
                found.append(batch.slice(start, taken - start))
            self._rest = batch.slice(taken) if taken < batch.num_rows else None
            self.position += taken
        return pa.Table.from_batches(found)
