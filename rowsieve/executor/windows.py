"""Key-ordered streams cut into windows whose keys are complete.

A window holds, of every stream, the buffered rows at or below the watermark, which is the smallest
last key of all buffers: no key of a window occurs later in any stream. So a window can be decided
alone, and memory is one batch per stream whatever the size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from rowsieve.types.keys import Key, KeyColumns, KeyOrder

Numbered: TypeAlias = tuple[int, pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Stream:
    """Batches in key order, each with the row number in its file that it starts at.

    Of `deletes` streams only the key columns count.
    """

    batches: Iterator[Numbered]
    deletes: bool


@dataclass(frozen=True, slots=True)
class Run:
    """Rows [offset, offset + n) of the file of stream number `stream`, as a window has them."""

    stream: int
    offset: int
    rows: pa.RecordBatch
    keys: KeyColumns
    deletes: bool

    def __len__(self) -> int:
        return len(self.keys)


def windows(
    streams: Sequence[Stream], order: KeyOrder, *, contested: bool = False
) -> Iterator[list[Run]]:
    """Runs of each window, in the order of the streams; windows ascend by key.

    From the moment when one stream alone has rows, each of its batches is a window of one run;
    with `contested` it ends there, and what is left is not even read.
    """
    cursors = [
        cursor
        for number, stream in enumerate(streams)
        if (cursor := _Cursor(number, stream, order)).advance()
    ]
    while len(cursors) > 1:
        watermark = min(cursor.last_key for cursor in cursors)
        runs = [cursor.take_up_to(watermark) for cursor in cursors]
        yield [run for run in runs if len(run)]
        cursors = [cursor for cursor in cursors if cursor.filled or cursor.advance()]
    for cursor in () if contested else cursors:
        while cursor.filled or cursor.advance():
            yield [cursor.take_up_to(cursor.last_key)]


class _Cursor:
    """The buffered batch of one stream and how far it has been taken."""

    __slots__ = ("_keys", "_number", "_offset", "_order", "_rows", "_start", "_stream")

    def __init__(self, number: int, stream: Stream, order: KeyOrder) -> None:
        self._number = number
        self._stream = stream
        self._order = order
        self._rows: pa.RecordBatch | None = None
        self._keys: KeyColumns | None = None
        self._start = 0
        self._offset = 0  # of the buffer's first row in the file

    def advance(self) -> bool:
        """Buffer the next batch that has rows; False at the end."""
        for offset, batch in self._stream.batches:
            if batch.num_rows:
                self._rows, self._keys = batch, self._order.columns(batch)
                self._offset, self._start = offset, 0
                return True
        return False

    @property
    def filled(self) -> bool:
        """Whether rows are left in the buffer."""
        return self._keys is not None and self._start < len(self._keys)

    @property
    def last_key(self) -> Key:
        """The last key of the buffer."""
        assert self._keys is not None
        return self._keys.key(len(self._keys) - 1)

    def take_up_to(self, watermark: Key) -> Run:
        """The buffered rows at or below the watermark, which leave the buffer."""
        assert self._keys is not None
        assert self._rows is not None
        start = self._start
        self._start = stop = max(self._keys.count_up_to(watermark), start)
        return Run(
            self._number,
            self._offset + start,
            self._rows.slice(start, stop - start),
            self._keys.slice(start, stop),
            self._stream.deletes,
        )
