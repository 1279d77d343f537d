"""Avro's binary encoding and object container files, as far as manifests need them.

Values are written by hand against a fixed schema: a manifest of a thousand entries is encoded once
for each commit that touches it. https://avro.apache.org/docs/1.12.0/specification/

Soundness: a file that ends early, has another magic or another sync marker is CorruptData.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from rowsieve.errors import CorruptData
from rowsieve.varints import decode_varint, encode_varint

_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_LEVEL: Final = 1  # manifests are many and small
NULL: Final = b"\0"  # the first branch of ["null", type]
PRESENT: Final = b"\2"  # its second one


class AvroFile(NamedTuple):
    """The metadata of a container file, and its objects as bytes, without a delimiter."""

    metadata: Mapping[str, bytes]
    object_count: int
    objects: bytes


def long(value: int) -> bytes:
    """Encode an int or a long: zigzag, then a varint."""
    return encode_varint((value << 1) ^ (value >> 63))


def data(value: bytes) -> bytes:
    """Encode bytes, or a text in UTF-8."""
    return long(len(value)) + value


def optional_long(value: int | None) -> bytes:
    """Encode a long of the type ["null", "long"]."""
    return NULL if value is None else PRESENT + long(value)


def optional_data(value: bytes | None) -> bytes:
    """Encode bytes of the type ["null", "bytes"], or a text."""
    return NULL if value is None else PRESENT + data(value)


def sized_block(items: list[bytes]) -> bytes:
    """Encode an array from its encoded items, with its size, so that a reader can skip it."""
    if not items:
        return b"\0"
    joined = b"".join(items)
    return long(-len(items)) + long(len(joined)) + joined + b"\0"


def container(metadata: Mapping[str, bytes], objects: list[bytes]) -> bytes:
    """Write a container file; `metadata` has at least `avro.schema`."""
    header = {**metadata, "avro.codec": b"deflate"}
    pairs = [data(name.encode()) + data(value) for name, value in header.items()]
    sync = uuid.uuid4().bytes
    file = [_MAGIC, long(len(pairs)), *pairs, b"\0", sync]
    if objects:
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        block = packer.compress(b"".join(objects)) + packer.flush()
        file += [long(len(objects)), long(len(block)), block, sync]
    return b"".join(file)


def read_container(file: bytes, name: str) -> AvroFile:
    """Read a container file of one or more blocks; CorruptData if it is damaged."""
    if file[:4] != _MAGIC:
        raise _damaged(name, "does not begin with Obj1")
    try:
        cursor = Cursor(file, 4)
        metadata: dict[str, bytes] = {}
        while count := cursor.long():
            if count < 0:
                cursor.long()
            for _ in range(abs(count)):
                name_of_value = cursor.data().decode()
                metadata[name_of_value] = cursor.data()
        sync = cursor.take(_SYNC_BYTES)
        total, blocks = 0, []
        while cursor.at < len(file):
            total += cursor.long()
            blocks.append(_unpacked(cursor.data(), metadata.get("avro.codec", b"null"), name))
            if cursor.take(_SYNC_BYTES) != sync:
                raise _damaged(name, "has a wrong sync marker")
    except (IndexError, OverflowError, UnicodeDecodeError, zlib.error) as error:
        raise _damaged(name, f"cannot be read: {error}") from error
    return AvroFile(metadata, total, b"".join(blocks))


class Cursor:
    """A place in encoded bytes; each method decodes a value there and moves behind it.

    IndexError where the bytes end early.
    """

    def __init__(self, file: bytes, at: int = 0) -> None:
        self._file = file
        self.at = at

    def long(self) -> int:
        """Decode an int or a long."""
        value, self.at = decode_varint(self._file, self.at)
        return (value >> 1) ^ -(value & 1)

    def take(self, count: int) -> bytes:
        """Return that many bytes."""
        start, self.at = self.at, self.at + count
        if count < 0 or self.at > len(self._file):
            raise IndexError("the file ends early")
        return self._file[start : self.at]

    def data(self) -> bytes:
        """Decode bytes, or a text."""
        return self.take(self.long())

    def since(self, start: int) -> bytes:
        """Return the bytes from `start` to here."""
        return self._file[start : self.at]

    def is_present(self) -> bool:
        """Decode which branch of ["null", type] follows."""
        return self.take(1) == PRESENT

    def optional_long(self) -> int | None:
        """Decode a long of the type ["null", "long"]."""
        return self.long() if self.is_present() else None

    def optional_data(self) -> bytes | None:
        """Decode bytes of the type ["null", "bytes"], or a text."""
        return self.data() if self.is_present() else None

    def skip_sized_block(self) -> None:
        """Move behind an array that `sized_block` encoded."""
        while count := self.long():
            if count > 0:
                raise IndexError("an array has no size")
            self.take(self.long())


def _unpacked(block: bytes, codec: bytes, name: str) -> bytes:
    if codec == b"deflate":
        return zlib.decompress(block, -zlib.MAX_WBITS)
    if codec == b"null":
        return block
    raise _damaged(name, f"is compressed with {codec!r}")


def _damaged(name: str, why: str) -> CorruptData:
    return CorruptData(
        f"publish: {name} {why}; restore it from a copy, or publish into another folder"
    )
