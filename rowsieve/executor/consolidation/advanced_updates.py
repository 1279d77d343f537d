"""Rewrite updates: times before `since` become `since`, and equal updates are added up.

Soundness: for each time from `since` on, the sums of the result are those of the input. Any subset
of updates may be rewritten so, because sums do not depend on the order of addition. Updates whose
differences do not add up within 64 bits are kept apart, so that readers still see the overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from rowsieve.executor.consolidation.equality_codes import equality_codes
from rowsieve.executor.consolidation.sums import sum_differences
from rowsieve.storage.differential import DIFF, TIME
from rowsieve.types.ordering.keys import flat

CHUNK_BYTES: Final = 256 * 2**20
"""The bytes of updates that are added up at once; a bound of the memory of a rewrite."""


def advanced_updates(
    batches: Iterable[pa.RecordBatch | pa.Table], since: int
) -> Iterator[pa.RecordBatch]:
    """The same updates at or after `since`; earlier ones are at `since`. No batch is empty."""
    chunk: list[pa.Table] = []
    size_bytes = 0
    for batch in batches:
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        chunk.append(table)
        size_bytes += table.nbytes
        if size_bytes >= CHUNK_BYTES:
            yield from _consolidated(chunk, since)
            chunk, size_bytes = [], 0
    if chunk:
        yield from _consolidated(chunk, since)


def consolidated_updates(updates: pa.Table, since: int) -> pa.RecordBatch:
    """One update for each row and time, without sums of zero; times before `since` become it."""
    arrays = [flat(column) for column in updates.columns]
    time, diff = updates.column_names.index(TIME), updates.column_names.index(DIFF)
    arrays[time] = _advanced(arrays[time], since)
    schema = updates.schema
    codes = [code for i, array in enumerate(arrays) if i != diff for code in equality_codes(array)]
    differences = np.asarray(arrays[diff].to_numpy(zero_copy_only=False), dtype=np.int64)
    sums = sum_differences(codes, differences)
    if sums.overflows.any():
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    taken = [array.take(pa.array(sums.rows)) for array in arrays]
    taken[diff] = pa.array(sums.sums)
    return pa.RecordBatch.from_arrays(taken, schema=schema)


def _consolidated(chunk: Sequence[pa.Table], since: int) -> Iterator[pa.RecordBatch]:
    batch = consolidated_updates(pa.concat_tables(chunk), since)
    if batch.num_rows:
        yield batch


def _advanced(times: pa.Array, since: int) -> pa.Array:
    numbers = times if times.type == pa.uint64() else times.cast(pa.int64())
    values = numbers.to_numpy(zero_copy_only=False)
    return pa.array(np.maximum(values, values.dtype.type(since))).cast(times.type)
