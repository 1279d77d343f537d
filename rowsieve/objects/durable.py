"""Putting an object under a fresh name, whatever the store reports about it.

Soundness: returns only when exactly these bytes stand at the name (invariants, rules 1 and 4), and
no fsync has failed on the way: that is never tried again (invariants, rule 3).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from time import monotonic
from typing import Final, TypeVar

from rowsieve.errors import CorruptData, StoreError
from rowsieve.objects.store import ObjectExists, ObjectNotFound, ObjectStore, SyncFailed

PATIENCE_S: Final = 60.0
_ATTEMPTS: Final = 5
_READINGS: Final = 3
_FIRST_PAUSE_S: Final = 0.01

T = TypeVar("T")


def put_fresh(store: ObjectStore, path: str, data: bytes | memoryview) -> None:
    """Put under a name nobody else uses (it holds a fresh uuid).

    "Already exists" may be our own put behind a hidden retry: the bytes that stand there decide.
    """
    patience = Patience(_ATTEMPTS)
    while True:
        problem: Exception
        try:
            store.put_new(path, data)
        except SyncFailed as error:
            raise StoreError(f"{error}; no commit refers to it") from error
        except (ObjectExists, StoreError) as error:
            problem = error
        else:
            return
        try:
            reading_whole(store, lambda: _check_standing(store, path, data))
        except (ObjectNotFound, StoreError):
            if patience.again():
                continue
            raise StoreError(
                f"could not create {path} in {store.uri} in {patience.attempts} attempts: {problem}"
            ) from problem
        store.make_durable(path)
        return


def _check_standing(store: ObjectStore, path: str, data: bytes | memoryview) -> None:
    standing = store.get(path)
    if standing != memoryview(data):
        raise CorruptData(
            f"{path} in {store.uri} was to be created under a fresh name, but other bytes stand "
            f"there ({len(standing)} instead of {len(data)} bytes)"
        )


class Patience:
    """How often, and for how long, one thing is asked of a store that fails.

    A store that refuses everything at once is asked as often as that; one that takes its time to
    refuse, and whose client tries again by itself, not for longer than `PATIENCE_S`.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._ends_s = monotonic() + PATIENCE_S
        self.attempts = 1
        """Those that were made, with the one that is being made."""

    def again(self) -> bool:
        """Pause and count another attempt; False if none is left."""
        if self.attempts >= self._most or monotonic() > self._ends_s:
            return False
        pause(self.attempts - 1)
        self.attempts += 1
        return True


def reading_whole(store: ObjectStore, read: Callable[[], T]) -> T:
    """What `read` gets and decodes; across a network it is read again before it is called damaged.

    An answer that was cut short, and says that it is whole, looks like an object that is damaged.
    """
    if not store.overlaps:
        return read()
    patience = Patience(_READINGS)
    while True:
        try:
            return read()
        except CorruptData:
            if not patience.again():
                raise


def pause(attempt: int, *, first_s: float = _FIRST_PAUSE_S, longest_s: float = 1.0) -> None:
    """Sleep a random time that may double with each attempt."""
    time.sleep(random.uniform(0, min(longest_s, first_s * 2.0**attempt)))  # noqa: S311 - jitter
