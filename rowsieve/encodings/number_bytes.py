"""Decimals as bytes of two's complement, the most significant first, in the fewest bytes.

That is how Avro holds decimals. Whole columns at a time; `numbers_of_bytes` takes longer forms too,
as other writers make them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.encodings.cells import first_bytes

_OF_UINT64: Final = pa.decimal128(20, 0)


class NotPlain(ValueError):
    """Decoded values do not have the types of the columns."""


def number_bytes(values: pa.Array) -> pa.Array:
    """The bytes of decimals, or of integers of 64 bits without sign."""
    if pa.types.is_integer(values.type):
        values = values.cast(_OF_UINT64)
    is_null = values.is_null()
    octets = _octets(values.fill_null(0))[:, ::-1]  # the most significant first
    width = octets.shape[1]
    signs = np.where(octets[:, 0] & 0x80, 0xFF, 0).astype(np.uint8)
    # A leading byte may go if it repeats the sign that the next byte has, too.
    repeats = (octets == signs[:, None])[:, : width - 1]
    repeats &= (octets[:, 1:] & 0x80) == (signs & 0x80)[:, None]
    dropped = np.cumprod(repeats, axis=1, dtype=np.uint8).sum(axis=1, dtype=np.int64)
    places = np.minimum(np.arange(width) + dropped[:, None], width - 1)
    cells = first_bytes(np.take_along_axis(octets, places, axis=1), width - dropped)
    return pc.if_else(is_null, pa.scalar(None, pa.binary()), cells.cast(pa.binary()))


def numbers_of_bytes(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """The numbers of `number_bytes`; NotPlain for one that the type does not hold."""
    target = _OF_UINT64 if pa.types.is_integer(type_) else type_
    width = target.bit_width // 8
    lengths = np.asarray(pc.fill_null(pc.binary_length(values), 1).to_numpy(zero_copy_only=False))
    longest = int(lengths.max(initial=width))
    if not lengths.min(initial=1):
        raise NotPlain("a number has no bytes")
    if longest > width:
        raise NotPlain(f"a number has {longest} bytes, and {type_} holds {width}")
    filled = values.fill_null(b"\0").cast(pa.large_binary())
    octets = _padded(filled, lengths.astype(np.int64), width)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(octets[:, ::-1]))]
    numbers = pa.Array.from_buffers(target, len(values), buffers)
    try:
        numbers.validate(full=True)
        numbers = numbers.cast(type_)
    except pa.ArrowInvalid as error:
        raise NotPlain(str(error)) from error
    return pc.if_else(values.is_null(), pa.scalar(None, type_), numbers)


def _octets(values: pa.Array) -> npt.NDArray[np.uint8]:
    width = values.type.bit_width // 8
    start = values.offset * width
    buffer = values.buffers()[1]
    octets = np.frombuffer(buffer, np.uint8) if buffer is not None else np.zeros(0, np.uint8)
    return octets[start : start + len(values) * width].reshape(-1, width)


def _padded(values: pa.Array, lengths: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.uint8]:
    """(n, width) the bytes of each value at the end, with its sign before them."""
    padding = pa.scalar(b"\0" * width, pa.large_binary())
    joined: Any = pc.binary_join_element_wise(padding, values, pa.scalar(b"", pa.large_binary()))
    _, offsets, data = joined.buffers()
    ends = np.frombuffer(offsets, np.int64, len(values) + 1, joined.offset * 8)[1:]
    source = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    places = ends[:, None] - width + np.arange(width)
    octets: npt.NDArray[np.uint8] = source[places]
    first = octets[np.arange(len(values)), width - lengths]
    is_padding = np.arange(width) < (width - lengths)[:, None]
    negative = (first & 0x80).astype(bool)
    octets[is_padding & negative[:, None]] = 0xFF
    return octets
