"""Frames of a write-ahead log: a fixed header, then a payload that only its writer understands.

    magic 4 | version 1 | kind 1 | zeros 2 | payload bytes 4 | zeros 4 | sequence 8 | durable 8 |
    previous 8 | checksum 8 | payload

`durable` is the last sequence that was synced when the frame was written; `previous` the checksum
of the frame before it, 0 for the first of a log. The checksum covers header and payload.

Soundness: a frame is valid only with its checksum, and follows another only with that one's
checksum as its `previous`: a frame of another log, or of an older copy, never fits in. An invalid
frame that a valid one knows to be durable is damage, never the torn end of the log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

import xxhash

VERSION: Final = 1
MAX_PAYLOAD_BYTES: Final = 1 << 30
_MAGIC: Final = b"RSWF"
_FIELDS: Final = struct.Struct("<4sBBHIIQQQ")
_CHECKSUM: Final = struct.Struct("<Q")
HEADER_BYTES: Final = _FIELDS.size + _CHECKSUM.size


class FrameKind(IntEnum):
    """What a frame holds."""

    SEGMENT = 1  # the first frame of a file: identity of the log, and a preamble of its writer
    RECORD = 2  # changes
    SEAL = 3  # the last frame of a closed file


class Frame(NamedTuple):
    """A valid frame. The first record of a log has sequence 1; other kinds have the next one."""

    kind: FrameKind
    sequence: int
    durable: int
    previous: int
    checksum: int
    payload: memoryview
    size_bytes: int


def encode_frame(
    kind: FrameKind, sequence: int, durable: int, previous: int, payload: bytes | memoryview
) -> tuple[bytes, int]:
    """Return the frame's header, which the payload follows, and the frame's checksum."""
    length = memoryview(payload).nbytes
    fields = _FIELDS.pack(_MAGIC, VERSION, kind, 0, length, 0, sequence, durable, previous)
    checksum = _checksum(fields, payload)
    return fields + _CHECKSUM.pack(checksum), checksum


def decode_frame(data: memoryview, offset: int) -> Frame | None:
    """Return the frame at this offset; None if it is incomplete or invalid."""
    start = offset + HEADER_BYTES
    if start > len(data):
        return None
    fields = data[offset : offset + _FIELDS.size]
    magic, version, kind, zero, length, zeros, sequence, durable, previous = _FIELDS.unpack(fields)
    if magic != _MAGIC or version != VERSION or zero or zeros or start + length > len(data):
        return None
    (checksum,) = _CHECKSUM.unpack(data[offset + _FIELDS.size : start])
    payload = data[start : start + length]
    if kind not in _KINDS or checksum != _checksum(fields, payload):
        return None
    size = HEADER_BYTES + length
    return Frame(FrameKind(kind), sequence, durable, previous, checksum, payload, size)


def newer_version(data: memoryview, offset: int) -> int | None:
    """Return the version of a frame that a later release has written; None for any other bytes."""
    if bytes(data[offset : offset + len(_MAGIC)]) != _MAGIC or len(data) < offset + 5:
        return None
    version = data[offset + len(_MAGIC)]
    return version if version > VERSION else None


def frames_after(data: memoryview, offset: int) -> Iterator[Frame]:
    """Yield the valid frames at any later offset, for the search behind an invalid one."""
    content = bytes(data)
    while (offset := content.find(_MAGIC, offset + 1)) >= 0:
        if (frame := decode_frame(data, offset)) is not None:
            yield frame


def _checksum(fields: bytes | memoryview, payload: bytes | memoryview) -> int:
    digest = xxhash.xxh3_64()
    digest.update(fields)
    digest.update(payload)
    return digest.intdigest()


_KINDS: Final = frozenset(FrameKind)
