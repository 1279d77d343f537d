"""The members of a `singular_or_list` all at once, where they are whole numbers under the hood.

Such constants are one varint each; a list of a million of them is no loop over messages. Whatever
does not look so byte by byte is left to the reader of single constants.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.bridges.substrait_exprs.wire import Value, number
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, Int, LogicalType, Time, Timestamp

_KINDS: dict[LogicalType, int] = {
    Int(8): 2,
    Int(16): 3,
    Int(32): 5,
    Int(64): 7,
    Date(): 16,
    Timestamp(): 14,
    Timestamp(utc=True): 27,
    Time(): 17,
}
_GROUPS = 10  # of seven bits, in the longest varint


def options_of(members: pa.Array, type_: LogicalType) -> bytes | None:
    """The members as the field `options`; None of a type that is no whole number, or of NULLs."""
    kind = _KINDS.get(type_)
    if kind is None or members.null_count:
        return None
    width = pa.int32() if isinstance(type_, Date) else None
    plain = members if isinstance(type_, Int) else members.view(width or pa.int64())
    values = plain.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    shifted = [values >> np.uint64(7 * place) for place in range(_GROUPS)]
    counts = 1 + np.sum([rest != 0 for rest in shifted[1:]], axis=0, dtype=np.uint8)
    tag = number(kind, 0)[:-1]
    inner = counts + np.uint8(len(tag))
    rows = np.empty((len(values), 4 + len(tag) + _GROUPS), np.uint8)
    kept = np.ones(rows.shape, np.bool_)
    for at, byte in enumerate((0x12, inner + np.uint8(2), 0x0A, inner, *tag)):
        rows[:, at] = byte
    for place, rest in enumerate(shifted):
        goes_on = (counts > place + 1).astype(np.uint8) << np.uint8(7)
        rows[:, place - _GROUPS] = (rest & np.uint64(0x7F)).astype(np.uint8) | goes_on
        kept[:, place - _GROUPS] = counts > place
    made: bytes = rows[kept].tobytes()
    return made


def members_of(options: Sequence[Value], type_: LogicalType) -> pa.Array | None:
    """The values of the options in storage type; None where they are not of this one form."""
    kind = _KINDS.get(type_)
    if kind is None or not options:
        return None
    tag = number(kind, 0)[:-1]
    skipped = 2 + len(tag)
    for item in options:
        alike = isinstance(item, bytes) and len(item) > skipped and item[2:skipped] == tag
        if not alike or item[0] != 0x0A or item[1] != len(item) - 2:  # type: ignore[index,arg-type]
            return None
    bodies = [item[skipped:] for item in options if isinstance(item, bytes)]
    values = _varints(b"".join(bodies), np.cumsum([len(body) for body in bodies]))
    if values is None:
        return None
    storage = arrow_type(type_)
    held = storage if isinstance(type_, Int) else pa.int64()
    try:
        return pa.array(values).cast(pa.int32() if isinstance(type_, Date) else held).view(storage)
    except pa.ArrowInvalid:
        return None


def _varints(data: bytes, stops: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """Varints one after another, which must end where they are said to."""
    raw = np.frombuffer(data, np.uint8)
    if not np.array_equal(np.flatnonzero(raw < 0x80) + 1, stops):
        return None
    starts = np.concatenate([[0], stops[:-1]])
    place = np.arange(len(raw)) - np.repeat(starts, np.diff(np.append(starts, len(raw))))
    if place.max(initial=0) >= _GROUPS:
        return None
    parts = (raw & 0x7F).astype(np.uint64) << (place.astype(np.uint64) * np.uint64(7))
    found: npt.NDArray[np.int64] = np.add.reduceat(parts, starts).view(np.int64)
    return found
