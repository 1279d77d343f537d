"""Cells: one value of bytes for each row, made and joined without a loop over rows.

A binary format of rows is written column by column: the cells of each column, then one join. Cells
are arrays of `large_binary` without NULL; a scalar of it is a cell that all rows share.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

SLICE_ROWS: Final = 16_384
"""Rows written at once: their cells stay in the caches of the processor."""

Cells: TypeAlias = pa.Array
Octets: TypeAlias = npt.NDArray[np.uint8]

_TYPE: Final = pa.large_binary()


def constant(value: bytes) -> pa.Scalar:
    """A cell that all rows share."""
    return pa.scalar(value, _TYPE)


def fixed(octets: Octets) -> Cells:
    """Cells of one length: `octets` is (rows, bytes)."""
    count, width = octets.shape
    offsets = np.arange(0, count * width + 1, max(width, 1), dtype=np.int64)[: count + 1]
    return _cells(offsets if width else np.zeros(count + 1, np.int64), octets)


def first_bytes(octets: Octets, lengths: npt.NDArray[Any]) -> Cells:
    """Cells of the first bytes of each row: `octets` is (rows, bytes), `lengths` is (rows,)."""
    longest = int(lengths.max(initial=0))
    if int(lengths.min(initial=longest)) == longest:
        return fixed(np.ascontiguousarray(octets[:, :longest]))
    octets = octets[:, :longest]
    is_used = np.arange(longest, dtype=np.uint8) < lengths.astype(np.uint8)[:, None]
    return _cells(ends_of(lengths), octets[is_used])


def ends_of(lengths: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """(n + 1,) where each of n values starts, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def bytes_of(values: pa.Array) -> Cells:
    """Cells of the bytes of texts and bytes; those of NULL are empty."""
    return values.fill_null("" if pa.types.is_string(values.type) else b"").cast(_TYPE)


def lengths_of(cells: Cells) -> npt.NDArray[np.int64]:
    """(rows,) the bytes of each cell."""
    lengths = pc.binary_length(cells).to_numpy(zero_copy_only=False)
    return np.asarray(lengths, dtype=np.int64)


def joined(parts: list[Any], count: int) -> Cells:
    """The cells of several columns, one after another, as one cell for each row."""
    if all(isinstance(part, pa.Scalar) for part in parts):
        whole = b"".join(part.as_py() for part in parts)
        return fixed(np.tile(np.frombuffer(whole, np.uint8), (count, 1)))
    if len(parts) == 1:
        return parts[0]
    return pc.binary_join_element_wise(*parts, constant(b""))


def grouped(items: Cells, lengths: npt.NDArray[np.int64]) -> Cells:
    """The cells of consecutive items as one cell for each group of `lengths[i]` items."""
    if items.offset:
        items = pa.concat_arrays([items])
    ends = np.frombuffer(items.buffers()[1] or b"\0" * 8, np.int64, len(items) + 1)
    return pa.Array.from_buffers(
        _TYPE, len(lengths), [None, pa.py_buffer(ends[ends_of(lengths)]), items.buffers()[2]]
    )


def chosen(is_first: pa.Array, first: Any, second: Any) -> Cells:
    """For each row a cell of the first where the mask is True, else of the second."""
    return pc.if_else(is_first, first, second)


def big_endian(values: npt.NDArray[Any]) -> Octets:
    """(rows, bytes) the bytes of numbers, the most significant first."""
    width = values.dtype.itemsize
    swapped = values.astype(values.dtype.newbyteorder(">"), copy=False)
    return np.ascontiguousarray(swapped).view(np.uint8).reshape(-1, width)


def _cells(offsets: npt.NDArray[np.int64], octets: Octets) -> Cells:
    data = np.ascontiguousarray(octets).reshape(-1)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(_TYPE, len(offsets) - 1, buffers)
