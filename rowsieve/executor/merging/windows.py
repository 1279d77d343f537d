"""Cuts key-ordered streams into windows that have all versions of their keys.

The watermark is the smallest last key of all buffers. A window has the buffered rows of every
stream up to the watermark: no key of a window occurs later in any stream, so each window can be
merged separately. A stream is opened when the watermark reaches its first possible key. Memory is
one batch per open stream, so it depends on how many parts overlap at one key, not on their size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from rowsieve.errors import CorruptData
from rowsieve.types.ordering.keys import Key, KeyColumns, KeyOrder

Numbered: TypeAlias = tuple[int, pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Stream:
    """Batches in key order, each with the row number of its first row in the file.

    A `deletes` stream has tombstones: only its key columns are used. No key is below `first`, which
    may be a prefix of a key; () if unknown.
    """

    batches: Iterator[Numbered]
    deletes: bool
    first: Key = ()


@dataclass(frozen=True, slots=True)
class Run:
    """Rows of stream number `stream` in one window, from row `start` of the buffered batch on.

    `offset` is the row number of the batch's first row in the file; `keys` are those of the run.
    """

    stream: int
    offset: int
    batch: pa.RecordBatch
    start: int
    keys: KeyColumns
    deletes: bool

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def rows(self) -> pa.RecordBatch:
        """The rows of the run."""
        return self.batch.slice(self.start, len(self))


def windows(
    streams: Sequence[Stream], order: KeyOrder, *, contested: bool = False
) -> Iterator[list[Run]]:
    """The runs of each window, in the order of the streams; windows ascend by key.

    Once only one stream has rows to read, each of its batches is a window of one run; with
    `contested`, the iterator ends there and reads no further batch.
    """
    waiting = [_Cursor(number, stream, order) for number, stream in enumerate(streams)]
    waiting.sort(key=lambda cursor: cursor.first, reverse=True)
    cursors: list[_Cursor] = []
    while cursors or waiting:
        cursors = [cursor for cursor in cursors if cursor.filled or cursor.advance()]
        while waiting and _may_reach(waiting[-1], cursors):
            if (cursor := waiting.pop()).advance():
                cursors.append(cursor)
        if len(cursors) + len(waiting) < 2 and contested:
            return
        if not cursors:
            continue
        watermark = min(cursor.last_key for cursor in cursors)
        cursors.sort(key=lambda cursor: cursor.number)
        runs = [cursor.take_up_to(watermark) for cursor in cursors]
        yield [run for run in runs if len(run)]


def _may_reach(cursor: _Cursor, others: Sequence[_Cursor]) -> bool:
    """Return whether an unopened stream may have a key up to the watermark of the open ones."""
    return not others or cursor.first <= min(other.last_key for other in others)


class _Cursor:
    """The buffered batch of one stream, and how many of its rows were taken."""

    __slots__ = ("_keys", "_offset", "_order", "_rows", "_start", "_stream", "first", "number")

    def __init__(self, number: int, stream: Stream, order: KeyOrder) -> None:
        self.number = number
        self.first = stream.first
        self._stream = stream
        self._order = order
        self._rows: pa.RecordBatch | None = None
        self._keys: KeyColumns | None = None
        self._start = 0
        self._offset = 0  # row number of the buffer's first row in the file

    def advance(self) -> bool:
        """Buffer the next batch that has rows; False at the end."""
        for offset, batch in self._stream.batches:
            if batch.num_rows:
                self._rows, self._keys = batch, self._order.columns(batch)
                self._offset, self._start = offset, 0
                self._check_first(self._keys.key(0))
                return True
        return False

    def _check_first(self, key: Key) -> None:
        """Fail if the stream was opened too late: the windows before would be wrong."""
        if key < self.first:
            raise CorruptData(
                f"merging parts in key order: found the key {key} in a file whose statistics say "
                f"that no key is below {self.first}, so the statistics do not match the file; "
                "restore the file from a copy, or the table to a version without it"
            )

    @property
    def filled(self) -> bool:
        """True if the buffer has rows."""
        return self._keys is not None and self._start < len(self._keys)

    @property
    def last_key(self) -> Key:
        """The last key of the buffer."""
        assert self._keys is not None
        return self._keys.key(len(self._keys) - 1)

    def take_up_to(self, watermark: Key) -> Run:
        """Remove and return the buffered rows up to the watermark."""
        assert self._keys is not None
        assert self._rows is not None
        start = self._start
        self._start = stop = max(self._keys.count_up_to(watermark), start)
        return Run(
            self.number,
            self._offset,
            self._rows,
            start,
            self._keys.slice(start, stop),
            self._stream.deletes,
        )
