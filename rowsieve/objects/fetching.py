"""Requests that overlap: one bounded window of them for the whole process.

A request across a network is mostly waiting. So a read says early which spans of which objects it
will want, and they are fetched meanwhile (`FetchingStore`). Soundness: a span that was fetched is
what `get_range` of the store returned; whatever was not fetched, or failed, is asked for again.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Final, TypeVar

from rowsieve.errors import RowsieveError
from rowsieve.locks import ForkSafeLock
from rowsieve.objects.range_file import open_ranges
from rowsieve.objects.store import NativeFile, ObjectStore, Place

WINDOW: Final = 128  # requests that wait at the same time
MOST_ASIDE: Final = 4
_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_pool_lock = ForkSafeLock()
_aside: set[Future[None]] = set()
_pools: dict[int, ThreadPoolExecutor] = {}  # by process: a fork has none of its parent's threads


def begin(task: Callable[[], _T]) -> Future[_T]:
    """Start a request within the window. A task must not begin others: it would wait for itself."""
    with _pool_lock:
        pool = _pools.get(os.getpid())
        if pool is None:
            pool = _pools[os.getpid()] = ThreadPoolExecutor(WINDOW, "rowsieve-fetch")
    return pool.submit(task)


def together(store: ObjectStore, tasks: Sequence[Callable[[], _T]]) -> list[_T]:
    """Their results in order; they overlap where a request of the store is worth it.

    All have ended when this returns or raises the first error.
    """
    if not store.overlaps or len(tasks) < 2:
        return [task() for task in tasks]
    begun = [begin(task) for task in tasks]
    errors = [error for each in begun if (error := each.exception()) is not None]
    if errors:
        raise errors[0]
    return [each.result() for each in begun]


def aside(store: ObjectStore, task: Callable[[], None]) -> None:
    """Run a task that nobody waits for: beside the program where a request costs a round trip.

    The process waits for it before it ends. The task must not begin others; what it raises is
    logged. A few of them are begun at a time, so that a store that is slow to answer them leaves
    room for requests that are waited for.
    """
    if not store.overlaps:
        task()
        return
    while len(waiting := tuple(_aside)) >= MOST_ASIDE:
        wait(waiting, return_when=FIRST_COMPLETED)
    begun = begin(task)
    _aside.add(begun)
    begun.add_done_callback(_ended_aside)


def _ended_aside(task: Future[None]) -> None:
    if (error := task.exception()) is not None:
        _log.error("a task that nobody waits for failed", exc_info=error)
    _aside.discard(task)


def finish_aside() -> None:
    """Wait for all that `aside` has begun."""
    wait(tuple(_aside))


class _Span:
    """Bytes [start, stop) of an object; `data` once they are asked for."""

    __slots__ = ("data", "keep", "path", "start", "stop", "used")

    def __init__(self, place: Place, *, keep: bool) -> None:
        self.path, self.start, self.stop = place
        self.keep = keep
        self.used = False
        self.data: Future[bytes] | None = None

    @property
    def size(self) -> int:
        return self.stop - self.start


class FetchingStore:
    """A store for one read: spans that are expected are fetched early, `budget_bytes` at a time.

    A span is dropped when it was read, or, if it is to be kept, when others need the room. One that
    is never read is dropped with this object. Several threads may read.
    """

    def __init__(self, store: ObjectStore, budget_bytes: int) -> None:
        self._store = store
        self._budget_bytes = budget_bytes
        self._held_bytes = 0
        self._spans: dict[str, list[_Span]] = {}
        self._queue: deque[_Span] = deque()
        self._kept: deque[_Span] = deque()
        self._lock = threading.Lock()  # a fork cannot read from a network anyway

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def expect(self, places: Iterable[Place], *, keep: bool = False) -> None:
        """Fetch these spans as soon as there is room; they are read later, about in this order."""
        with self._lock:
            for place in places:
                _, start, stop = place
                if start < stop and self._find(*place) is None:  # nothing to fetch of an empty one
                    span = _Span(place, keep=keep)
                    self._spans.setdefault(span.path, []).append(span)
                    self._queue.append(span)
            self._start()

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Bytes `[start, stop)` of an object, fetched before or now."""
        with self._lock:
            span = self._find(path, start, stop)
            if span is not None:
                self._use(span)
        if span is not None and span.data is not None:
            try:
                data = span.data.result()
            except RowsieveError:
                pass  # asked for again, so that the error tells of this read
            else:
                whole = (span.start, span.stop) == (start, stop)
                return data if whole else data[start - span.start : stop - span.start]
        return self._store.get_range(path, start, stop)

    def open_input(self, path: str, size_bytes: int | None = None) -> NativeFile:
        """Open a file whose reads are spans."""
        return open_ranges(self, path, size_bytes)

    def _find(self, path: str, start: int, stop: int) -> _Span | None:
        for span in self._spans.get(path, ()):
            if span.start <= start and stop <= span.stop:
                return span
        return None

    def _use(self, span: _Span) -> None:
        """Note that a span is being read; what was not begun is left to the reader."""
        if span.data is None:
            self._queue.remove(span)
            self._spans[span.path].remove(span)
            return
        if not span.keep:
            self._drop(span)
        elif not span.used:
            span.used = True
            self._kept.append(span)
        self._start()

    def _start(self) -> None:
        while self._queue:
            size = self._queue[0].size
            while self._kept and self._held_bytes + size > self._budget_bytes:
                self._drop(self._kept.popleft())
            if self._held_bytes and self._held_bytes + size > self._budget_bytes:
                return
            span = self._queue.popleft()
            self._held_bytes += size
            span.data = begin(self._reading(span))

    def _reading(self, span: _Span) -> Callable[[], bytes]:
        return lambda: self._store.get_range(span.path, span.start, span.stop)

    def _drop(self, span: _Span) -> None:
        self._spans[span.path].remove(span)
        self._held_bytes -= span.size
