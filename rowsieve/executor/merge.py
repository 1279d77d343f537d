"""The k-way merge: of each key's versions the newest, tombstones taking their key away.

Streams come newest first, each in key order with at most one version per key (invariant I2).
`merge` works in windows cut at the watermark, the smallest last key of the buffered batches: every
key at or below it is complete in the buffers, so memory is one batch per stream whatever the size.
`winners` is the kernel of one window; over whole inputs it is the simple merge that tests compare
with. No predicate may be applied to rows before they come out of here (trap T1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.types.keys import KeyColumns, KeyOrder, concat_columns


@dataclass(frozen=True, slots=True)
class Stream:
    """Batches in key order; of `deletes` streams only the key columns count."""

    batches: Iterator[pa.RecordBatch]
    deletes: bool


@dataclass(frozen=True, slots=True)
class Run:
    """Rows of one stream that take part in a window."""

    rows: pa.RecordBatch
    keys: KeyColumns
    deletes: bool


def merge(streams: Sequence[Stream], order: KeyOrder) -> Iterator[pa.RecordBatch]:
    """The live rows of all streams in key order; streams are given newest first."""
    cursors = [cursor for stream in streams if (cursor := _Cursor(stream, order)).advance()]
    while len(cursors) > 1:
        watermark = min(cursor.last_key for cursor in cursors)
        window = [cursor.take_up_to(watermark) for cursor in cursors]
        batch = winners([run for run in window if len(run.keys)])
        if batch is not None and batch.num_rows:
            yield batch
        cursors = [cursor for cursor in cursors if cursor.filled or cursor.advance()]
    if cursors and not cursors[0].deletes:
        yield from cursors[0].rest()


def winners(runs: Sequence[Run]) -> pa.RecordBatch | None:
    """The newest version of every key, in key order; None if the runs hold no rows at all.

    Runs are given newest first. A key whose newest version is a tombstone is left out.
    """
    data = [run.rows for run in runs if not run.deletes]
    if not data:
        return None
    if len(runs) == 1:
        return data[0]
    keys = concat_columns([run.keys for run in runs])
    order = keys.sort()  # stable: of equal keys the newest comes first
    newest = order[~keys.repeats(order)]
    rows = _row_numbers(runs)[newest]
    return _concat(data).take(pa.array(rows[rows >= 0]))


def repeated_key(streams: Sequence[Stream], order: KeyOrder) -> dict[str, object] | None:
    """A key that more than one stream holds, by column name; None if there is none.

    Memory is one batch per stream, as for `merge`; the batches need the key columns only.
    """
    cursors = [cursor for stream in streams if (cursor := _Cursor(stream, order)).advance()]
    while len(cursors) > 1:
        watermark = min(cursor.last_key for cursor in cursors)
        window = [cursor.take_up_to(watermark) for cursor in cursors]
        keys = concat_columns([run.keys for run in window])
        positions = keys.sort()
        repeats = keys.repeats(positions)
        if repeats.any():
            row = int(positions[np.flatnonzero(repeats)[0]])
            rows = _concat([run.rows.select(list(order.names)) for run in window])
            found: dict[str, object] = rows.slice(row, 1).to_pylist()[0]
            return found
        cursors = [cursor for cursor in cursors if cursor.filled or cursor.advance()]
    return None


def merge_in_memory(
    runs: Iterable[tuple[pa.Table, bool]], order: KeyOrder
) -> pa.RecordBatch | None:
    """`merge` of whole tables, given newest first as (rows, whether they are tombstones)."""
    whole = []
    for table, deletes in runs:
        batches = table.combine_chunks().to_batches()
        whole += [Run(batch, order.columns(batch), deletes) for batch in batches]
    return winners(whole)


class _Cursor:
    """The buffered batch of one stream and how far it has been taken."""

    __slots__ = ("_keys", "_order", "_rows", "_start", "_stream", "deletes")

    def __init__(self, stream: Stream, order: KeyOrder) -> None:
        self._stream = stream
        self._order = order
        self.deletes = stream.deletes
        self._rows: pa.RecordBatch | None = None
        self._keys: KeyColumns | None = None
        self._start = 0

    def advance(self) -> bool:
        """Buffer the next batch that has rows; False at the end."""
        for batch in self._stream.batches:
            if batch.num_rows:
                self._rows, self._keys, self._start = batch, self._order.columns(batch), 0
                return True
        return False

    @property
    def filled(self) -> bool:
        """Whether rows are left in the buffer."""
        return self._keys is not None and self._start < len(self._keys)

    @property
    def last_key(self) -> tuple[object, ...]:
        """The last key of the buffer."""
        assert self._keys is not None
        return self._keys.key(len(self._keys) - 1)

    def take_up_to(self, watermark: tuple[object, ...]) -> Run:
        """The buffered rows at or below the watermark, which leave the buffer."""
        assert self._keys is not None
        assert self._rows is not None
        stop = self._keys.count_up_to(watermark)  # type: ignore[arg-type]
        start, self._start = self._start, max(stop, self._start)
        rows = self._rows.slice(start, self._start - start)
        return Run(rows, self._keys.slice(start, self._start), self.deletes)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Everything that is left."""
        assert self._rows is not None
        if self.filled:
            yield self._rows.slice(self._start)
        yield from self._stream.batches


def _row_numbers(runs: Sequence[Run]) -> npt.NDArray[np.int64]:
    """For every row of all runs its place among the data rows, -1 for a tombstone."""
    numbers = []
    offset = 0
    for run in runs:
        count = len(run.keys)
        if run.deletes:
            numbers.append(np.full(count, -1, dtype=np.int64))
        else:
            numbers.append(np.arange(offset, offset + count, dtype=np.int64))
            offset += count
    return np.concatenate(numbers)


def _concat(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
