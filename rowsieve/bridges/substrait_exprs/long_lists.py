"""Decode the members of a long list in one step: constants of one type in their shortest form.

Soundness: a list with a member in another form is not decoded here but member by member, which also
raises the specific error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.bridges.substrait_exprs.types import CONSTANTS, RANGES
from rowsieve.bridges.substrait_exprs.wire import Value
from rowsieve.predicate.arrays import Mask
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, Int, LogicalType, String, Time, Timestamp
from rowsieve.varints import encode_varint

MIN_MEMBERS = 64
_LITERAL, _BYTES = 1 << 3 | 2, 2  # the tag of a constant in an expression, and its wire type
_MAX_BYTES = 10  # of a varint

_Bytes = npt.NDArray[np.uint8]
_Places = npt.NDArray[np.int64]


def members_at_once(items: Sequence[Value], type_: LogicalType) -> pa.Array | None:
    """Return the members as an array of storage type; None if one has another form."""
    is_text = isinstance(type_, String)
    if not (is_text or isinstance(type_, Int | Date | Time | Timestamp)) or type_ not in CONSTANTS:
        return None
    contents = [item for item in items if type(item) is bytes]
    if len(contents) < len(items):
        return None
    sizes = np.fromiter(map(len, contents), np.int64, len(contents))
    tag = encode_varint(CONSTANTS[type_] << 3 | (_BYTES if is_text else 0))
    head = 2 + len(tag) + is_text  # a text has its length before it
    if sizes.min() <= head - is_text or sizes.max() > 0x7F:
        return None
    data = np.frombuffer(b"".join(contents), np.uint8)
    starts = np.cumsum(sizes) - sizes
    wanted = [(0, _LITERAL), (1, sizes - 2), *((2 + i, byte) for i, byte in enumerate(tag))]
    if is_text:
        wanted.append((head - 1, sizes - head))
    if any((data[starts + place] != byte).any() for place, byte in wanted):
        return None
    if is_text:
        return _texts([content[head:] for content in contents])
    return _numbers(data, starts + head, sizes - head, type_)


def _texts(contents: list[bytes]) -> pa.Array | None:
    try:
        return pa.array(contents, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:  # damaged text
        return None


def _numbers(data: _Bytes, at: _Places, sizes: _Places, type_: LogicalType) -> pa.Array | None:
    """Decode varints of the given sizes; None if one is invalid."""
    most = int(sizes.max())
    if most > _MAX_BYTES:
        return None
    varints = np.zeros(len(at), np.uint64)
    last = len(data) - 1
    for step in range(most):
        there: Mask = step < sizes
        byte = data[np.minimum(at + step, last)]
        goes_on = (byte > 0x7F) == (step < sizes - 1)
        if not goes_on[there].all() or (step == _MAX_BYTES - 1 and (byte[there] > 1).any()):
            return None
        part = (byte & 0x7F).astype(np.uint64) << np.uint64(7 * step)
        varints |= np.where(there, part, np.uint64(0))
    numbers = varints.view(np.int64)
    low, high = RANGES[type_]
    if numbers.min() < low or numbers.max() > high:
        return None
    storage = arrow_type(type_)
    integer = pa.int32() if isinstance(type_, Date) else pa.int64()
    array = pa.array(numbers)
    return array.cast(storage) if isinstance(type_, Int) else array.cast(integer).view(storage)
