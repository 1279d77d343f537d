"""The k-way merge: keeps the newest version of each key, and drops keys that a tombstone deletes.

Streams are given newest first, each in key order with at most one version per key (invariant I2).
Reads in key order and compaction merge; unordered reads resolve visibility instead. No predicate on
columns outside the key may filter rows before the merge (trap T1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.executor.decode_row_group import as_stored
from rowsieve.executor.merging.repeats import rank
from rowsieve.executor.merging.windows import Run, Stream, windows
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.shown_values import shown_row


def merge(
    streams: Sequence[Stream], order: KeyOrder, target: pa.Schema | None = None
) -> Iterator[pa.RecordBatch]:
    """The live rows of all streams in key order; streams are given newest first.

    With `target`, batches may have the decoder's types, and rows are cast after they are merged:
    text that is decoded with a dictionary moves as numbers until then.
    """
    for window in windows(streams, order):
        batch = winners(window, target)
        if batch is not None and batch.num_rows:
            yield batch if target is None else as_stored(batch, target)


def winners(runs: Sequence[Run], target: pa.Schema | None = None) -> pa.RecordBatch | None:
    """The newest version of every key, in key order; None if the runs have tombstones only.

    Runs are given newest first. A key whose newest version is a tombstone is dropped. With
    `target`, batches whose types differ are cast.
    """
    data = [run.rows for run in runs if not run.deletes]
    if not data:
        return None
    if len(runs) == 1:
        return data[0]
    ranking = rank([run.keys for run in runs])
    newest = ranking.order[~ranking.repeats]
    rows = _row_numbers(runs)[newest]
    if target is not None and any(batch.schema != data[0].schema for batch in data):
        data = [as_stored(batch, target) for batch in data]
    return _concat(data).take(pa.array(rows[rows >= 0]))


def repeated_key(streams: Sequence[Stream], order: KeyOrder) -> dict[str, object] | None:
    """A key that several streams contain, as values by column name; None if there is none.

    Buffers one batch per stream, as `merge` does; the batches need the key columns only.
    """
    for window in windows(streams, order, contested=True):
        ranking = rank([run.keys for run in window])
        if ranking.repeats.any():
            row = int(ranking.order[np.argmax(ranking.repeats)])
            rows = _concat([run.rows.select(list(order.names)) for run in window])
            return shown_row(rows, row, order.fields)
    return None


def _row_numbers(runs: Sequence[Run]) -> npt.NDArray[np.int64]:
    """The position of each run's rows among all data rows, -1 for a tombstone."""
    numbers = []
    offset = 0
    for run in runs:
        if run.deletes:
            numbers.append(np.full(len(run), -1, dtype=np.int64))
        else:
            numbers.append(np.arange(offset, offset + len(run), dtype=np.int64))
            offset += len(run)
    return np.concatenate(numbers)


def _concat(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
