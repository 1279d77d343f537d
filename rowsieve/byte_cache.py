"""A cache within a limit of bytes, from which the least recently used values go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from rowsieve.locks import ForkSafeLock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ByteCache(Generic[K, V]):
    """Values by key, `limit_bytes` of them at most. Safe to share by threads, and after a fork.

    A value that was put stays the one of its key until it goes: whoever remembers something by the
    identity of a value finds it again. One that is larger than the limit is not kept.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = ForkSafeLock()

    def get(self, key: K) -> V | None:
        """The value, which becomes the most recently used one, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: K, value: V, size_bytes: int) -> None:
        """Keep a value of this size, unless the key has one or it is too large."""
        with self._lock:
            if key in self._entries or size_bytes > self._limit_bytes:
                return
            self._entries[key] = (value, size_bytes)
            self._size_bytes += size_bytes
            while self._size_bytes > self._limit_bytes:
                _, (_, freed) = self._entries.popitem(last=False)
                self._size_bytes -= freed

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._entries.clear()
            self._size_bytes = 0
