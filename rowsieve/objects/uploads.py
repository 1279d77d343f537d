"""Concurrent uploads of one change's files.

They run concurrently with each other and with the puts of the commit itself.

Soundness (invariants, rule 3): nothing may refer to these objects before `wait` has returned. An
upload without a `wait` leaves an unreferenced object.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from functools import partial
from typing import Final

from rowsieve.errors import StoreError
from rowsieve.objects.drafts import Draft
from rowsieve.objects.durable import put_fresh
from rowsieve.objects.fetching import begin
from rowsieve.objects.store import NotCreated, ObjectExists, ObjectStore, SyncFailed

MAX_BYTES: Final = 64 * 1024 * 1024  # in flight; a single larger object is allowed
RECENT_BYTES: Final = 16 * 1024 * 1024  # of objects that may be read before they exist


class Uploads:
    """Uploads of objects under fresh names. Not thread-safe: one caller at a time.

    If the store does not overlap requests, `put` writes each object before it returns.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.store: Final = store
        self.recent: Final[dict[str, bytes | memoryview]] = {}
        """The first objects since the last `wait`, up to `RECENT_BYTES`; none of a local disk."""
        self._recent_bytes = 0
        self._running: deque[tuple[int, Future[None]]] = deque()
        self._failed: BaseException | None = None

    def publish(self, draft: Draft) -> None:
        """Put a complete draft as `put` does."""
        if (file := draft.file) is None:
            self.put(draft.path, draft.read_span(0, draft.size_bytes))
            return
        try:
            file.publish()
        except (SyncFailed, NotCreated, ObjectExists) as error:
            raise StoreError(f"{error}; no commit refers to it") from error

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Start a put that `wait` completes; may raise the error of an earlier put."""
        if not self.store.overlaps:
            put_fresh(self.store, path, data)
            return
        size = len(data)
        if self._recent_bytes + size <= RECENT_BYTES:
            self.recent[path] = data
            self._recent_bytes += size
        self._finish(room_bytes=MAX_BYTES - size)
        upload = begin(partial(put_fresh, self.store, path, data))
        self._running.append((size, upload))
        if size > MAX_BYTES:  # the next object is as large: do not hold both
            self._finish(room_bytes=0)

    def wait(self) -> None:
        """Wait until all objects exist and are durable; raise the first error after all ended.

        After an error every later call raises too, because a required object is missing.
        """
        self.recent.clear()
        self._recent_bytes = 0
        self._finish(room_bytes=0)

    def _finish(self, room_bytes: int) -> None:
        """Wait for the oldest uploads until at most `room_bytes` are in flight."""
        while self._running and sum(size for size, _ in self._running) > max(room_bytes, 0):
            error = self._running[0][1].exception()
            self._running.popleft()
            self._failed = self._failed or error
        if self._failed is not None and not self._running:
            raise self._failed
