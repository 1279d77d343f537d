"""The checksum that the log, the manifests and plans write down: its algorithm and its digits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import xxhash


def checksum(data: Any) -> str:
    """`xxh3_128:` and the digits of some bytes, given as anything with the buffer protocol."""
    return checksum_of_pieces((data,))


def checksum_of_pieces(pieces: Iterable[Any]) -> str:
    """The checksum of the pieces one after another, without joining them."""
    digest = xxhash.xxh3_128()
    for piece in pieces:
        digest.update(piece)
    return f"xxh3_128:{digest.hexdigest()}"
