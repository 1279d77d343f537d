"""An LRU cache with a size limit in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from rowsieve.locks import ForkSafeLock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ByteCache(Generic[K, V]):
    """Values by key, at most `limit_bytes` in total. Thread-safe and fork-safe.

    `put` never replaces a value: a key keeps its value until eviction, so callers may cache data by
    the identity of a value. A value larger than the limit is not stored.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = ForkSafeLock()

    def get(self, key: K) -> V | None:
        """Return the value and mark it as most recently used; None if there is none."""
        with self._lock.mutex:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: K, value: V, size_bytes: int) -> None:
        """Store a value of this size, unless the key has a value or the size exceeds the limit."""
        with self._lock.mutex:
            if key in self._entries or size_bytes > self._limit_bytes:
                return
            self._entries[key] = (value, size_bytes)
            self._size_bytes += size_bytes
            while self._size_bytes > self._limit_bytes:
                _, (_, freed) = self._entries.popitem(last=False)
                self._size_bytes -= freed

    def clear(self) -> None:
        """Remove all values."""
        with self._lock.mutex:
            self._entries.clear()
            self._size_bytes = 0
