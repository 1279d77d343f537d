"""Cut updates into shares that fit the memory of a read: all updates of a row are in one share.

If all updates fit, they are read once. Otherwise they are read once for each share, and only those
of the share are kept. The share of a row follows from the bytes of its values alone, so it is the
same in each pass.

Soundness: equal rows have equal bytes, so they are in one share. Rows that differ in nested columns
only share one, too, and a share may then be larger than the memory, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.executor.consolidation.equality_codes import Codes, fixed_codes, stored_values
from rowsieve.executor.consolidation.sums import Words, words_of
from rowsieve.storage.differential import DIFF

MAX_SHARES: Final = 64
_SAFETY: Final = 2  # a share is held with its codes, and shares are not of one size
_PIECE: Final = 8  # bytes of each end of a text that count

Read = Callable[[], Iterator[pa.RecordBatch]]


def update_shares(read: Read, memory_bytes: int) -> Iterator[Sequence[pa.RecordBatch]]:
    """Yield the updates that `read` returns each time, as one list or several; none is empty."""
    batches: list[pa.RecordBatch] = []
    total_bytes = 0
    for batch in read():
        total_bytes += batch.nbytes
        batches.append(batch)
        if total_bytes > memory_bytes:
            batches.clear()
    if total_bytes <= memory_bytes:
        if batches:
            yield batches
        return
    count = min(-(-total_bytes * _SAFETY // max(memory_bytes, 1)), MAX_SHARES)
    for number in range(count):
        parts = (_of_share(batch, number, count) for batch in read())
        if share := [part for part in parts if part.num_rows]:
            yield share


def _of_share(batch: pa.RecordBatch, number: int, count: int) -> pa.RecordBatch:
    return batch.filter(pa.array(_words(batch) % np.uint64(count) == np.uint64(number)))


def _words(batch: pa.RecordBatch) -> Words:
    """(rows,) numbers that depend on the values of a row alone."""
    codes: list[Codes] = []
    for place, name in enumerate(batch.schema.names):
        if name != DIFF:
            values = stored_values(batch.column(place))
            codes += fixed_codes(values) if _is_fixed(values) else _text_codes(values)
    words = words_of(codes, batch.num_rows)
    return words ^ (words >> np.uint64(32))


def _is_fixed(values: pa.Array) -> bool:
    type_ = values.type
    return bool(pa.types.is_boolean(type_) or pa.types.is_primitive(type_)) and (
        pa.types.is_boolean(type_) or type_.bit_width <= 64
    )


def _text_codes(values: pa.Array) -> list[Codes]:
    """The first and last bytes of texts and bytes as numbers; nothing of other types."""
    type_ = values.type
    if pa.types.is_fixed_size_binary(type_) or pa.types.is_string(type_):
        values = values.cast(pa.binary())
    elif not pa.types.is_binary(type_):
        return []
    values = values.fill_null(b"").cast(pa.large_binary())
    starts = pc.binary_slice(values, 0, _PIECE)
    return [_numbers(starts), _numbers(pc.binary_slice(values, -_PIECE, None))]


def _numbers(pieces: pa.Array) -> Codes:
    """(rows,) numbers of values of at most 8 bytes, padded by zeros."""
    large = pa.large_binary()
    padding = pa.scalar(b"\0" * _PIECE, large)
    padded = pc.binary_join_element_wise(pieces, padding, pa.scalar(b"", large))
    starts = np.frombuffer(padded.buffers()[1], np.int64, len(padded) + 1)[:-1]
    octets = np.frombuffer(padded.buffers()[2] or b"", np.uint8)
    pieces_of_rows: Codes = octets[starts[:, None] + np.arange(_PIECE)].view(np.int64).reshape(-1)
    return pieces_of_rows
