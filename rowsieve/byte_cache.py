"""LRU caches with limits in bytes; all named caches of a process share one limit.

A cache also evicts values that were not used for long, so that a process that lives for months
keeps only what it uses.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from itertools import count
from typing import Any, Final, Generic, NamedTuple, ParamSpec, TypeVar, cast

from rowsieve.locks import ForkSafeLock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")

PROCESS_BYTES: Final = 256 * 1024 * 1024
"""The limit of all named caches of a process together."""
_ROUNDS: Final = 2
_MIN_USES: Final = 64
_MAX_VERSIONS: Final = 8


class Origin(NamedTuple):
    """The version of a table that a value was derived from; `table` identifies the table."""

    table: Hashable
    version: int


class CacheUsage(NamedTuple):
    """What one cache holds now; `limit_bytes` is its own limit."""

    name: str
    value_count: int
    size_bytes: int
    limit_bytes: int


class Budget:
    """A limit in bytes of several caches together, which share one lock."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self.lock = ForkSafeLock()
        self.caches: list[ByteCache[Any, Any]] = []
        self.ticks = count()

    def usage(self) -> tuple[CacheUsage, ...]:
        """What each of the caches holds, by name."""
        with self.lock.mutex:
            return tuple(sorted(each.usage() for each in self.caches))

    def trim(self) -> None:
        """Evict the least recently used values of all caches; the caller holds the lock."""
        while self.size_bytes > self.limit_bytes:
            min((each for each in self.caches if len(each)), key=_coldest_tick).evict_coldest()


PROCESS: Final = Budget(PROCESS_BYTES)
"""The budget of all named caches."""


class _Entry(Generic[V]):
    __slots__ = ("last_use", "origin", "size_bytes", "tick", "value")

    def __init__(
        self, value: V, size_bytes: int, origin: Origin | None, last_use: int, tick: int
    ) -> None:
        self.value, self.size_bytes = value, size_bytes
        self.origin, self.last_use, self.tick = origin, last_use, tick


class ByteCache(Generic[K, V]):
    """Values by key, at most `limit_bytes` in total. Thread-safe and fork-safe.

    A cache with a `name` lives as long as the process; all of these hold at most `PROCESS_BYTES`.

    `put` never replaces a value: a key keeps its value until eviction, so callers may cache data by
    the identity of a value. A value larger than the limit is not stored.

    Unused values are evicted long before the limit is reached, so that a process that changes a
    table again and again does not fill its memory. A value with an `origin` is evicted once values
    of `_MAX_VERSIONS` other versions of its table were put after all values of its own version.
    Any value is evicted if it was not used while the cache was used `_ROUNDS` times per value in
    it, and at least `_MIN_USES` times. Reading all values one after another, as a scan of a
    large table does, keeps them. `once_bytes`: values that were put and never used since take at
    most so many bytes; for values of which most are never needed again, such as plans.
    `keeps_unused`: only the limits evict, because the values cannot be computed again.
    """

    def __init__(
        self,
        limit_bytes: int,
        name: str | None = None,
        *,
        once_bytes: int | None = None,
        keeps_unused: bool = False,
    ) -> None:
        self.name = name or ""
        self._keeps_unused = keeps_unused
        self._limit_bytes = limit_bytes
        self._once_limit_bytes = limit_bytes if once_bytes is None else once_bytes
        self._size_bytes = 0
        self._once_bytes = 0
        self._uses = 0
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()  # least recently used first
        self._once: OrderedDict[K, None] = OrderedDict()  # values never used since they were put
        self._versions: dict[Hashable, OrderedDict[int, set[K]]] = {}  # by table, last put last
        self._budget = Budget(limit_bytes) if name is None else PROCESS
        self._lock = self._budget.lock
        with self._lock.mutex:
            self._budget.caches.append(self)

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
            entry.last_use, entry.tick = self._uses, next(self._budget.ticks)
            self._entries.move_to_end(key)
            if key in self._once:
                del self._once[key]
                self._once_bytes -= entry.size_bytes
            return entry.value

    def put(self, key: K, value: V, size_bytes: int, origin: Origin | None = None) -> None:
        """Store a value of this size, unless the key has a value or the size exceeds the limit."""
        with self._lock.mutex:
            if key in self._entries or size_bytes > self._limit_bytes:
                return
            self._uses += 1
            tick = next(self._budget.ticks)
            self._entries[key] = _Entry(value, size_bytes, origin, self._uses, tick)
            self._once[key] = None
            self._resize(size_bytes)
            self._once_bytes += size_bytes
            if origin is not None:
                self._note(key, origin)
            while self._once_bytes > self._once_limit_bytes and len(self._once) > 1:
                self._evict(next(iter(self._once)))
            while self._size_bytes > self._limit_bytes or self._is_coldest_unused():
                self.evict_coldest()
            self._budget.trim()

    def usage(self) -> CacheUsage:
        """What the cache holds now."""
        return CacheUsage(self.name, len(self._entries), self._size_bytes, self._limit_bytes)

    @property
    def coldest_tick(self) -> int:
        """When the least recently used value was used, by the budget's count of uses."""
        return next(iter(self._entries.values())).tick

    def evict_coldest(self) -> None:
        """Evict the least recently used value; the caller holds the lock."""
        self._evict(next(iter(self._entries)))

    def _resize(self, size_bytes: int) -> None:
        self._size_bytes += size_bytes
        self._budget.size_bytes += size_bytes

    def _note(self, key: K, origin: Origin) -> None:
        """Record a value's version; evict the version put longest ago if there are too many."""
        versions = self._versions.setdefault(origin.table, OrderedDict())
        versions.setdefault(origin.version, set()).add(key)
        versions.move_to_end(origin.version)
        if len(versions) > _MAX_VERSIONS:
            for each in tuple(next(iter(versions.values()))):
                self._evict(each)

    def _evict(self, key: K) -> None:
        entry = self._entries.pop(key)
        self._resize(-entry.size_bytes)
        if key in self._once:
            del self._once[key]
            self._once_bytes -= entry.size_bytes
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
        if self._keeps_unused:
            return False
        idle = self._uses - next(iter(self._entries.values())).last_use
        return idle > max(_MIN_USES, _ROUNDS * len(self._entries))

    def clear(self) -> None:
        """Remove all values."""
        with self._lock.mutex:
            self._entries.clear()
            self._once.clear()
            self._versions.clear()
            self._resize(-self._size_bytes)
            self._once_bytes = 0


def _coldest_tick(cache: ByteCache[Any, Any]) -> int:
    return cache.coldest_tick


def cached_in(
    cache: ByteCache[Any, Any], size_bytes: Callable[..., int]
) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Decorate a function of hashable, positional arguments: its results are kept in a cache.

    `size_bytes(result, *arguments)` estimates the memory of an entry. A cache may serve several
    functions. Concurrent callers may compute a result twice.
    """

    def decorate(function: Callable[P, V]) -> Callable[P, V]:
        @wraps(function)
        def cached(*args: P.args, **kwargs: P.kwargs) -> V:
            key = (function, args, *kwargs.items())
            entry = cache.get(key)
            if entry is None:
                entry = (function(*args, **kwargs),)
                cache.put(key, entry, size_bytes(entry[0], *args, **kwargs))
            return cast("V", entry[0])

        return cached

    return decorate
