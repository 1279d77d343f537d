"""Hedged reads: a read that takes longer than nearly all others is asked for a second time.

A store answers a few requests late, and a read of many files waits for the latest of them. With the
storage option `hedge_after_ms` a GET that has no answer by then is sent again, and the first answer
counts. The slower one is not waited for.

Soundness: only GETs are sent twice. Both requests begin after the caller asked, and the answer that
counts arrives before the caller has it; so each is an answer that one request could have had. An
error counts only if both requests fail. At most a tenth of the reads are sent twice, so that a
store that is slow because it is busy gets little more to do.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Final, TypeVar

from rowsieve import clock
from rowsieve.errors import InvalidInput
from rowsieve.locks import ForkSafeLock
from rowsieve.metrics.hedge_counts import count_hedged
from rowsieve.threads import Threads

HEDGE_AFTER: Final = "hedge_after_ms"
MEASURED: Final = "p95"
_THREADS: Final = 256  # both requests of each of the 128 that `fetching` sends at once
_REMEMBERED: Final = 256  # reads whose times are known
_MEASURED_FROM_READS: Final = 32  # reads before their 95th percentile says anything
_SHARE: Final = 10  # one read in so many is sent twice at most
_T = TypeVar("_T")

_pool_lock = ForkSafeLock()
_pools: dict[int, Threads] = {}  # by process id: threads do not survive a fork


class HedgedReads:
    """Reads of one store. Thread-safe. `after_s`: None for the 95th percentile of the last ones."""

    def __init__(self, after_s: float | None) -> None:
        self._after_s = after_s
        self._lock = ForkSafeLock()
        self._times_s: deque[float] = deque(maxlen=_REMEMBERED)
        self._reads = 0
        self._sent_twice = 0

    def read(self, request: Callable[[], _T]) -> _T:
        """Return the first answer to a request that may be sent twice; it must only read."""
        start_s = clock.monotonic_s()
        first = _submit(request)
        answered, _ = wait([first], timeout=self._delay_s())
        winner = first if answered or not self._may_send_twice() else _sent_twice(first, request)
        with self._lock.mutex:
            self._reads += 1
            self._times_s.append(clock.monotonic_s() - start_s)
        count_hedged("reads")
        return winner.result()

    def _delay_s(self) -> float | None:
        """How long an answer may take before the request is sent again; None: any time."""
        if self._after_s is not None:
            return self._after_s
        with self._lock.mutex:
            times_s = sorted(self._times_s)
        return None if len(times_s) < _MEASURED_FROM_READS else times_s[len(times_s) * 95 // 100]

    def _may_send_twice(self) -> bool:
        with self._lock.mutex:
            if self._sent_twice * _SHARE > self._reads:
                return False
            self._sent_twice += 1
            return True


def hedging_of(options: Mapping[str, Any]) -> HedgedReads | None:
    """The hedged reads that storage options ask for; None if they do not."""
    if (value := options.get(HEDGE_AFTER)) is None:
        return None
    if value == MEASURED:
        return HedgedReads(None)
    try:
        after_ms = float(value)
    except (TypeError, ValueError):
        after_ms = 0.0
    if isinstance(value, bool) or not 1 <= after_ms <= 600_000:
        raise InvalidInput(
            f"storage option {HEDGE_AFTER} is a number of milliseconds from 1 to 600000, or "
            f"{MEASURED}: the 95th percentile of the last reads"
        )
    return HedgedReads(after_ms / 1_000)


def _sent_twice(first: Future[_T], request: Callable[[], _T]) -> Future[_T]:
    """Send the request again; return the one that is answered first, or `first` if both fail."""
    count_hedged("sent_twice")
    second = _submit(request)
    wait([first, second], return_when=FIRST_COMPLETED)
    faster, slower = (first, second) if first.done() else (second, first)
    if faster.exception() is not None and slower.exception() is None:
        faster = slower
    if faster is second and second.exception() is None:
        count_hedged("second_first")
        return second
    return first


def _submit(request: Callable[[], _T]) -> Future[_T]:
    """Run a request in a pool of its own: tasks of other pools wait for it."""
    with _pool_lock:
        pool = _pools.get(os.getpid())
        if pool is None:
            pool = _pools[os.getpid()] = Threads(_THREADS, "rowsieve-hedge")
    return pool.submit(request)
