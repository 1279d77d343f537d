"""Reads that DataFusion's threads may still use when the interpreter ends.

DataFusion drops a query (a LIMIT that is reached, a failure, a stream that nobody wants any more)
without waiting for its threads. One that asks for the GIL after finalization has begun is ended by
CPython before 3.14 inside Rust, which aborts the process. So every object that a thread can call is
noted here, by a weak reference, and an exit handler ends the reads and waits, the GIL released,
until each object was dropped, or is idle.

A thread that only hands over a result calls none of these objects: that of an asynchronous query
sets its future, which wakes the main thread, and then has the GIL once more. So the handler also
waits until no thread is inside Python that Python did not start.

Never may the handler return while a call is in progress: it has no deadline. A noted object stays
alive for as long as a thread can call it, because the thread's plan or iterator owns it. Its weak
reference is cleared without running Python code, so no thread switch lies between the clearing and
the last use.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Final, Self

import pyarrow as pa

from rowsieve.errors import RowsieveError

QUIET_S: Final = 0.25
"""How long an object that is alive must not have been called to count as idle.

Such an object belongs to a stream or a plan that the program keeps, or to a kept exception. Its
thread waits in a full channel of DataFusion; the time covers a thread that is about to get there.
"""
_POLL_S: Final = 0.001
_QUIET_POLLS: Final = 10
"""How often in a row nothing may be in progress: a thread may be about to come back into Python."""
FOREIGN_S: Final = 2.0
"""How long to wait for threads inside Python that Python did not start: some never leave."""


class Use:
    """An object that DataFusion's threads call; the exit waits until it is dropped or idle.

    `planned_by` is the thread that planned the query, `planned_s` when, by the monotonic clock.
    """

    __slots__ = ("__weakref__", "is_called", "last_call_s", "planned_by", "planned_s")

    def __init__(self, planned: Use | None = None) -> None:
        self.is_called = False
        self.last_call_s: float = time.monotonic()
        self.planned_by: threading.Thread = (
            planned.planned_by if planned else threading.current_thread()
        )
        self.planned_s: float = planned.planned_s if planned else self.last_call_s
        OPEN_READS.note(self)

    def is_idle(self) -> bool:
        """Whether no call is in progress, nor ended within `QUIET_S`."""
        return not self.is_called and time.monotonic() - self.last_call_s > QUIET_S


class Batches(Use):
    """The batches of one partition. One thread at a time asks for the next."""

    __slots__ = ("_batches",)

    def __init__(self, batches: Iterator[pa.RecordBatch], planned: Use) -> None:
        self._batches = batches
        super().__init__(planned)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        self.is_called = True
        try:
            OPEN_READS.check_open(self)
            return next(self._batches)
        finally:
            self.last_call_s = time.monotonic()
            self.is_called = False

    def __del__(self) -> None:
        # The generator's Python code must have run before the weak reference is cleared.
        if (close := getattr(self._batches, "close", None)) is not None:
            close()


def foreign_threads() -> set[int]:
    """Identifiers of the threads that are inside Python, or wait for the GIL, not started by it.

    `sys._current_exceptions` has every thread of the interpreter, `_current_frames` only those that
    are executing Python code.
    """
    started = (t for t in threading.enumerate() if not isinstance(t, threading._DummyThread))
    return set(sys._current_exceptions()) - {thread.ident for thread in started}


class OpenReads:
    """What DataFusion may still call, and the exit handler that waits for it. Thread-safe."""

    def __init__(self) -> None:
        self._uses: list[weakref.ref[Use]] = []
        self._compact_at = 64
        self._lock = threading.Lock()
        self._is_registered = False
        self._ended_at_s: float | None = None

    def note(self, use: Use) -> None:
        """Wait for this object at exit."""
        with self._lock:
            if len(self._uses) >= self._compact_at:
                self._uses = [ref for ref in self._uses if ref() is not None]
                self._compact_at = 64 + 2 * len(self._uses)
            self._uses.append(weakref.ref(use))

    def wait_at_exit(self) -> None:
        """Register the exit handler, once."""
        with self._lock:
            if not self._is_registered:
                atexit.register(self.end)
                if hasattr(os, "register_at_fork"):  # Windows has no fork
                    os.register_at_fork(after_in_child=self._forget)
                self._is_registered = True

    def check_open(self, use: Use) -> None:
        """Raise if the interpreter is ending; what the main thread plans since then is served.

        Other exit handlers may query, and they run in the main thread.
        """
        ended_at_s = self._ended_at_s
        if ended_at_s is None:
            return
        if use.planned_by is not threading.main_thread() or use.planned_s < ended_at_s:
            raise RowsieveError("DataFusion's read of a table: stopped, the interpreter is ending")

    def check_planning(self) -> None:
        """Called while planning: a daemon thread that plans while Python ends stays here."""
        thread = threading.current_thread()
        if self._ended_at_s is not None and thread is not threading.main_thread():
            threading.Event().wait()

    def end(self) -> None:
        """End the reads of all threads and wait for the calls in progress."""
        import datafusion  # noqa: PLC0415 - imported long ago by whoever noted a use

        main = threading.main_thread()
        self._ended_at_s = ended_at_s = time.monotonic()
        others = any(use.planned_by is not main for use in self._alive())
        quiet_polls = 0
        while quiet_polls < _QUIET_POLLS:
            datafusion.lit(0)  # any call: Rust gives back what its threads dropped without the GIL
            is_quiet = all(use.is_idle() for use in self._alive())
            if foreign_threads() and time.monotonic() - ended_at_s < FOREIGN_S:
                is_quiet = False
            quiet_polls = quiet_polls + 1 if is_quiet else 0
            time.sleep(_POLL_S)
        if others:
            time.sleep(QUIET_S)  # a daemon thread takes the failure of its query

    def _alive(self) -> Iterator[Use]:
        with self._lock:
            refs = list(self._uses)
        return (use for ref in refs if (use := ref()) is not None)

    def _forget(self) -> None:
        """In a forked child: the threads that called are not there."""
        self._lock = threading.Lock()
        self._uses = []


OPEN_READS: Final = OpenReads()
