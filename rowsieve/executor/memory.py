"""How many rows the streams of a merge may hold at once within the memory that a read may use.

Of each stream that is open a merge holds one batch, usually a whole row group. Where that is too
much, every stream holds a piece of its row group and decodes it again for the next piece: several
passes over the file instead of more memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rowsieve.types.keys import Key

FEWEST_ROWS: Final = 256
_SHARE: Final = 3  # a batch, its share of the window that is sorted, and of what comes out


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a stream holds while it is open, and between which keys that is; () if not known."""

    batch_rows: int
    batch_bytes: int
    first: Key = ()
    last: Key = ()


def rows_at_once(streams: Sequence[Footprint], memory_bytes: int) -> list[int]:
    """How many rows each stream may hold: its whole batch, or the same share of all batches."""
    needed = max(_SHARE * most_at_once(streams), 1)
    if needed <= memory_bytes:
        return [stream.batch_rows for stream in streams]
    return [max(FEWEST_ROWS, stream.batch_rows * memory_bytes // needed) for stream in streams]


def most_at_once(streams: Sequence[Footprint]) -> int:
    """The bytes of the streams that are open at one key, where these are the most."""
    unknown = sum(stream.batch_bytes for stream in streams if not stream.last)
    edges = [
        edge
        for stream in streams
        if stream.last
        for edge in (
            (stream.first, 0, stream.batch_bytes),
            (stream.last, 1, -stream.batch_bytes),  # a stream that ends at a key is open there
        )
    ]
    most = open_bytes = 0
    for _, _, change in sorted(edges):
        open_bytes += change
        most = max(most, open_bytes)
    return unknown + most
