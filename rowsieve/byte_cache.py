"""An LRU cache with a limit in bytes; it also evicts values that were not used for long."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, NamedTuple, TypeVar

from rowsieve.locks import ForkSafeLock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


_ROUNDS: Final = 2
_FEWEST_USES: Final = 64
_MOST_VERSIONS: Final = 8


class Origin(NamedTuple):
    """The version of a table that a value was derived from; `table` identifies the table."""

    table: Hashable
    version: int


class _Entry(Generic[V]):
    __slots__ = ("last_use", "origin", "size_bytes", "value")

    def __init__(self, value: V, size_bytes: int, origin: Origin | None, last_use: int) -> None:
        self.value, self.size_bytes = value, size_bytes
        self.origin, self.last_use = origin, last_use


class ByteCache(Generic[K, V]):
    """Values by key, at most `limit_bytes` in total. Thread-safe and fork-safe.

    `put` never replaces a value: a key keeps its value until eviction, so callers may cache data by
    the identity of a value. A value larger than the limit is not stored.

    Unused values are evicted long before the limit is reached, so that a process that changes a
    table again and again does not fill its memory. A value with an `origin` is evicted once values
    of `_MOST_VERSIONS` other versions of its table were put after all values of its own version.
    Any value is evicted if it was not used while the cache was used `_ROUNDS` times per value in
    it, and at least `_FEWEST_USES` times. Reading all values one after another, as a scan of a
    large table does, keeps them.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._uses = 0
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()  # least recently used first
        self._versions: dict[Hashable, OrderedDict[int, set[K]]] = {}  # by table, last put last
        self._lock = ForkSafeLock()

    def __len__(self) -> int:
        """The number of values."""
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return the value and mark it as most recently used; None if there is none."""
        with self._lock.mutex:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._uses += 1
            entry.last_use = self._uses
            self._entries.move_to_end(key)
            return entry.value

    def put(self, key: K, value: V, size_bytes: int, origin: Origin | None = None) -> None:
        """Store a value of this size, unless the key has a value or the size exceeds the limit."""
        with self._lock.mutex:
            if key in self._entries or size_bytes > self._limit_bytes:
                return
            self._uses += 1
            self._entries[key] = _Entry(value, size_bytes, origin, self._uses)
            self._size_bytes += size_bytes
            if origin is not None:
                self._note(key, origin)
            while self._size_bytes > self._limit_bytes or self._is_coldest_unused():
                self._evict(next(iter(self._entries)))

    def _note(self, key: K, origin: Origin) -> None:
        """Record a value's version; evict the version put longest ago if there are too many."""
        versions = self._versions.setdefault(origin.table, OrderedDict())
        versions.setdefault(origin.version, set()).add(key)
        versions.move_to_end(origin.version)
        if len(versions) > _MOST_VERSIONS:
            for each in tuple(next(iter(versions.values()))):
                self._evict(each)

    def _evict(self, key: K) -> None:
        entry = self._entries.pop(key)
        self._size_bytes -= entry.size_bytes
        if (origin := entry.origin) is None:
            return
        versions = self._versions[origin.table]
        versions[origin.version].remove(key)
        if not versions[origin.version]:
            del versions[origin.version]
        if not versions:
            del self._versions[origin.table]

    def _is_coldest_unused(self) -> bool:
        """Return whether the least recently used value has not been used for too long."""
        idle = self._uses - next(iter(self._entries.values())).last_use
        return idle > max(_FEWEST_USES, _ROUNDS * len(self._entries))

    def clear(self) -> None:
        """Remove all values."""
        with self._lock.mutex:
            self._entries.clear()
            self._versions.clear()
            self._size_bytes = 0
