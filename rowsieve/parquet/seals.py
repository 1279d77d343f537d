"""Writes digests of byte spans of a Parquet file into its footer, as key-value pairs.

Only the finished footer has the positions of the spans. So the writer adds blank key-value pairs
before it closes the file, and `fill` overwrites the blanks with digests (xxh3_64, 16 hexadecimal
digits each) or other entries of 16 characters. The checksum of the tail covers the footer itself. A
blank of the wrong size stays blank: the file then has no digests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import pyarrow.parquet as pq
import xxhash

from rowsieve.varints import encode_varint

ReadSpan: TypeAlias = Callable[[int, int], memoryview]
"""Returns bytes [start, stop) of a file that is being written."""

CHUNKS_KEY: Final = "rowsieve.chunks"
DIGITS: Final = 16
_BLANK: Final = "-" * DIGITS


def digest(data: Any) -> str:
    """The digest of these bytes."""
    return str(xxhash.xxh3_64_hexdigest(data))


def digest_of(pieces: Iterable[bytes]) -> str:
    """The digest of the bytes of these pieces, one after another."""
    hasher = xxhash.xxh3_64()
    for piece in pieces:
        hasher.update(piece)
    return str(hasher.hexdigest())


def blank(key: str, count: int) -> dict[str, str]:
    """A blank key-value pair for `count` entries, to add before the file is closed."""
    return {key: _BLANK * count} if count else {}


def fill(tail: bytearray, metadata: pq.FileMetaData, key: str, text: str) -> None:
    """Write the joined entries into the blank of a complete file, in place.

    `tail` are the last bytes of the file, with the whole footer.
    """
    if key.encode() not in (metadata.metadata or {}):
        return
    footer = len(tail) - int(metadata.serialized_size) - 8
    empty = _pair(key.encode(), b"-" * len(text))
    if tail.count(empty, footer) == 1:
        start = tail.index(empty, footer) + len(empty) - len(text)
        tail[start : start + len(text)] = text.encode()


def sealed(metadata: pq.FileMetaData, key: str, count: int) -> str | None:
    """The concatenated `count` entries of a file; None if it has none.

    Also None if the file has another number of entries.
    """
    seal = (metadata.metadata or {}).get(key.encode(), b"").decode()
    return seal if seal and len(seal) == DIGITS * count and not seal.startswith(_BLANK) else None


def entry_at(seal: str, place: int) -> str:
    """Entry number `place` of the concatenated entries."""
    return seal[place * DIGITS : (place + 1) * DIGITS]


def _pair(key: bytes, value: bytes) -> bytes:
    """The bytes of a key-value pair in the footer: two binary fields of a thrift struct."""
    return b"\x18" + encode_varint(len(key)) + key + b"\x18" + encode_varint(len(value)) + value
