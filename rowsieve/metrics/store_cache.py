"""Counts what the cache folder of this process (`Config.cache_dir`) answered."""

from __future__ import annotations

from dataclasses import dataclass, fields

from rowsieve.locks import ForkSafeLock

_lock = ForkSafeLock()


@dataclass(slots=True)
class StoreCacheCounts:
    """Requests to stores that the cache folder answered, or could not, since the process began.

    `damaged`: entries that did not match their checksum and were fetched again. `failed_writes`:
    entries that could not be stored, because the disk is full or not writable.
    """

    hits: int = 0
    hit_bytes: int = 0
    misses: int = 0
    damaged: int = 0
    failed_writes: int = 0


_counts = StoreCacheCounts()


def store_cache() -> StoreCacheCounts:
    """Return a copy of the counts."""
    with _lock:
        return StoreCacheCounts(*(getattr(_counts, each.name) for each in fields(_counts)))


def count_in_store_cache(name: str, amount: int = 1) -> None:
    """Add to the field `name`."""
    with _lock:
        setattr(_counts, name, getattr(_counts, name) + amount)
