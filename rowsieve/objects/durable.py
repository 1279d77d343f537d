"""Putting an object under a fresh name, whatever the store reports about it.

Soundness: returns only when exactly these bytes stand at the name (invariants, rules 1 and 4), and
no fsync has failed on the way: that is never tried again (invariants, rule 3).
"""

from __future__ import annotations

import random
import time
from typing import Final

from rowsieve.errors import CorruptData, StoreError
from rowsieve.objects.store import ObjectExists, ObjectNotFound, ObjectStore, SyncFailed

_ATTEMPTS: Final = 5
_FIRST_PAUSE_S: Final = 0.01


def put_fresh(store: ObjectStore, path: str, data: bytes | memoryview) -> None:
    """Put under a name nobody else uses (it holds a fresh uuid).

    "Already exists" may be our own put behind a hidden retry: the bytes that stand there decide.
    """
    problem: Exception | None = None
    for attempt in range(_ATTEMPTS):
        try:
            store.put_new(path, data)
        except SyncFailed as error:
            raise StoreError(f"{error}; no commit refers to it") from error
        except (ObjectExists, StoreError) as error:
            problem = error
        else:
            return
        try:
            standing = store.get(path)
        except (ObjectNotFound, StoreError):
            pause(attempt)
            continue
        if standing != memoryview(data):
            raise CorruptData(
                f"{path} in {store.uri} was to be created under a fresh name, but other bytes "
                f"stand there ({len(standing)} instead of {len(data)} bytes)"
            ) from problem
        store.make_durable(path)
        return
    raise StoreError(
        f"could not create {path} in {store.uri} in {_ATTEMPTS} attempts: {problem}"
    ) from problem


def pause(attempt: int, *, first_s: float = _FIRST_PAUSE_S, longest_s: float = 1.0) -> None:
    """Sleep a random time that may double with each attempt."""
    time.sleep(random.uniform(0, min(longest_s, first_s * 2.0**attempt)))  # noqa: S311 - jitter
