"""Decoding ahead of what is used: the next batch of a source, the next row groups of a read.

Each source may always hold the batch that is in use: that is reserved for it, so that sources never
wait for one another (invariant 21). A further batch is fetched early, and a further row group begun
early, only while the bytes set aside for that last; otherwise when it is asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from types import TracebackType
from typing import Final, Self, TypeVar

from rowsieve.executor.windows import Numbered
from rowsieve.locks import ForkSafeLock

FEW: Final = 5  # tasks: fewer are done before threads have begun and taken turns

T = TypeVar("T")


class ReadAhead:
    """Threads that work ahead of one consumer; with one thread everything is done when asked for.

    A consumer that stops early leaves nothing behind: what has begun is waited for, the rest is
    dropped.
    """

    def __init__(self, threads: int, reserve_bytes: int) -> None:
        self._depth = 2 * threads
        self._pool = ThreadPoolExecutor(threads, "rowsieve-read") if threads > 1 else None
        self._reserve_bytes = self._left_bytes = reserve_bytes
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
        """The same batches in the same order; errors come where they would have come."""
        return batches if self._pool is None else self._fetched(self._pool, batches)

    def done(
        self, tasks: Iterator[Callable[[], T]], size_bytes: Callable[[T], int] = lambda _: 0
    ) -> Iterator[T]:
        """The results of all tasks in their order, a few of them worked on at a time.

        `size_bytes` of a result limits how many: the next ones will be about as large.
        """
        first = list(islice(tasks, FEW)) if self._pool is not None else []
        if self._pool is None or len(first) < FEW:
            yield from (task() for task in chain(first, tasks))
            return
        most = 2  # until the size of a result is known
        largest = 1
        begun: deque[Future[T]] = deque()
        for task in chain(first, tasks):
            begun.append(self._pool.submit(task))
            while len(begun) >= most:
                result = begun.popleft().result()
                largest = max(largest, size_bytes(result))
                most = min(self._depth, max(1, self._reserve_bytes // largest))
                yield result
        while begun:
            yield begun.popleft().result()

    def _fetched(self, pool: ThreadPoolExecutor, batches: Iterator[Numbered]) -> Iterator[Numbered]:
        ahead: Future[Numbered | None] | None = None
        taken = 0
        while (item := next(batches, None) if ahead is None else ahead.result()) is not None:
            self._give_back(taken)
            taken = self._take(item[1].nbytes)  # the next one will be about as large
            ahead = pool.submit(next, batches, None) if taken else None
            yield item
        self._give_back(taken)

    def _take(self, size_bytes: int) -> int:
        """Bytes set aside, 0 if there are not as many."""
        with self._lock:
            if size_bytes > self._left_bytes:
                return 0
            self._left_bytes -= size_bytes
            return size_bytes

    def _give_back(self, size_bytes: int) -> None:
        with self._lock:
            self._left_bytes += size_bytes
