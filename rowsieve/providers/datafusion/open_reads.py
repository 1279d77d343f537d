"""Reads that threads of DataFusion and Polars may still use when the interpreter ends.

These engines drop a query (after a LIMIT, a failure, or a dropped stream) without waiting for its
threads. If a thread acquires the GIL after finalization has begun, CPython before 3.14 terminates
the thread inside Rust, which aborts the process. So this module keeps a weak reference to every
object that a thread can call. An exit handler ends the reads and waits, with the GIL released,
until each object is dropped or idle.

A thread that only hands over a result calls none of these objects: the thread of an asynchronous
query sets its future, which wakes the main thread, and then needs the GIL once more. So the handler
also waits until no thread that Python did not start is inside Python.

The handler must not return while a call is in progress, so it has no deadline. A noted object stays
alive as long as a thread can call it, because the thread's plan or iterator owns it. Clearing its
weak reference runs no Python code, so no thread switch can occur between the last use and the
clearing.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, ParamSpec, Self, TypeVar

from rowsieve.errors import RowsieveError

Rows = TypeVar("Rows")
P = ParamSpec("P")
R = TypeVar("R")

QUIET_S: Final = 0.25
"""A live object is idle if it has not been called for this many seconds.

The program still holds its stream, its plan or an exception that references it. The thread waits in
a full channel of the engine; the delay covers a thread that is about to get there.
"""
_POLL_S: Final = 0.001
_QUIET_POLLS: Final = 10
"""Consecutive checks that must find no call in progress: a thread may be about to enter Python."""
FOREIGN_S: Final = 2.0
"""The longest wait for foreign threads to leave Python: some never do."""

_ENGINES: Final = ("datafusion", "polars")


def while_alive(method: Callable[P, R]) -> Callable[P, R]:
    """Return a function that calls a bound method without keeping its object alive.

    An engine's objects are invisible to the garbage collector: one that kept the Python object
    which owns it would never be freed. RowsieveError once the object is gone.
    """
    reference = weakref.WeakMethod(method)

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if (bound := reference()) is None:
            raise RowsieveError("the session that a table of a query belonged to no longer exists")
        result: R = bound(*args, **kwargs)
        return result

    return call


class EngineUse:
    """An object that an engine's threads call; the exit handler waits until it is dropped or idle.

    `planned_by` is the thread that planned the query; `planned_s` is the monotonic time of it.
    """

    __slots__ = ("__weakref__", "is_called", "last_call_s", "planned_by", "planned_s")

    def __init__(self, planned: EngineUse | None = None) -> None:
        self.is_called = False
        self.last_call_s: float = time.monotonic()
        self.planned_by: threading.Thread = (
            planned.planned_by if planned else threading.current_thread()
        )
        self.planned_s: float = planned.planned_s if planned else self.last_call_s
        OPEN_READS.note(self)

    def is_idle(self) -> bool:
        """True if no call is in progress, and none has ended within the last `QUIET_S` seconds."""
        return not self.is_called and time.monotonic() - self.last_call_s > QUIET_S


class Batches(EngineUse, Generic[Rows]):
    """The batches of one partition; one thread at a time calls `next`."""

    __slots__ = ("_batches",)

    def __init__(self, batches: Iterator[Rows], planned: EngineUse | None = None) -> None:
        self._batches = batches
        super().__init__(planned)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Rows:
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
    """Identifiers of threads inside Python or waiting for the GIL that Python did not start.

    `sys._current_exceptions` lists every thread of the interpreter, `_current_frames` only those
    that are executing Python code.
    """
    started = (t for t in threading.enumerate() if not isinstance(t, threading._DummyThread))
    return set(sys._current_exceptions()) - {thread.ident for thread in started}


class OpenReads:
    """The objects that engines may still call, and the exit handler for them; thread-safe."""

    def __init__(self) -> None:
        self._uses: list[weakref.ref[EngineUse]] = []
        self._compact_at = 64
        self._lock = threading.Lock()
        self._is_registered = False
        self._ended_at_s: float | None = None

    def note(self, use: EngineUse) -> None:
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

    @property
    def has_ended(self) -> bool:
        """True if the interpreter is ending."""
        return self._ended_at_s is not None

    def check_open(self, use: EngineUse) -> None:
        """Raise if the interpreter is ending, except for queries that the main thread plans then.

        Other exit handlers run in the main thread and may query.
        """
        ended_at_s = self._ended_at_s
        if ended_at_s is None:
            return
        if use.planned_by is not threading.main_thread() or use.planned_s < ended_at_s:
            raise RowsieveError("an engine's read of a table stopped: the interpreter is ending")

    def check_planning(self) -> None:
        """Block a daemon thread that plans a query while the interpreter is ending."""
        thread = threading.current_thread()
        if self._ended_at_s is not None and thread is not threading.main_thread():
            threading.Event().wait()

    def end(self) -> None:
        """End the reads of all threads and wait for the calls in progress."""
        main = threading.main_thread()
        self._ended_at_s = ended_at_s = time.monotonic()
        others = any(use.planned_by is not main for use in self._alive())
        engines: list[Any] = [sys.modules[name] for name in _ENGINES if name in sys.modules]
        quiet_polls = 0
        while quiet_polls < _QUIET_POLLS:
            for engine in engines:
                engine.lit(0)  # any call makes Rust release objects that threads dropped GIL-free
            is_quiet = all(use.is_idle() for use in self._alive())
            if foreign_threads() and time.monotonic() - ended_at_s < FOREIGN_S:
                is_quiet = False
            quiet_polls = quiet_polls + 1 if is_quiet else 0
            time.sleep(_POLL_S)
        if others:
            time.sleep(QUIET_S)  # lets a daemon thread receive the failure of its query

    def _alive(self) -> Iterator[EngineUse]:
        with self._lock:
            refs = list(self._uses)
        return (use for ref in refs if (use := ref()) is not None)

    def _forget(self) -> None:
        """Forget all objects in a forked child, which does not have the calling threads."""
        self._lock = threading.Lock()
        self._uses = []


OPEN_READS: Final = OpenReads()
