"""Acknowledgements of a writer's calls, for threads and for asyncio."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable

from rowsieve.arguments import checked


class _Failure:
    """The error of a call; warns when it is dropped and nobody has read it.

    Only failed calls have one, so that those which succeed cost nothing.
    """

    __slots__ = ("error", "is_read")

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.is_read = False

    def __del__(self) -> None:
        """Warn about changes that were lost without the caller's knowledge."""
        if not self.is_read and not sys.is_finalizing():
            warnings.warn(
                "a call of a writer failed, and its changes are not in the table; nobody asked its "
                f"acknowledgement for the result: {type(self.error).__name__}: {self.error}. Call "
                "result() of what upsert, append and delete return",
                RuntimeWarning,
                stacklevel=2,
            )


class Acknowledgement:
    """Is done once the call's changes are durable, or have failed.

    A RuntimeWarning tells of a failure that was dropped before `result` or `exception` gave it.
    """

    __slots__ = ("_callback", "_failure", "_pending", "_value")

    def __init__(self) -> None:
        self._pending = threading.Lock()
        self._pending.acquire()  # whoever completes it releases the lock: cheaper than an event
        self._value = 0
        self._failure: _Failure | None = None
        self._callback: Callable[[], None] | None = None

    def __repr__(self) -> str:
        state = "pending" if not self.done() else "failed" if self._failure else "done"
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
        if (error := self.exception()) is not None:
            raise error
        return self._value

    def exception(self) -> BaseException | None:
        """Return the error of a call that is done; None if it succeeded, or is pending."""
        if self._failure is None or not self.done():
            return None
        self._failure.is_read = True
        return self._failure.error

    def complete(self, value: int, error: BaseException | None = None) -> None:
        """Wake all waiters; for the writer, once."""
        self._value, self._failure = value, None if error is None else _Failure(error)
        self._pending.release()
        if (callback := self._callback) is not None:
            callback()

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call this when the call is done, in the thread that completes it; at once if it is."""
        self._callback = callback
        if self.done():
            callback()
