"""The objects of one change: drafts, and concurrent uploads.

A draft is written in several calls before it gets a name.
A draft is in memory while it is small. On a local disk a larger one continues in a temporary file
of the final directory, so that memory does not grow with the size of an object. A remote store gets
an object in one request, so there a draft stays in memory.

Soundness (invariants, rules 3 and 4): the name appears once, with all bytes, after they are synced.
An abandoned draft removes its temporary file. After a crash the file is a leftover like that of any
put (`.tmp-*`), which no listing shows. Nothing may refer to uploaded objects before `Uploads.wait`
has returned; an upload without it leaves an unreferenced object.
"""

from __future__ import annotations

import io
import os
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import xxhash

from rowsieve.errors import StoreError
from rowsieve.objects.durable import put_fresh
from rowsieve.objects.fetching import begin
from rowsieve.objects.ref_store import RefStore
from rowsieve.objects.shared.section_store import SectionStore
from rowsieve.objects.store import NotCreated, ObjectExists, ObjectStore, SyncFailed

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

SPILL_BYTES: Final = 8 * 1024 * 1024
"""A local draft that is larger continues in a file."""


WRITE_BYTES: Final = 1024 * 1024
"""Bytes that a draft collects before it writes them to its file."""


MAX_BYTES: Final = 64 * 1024 * 1024  # in flight; a single larger object is allowed
RECENT_BYTES: Final = 16 * 1024 * 1024  # of objects that may be read before they exist


class DraftFile:
    """A temporary file; `failing` converts an OSError to errors of the store.

    `publish` is called with the open descriptor and the temporary name.
    """

    def __init__(
        self,
        descriptor: int,
        temporary: Path,
        failing: Callable[[], AbstractContextManager[None]],
        publish: Callable[[int, Path], None],
    ) -> None:
        self._descriptor = descriptor
        self._temporary = temporary
        self._failing = failing
        self._publish = publish
        self._discard = weakref.finalize(self, _discard, os.getpid(), descriptor, temporary)

    def write(self, data: Any) -> None:
        """Append all bytes."""
        view = memoryview(data).cast("B")
        with self._failing():
            while view.nbytes:
                view = view[os.write(self._descriptor, view) :]

    def read(self, start: int, stop: int) -> bytearray:
        """Return bytes `[start, stop)`, which were written before."""
        content = bytearray(stop - start)
        view = memoryview(content)
        with self._failing():
            while view.nbytes:
                count = os.preadv(self._descriptor, [view], stop - view.nbytes)
                if not count:
                    raise OSError(f"{self._temporary} was truncated while it was written")
                view = view[count:]
        return content

    def replace(self, start: int, data: Any) -> None:
        """Overwrite the bytes from `start` on."""
        view = memoryview(data).cast("B")
        with self._failing():
            while view.nbytes:
                count = os.pwrite(self._descriptor, view, start)
                view, start = view[count:], start + count

    def publish(self) -> None:
        """Sync the bytes, give them the final name, and sync it; this ends the draft."""
        try:
            self._publish(self._descriptor, self._temporary)
        finally:
            self._discard()


@runtime_checkable
class KeepsDrafts(Protocol):
    """A store in which a draft can continue in a file."""

    def draft(self, path: str) -> DraftFile:
        """Create a temporary file that `publish` makes the object `path`."""


class Draft(io.RawIOBase):
    """The bytes of one object, appended by `write`; a sink for pyarrow."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        super().__init__()
        self.path: Final = path
        self._store = store
        self._memory = io.BytesIO()  # all bytes, or the last ones; grows by an eighth
        self._file: DraftFile | None = None
        self.size_bytes = 0
        """Bytes written so far."""
        self._hash = xxhash.xxh3_128()
        self._hashed = 0  # bytes of `_memory`

    @property
    def file(self) -> DraftFile | None:
        """The file that has all bytes; None if they are in memory."""
        if self._file is not None:
            self._flush(least_bytes=0)
        return self._file

    def write(self, data: ReadableBuffer) -> int:
        """Append all bytes."""
        count = self._memory.write(data)
        self.size_bytes += count
        if self._file is not None:
            self._flush(least_bytes=WRITE_BYTES)
        elif self.size_bytes > SPILL_BYTES:
            # A data file of a branch, or of a table in a database, has the same path there.
            self._store = _store_of_files(self._store)
            if isinstance(self._store, KeepsDrafts):
                self._file = self._store.draft(self.path)
                self._flush(least_bytes=0)
        return count

    def hash_so_far(self) -> xxhash.xxh3_128:
        """The state of xxh3_128 after the bytes written so far; the caller's own."""
        self._hash_memory()
        return self._hash.copy()

    def read_span(self, start: int, stop: int) -> memoryview:
        """Return bytes `[start, stop)`; release the view before the next write."""
        if (file := self.file) is not None:
            return memoryview(file.read(start, stop))
        return self._memory.getbuffer()[start:stop]

    def replace(self, start: int, data: Any) -> None:
        """Overwrite the bytes from `start` on, which were written before."""
        if (file := self.file) is not None:
            file.replace(start, data)
        else:
            self._memory.getbuffer()[start : start + len(data)] = data

    def _flush(self, *, least_bytes: int) -> None:
        """Move more than `least_bytes` from memory to the file, if the file exists."""
        if self._file is not None and self._memory.tell() > least_bytes:
            self._hash_memory()
            self._file.write(self._memory.getbuffer())
            self._memory, self._hashed = io.BytesIO(), 0

    def _hash_memory(self) -> None:
        with self._memory.getbuffer() as contents:
            self._hash.update(contents[self._hashed :])
            self._hashed = contents.nbytes

    def tell(self) -> int:
        """The position: always the end."""
        return self.size_bytes

    def writable(self) -> bool:
        """Always."""
        return True


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


def _discard(owner: int, descriptor: int, temporary: Path) -> None:
    """Close and remove a temporary file; not in a fork of its owner, which still writes to it."""
    with suppress(OSError):
        os.close(descriptor)
    if os.getpid() == owner:
        with suppress(OSError):
            temporary.unlink()


def _store_of_files(store: ObjectStore) -> ObjectStore:
    """The store in which the data files of a table lie, also of a branch or in a database."""
    while isinstance(store, RefStore | SectionStore):
        store = store.table if isinstance(store, RefStore) else store.inner
    return store
