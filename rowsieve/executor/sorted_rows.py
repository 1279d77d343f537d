"""Sort the rows of a task, or of merged parts, in bounded memory.

Rows that fit in memory are sorted there. More rows are read twice: the first pass reads only the
columns of the order and ranks every row; the second one writes each row into the temporary file of
its bucket, by rank. A bucket holds about as many rows as fit, for any distribution of values, and
is then sorted by rank. Memory: one bucket, and about 50 bytes a row for the order.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.errors import CorruptData
from rowsieve.types.ordering.sort_order import SortOrder
from rowsieve.types.schema import Schema

SORT_BYTES: Final = 64 * 2**20
"""Bytes of rows sorted in memory at most."""

_RANK: Final = "rank"  # a column of the temporary files, after those of the rows

Read = Callable[[Sequence[str] | None], Iterator[pa.RecordBatch]]
"""Reads all rows, always in the same order: the named columns, or all columns for None."""


def sorted_rows(
    read: Read, order: SortOrder, schema: Schema, most_bytes: int = SORT_BYTES
) -> Iterator[pa.Table]:
    """Yield all rows in order; each table holds about `most_bytes` at most."""
    first: list[pa.RecordBatch] = []
    size = 0
    for batch in read(None):
        first.append(batch)
        size += batch.nbytes
        if size > most_bytes:
            break
    else:
        if first:
            rows = pa.Table.from_batches(first)
            yield rows.take(pa.array(order.sort(rows, schema)))
        return
    bytes_per_row = size / sum(batch.num_rows for batch in first)
    del first
    ranks = order.ranks(pa.Table.from_batches(read(order.columns)), schema)
    bucket_rows = max(1, int(most_bytes / bytes_per_row))
    yield from _by_buckets(read(None), ranks, bucket_rows)


def _by_buckets(
    batches: Iterator[pa.RecordBatch], ranks: npt.NDArray[np.int64], bucket_rows: int
) -> Iterator[pa.Table]:
    count = -(-len(ranks) // bucket_rows)
    with tempfile.TemporaryDirectory(prefix="rowsieve-sort-") as folder:
        paths = [Path(folder) / f"{bucket}.arrow" for bucket in range(count)]
        _distribute(batches, ranks, bucket_rows, paths)
        for path in paths:
            with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
                rows = reader.read_all()
            order = np.argsort(rows.column(rows.num_columns - 1).to_numpy())
            yield rows.remove_column(rows.num_columns - 1).take(pa.array(order))
            path.unlink()


def _distribute(
    batches: Iterator[pa.RecordBatch],
    ranks: npt.NDArray[np.int64],
    bucket_rows: int,
    paths: Sequence[Path],
) -> None:
    """Append every row, with its rank, to the file of its bucket."""
    done = 0
    with ExitStack() as files:
        writers: list[pa.RecordBatchStreamWriter] = []
        for batch in batches:
            batch_ranks = ranks[done : done + batch.num_rows]
            done += batch.num_rows
            if len(batch_ranks) < batch.num_rows:
                break
            numbered = batch.append_column(_RANK, pa.array(batch_ranks))
            if not writers:
                writers = [
                    files.enter_context(pa.ipc.new_stream(str(path), numbered.schema))
                    for path in paths
                ]
            buckets = batch_ranks // bucket_rows
            order = np.argsort(buckets, kind="stable")
            moved = numbered.take(pa.array(order))
            stops = np.searchsorted(buckets[order], np.arange(len(paths)), side="right")
            start = 0
            for writer, stop in zip(writers, stops.tolist(), strict=True):
                if stop > start:
                    writer.write_batch(moved.slice(start, stop - start))
                start = stop
    if done != len(ranks):
        raise CorruptData(
            f"two reads of one version gave {len(ranks):,} and {done:,} or more rows; nothing was "
            "committed. Check the store for changed files"
        )
