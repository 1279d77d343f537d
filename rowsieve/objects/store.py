"""What a table asks of an object store, and which paths it may ask for.

`ObjectStore` is a Protocol, so that tests and caches can wrap a store. Paths are relative to the
store's root: segments of `[A-Za-z0-9_.-]` joined by `/`, without `.`, `..` or a leading `.tmp-`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeAlias

from rowsieve.errors import InvalidInput, NotFound, RowsieveError, StoreError

NativeFile: TypeAlias = Any  # pa.NativeFile; pyarrow carries no types
Paths: TypeAlias = list[str]  # `list` is a method below
Place: TypeAlias = tuple[str, int, int]
"""Bytes [start, stop) of the object at a path."""
TEMPORARY_PREFIX: Final = ".tmp-"
_SEGMENT = re.compile(r"[A-Za-z0-9_.-]{1,255}")


class ObjectNotFound(NotFound):
    """No object stands at `path`."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class ObjectExists(RowsieveError):
    """A create-only put found the name taken; whose object it is must be looked up."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class SyncFailed(StoreError):
    """fsync reported an error: what it was to write may be lost, though a later fsync succeeds.

    The operating system reports such an error once and may drop the data that it could not write,
    so nothing may be made durable by trying again. `stands`: whether the object can be seen at
    `path` all the same.
    """

    def __init__(self, message: str, *, path: str, stands: bool) -> None:
        super().__init__(message)
        self.path = path
        self.stands = stands


class ObjectStore(Protocol):
    """Immutable objects by relative path.

    Reads raise `ObjectNotFound` for a name that is absent and `StoreError` for anything else that
    went wrong. Safe to use from several threads.
    """

    @property
    def uri(self) -> str:
        """Where the store is, safe to print: without user, password or query."""
        ...

    @property
    def overlaps(self) -> bool:
        """Whether a request costs a round trip, so that several are worth overlapping."""
        ...

    def expect(self, places: Iterable[Place], *, keep: bool = False) -> None:
        """Hear which spans will be read soon, about in this order; `keep`: more than once."""
        ...

    def get(self, path: str) -> bytes:
        """All bytes of an object."""
        ...

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Bytes `[start, stop)`; CorruptData if the object is shorter."""
        ...

    def size(self, path: str) -> int:
        """Size of the object in bytes."""
        ...

    def exists(self, path: str) -> bool:
        """Whether an object stands at `path`."""
        ...

    def put_new(self, path: str, data: bytes | memoryview) -> None:
        """Create an object, durably; ObjectExists if the name is taken.

        After any other error the object may or may not be there. After SyncFailed it must not be
        counted on, even if it is.
        """
        ...

    def make_durable(self, path: str) -> None:
        """Finish what a put that raised may have left undone for an object that landed."""
        ...

    def list(self, prefix: str, after: str | None = None, until: str | None = None) -> Paths:
        """Paths of the objects under the folder `prefix`, sorted, `after` < path < `until`."""
        ...

    def children(self, prefix: str = "") -> Paths:
        """Names directly under a folder, sorted, objects and folders alike; for diagnosis."""
        ...

    def open_input(self, path: str, size_bytes: int | None = None) -> NativeFile:
        """Open a seekable file for pyarrow's readers; the caller closes it.

        `size_bytes`, if it is known, saves a request.
        """
        ...


def checked_path(path: str) -> str:
    """Return the path if it is one that a table may use; InvalidInput otherwise."""
    for segment in path.split("/"):
        if (
            _SEGMENT.fullmatch(segment) is None
            or segment in (".", "..")
            or segment.startswith(TEMPORARY_PREFIX)
        ):
            raise InvalidInput(
                f"object path {path!r} is not usable: a path is relative and its segments are "
                "made of letters, digits, '_', '.' and '-', none of them '.' or '..'"
            )
    return path


def checked_range(path: str, start: int, stop: int) -> int:
    """Return the length of `[start, stop)`; InvalidInput if it is no range."""
    if not 0 <= start <= stop:
        raise InvalidInput(f"cannot read bytes [{start}, {stop}) of {path}: not a range")
    return stop - start


def within(path: str, after: str | None, until: str | None) -> bool:
    """Whether a path lies strictly between the two ends of a listing."""
    return (after is None or path > after) and (until is None or path < until)
