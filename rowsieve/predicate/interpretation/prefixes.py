"""Common prefixes of all texts between two bounds, for many pairs of bounds at once.

Text sorts by bytes, so every text between two others has their common prefix. A prefix ends at a
character boundary. Nothing here runs per row in Python, except for bounds whose last character is
not ASCII, once for each distinct one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import null_mask, without
from rowsieve.predicate.like import after_prefix

_CHUNK = 65_536
_LONGEST = 256  # bytes compared at most


def common_prefix(lower: pa.Array, upper: pa.Array) -> pa.Array:
    """Return (n,) string: the common prefix of texts from `lower` to `upper`, or NULL."""
    missing = null_mask(lower) | null_mask(upper)
    pieces = [
        _common(lower.slice(start, _CHUNK), upper.slice(start, _CHUNK))
        for start in range(0, len(lower), _CHUNK)
    ]
    return without(pa.concat_arrays(pieces) if pieces else lower, missing)


def above_prefix(prefix: pa.Array) -> pa.Array:
    """Return (n,) string: a bound above all texts with the prefix; NULL where there is none."""
    nulls = null_mask(prefix)
    starts, content = _buffers(prefix)
    ends = starts[1:]
    last = np.where(ends > starts[:-1], ends - 1, 0)
    raisable = (ends > starts[:-1]) & ~nulls
    raisable[raisable] = content[last[raisable]] < 0x7F
    raised = content.copy()
    raised[last[raisable]] += 1
    buffers = [None, pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(raised)]
    result = without(pa.Array.from_buffers(pa.string(), len(prefix), buffers), ~raisable)
    others = ~raisable & ~nulls
    if others.any():
        distinct = prefix.filter(pa.array(others)).dictionary_encode()
        above = [after_prefix(text) for text in distinct.dictionary.to_pylist()]
        bounds = pa.array(above, pa.string()).take(distinct.indices)
        result = pc.replace_with_mask(result, pa.array(others), bounds)
    return result


def is_ascii(text: pa.Array) -> npt.NDArray[np.bool_]:
    """Return the mask of texts with ASCII characters only; false for NULL."""
    flags = pc.fill_null(pc.string_is_ascii(text), False)  # noqa: FBT003
    mask: npt.NDArray[np.bool_] = flags.to_numpy(zero_copy_only=False)
    return mask


def _common(lower: pa.Array, upper: pa.Array) -> pa.Array:
    low, high = pc.fill_null(lower, ""), pc.fill_null(upper, "")
    lengths = np.minimum(*(pc.binary_length(side).to_numpy() for side in (low, high)))
    width = int(min(lengths.max(initial=0), _LONGEST)) + 1
    a, b = _matrix(low, width), _matrix(high, width)
    differs = a != b
    differs[:, -1] = True
    shared = np.minimum(differs.argmax(axis=1), lengths)
    rows = np.arange(len(a))
    for _ in range(3):  # a character has at most three more bytes after its first
        inside = (a[rows, shared] & 0xC0) == 0x80
        shared = np.where(inside & (shared > 0), shared - 1, shared)
    return _cut(low, shared)


def _matrix(text: pa.Array, width: int) -> npt.NDArray[np.uint8]:
    """Return (n, width) bytes of the texts, padded with 0."""
    offsets, content = _buffers(text)
    padded = np.concatenate([content, np.zeros(width, np.uint8)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)[offsets[:-1]]
    inside = np.arange(width) < (offsets[1:] - offsets[:-1])[:, None]
    return np.where(inside, windows, np.uint8(0))


def _cut(text: pa.Array, lengths: npt.NDArray[Any]) -> pa.Array:
    """Return the first bytes of each text, by length."""
    offsets, content = _buffers(text)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    places = np.repeat(offsets[:-1] - ends[:-1], lengths) + np.arange(ends[-1])
    prefixes = content[places] if len(places) else np.zeros(0, np.uint8)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(prefixes.tobytes())]
    return pa.Array.from_buffers(pa.string(), len(text), buffers)


def _buffers(text: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    _, offsets, content = text.buffers()
    starts = np.frombuffer(offsets, np.int32)[text.offset : text.offset + len(text) + 1]
    data = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    return starts.astype(np.int64), data
