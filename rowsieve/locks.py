"""A lock that is free after a fork, and whose protected state is consistent.

`fork` copies all memory but only the calling thread. A lock held by another thread would never be
released in the child, and the state it protects could be half changed. Therefore all locks are
acquired before a fork and released in the parent and the child. No code may hold two of these locks
at a time, or one across I/O (invariant 21), so the wait is short.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Final
from weakref import WeakSet

_ACQUIRE_TIMEOUT_S: Final = 1.0  # a thread that forks while it holds a lock would deadlock


class ForkSafeLock:
    """A mutex for `with`; not re-entrant.

    `with lock.mutex:` is the same without two calls. A fork replaces the mutex in the child, so
    nobody may keep a reference to it.
    """

    __slots__ = ("__weakref__", "mutex")

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        _locks.add(self)

    def __enter__(self) -> None:
        self.mutex.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.mutex.release()


_locks: WeakSet[ForkSafeLock] = WeakSet()
_acquired: list[threading.Lock] = []  # by the fork in progress


def _acquire_all() -> None:
    locks = (lock.mutex for lock in list(_locks))
    _acquired.extend(lock for lock in locks if lock.acquire(timeout=_ACQUIRE_TIMEOUT_S))


def _release_all() -> None:
    while _acquired:
        _acquired.pop().release()


def _replace_all() -> None:
    _acquired.clear()
    for lock in list(_locks):
        lock.mutex = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_acquire_all, after_in_parent=_release_all, after_in_child=_replace_all
    )
