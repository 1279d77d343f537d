"""Put an object under a fresh name, and retry against a store that fails.

Soundness: `put_fresh` returns only when the name holds exactly these bytes (invariants, rules 1 and
4) and no fsync failed. A failed fsync is never retried (invariants, rule 3).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from rowsieve import clock
from rowsieve.errors import CorruptData, StoreError
from rowsieve.objects.store import (
    Converting,
    NotCreated,
    ObjectExists,
    ObjectNotFound,
    ObjectStore,
    SyncFailed,
)

PATIENCE_S: Final = 60.0
_ATTEMPTS: Final = 5
_READINGS: Final = 3
_FIRST_PAUSE_S: Final = 0.01
_LONGEST_PAUSE_S: Final = 1.0

T = TypeVar("T")


def put_fresh(store: ObjectStore, path: str, data: bytes | memoryview) -> None:
    """Create an object under a name that nobody else uses (it contains a fresh uuid).

    "Already exists" may be the result of a hidden retry of our own put, so the stored bytes decide.
    StoreError if no attempt succeeds, at once for an error that a retry cannot change; CorruptData
    if the name holds other bytes.
    """
    patience = Patience(_ATTEMPTS)
    while True:
        problem: Exception
        try:
            store.put_new(path, data)
        except SyncFailed as error:
            raise StoreError(f"{error}; no commit refers to it") from error
        except NotCreated as error:
            raise StoreError(str(error)) from error
        except (ObjectExists, StoreError) as error:
            problem = error
        else:
            return
        try:
            _check_content(store, path, data)
        except (ObjectNotFound, StoreError):
            if patience.again():
                continue
            raise StoreError(
                f"could not create {path} in {store.uri} in {patience.attempts} attempts: {problem}"
            ) from problem
        store.make_durable(path)
        return


def put_if_absent(store: ObjectStore, path: str, data: bytes | memoryview) -> bool:
    """Create an object unless its name has other bytes; return whether it holds these.

    The put is repeated like that of `put_fresh`: a connection that breaks says nothing about it.
    """
    try:
        put_fresh(store, path, data)
    except _OtherContents:
        return False
    return True


class _OtherContents(CorruptData):
    """The name of a put holds other bytes."""


def _check_content(store: ObjectStore, path: str, data: bytes | memoryview) -> None:
    """Raise _OtherContents unless the name holds these bytes; only a cut answer is read again."""
    wanted = memoryview(data)

    def read() -> bytes:
        stored = store.get(path)
        if len(stored) < len(wanted) and wanted[: len(stored)] == stored:
            raise other(stored)
        return stored

    def other(stored: bytes) -> _OtherContents:
        return _OtherContents(
            f"cannot create {path} in {store.uri}: the name is fresh, but an object with other "
            f"contents exists there ({len(stored)} bytes found, {len(data)} bytes written)"
        )

    stored = reading_whole(store, read)
    if stored != wanted:
        raise other(stored)


def stating_outcome(operation: str, look: str) -> Converting:
    """Convert NotCreated and SyncFailed of a block to StoreError that says what was committed.

    `look`: where the caller looks, before another try, if that is not sure.
    """
    return Converting(partial(_state_outcome, operation, look))


def _state_outcome(operation: str, look: str, error: Exception) -> None:
    if isinstance(error, SyncFailed) and error.is_visible:
        raise StoreError(f"{operation}: {error}. {look} before trying again") from error
    if isinstance(error, NotCreated | SyncFailed):
        raise StoreError(f"{operation}: {error}; nothing was committed") from error


class Patience:
    """A limit on the retries of one operation: `max_attempts`, within `PATIENCE_S` seconds.

    A store that fails quickly gets all attempts. A store that fails slowly, because its client
    retries internally, gets no new attempt after `PATIENCE_S`.
    """

    def __init__(self, max_attempts: int) -> None:
        self._max_attempts = max_attempts
        self._ends_s = clock.monotonic_s() + PATIENCE_S
        self.attempts = 1
        """Number of attempts started, the current one included."""

    def again(self) -> bool:
        """Pause and count another attempt; False if the limit is reached."""
        if self.attempts >= self._max_attempts or clock.monotonic_s() > self._ends_s:
            return False
        pause(self.attempts - 1)
        self.attempts += 1
        return True


def reading_whole(store: ObjectStore, read: Callable[[], T]) -> T:
    """Return the result of `read`; across a network, retry it when it raises CorruptData.

    A truncated response that claims to be complete looks like a damaged object, so CorruptData is
    raised only after several reads.
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


def pause(attempt: int) -> None:
    """Sleep for a random time whose limit doubles with each attempt."""
    clock.sleep_up_to(min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0**attempt))
