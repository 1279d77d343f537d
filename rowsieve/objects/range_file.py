"""A seekable file over an object; every read is a range request."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from rowsieve.objects.store import NativeFile


class Ranges(Protocol):
    """The store methods that a file uses."""

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Return bytes `[start, stop)`."""

    def size(self, path: str) -> int:
        """Return the size of the object in bytes."""


def open_ranges(store: Ranges, path: str, size_bytes: int | None) -> NativeFile:
    """Open an object for pyarrow's readers; None for `size_bytes` costs a request."""
    size_bytes = store.size(path) if size_bytes is None else size_bytes
    return pa.PythonFile(_RangeFile(store, path, size_bytes), mode="r")


class _RangeFile:
    """A read-only file over an object, for `pa.PythonFile`."""

    def __init__(self, store: Ranges, path: str, size_bytes: int) -> None:
        self._store = store
        self._path = path
        self._size = size_bytes
        self._position = 0
        self.closed = False

    def read(self, count: int | None = None) -> bytes:
        stop = self._size if count is None or count < 0 else self._position + count
        stop = max(self._position, min(stop, self._size))
        data = self._store.get_range(self._path, self._position, stop)
        self._position = stop
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._position, self._size)[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def size(self) -> int:
        return self._size

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        self.closed = True
