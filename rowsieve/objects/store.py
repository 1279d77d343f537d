"""The interface of an object store, its errors, and the rules for object paths.

`ObjectStore` is a Protocol, so that tests and caches can wrap a store. Paths are relative to the
store's root: segments of `[A-Za-z0-9_.-]` joined by `/`, without `.`, `..` or a leading `.tmp-`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from rowsieve.errors import InvalidInput, NotFound, RowsieveError, StoreError

NativeFile: TypeAlias = Any  # pa.NativeFile; pyarrow carries no types
Paths: TypeAlias = list[str]  # `list` is a method below
Place: TypeAlias = tuple[str, int, int]
"""Bytes [start, stop) of the object at a path."""
TEMPORARY_PREFIX: Final = ".tmp-"
DELETED_AT_ONCE: Final = 1_000
_SEGMENT = re.compile(r"[A-Za-z0-9_.-]{1,255}")


class ObjectDetail(NamedTuple):
    """Size of an object, and when it was created by the store's clock, in microseconds from 1970.

    Some stores know only the second.
    """

    size_bytes: int
    modified_us: int


Details: TypeAlias = dict[str, ObjectDetail]
"""Objects by path, in the order of paths."""


class ObjectNotFound(NotFound):
    """No object exists at `path`."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class ObjectExists(RowsieveError):
    """A create-only put met an object at the name; the caller must read whose it is."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class NotCreated(StoreError):
    """A put created nothing, and another try would fail too: the disk is full or not writable."""


class SyncFailed(StoreError):
    """An fsync failed: its data may be lost, even if a later fsync succeeds.

    The operating system reports such an error once and may drop the unwritten data, so a retry does
    not make the object durable. `is_visible`: whether readers can see the object at `path`.
    """

    def __init__(self, message: str, *, path: str, is_visible: bool) -> None:
        super().__init__(message)
        self.path = path
        self.is_visible = is_visible


class Converting:
    """Call `convert` with an exception that leaves the block; it raises another one, or returns.

    It is a class because a generator would keep its caller's frames: from Python 3.12 on, the frame
    of a generator that raises another exception refers to the frame of `__exit__`, which has the
    first exception and thereby the generator's frame. Such a cycle keeps a table's snapshots, and
    temporary files of drafts, until the garbage collector runs.
    """

    __slots__ = ("_convert",)

    def __init__(self, convert: Callable[[Exception], None]) -> None:
        self._convert = convert

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            self._convert(error)


class ObjectStore(Protocol):
    """Immutable objects by relative path.

    Reads raise `ObjectNotFound` for an absent name and `StoreError` for any other failure.
    Thread-safe.
    """

    @property
    def uri(self) -> str:
        """The store's URI, safe to print: without user, password or query."""

    @property
    def overlaps(self) -> bool:
        """True if a request costs a network round trip, so that concurrent requests pay."""

    def expect(self, places: Iterable[Place], *, keep: bool = False) -> None:
        """Announce spans that will be read soon, about in this order; `keep`: more than once."""

    def get(self, path: str) -> bytes:
        """Return all bytes of an object."""

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Return bytes `[start, stop)`; CorruptData if the object is shorter."""

    def size(self, path: str) -> int:
        """Return the size of the object in bytes."""

    def exists(self, path: str) -> bool:
        """Return whether an object exists at `path`."""

    def put_new(self, path: str, data: bytes | memoryview) -> None:
        """Create an object durably; ObjectExists if the name is taken.

        After any other error the object may or may not exist. After SyncFailed the caller must not
        rely on the object, even if it exists.
        """

    def put_hint(self, path: str, data: bytes) -> None:
        """Replace an object that only says where others are; readers see the old or the new bytes.

        The only overwrite: nothing may depend on it, because a late one may bring old bytes back.
        """

    def make_durable(self, path: str) -> None:
        """Make durable an object that exists although its put raised."""

    def list(self, prefix: str, after: str | None = None, until: str | None = None) -> Paths:
        """List the objects under the folder `prefix`, sorted, with `after` < path < `until`."""

    def children(self, prefix: str = "") -> Paths:
        """List names directly under a folder, sorted, objects and folders; for diagnosis."""

    def folders(self, prefix: str = "") -> Paths:
        """List the names of the folders directly under a folder, sorted; none if it is absent.

        A symbolic link counts as a folder if it leads to one inside the store.
        """

    def details(self, prefix: str, most: int | None = None) -> Details:
        """List the objects under the folder `prefix` with their sizes and times.

        With `most`, a listing of many pages may end after so many objects.
        """

    def leftovers(self) -> Details:
        """List temporary files that interrupted puts left behind; no other method lists them."""

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects, or leftovers; ignores absent ones.

        A store without round trips deletes in the order given; any other store in consecutive runs
        of `DELETED_AT_ONCE`.
        """

    def open_input(self, path: str, size_bytes: int | None = None) -> NativeFile:
        """Open a seekable file for pyarrow's readers; the caller closes it.

        A known `size_bytes` saves a request.
        """


def checked_path(path: str) -> str:
    """Return the path if it is valid; InvalidInput otherwise."""
    for segment in path.split("/"):
        if (
            _SEGMENT.fullmatch(segment) is None
            or segment in (".", "..")
            or segment.startswith(TEMPORARY_PREFIX)
        ):
            raise InvalidInput(
                f"object path {path!r} is not valid: a path is relative, its segments consist of "
                "letters, digits, '_', '.' and '-', and no segment is '.' or '..' or begins with "
                f"{TEMPORARY_PREFIX!r}"
            )
    return path


def checked_range(path: str, start: int, stop: int) -> int:
    """Return the length of `[start, stop)`; InvalidInput if it is not a valid range."""
    if not 0 <= start <= stop:
        raise InvalidInput(f"cannot read bytes [{start}, {stop}) of {path}: not a range")
    return stop - start


def within(path: str, after: str | None, until: str | None) -> bool:
    """Return whether `after` < path < `until`; None means unlimited."""
    return (after is None or path > after) and (until is None or path < until)
