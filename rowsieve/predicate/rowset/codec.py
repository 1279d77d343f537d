"""Row sets as bytes, and back only if they are what was written.

    "RSRS" | version u8 | backing u8 | 0 u16 | row count u64 | rows u64 | payload | checksum u64

Little-endian. The payload of ranges is their first ids, then their last ids, u32 each; that of a
bitmap is roaring's portable format. The checksum is XXH3-64 of everything before it, in every
version, so that damage is never taken for a newer version. Bytes that do not hold are
`CorruptData`: a set is read as it was, or not at all.
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
    """The bytes of a set of rows of a source of `row_count` rows."""
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
    """The rows that were encoded, of a source of `row_count` rows; CorruptData otherwise."""
    magic_size = len(_MAGIC)
    if data[:magic_size] != _MAGIC or len(data) < _HEADER.size + _CHECKSUM.size:
        raise _corrupt(data, "they are not a row set")
    body, checksum = data[: -_CHECKSUM.size], data[-_CHECKSUM.size :]
    if _CHECKSUM.pack(xxhash.xxh3_64_intdigest(body)) != checksum:
        raise _corrupt(data, "their checksum does not hold")
    if (version := body[magic_size]) > _VERSION:
        raise UnsupportedProtocol(
            f"a row set of format {version} was written by a newer Rowsieve; this one reads "
            f"formats up to {_VERSION}: upgrade it"
        )
    _, version, backing, zero, stored_row_count, id_count = _HEADER.unpack_from(body)
    if stored_row_count != row_count:
        raise _corrupt(
            data, f"they speak of a source of {stored_row_count} rows, not of one of {row_count}"
        )
    payload = body[_HEADER.size :]
    rows: Ranges | Bitmap | None = None
    if version == _VERSION and zero == 0:
        if backing == _RANGES:
            rows = _ranges(payload)
        elif backing == _BITMAP:
            rows = _bitmap(payload)
    if rows is None:
        raise _corrupt(data, "their structure does not hold")
    if rows.id_count != id_count or (id_count and rows.last >= row_count):
        raise _corrupt(data, f"they do not hold {id_count} of {row_count} rows, as they say")
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
    """The bitmap, checked container by container by roaring; it tolerates bytes after its end."""
    try:
        bitmap = pyroaring.BitMap.deserialize(payload)
    except (ValueError, IndexError):
        return None
    return Bitmap(bitmap) if bitmap.serialize() == payload else None


def _corrupt(data: bytes, found: str) -> CorruptData:
    return CorruptData(
        f"reading a row set from {len(data)} bytes: {found}; make the plan or file that holds "
        "them again, or restore it from a copy"
    )
