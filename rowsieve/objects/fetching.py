"""Concurrent requests: one bounded pool of threads for the whole process.

A request across a network spends most of its time waiting. A read therefore announces the byte
ranges ("spans") that it will need, and `FetchingStore` prefetches them.

Soundness: a prefetched span holds the bytes that the store's `get_range` returned. A span that was
not fetched, or whose fetch failed, is requested again.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from operator import call
from typing import Any, Final, TypeVar

from rowsieve.errors import RowsieveError
from rowsieve.locks import ForkSafeLock
from rowsieve.objects.cached_store import forget_kept
from rowsieve.objects.range_file import open_ranges
from rowsieve.objects.store import NativeFile, ObjectStore, Place
from rowsieve.threads import Threads

WINDOW: Final = 128  # concurrent requests
MAX_ASIDE: Final = 4  # concurrent background tasks
_log = logging.getLogger(__name__)

_T = TypeVar("_T")
_R = TypeVar("_R")
_pool_lock = ForkSafeLock()
_background: set[Future[None]] = set()
_pools: dict[int, Threads] = {}  # by process id: threads do not survive a fork


def begin(task: Callable[[], _T]) -> Future[_T]:
    """Run a task in the pool. A task must not begin others: they could deadlock on a full pool."""
    with _pool_lock:
        pool = _pools.get(os.getpid())
        if pool is None:
            pool = _pools[os.getpid()] = Threads(WINDOW, "rowsieve-fetch")
    return pool.submit(task)


def in_thread(task: Callable[[], _T]) -> Future[_T]:
    """Run a task in a thread of its own, so that it may begin others and wait for them.

    Nobody needs to wait for it.
    """
    thread = Threads(1, "rowsieve-thread")
    future = thread.submit(task)
    thread.shutdown(wait=False)
    return future


def beside(read: Callable[[], _T], work: Callable[[], _R]) -> tuple[_T, _R | RowsieveError]:
    """Read in a thread of its own while this one works; return both results.

    An error of the work is returned, because what was read decides whether it counts.
    """
    reading = in_thread(read)
    result: _R | RowsieveError
    try:
        result = work()
    except RowsieveError as error:
        result = error
    return reading.result(), result


def together(store: ObjectStore, tasks: Sequence[Callable[[], _T]]) -> list[_T]:
    """Run tasks and return their results in order; concurrently if the store `overlaps`.

    Returns, or raises the first error, after all tasks have ended.
    """
    if not store.overlaps or len(tasks) < 2:
        return list(map(call, tasks))
    futures = [begin(task) for task in tasks]
    errors = [error for each in futures if (error := each.exception()) is not None]
    if errors:
        raise errors[0]
    return [each.result() for each in futures]


def in_background(store: ObjectStore, task: Callable[[], None]) -> None:
    """Run a task whose result nobody needs: in the background if the store `overlaps`.

    The process waits for the task before it exits. The task must not begin others; its exception
    is logged. At most `MAX_ASIDE` such tasks run at a time, so that a slow store leaves room in
    the pool for requests that a caller waits for.
    """
    if not store.overlaps:
        try:
            task()
        except Exception:  # the caller's own work is done
            _log.exception("a background task failed")
        return
    while len(waiting := tuple(_background)) >= MAX_ASIDE:
        wait(waiting, return_when=FIRST_COMPLETED)
    future = begin(task)
    _background.add(future)
    future.add_done_callback(_on_background_end)


def _on_background_end(task: Future[None]) -> None:
    if (error := task.exception()) is not None:
        _log.error("a background task failed", exc_info=error)
    _background.discard(task)


class _Span:
    """Bytes [start, stop) of an object; `data` is set once they are requested."""

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
    """A store for one read: prefetches expected spans, up to `budget_bytes` at a time.

    A span is dropped after it was read; a span with `keep` is dropped when others need the memory.
    A span that is never read is dropped with this object. Thread-safe.
    """

    def __init__(self, store: ObjectStore, budget_bytes: int) -> None:
        self._store = store
        self._budget_bytes = budget_bytes
        self._held_bytes = 0
        self._spans: dict[str, list[_Span]] = {}
        self._queue: deque[_Span] = deque()
        self._used: deque[_Span] = deque()
        self._lock = threading.Lock()  # need not be fork-safe: a fork cannot use a network store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def expect(self, places: Iterable[Place], *, keep: bool = False) -> None:
        """Prefetch these spans when the budget allows; reads should come in about this order."""
        if keep:
            places = list(places)
            self._store.expect(places, keep=True)
        with self._lock:
            for place in places:
                _, start, stop = place
                if start < stop and self._find(*place) is None:  # skip empty spans
                    span = _Span(place, keep=keep)
                    self._spans.setdefault(span.path, []).append(span)
                    self._queue.append(span)
            self._start()

    def supply(self, path: str, data: bytes | memoryview) -> None:
        """Read an object from these bytes, which are all of it, as long as this store is used."""
        span = _Span((path, 0, len(data)), keep=True)
        span.used = True  # never dropped for others: the caller has the bytes anyway
        span.data = Future()
        span.data.set_result(bytes(data))
        with self._lock:
            self._held_bytes += span.size
            self._spans.setdefault(path, []).append(span)

    @property
    def is_full(self) -> bool:
        """True while expected spans wait for memory."""
        return bool(self._queue)

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Return bytes `[start, stop)` of an object, prefetched or requested now."""
        with self._lock:
            span = self._find(path, start, stop)
            if span is not None:
                self._hand_over(span)
        if span is not None and span.data is not None:
            try:
                data = span.data.result()
            except RowsieveError:
                pass  # request again, so that the error describes this read
            else:
                whole = (span.start, span.stop) == (start, stop)
                return data if whole else data[start - span.start : stop - span.start]
        return self._store.get_range(path, start, stop)

    def forget(self, path: str) -> bool:
        """Drop what is prefetched or kept of an object; return whether the cache kept any."""
        with self._lock:
            for span in self._spans.pop(path, []):
                if span.data is None:
                    self._queue.remove(span)
                else:
                    self._held_bytes -= span.size
                if span in self._used:
                    self._used.remove(span)
        return forget_kept(self._store, path)

    def open_input(self, path: str, size_bytes: int | None = None) -> NativeFile:
        """Open a file that reads through `get_range`, and so uses prefetched spans."""
        return open_ranges(self, path, size_bytes)

    def _find(self, path: str, start: int, stop: int) -> _Span | None:
        for span in self._spans.get(path, ()):
            if span.start <= start and stop <= span.stop:
                return span
        return None

    def _hand_over(self, span: _Span) -> None:
        """Mark a span as read; if its fetch has not started, the reader requests it itself."""
        if span.data is None:
            self._queue.remove(span)
            self._spans[span.path].remove(span)
            return
        if not span.keep:
            self._drop(span)
        elif not span.used:
            span.used = True
            self._used.append(span)
        self._start()

    def _start(self) -> None:
        while self._queue:
            size = self._queue[0].size
            while self._used and self._held_bytes + size > self._budget_bytes:
                self._drop(self._used.popleft())
            if self._held_bytes and self._held_bytes + size > self._budget_bytes:
                return
            span = self._queue.popleft()
            self._held_bytes += size
            span.data = begin(self._fetch_of(span))

    def _fetch_of(self, span: _Span) -> Callable[[], bytes]:
        return lambda: self._store.get_range(span.path, span.start, span.stop)

    def _drop(self, span: _Span) -> None:
        self._spans[span.path].remove(span)
        self._held_bytes -= span.size
