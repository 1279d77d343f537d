"""Counts the reads of this process that were sent to a store twice (`hedge_after_ms`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rowsieve.locks import ForkSafeLock

_lock = ForkSafeLock()


@dataclass(slots=True)
class HedgeCounts:
    """Reads of stores with hedged reads since the process began.

    `sent_twice`: those with a second request. `second_first`: those that it answered.
    """

    reads: int = 0
    sent_twice: int = 0
    second_first: int = 0


_counts = HedgeCounts()


def hedge_counts() -> HedgeCounts:
    """Return a copy of the counts."""
    with _lock:
        return replace(_counts)


def count_hedged(name: str) -> None:
    """Add one to the field `name`."""
    with _lock:
        setattr(_counts, name, getattr(_counts, name) + 1)
