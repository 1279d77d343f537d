"""Puts of one change that overlap, with each other and with what is put for its commit.

Soundness (invariants, rule 3): nothing may refer to these objects before `wait` has returned. An
upload that nobody waits for leaves an object that nothing refers to.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from functools import partial
from typing import Final

from rowsieve.objects.durable import put_fresh
from rowsieve.objects.fetching import begin
from rowsieve.objects.store import ObjectStore

MOST_BYTES: Final = 64 * 1024 * 1024  # on their way at the same time, unless one is larger


class Uploads:
    """Objects under fresh names, put by one thread at a time.

    Where a request costs no round trip each is put at once.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._begun: deque[tuple[int, Future[None]]] = deque()
        self._failed: BaseException | None = None

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Put an object, by `wait` at the latest; an error may be that of an earlier one."""
        if not self._store.overlaps:
            put_fresh(self._store, path, data)
            return
        size = len(data)
        self._finish(room_bytes=MOST_BYTES - size)
        upload = begin(partial(put_fresh, self._store, path, data))
        self._begun.append((size, upload))

    def wait(self) -> None:
        """Return when all stand and are durable; raise the first error once all have ended.

        After an error no later call succeeds: an object is missing that was to be referred to.
        """
        self._finish(room_bytes=0)

    def _finish(self, room_bytes: int) -> None:
        """Wait for the oldest uploads until no more than so many bytes are on their way."""
        while self._begun and sum(size for size, _ in self._begun) > max(room_bytes, 0):
            error = self._begun[0][1].exception()
            self._begun.popleft()
            self._failed = self._failed or error
        if self._failed is not None and not self._begun:
            raise self._failed
