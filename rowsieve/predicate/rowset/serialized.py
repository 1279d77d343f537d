"""Serialise row sets; decoding verifies them.

  "RSRS" | version u8 | backing u8 | 0 u16 | row count u64 | rows u64 | payload | checksum u64

Little-endian. The payload of ranges is their first ids, then their last ids, u32 each; the payload
of a bitmap is roaring's portable format. The checksum is XXH3-64 of all bytes before it, in every
version, so damage is never mistaken for a newer version. Invalid bytes are `CorruptData`; decoding
never returns another set.
"""

from __future__ import annotations

import struct

import numpy as np
import pyroaring
import xxhash

from rowsieve.errors import CorruptData, UnsupportedProtocol
from rowsieve.predicate.rowset.bitmap import Bitmap
from rowsieve.predicate.rowset.ranges import Ranges

_MAGIC = b"RSRS"
_VERSION = 1
_RANGES = 1
_BITMAP = 2
_HEADER = struct.Struct("<4sBBHQQ")
_CHECKSUM = struct.Struct("<Q")


def encode(rows: Ranges | Bitmap, row_count: int) -> bytes:
    """Serialise a set of rows of a source of `row_count` rows."""
    if isinstance(rows, Ranges):
        backing = _RANGES
        ends = np.concatenate((rows.starts, rows.stops - 1))
        payload = ends.astype("<u4").tobytes()
    else:
        backing = _BITMAP
        payload = rows.bitmap.serialize()
    header = _HEADER.pack(_MAGIC, _VERSION, backing, 0, row_count, rows.id_count)
    body = header + payload
    return body + _CHECKSUM.pack(xxhash.xxh3_64_intdigest(body))


def decode(data: bytes, row_count: int) -> Ranges | Bitmap:
    """Decode the rows of a source of `row_count` rows; CorruptData if invalid."""
    magic_size = len(_MAGIC)
    if data[:magic_size] != _MAGIC or len(data) < _HEADER.size + _CHECKSUM.size:
        raise _corrupt(data, "the bytes are not a row set")
    body, checksum = data[: -_CHECKSUM.size], data[-_CHECKSUM.size :]
    if _CHECKSUM.pack(xxhash.xxh3_64_intdigest(body)) != checksum:
        raise _corrupt(data, "the checksum does not match")
    if (version := body[magic_size]) > _VERSION:
        raise UnsupportedProtocol(
            f"a row set of format {version} was written by a newer Rowsieve; this one reads "
            f"formats up to {_VERSION}: upgrade it"
        )
    _, version, backing, zero, stored_row_count, id_count = _HEADER.unpack_from(body)
    if stored_row_count != row_count:
        raise _corrupt(data, f"the set is of a source of {stored_row_count} rows, not {row_count}")
    payload = body[_HEADER.size :]
    rows: Ranges | Bitmap | None = None
    if version == _VERSION and zero == 0:
        if backing == _RANGES:
            rows = _ranges(payload)
        elif backing == _BITMAP:
            rows = _bitmap(payload)
    if rows is None:
        raise _corrupt(data, "the structure is invalid")
    if rows.id_count != id_count or rows.span[1] > row_count:
        raise _corrupt(
            data, f"the set does not have {id_count} of {row_count} rows, as the header says"
        )
    return rows


def _ranges(payload: bytes) -> Ranges | None:
    if len(payload) % 8:
        return None
    firsts, lasts = np.frombuffer(payload, dtype="<u4").astype(np.int64).reshape(2, -1)
    stops = lasts + 1
    if (firsts >= stops).any() or (firsts[1:] <= stops[:-1]).any():
        return None
    return Ranges(firsts, stops)


def _bitmap(payload: bytes) -> Bitmap | None:
    """Decode a bitmap; roaring checks each container, but ignores bytes after its end."""
    try:
        bitmap = pyroaring.BitMap.deserialize(payload)
    except (ValueError, IndexError):
        return None
    return Bitmap(bitmap) if bitmap.serialize() == payload else None


def _corrupt(data: bytes, problem: str) -> CorruptData:
    return CorruptData(
        f"reading a row set from {len(data)} bytes: {problem}; create the plan or file again, "
        "or restore it from a copy"
    )
