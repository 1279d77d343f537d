"""Computes how many rows the streams of a merge may buffer within the memory limit of a read.

A merge buffers one batch of each open stream, usually a whole row group. Where these exceed the
limit, every stream buffers a slice of its row group and decodes the row group again for the next
slice: several passes over the file instead of more memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rowsieve.types.ordering.keys import Key

MIN_ROWS: Final = 256
_MIN_BYTES: Final = 1024 * 1024  # of so many rows; of larger rows, fewer
_COPIES: Final = 3  # of a batch: the buffer, its rows in the sorted window and in the output


@dataclass(frozen=True, slots=True)
class Footprint:
    """The batch that a stream buffers while it is open, from key `first` to `last`.

    Either key is () if it is unknown.
    """

    batch_rows: int
    batch_bytes: int
    first: Key = ()
    last: Key = ()


def rows_at_once(streams: Sequence[Footprint], memory_bytes: int) -> list[int]:
    """The rows that each stream may buffer: its whole batch, or the same share of every batch."""
    needed = max(_COPIES * most_at_once(streams), 1)
    if needed <= memory_bytes:
        return [stream.batch_rows for stream in streams]
    return [
        max(_fewest_rows(stream), stream.batch_rows * memory_bytes // needed) for stream in streams
    ]


def _fewest_rows(stream: Footprint) -> int:
    """Rows that a stream may always buffer: a slice has a cost of its own."""
    row_bytes = max(stream.batch_bytes // max(stream.batch_rows, 1), 1)
    return max(1, min(MIN_ROWS, _MIN_BYTES // row_bytes))


def most_at_once(streams: Sequence[Footprint]) -> int:
    """The largest total size of the batches that are open at one key, in bytes."""
    unknown = sum(stream.batch_bytes for stream in streams if not stream.last)
    edges = [
        edge
        for stream in streams
        if stream.last
        for edge in (
            (stream.first, 0, stream.batch_bytes),
            (stream.last, 1, -stream.batch_bytes),  # a stream is still open at its last key
        )
    ]
    most = open_bytes = 0
    for _, _, change in sorted(edges):
        open_bytes += change
        most = max(most, open_bytes)
    return unknown + most
