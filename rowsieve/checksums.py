"""The checksum of the log, of manifests and of plans: algorithm name and hex digits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import xxhash


def checksum(data: Any) -> str:
    """Return `xxh3_128:` and the hex digest of an object with the buffer protocol."""
    return checksum_text(xxhash.xxh3_128(data))


def checksum_of_buffers(buffers: Iterable[Any]) -> str:
    """Return the checksum of the concatenated buffers, without copying them together."""
    digest = xxhash.xxh3_128()
    for piece in buffers:
        digest.update(piece)
    return checksum_text(digest)


def checksum_text(digest: xxhash.xxh3_128) -> str:
    """Return the checksum of all bytes that this state was updated with."""
    return f"xxh3_128:{digest.hexdigest()}"
