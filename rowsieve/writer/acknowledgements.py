"""Acknowledgements of a writer's calls, for threads and for asyncio."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rowsieve.arguments import checked


class Acknowledgement:
    """Is done once the call's changes are durable, or have failed."""

    __slots__ = ("_callback", "_error", "_pending", "_value")

    def __init__(self) -> None:
        self._pending = threading.Lock()
        self._pending.acquire()  # whoever completes it releases the lock: cheaper than an event
        self._value = 0
        self._error: BaseException | None = None
        self._callback: Callable[[], None] | None = None

    def __repr__(self) -> str:
        state = "pending" if not self.done() else "failed" if self._error else "done"
        return f"<rowsieve.Acknowledgement: {state}>"

    def done(self) -> bool:
        """Return whether `result` would return at once."""
        return not self._pending.locked()

    @checked
    def result(self, timeout_s: float | None = None) -> int:
        """Wait until the changes are durable, and return their sequence or version.

        The sequence is that of the write-ahead log; with `durability="commit"`, it is the version
        of the commit. Raises the error of the call; TimeoutError after `timeout_s` seconds.
        """
        wait_s = -1 if timeout_s is None else min(max(0.0, timeout_s), threading.TIMEOUT_MAX)
        if not self._pending.acquire(timeout=wait_s):
            raise TimeoutError(f"the changes were not durable after {timeout_s} seconds")
        self._pending.release()
        if self._error is not None:
            raise self._error
        return self._value

    def exception(self) -> BaseException | None:
        """Return the error of a call that is done; None if it succeeded, or is pending."""
        return self._error if self.done() else None

    def complete(self, value: int, error: BaseException | None = None) -> None:
        """Wake all waiters; for the writer, once."""
        self._value, self._error = value, error
        self._pending.release()
        if (callback := self._callback) is not None:
            callback()

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call this when the call is done, in the thread that completes it; at once if it is."""
        self._callback = callback
        if self.done():
            callback()
