"""A lock that a forked process finds free, over state that no thread was changing.

`fork` copies memory but only the thread that called it: a lock that another thread held would never
be released in the child, and what that thread was changing would stay half changed. So every lock
is taken before a fork and given back on both sides. No code may hold two of these at a time, nor
one across I/O (invariant 21), so this waits for moments only.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Final
from weakref import WeakSet

_PATIENCE_S: Final = 1.0  # for a thread that forks while it holds one of these itself


class ForkSafeLock:
    """A mutual exclusion lock, for `with`; not re-entrant."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()


_locks: WeakSet[ForkSafeLock] = WeakSet()
_taken: list[threading.Lock] = []  # for the fork that is going on


def _take_all() -> None:
    _taken.extend(lock._lock for lock in list(_locks) if lock._lock.acquire(timeout=_PATIENCE_S))


def _give_back() -> None:
    while _taken:
        _taken.pop().release()


def _make_free() -> None:
    _taken.clear()
    for lock in list(_locks):
        lock._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_give_back, after_in_child=_make_free)
