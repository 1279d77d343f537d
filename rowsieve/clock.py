"""The time of the process: all code that decides by a clock, or sleeps, asks here.

Durations that are only reported are measured elsewhere, by `time.perf_counter`. `running_on`
replaces the clock of the whole process, so that a simulation can own the time.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Clock(Protocol):
    """A source of time, and the only thing that can wait for it. Thread-safe."""

    def now_us(self) -> int:
        """Return the wall-clock time in microseconds from 1970; it may jump."""

    def monotonic_s(self) -> float:
        """Return seconds from a fixed moment; they never go back."""

    def sleep(self, seconds: float) -> None:
        """Return once so many seconds have passed."""

    def sleep_up_to(self, longest_s: float) -> None:
        """Return after a random part of so many seconds (jitter)."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Return True once the event is set, or False after so many seconds."""


class SystemClock:
    """The clock of the operating system."""

    def now_us(self) -> int:
        """Return the wall-clock time in microseconds from 1970."""
        return time.time_ns() // 1000

    monotonic_s = staticmethod(time.monotonic)

    def sleep(self, seconds: float) -> None:
        """Sleep in this thread."""
        time.sleep(seconds)

    def sleep_up_to(self, longest_s: float) -> None:
        """Sleep in this thread for a random part of so many seconds."""
        self.sleep(random.uniform(0, longest_s))  # noqa: S311 - not a secret

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for the event, at most so many seconds."""
        return event.wait(seconds)


_clock: Clock = SystemClock()


def now_us() -> int:
    """Return the wall-clock time in microseconds from 1970."""
    return _clock.now_us()


def monotonic_s() -> float:
    """Return seconds from a fixed moment; they never go back."""
    return _clock.monotonic_s()


def sleep(seconds: float) -> None:
    """Return once so many seconds have passed."""
    _clock.sleep(seconds)


def sleep_up_to(longest_s: float) -> None:
    """Return after a random part of so many seconds (jitter)."""
    _clock.sleep_up_to(longest_s)


def wait(event: threading.Event, seconds: float) -> bool:
    """Return True once the event is set, or False after so many seconds."""
    return _clock.wait(event, seconds)


@contextmanager
def running_on(clock: Clock) -> Iterator[None]:
    """Use another clock in all threads of the process until the end of the block."""
    global _clock  # noqa: PLW0603 - one clock for the process is the point
    before, _clock = _clock, clock
    try:
        yield
    finally:
        _clock = before
