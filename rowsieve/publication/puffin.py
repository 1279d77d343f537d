"""Deletion vectors in Puffin files, as version 3 of Iceberg's format has them.

A Puffin file has blobs, and a footer with a JSON object that describes them. A blob of the type
`deletion-vector-v1` has the deleted rows of one data file: its length, four bytes of magic, a
64-bit Roaring bitmap in the portable format, and a CRC-32.
https://iceberg.apache.org/puffin-spec/

Soundness: a blob whose length, magic or checksum is wrong is CorruptData, and so is a second vector
of the same data file, because it is unknown which one is valid.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyroaring

from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData, UnsupportedOperation

_MAGIC: Final = b"PFA1"
_VECTOR: Final = "deletion-vector-v1"
_VECTOR_MAGIC: Final = b"\xd1\xd3\x39\x64"
_MAX_ROWS: Final = 2**32  # of a data file; a bitmap of runs may describe more than fit in memory
_ROW_POSITION: Final = 2147483645  # the id of the column with the row's number
_AFTER_FOOTER: Final = 12  # length, flags, magic


class _Blob(msgspec.Struct):
    type: str
    offset: int
    length: int
    codec: str | None = msgspec.field(default=None, name="compression-codec")
    properties: Mapping[str, str] = {}


class _Footer(msgspec.Struct):
    blobs: tuple[_Blob, ...]


def encoded_vector(hidden: npt.NDArray[np.int64]) -> bytes:
    """Encode ascending row numbers: length, magic, bitmap and checksum; Delta's form, too."""
    bitmap = pyroaring.BitMap64(np.ascontiguousarray(hidden, dtype=np.uint64))
    bitmap.run_optimize()
    inside = _VECTOR_MAGIC + bitmap.serialize()
    length, checksum = len(inside).to_bytes(4, "big"), zlib.crc32(inside).to_bytes(4, "big")
    return length + inside + checksum


def vector_inside(vector: bytes) -> bytes:
    """The magic and the bitmap of an encoded vector, without its length and its checksum."""
    return vector[4:-4]


def puffin_file(
    vectors: Mapping[str, tuple[bytes, int]], writer: Mapping[str, str]
) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """Write the vectors of data files, each with its count; return the file and their places.

    `writer` are properties of the file. A place is [start, stop).
    """
    blobs, places, at = [], {}, len(_MAGIC)
    for path, (vector, count) in vectors.items():
        places[path] = at, at + len(vector)
        blobs.append(
            {
                "type": _VECTOR,
                "fields": [_ROW_POSITION],
                "snapshot-id": -1,  # inherited
                "sequence-number": -1,
                "offset": at,
                "length": len(vector),
                "properties": {"referenced-data-file": path, "cardinality": str(count)},
            }
        )
        at += len(vector)
    footer = msgspec.json.encode({"blobs": blobs, "properties": dict(writer)})
    size = len(footer).to_bytes(4, "little") + bytes(4)  # flags
    pieces = [_MAGIC, *(vector for vector, _ in vectors.values()), _MAGIC, footer, size, _MAGIC]
    return b"".join(pieces), places


def deleted_rows(data: bytes, uri: str) -> dict[str, npt.NDArray[np.int64]]:
    """Return the deleted rows of each data file, by its path; ascending."""
    rows_by_path: dict[str, npt.NDArray[np.int64]] = {}
    for blob in _footer(data, uri).blobs:
        if blob.type != _VECTOR:
            continue
        path = blob.properties.get("referenced-data-file")
        if path is None or path in rows_by_path:
            raise _damaged(uri, f"has {'no' if path is None else 'another'} vector of {path}")
        if blob.codec is not None:
            raise UnsupportedOperation(
                f"from_iceberg: {uri} has a deletion vector that is compressed with {blob.codec}, "
                "which Iceberg does not allow; rewrite the files of the table first"
            )
        rows_by_path[path] = _rows(data[blob.offset : blob.offset + blob.length], blob, uri)
    return rows_by_path


def _footer(data: bytes, uri: str) -> _Footer:
    if data[:4] != _MAGIC or data[-4:] != _MAGIC or len(data) < 2 * len(_MAGIC) + _AFTER_FOOTER:
        raise _damaged(uri, "does not begin and end with PFA1")
    if data[-8] & 1:
        raise UnsupportedOperation(
            f"from_iceberg: {uri} has a compressed footer, which is not supported; rewrite the "
            "files of the table first"
        )
    stop = len(data) - _AFTER_FOOTER
    start = stop - int.from_bytes(data[stop : stop + 4], "little")
    if start < 2 * len(_MAGIC) or data[start - len(_MAGIC) : start] != _MAGIC:
        raise _damaged(uri, "has no footer of the length that it gives")
    try:
        return msgspec.json.decode(data[start:stop], type=described(_Footer))
    except msgspec.MsgspecError as error:
        raise _damaged(uri, f"has a footer that cannot be read: {error}") from error


def _rows(data: bytes, blob: _Blob, uri: str) -> npt.NDArray[np.int64]:
    inside, checksum = data[4:-4], int.from_bytes(data[-4:], "big")
    whole = len(data) == blob.length and int.from_bytes(data[:4], "big") == len(inside)
    if (
        blob.offset < 0
        or not whole
        or inside[:4] != _VECTOR_MAGIC
        or zlib.crc32(inside) != checksum
    ):
        raise _damaged(uri, f"has a deletion vector at {blob.offset} with a wrong checksum")
    try:
        bitmap = pyroaring.BitMap64.deserialize(inside[4:])
    except (ValueError, IndexError) as error:
        raise _damaged(uri, f"has a deletion vector that cannot be read: {error}") from error
    if len(bitmap) and bitmap.max() >= _MAX_ROWS:
        raise _damaged(uri, f"deletes the row {bitmap.max()}")
    return np.frombuffer(bitmap.to_array(), np.uint64).astype(np.int64)


def _damaged(uri: str, why: str) -> CorruptData:
    return CorruptData(f"from_iceberg: {uri} {why}; restore it from a copy, or rewrite the files")
