"""Digests of parts of a Parquet file, kept in its footer: sealed when it is written.

What a digest covers is written before the footer, but where it lies is known only from the finished
footer. So the writer adds blank key-value pairs before it closes the file, and `fill` puts the
digests (xxh3_64, 16 hexadecimal digits each), or other entries of 16 characters, into the blanks.
The footer itself is covered by the tail's checksum. A blank that does not fit stays blank, and then
nothing is sealed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow.parquet as pq
import xxhash

from rowsieve.parquet.spans import Span
from rowsieve.varints import encode_varint

DIGITS: Final = 16
_BLANK: Final = "-" * DIGITS


def digest(data: Any) -> str:
    """The digest of some bytes."""
    return str(xxhash.xxh3_64_hexdigest(data))


def blank(key: str, count: int) -> dict[str, str]:
    """The key-value pair to add before a file with this many entries is closed."""
    return {key: _BLANK * count} if count else {}


def fill(file: memoryview, metadata: pq.FileMetaData, key: str, entries: Sequence[str]) -> None:
    """Put the entries into the blank of a complete file, in place."""
    if key.encode() not in (metadata.metadata or {}):
        return
    text = "".join(entries).encode()
    footer = len(file) - int(metadata.serialized_size) - 8
    empty = _pair(key.encode(), _BLANK.encode() * len(entries))
    tail = bytes(file[footer:])
    if tail.count(empty) == 1:
        start = footer + tail.index(empty) + len(empty) - len(text)
        file.cast("B")[start : start + len(text)] = text


def digests(file: memoryview, spans: Iterable[Span]) -> list[str]:
    """The digests of some spans of a file."""
    return [digest(file[start:stop]) for start, stop in spans]


def sealed(metadata: pq.FileMetaData, key: str, count: int) -> str | None:
    """The `count` entries, one after another as they were sealed; None if there are none.

    A number of entries that does not fit says nothing about any.
    """
    seal = (metadata.metadata or {}).get(key.encode(), b"").decode()
    return seal if seal and len(seal) == DIGITS * count and not seal.startswith(_BLANK) else None


def entry_at(seal: str, place: int) -> str:
    """One entry of a seal."""
    return seal[place * DIGITS : (place + 1) * DIGITS]


def _pair(key: bytes, value: bytes) -> bytes:
    """A key-value pair as it stands in the footer: two binary fields of a thrift struct."""
    return b"\x18" + encode_varint(len(key)) + key + b"\x18" + encode_varint(len(value)) + value
