"""The members of a `singular_or_list` all at once, as arrays: no loop over messages.

A member is an expression that is a constant: `12 n 0A n-2`, the tag of its type, its bytes.
Soundness: members are read here only if each begins where the one before it ends, and is of this
one form byte by byte; any other list is left to the reader of single constants (None).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.bridges.substrait_exprs.wire import number, part
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Binary,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)

_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Sizes: TypeAlias = npt.NDArray[np.int64]

_WHOLE: dict[LogicalType, int] = {
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
_DECIMAL_BYTES = 16
_MOST = 0x7F  # of a length that is one byte


def options_of(members: pa.Array, type_: LogicalType) -> bytes | None:
    """The members as the field `options`; None of a type, or of texts, that have another form."""
    if members.null_count or not len(members):
        return None
    made: tuple[_Bytes, _Sizes] | None
    if type_ in _WHOLE:
        made = _whole_bytes(members, type_)
    elif isinstance(type_, String | Binary):
        made = _text_bytes(members)
    else:
        made = _fixed_bytes(members, type_)
    if made is None:
        return None
    content, sizes = made
    header = [0x12, 0, 0x0A, 0, *_tag(type_)]
    sized = isinstance(type_, String | Binary)
    inner = sizes + (len(header) - 4 + sized)
    if int(inner.max()) + 2 > _MOST:
        return None
    return _interleaved(header, inner, content, sizes, sized=sized)


def members_of(options: bytes, type_: LogicalType) -> pa.Array | None:
    """The members that the bytes of the field `options` hold, in the storage of the type."""
    tag = _tag(type_)
    if not tag or not options:
        return None
    raw = np.frombuffer(options, np.uint8)
    sized = isinstance(type_, String | Binary)
    skipped = 4 + len(tag) + sized
    starts = _starts(raw, tag)
    if starts is None or not np.all(raw[starts + 1] + 2 >= skipped):
        return None
    sizes = raw[starts + 1].astype(np.int64) + 2 - skipped
    if sized and not np.array_equal(raw[starts + skipped - 1], sizes):
        return None
    kept = np.ones(len(raw), np.bool_)
    for place in range(skipped):
        kept[starts + place] = False
    content = raw[kept]
    try:
        return _read(content, sizes, type_)
    except pa.ArrowInvalid:
        return None


def _tag(type_: LogicalType) -> bytes:
    """What stands before the bytes of a constant's value; nothing for a type that is not known."""
    if (kind := _WHOLE.get(type_)) is not None:
        return number(kind, 0)[:-1]
    match type_:
        case Float(bits=bits):
            return b"\x55" if bits == 32 else b"\x59"
        case String():
            return b"\x62"
        case Binary():
            return b"\x6a"
        case Uuid():
            return part(23, bytes(16))[:3]
        case Decimal():
            return part(24, bytes(_DECIMAL_BYTES + 6))[:3] + b"\x0a\x10"
        case _:
            return b""


def _decimal_end(type_: Decimal) -> bytes:
    return number(2, type_.precision) + number(3, type_.scale)


# Writing


def _interleaved(
    header: list[int], inner: _Sizes, content: _Bytes, sizes: _Sizes, *, sized: bool
) -> bytes:
    """Header and content by turns, the lengths put into their places."""
    wide = len(header) + sized
    starts = np.cumsum(sizes + wide) - (sizes + wide)
    made = np.empty(len(content) + wide * len(sizes), np.uint8)
    kept = np.ones(len(made), np.bool_)
    columns: list[int | _Sizes] = [*header, *([sizes] if sized else [])]
    columns[1], columns[3] = inner + 2, inner
    for place, column in enumerate(columns):
        made[starts + place] = column
        kept[starts + place] = False
    made[kept] = content
    return made.tobytes()


def _whole_bytes(members: pa.Array, type_: LogicalType) -> tuple[_Bytes, _Sizes]:
    width = pa.int32() if isinstance(type_, Date) else None
    plain = members if isinstance(type_, Int) else members.view(width or pa.int64())
    values = plain.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    sizes = np.ones(len(values), np.int64)
    for place in range(1, _GROUPS):
        sizes += values >= np.uint64(1) << np.uint64(7 * place)
    starts = np.cumsum(sizes) - sizes
    content = np.empty(int(sizes.sum()), np.uint8)
    for place in range(int(sizes.max())):
        some = np.flatnonzero(sizes > place)
        groups = (values[some] >> np.uint64(7 * place)).astype(np.uint8)
        goes_on = np.where(sizes[some] > place + 1, 0x80, 0).astype(np.uint8)
        content[starts[some] + place] = groups & 0x7F | goes_on
    return content, sizes


def _text_bytes(members: pa.Array) -> tuple[_Bytes, _Sizes] | None:
    if not (pa.types.is_string(members.type) or pa.types.is_binary(members.type)):
        return None
    _, places, data = members.buffers()
    offsets = np.frombuffer(places, np.int32)[members.offset : members.offset + len(members) + 1]
    sizes = np.diff(offsets).astype(np.int64)
    held = np.frombuffer(data or b"", np.uint8)
    return held[offsets[0] : offsets[-1]], sizes


def _fixed_bytes(members: pa.Array, type_: LogicalType) -> tuple[_Bytes, _Sizes] | None:
    if members.type != arrow_type(type_) or not _tag(type_):
        return None
    size = members.type.bit_width // 8
    held = np.frombuffer(members.buffers()[1], np.uint8)
    rows = held[members.offset * size :][: len(members) * size].reshape(len(members), size)
    if isinstance(type_, Decimal):
        end = np.frombuffer(_decimal_end(type_), np.uint8)
        rows = np.hstack([rows, np.broadcast_to(end, (len(rows), len(end)))])
    return rows.reshape(-1), np.full(len(rows), rows.shape[1], np.int64)


# Reading


def _starts(raw: _Bytes, tag: bytes) -> _Sizes | None:
    """Where the members start, if they follow one another from the first byte to the last."""
    last = len(raw) - 4 - len(tag)
    if last < 0:
        return None
    found = (raw[: last + 1] == 0x12) & (raw[2 : last + 3] == 0x0A)
    for place, byte in enumerate(tag):
        found &= raw[4 + place : last + 5 + place] == byte
    starts = np.flatnonzero(found)
    starts = starts[raw[starts + 1] == raw[starts + 3].astype(np.int64) + 2]
    stops = starts + raw[starts + 1] + 2
    follow = np.array_equal(starts, np.append(0, stops[:-1])) and stops[-1:].tolist() == [len(raw)]
    return starts if follow and int(raw[starts + 1].max()) <= _MOST else None


def _read(content: _Bytes, sizes: _Sizes, type_: LogicalType) -> pa.Array | None:
    storage, count = arrow_type(type_), len(sizes)
    if type_ in _WHOLE:
        values = _varints(content, np.cumsum(sizes))
        if values is None:
            return None
        whole = pa.array(values)
        if isinstance(type_, Int):
            return whole.cast(storage)
        return whole.cast(pa.int32()).view(storage) if type_ == Date() else whole.view(storage)
    if isinstance(type_, String | Binary):
        offsets = np.append(0, np.cumsum(sizes))
        if offsets[-1] > np.iinfo(np.int32).max:
            return None
        places = pa.py_buffer(offsets.astype(np.int32))
        found = pa.Array.from_buffers(storage, count, [None, places, pa.py_buffer(content)])
    else:
        ends = _decimal_end(type_) if isinstance(type_, Decimal) else b""
        width = storage.bit_width // 8 + len(ends)
        if not np.all(sizes == width):
            return None
        rows = content.reshape(count, width)
        values_width = width - len(ends)
        if not np.all(rows[:, values_width:] == np.frombuffer(ends, np.uint8)):
            return None
        held = pa.py_buffer(np.ascontiguousarray(rows[:, :values_width]))
        found = pa.Array.from_buffers(storage, count, [None, held])
    found.validate(full=True)
    return found


def _varints(raw: _Bytes, stops: _Sizes) -> npt.NDArray[np.int64] | None:
    """Varints one after another, which must end where they are said to."""
    if not np.array_equal(np.flatnonzero(raw < 0x80) + 1, stops):
        return None
    sizes = np.diff(stops, prepend=0)
    starts, widest = stops - sizes, int(sizes.max(initial=0))
    if widest > _GROUPS or np.any(raw[starts[sizes == _GROUPS] + _GROUPS - 1] > 1):
        return None  # more than 64 bits
    found = np.zeros(len(stops), np.uint64)
    for place in range(widest):
        some = np.flatnonzero(sizes > place)
        groups = (raw[starts[some] + place] & 0x7F).astype(np.uint64)
        found[some] |= groups << np.uint64(7 * place)
    return found.view(np.int64)
