"""Limit how fast a compaction writes, and stop it between two batches."""

from __future__ import annotations

from collections.abc import Callable
from threading import TIMEOUT_MAX, Event

from rowsieve.clock import monotonic_s
from rowsieve.errors import InvalidInput


class Stopped(Exception):
    """The compaction was stopped; what it wrote is not committed."""


class Pace:
    """The rate limit and the stop switch of one call; `stop` may come from another thread.

    `clock` and `wait` are replaced in tests.
    """

    def __init__(
        self,
        max_bytes_per_s: float | None = None,
        *,
        clock: Callable[[], float] = monotonic_s,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        if max_bytes_per_s is not None and not max_bytes_per_s > 0:
            raise InvalidInput(
                f"max_bytes_per_s is {max_bytes_per_s!r}; it is a number of bytes above 0, such as "
                "50e6, or None for no limit"
            )
        self._rate = max_bytes_per_s
        self._clock = clock
        self._stop = Event()
        self._wait = self._stop.wait if wait is None else wait
        self._begun_s: float | None = None
        self._bytes = 0

    def stop(self) -> None:
        """Make the next `take` raise Stopped; a `take` that waits ends at once."""
        self._stop.set()

    def check(self) -> None:
        """Raise Stopped once it was stopped."""
        if self._stop.is_set():
            raise Stopped

    def take(self, size_bytes: int) -> None:
        """Note bytes in memory that will be written; wait until the rate since the start allows it.

        The rate counts decoded bytes, which are more than the stored ones.
        """
        self.check()
        if self._rate is None:
            return
        now_s = self._clock()
        if self._begun_s is None:
            self._begun_s = now_s
        self._bytes += size_bytes
        early_s = self._begun_s + self._bytes / self._rate - now_s
        if early_s > 0:
            self._wait(min(early_s, TIMEOUT_MAX))
            self.check()
