"""Decodes ahead of the consumer: the next batch of a source, the next row groups of a read.

Each source may always hold its current batch, so sources never wait for one another (invariant 21).
Further batches and row groups are decoded early only while the reserved bytes suffice; otherwise
the consumer decodes them when it needs them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import chain, islice
from types import TracebackType
from typing import Final, Self, TypeVar

from rowsieve.executor.merging.windows import Numbered
from rowsieve.locks import ForkSafeLock
from rowsieve.objects import FetchingStore, ObjectStore
from rowsieve.threads import Threads

CORES: Final = os.cpu_count() or 1  # a second call would read files again
NETWORK_THREADS: Final = 32  # for a remote store, where each thread mostly waits
DECODING_THREADS: Final = 2 * CORES  # for one where threads find their bytes prefetched
PREFETCH_DIVISOR: Final = 8  # prefetched bytes take at most this fraction of a read's memory
TASKS_WITHOUT_THREADS: Final = 5  # tasks; fewer end before threads would have started
NETWORK_TASKS_WITHOUT_THREADS: Final = 2  # the same for a remote store, where each task waits

T = TypeVar("T")


class ReadAhead:
    """Threads that work ahead of one consumer; with one thread, the consumer does all the work.

    `at_first` tasks run until the size of a result is known. Fewer than `without_threads` tasks run
    in the consumer. A consumer may stop early: leaving the context waits for running tasks and
    cancels the others.
    """

    def __init__(
        self,
        threads: int,
        reserve_bytes: int,
        *,
        at_first: int = 2,
        without_threads: int = TASKS_WITHOUT_THREADS,
    ) -> None:
        self._threads = threads
        self._without_threads = without_threads
        self._at_first = at_first
        self._pool: Threads | None = None  # most reads are done before they need it
        self._reserve_bytes = self._free_bytes = reserve_bytes
        self._lock = ForkSafeLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def of(self, batches: Iterator[Numbered]) -> Iterator[Numbered]:
        """The same batches in the same order; an error is raised at the batch that failed."""
        return batches if self._threads < 2 else self._fetched(self._started(), batches)

    def results(
        self, tasks: Iterator[Callable[[], T]], size_bytes: Callable[[T], int] = lambda _: 0
    ) -> Iterator[T]:
        """The results of all tasks in order; a few tasks run at a time.

        The largest `size_bytes` of a result so far limits how many tasks run.
        """
        first = list(islice(tasks, self._without_threads)) if self._threads > 1 else []
        if len(first) < self._without_threads:
            for task in chain(first, tasks):
                yield task()
            return
        pool, depth = self._started(), 2 * self._threads
        most = self._at_first
        largest = 1
        begun: deque[Future[T]] = deque()
        for task in chain(first, tasks):
            begun.append(pool.submit(task))
            while len(begun) >= most:
                result = begun.popleft().result()
                largest = max(largest, size_bytes(result))
                most = min(depth, max(1, self._reserve_bytes // largest))
                yield result
        while begun:
            yield begun.popleft().result()

    def _started(self) -> Threads:
        if self._pool is None:
            self._pool = Threads(self._threads, "rowsieve-read")
        return self._pool

    def _fetched(self, pool: Threads, batches: Iterator[Numbered]) -> Iterator[Numbered]:
        ahead: Future[Numbered | None] | None = None
        taken = 0
        while (item := next(batches, None) if ahead is None else ahead.result()) is not None:
            self._release(taken)
            taken = self._reserve(item[1].nbytes)  # assumes that the next batch has this size
            ahead = pool.submit(next, batches, None) if taken else None
            yield item
        self._release(taken)

    def _reserve(self, size_bytes: int) -> int:
        """Reserve these bytes; returns 0 if fewer are free."""
        with self._lock.mutex:
            if size_bytes > self._free_bytes:
                return 0
            self._free_bytes -= size_bytes
            return size_bytes

    def _release(self, size_bytes: int) -> None:
        with self._lock.mutex:
            self._free_bytes += size_bytes


class Schedule:
    """How one read fetches and decodes: through which store, and on how many threads.

    A local disk is a store without latency: nothing is fetched ahead of the decoding. A short read,
    one with a limit, often ends soon, so that nothing is fetched or decoded ahead. A
    `FetchingStore` that is given prefetches for several reads. Where the threads request nothing
    that was not announced (`is_announced`), more than a few of them cost more CPU than they save:
    2.5 times as much for 32 as for 4 on two cores (16 parts of 200,000 rows behind 20 ms).
    """

    __slots__ = ("_is_short", "_memory_bytes", "_threads", "fetches", "store")

    def __init__(
        self,
        store: ObjectStore,
        memory_bytes: int,
        threads: int | None = None,
        *,
        is_short: bool = False,
        is_announced: bool = False,
    ) -> None:
        self.fetches = store.overlaps
        self.store = store
        if self.fetches and not isinstance(store, FetchingStore):
            self.store = FetchingStore(store, memory_bytes // PREFETCH_DIVISOR)
        self._memory_bytes = memory_bytes
        self._is_short = is_short
        remote = DECODING_THREADS if is_announced else NETWORK_THREADS
        self._threads = threads or (remote if self.fetches else CORES)

    def ahead(self) -> ReadAhead:
        """The threads that decode."""
        threads = 1 if self._is_short else self._threads
        return ReadAhead(
            threads,
            self._memory_bytes // 4,
            at_first=2 if self.fetches else 1,
            without_threads=(
                NETWORK_TASKS_WITHOUT_THREADS if self.fetches else TASKS_WITHOUT_THREADS
            ),
        )

    def drawn(self, items: Iterator[T], count: int) -> Iterator[T]:
        """The same items in the same order; up to `count` are drawn ahead, which fetches them.

        Fewer are while announced spans wait for memory.
        """
        if not isinstance(self.store, FetchingStore) or self._is_short:
            return items
        store = self.store
        return with_lookahead(items, count, lambda: store.is_full)


def with_lookahead(
    items: Iterator[T], count: int, is_enough: Callable[[], bool] = lambda: False
) -> Iterator[T]:
    """Yield the same items in the same order; draws up to `count` more than it has yielded.

    Draws only one at a time while it `is_enough`.
    """
    waiting: deque[T] = deque()
    while True:
        while len(waiting) <= count and not (waiting and is_enough()):
            try:
                waiting.append(next(items))
            except StopIteration:
                yield from waiting
                return
        yield waiting.popleft()
