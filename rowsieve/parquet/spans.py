"""Merges nearby byte spans into one request, which also reads the small gaps between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

Span: TypeAlias = tuple[int, int]
"""Bytes [start, stop) of a file."""

GAP_BYTES: Final = 64 * 1024


def requests(spans: Iterable[Span], gap_bytes: int = GAP_BYTES) -> list[Span]:
    """The fewest spans that cover these, where gaps of up to `gap_bytes` are read too."""
    merged: list[Span] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1] + gap_bytes:
            merged[-1] = merged[-1][0], max(merged[-1][1], stop)
        else:
            merged.append((start, stop))
    return merged
