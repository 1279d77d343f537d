"""Digests of byte spans of a Parquet file, in key-value pairs of its footer.

A digest is xxh3_64 in 16 hexadecimal digits. `rowsieve.parquet.sealing` writes them; the checksum
of the tail covers the footer itself. A pair of another size than expected counts as missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow.parquet as pq
import xxhash

BLOOMS_KEY: Final = "rowsieve.blooms"
CHUNKS_KEY: Final = "rowsieve.chunks"
DIGITS: Final = 16
BLANK: Final = "-" * DIGITS


def digest(data: Any) -> str:
    """The digest of these bytes."""
    return str(xxhash.xxh3_64_hexdigest(data))


def digest_of(pieces: Iterable[bytes]) -> str:
    """The digest of the bytes of these pieces, one after another."""
    hasher = xxhash.xxh3_64()
    for piece in pieces:
        hasher.update(piece)
    return str(hasher.hexdigest())


def seal_of(metadata: pq.FileMetaData, key: str, count: int) -> str | None:
    """The concatenated `count` entries of a file; None if it has none.

    Also None if the file has another number of entries.
    """
    seal = (metadata.metadata or {}).get(key.encode(), b"").decode()
    return seal if seal and len(seal) == DIGITS * count and not seal.startswith(BLANK) else None


def entry_at(seal: str, place: int) -> str:
    """Entry number `place` of the concatenated entries."""
    return seal[place * DIGITS : (place + 1) * DIGITS]
