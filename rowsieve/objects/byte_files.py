"""Bytes of objects in a folder of the local disk, shared by processes, for `Config.cache_dir`.

    <folder>/ranges/<2 digits>/<hash of store and path>/<start>-<stop>
    <folder>/tables/…                                      files of others that count, too

A file in `ranges` has the checksum of its bytes, then the bytes. It is created under another name
and renamed, so that other processes see it whole. Its time of change is that of its last use, by
which the least recently used files are deleted first.

Soundness: only bytes that match their checksum are returned. Every error of the disk counts as
"not there" or "not stored": the caller asks the store.
"""

from __future__ import annotations

import os
import stat
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final

import xxhash

from rowsieve import clock
from rowsieve.metrics.store_cache import count_in_store_cache

_DIGEST_BYTES: Final = 16
_TOUCHED_AFTER_S: Final = 60.0  # a use is noted once in so long
_SWEPT_AFTER_SHARE: Final = 1 / 16  # of the limit: bytes written until the folder is swept
_LEFT_SHARE: Final = 0.9  # of the limit: what a sweep leaves
_LARGEST_SHARE: Final = 1 / 4  # of the limit: larger entries are not stored
_WHOLE: Final = "whole"
RANGES: Final = "ranges"
TABLES: Final = "tables"
_MODE: Final = 0o700


class ByteFiles:
    """Byte ranges of immutable objects by store and path; at most about `limit_bytes` in all.

    Thread-safe; any number of processes may use one folder. Each of them may exceed the limit by a
    sixteenth before it deletes what was not used longest.
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder = folder / RANGES
        self._swept = (self._folder, folder / TABLES)
        self._limit_bytes = limit_bytes
        self._largest_bytes = limit_bytes * _LARGEST_SHARE
        self._unswept_bytes = limit_bytes  # so that the first write looks what is there
        self._lock = threading.Lock()

    def get(self, store: str, path: str, start: int, stop: int) -> bytes | None:
        """Return bytes `[start, stop)` of an object, from any entry that contains them."""
        folder = self._folder_of(store, path)
        exact = folder / f"{start}-{stop}"
        data = self._read(exact)
        if data is not None and len(data) == stop - start:
            return self._hit(data)
        for name in self._names(folder):
            first, _, last = name.partition("-")
            if not (first.isdigit() and last.isdigit()):
                continue
            if int(first) <= start and stop <= int(last) and name != exact.name:
                data = self._read(folder / name)
                if data is not None and len(data) == int(last) - int(first):
                    return self._hit(data[start - int(first) : stop - int(first)])
        count_in_store_cache("misses")
        return None

    def get_whole(self, store: str, path: str) -> bytes | None:
        """Return all bytes of an object."""
        data = self._read(self._folder_of(store, path) / _WHOLE)
        if data is None:
            count_in_store_cache("misses")
            return None
        return self._hit(data)

    def put(self, store: str, path: str, start: int, stop: int, data: bytes) -> None:
        """Store bytes `[start, stop)` of an object."""
        self._write(self._folder_of(store, path) / f"{start}-{stop}", data)

    def put_whole(self, store: str, path: str, data: bytes) -> None:
        """Store all bytes of an object."""
        self._write(self._folder_of(store, path) / _WHOLE, data)

    def forget(self, store: str, path: str) -> bool:
        """Delete the entries of an object; return whether there were any."""
        folder = self._folder_of(store, path)
        names = self._names(folder)
        for name in names:
            with suppress(OSError):
                (folder / name).unlink()
        return bool(names)

    def _folder_of(self, store: str, path: str) -> Path:
        digest = xxhash.xxh3_128(f"{store}\n{path}".encode()).hexdigest()
        return self._folder / digest[:2] / digest[2:]

    def _names(self, folder: Path) -> list[str]:
        try:
            return [each.name for each in folder.iterdir()]
        except OSError:
            return []

    def _hit(self, data: bytes) -> bytes:
        count_in_store_cache("hits")
        count_in_store_cache("hit_bytes", len(data))
        return data

    def _read(self, file: Path) -> bytes | None:
        try:
            content = self._content(file)
        except OSError:
            return None
        data = content[_DIGEST_BYTES:]
        if len(content) < _DIGEST_BYTES or _digest(data) != content[:_DIGEST_BYTES]:
            count_in_store_cache("damaged")
            with suppress(OSError):
                file.unlink()
            return None
        return data

    def _content(self, file: Path) -> bytes:
        """The bytes of a regular file, and note its use.

        A link is not followed, and a FIFO not waited for: neither is an entry of ours.
        """
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as opened:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > self._largest_bytes:
                return b""
            content = opened.read()
        _note_use(file, status.st_mtime)
        return content

    def admits(self, size_bytes: int) -> bool:
        """Return whether an entry of this size is stored: at most a quarter of the limit."""
        return size_bytes <= self._largest_bytes

    def _write(self, file: Path, data: bytes) -> None:
        if not self.admits(len(data) + _DIGEST_BYTES):
            return
        draft = file.with_name(f".{uuid.uuid4().hex}")
        try:
            for folder in (self._folder.parent, self._folder, file.parent.parent, file.parent):
                folder.mkdir(mode=_MODE, exist_ok=True)  # `parents` would not have the mode
            draft.write_bytes(_digest(data) + data)
            draft.replace(file)
        except OSError:
            count_in_store_cache("failed_writes")
            with suppress(OSError):
                draft.unlink()
            return
        self.note_written(len(data) + _DIGEST_BYTES)

    def note_written(self, size_bytes: int) -> None:
        """Note that files of this size were added, and delete others if that is due."""
        with self._lock:
            self._unswept_bytes += size_bytes
            is_due = self._unswept_bytes > self._limit_bytes * _SWEPT_AFTER_SHARE
            if is_due:
                self._unswept_bytes = 0
        if is_due:
            self._sweep()

    def _sweep(self) -> None:
        """Delete the least recently used files until the folder is below its limit."""
        files: list[tuple[float, int, Path]] = []
        for top in self._swept:
            for folder, _, names in os.walk(top):  # others may delete what it walks
                for file in map(Path(folder).joinpath, names):
                    with suppress(OSError):
                        status = file.lstat()
                        files.append((status.st_mtime, status.st_size, file))
        size_bytes = sum(size for _, size, _ in files)
        if size_bytes <= self._limit_bytes:
            return
        for _, size, file in sorted(files):
            if size_bytes <= self._limit_bytes * _LEFT_SHARE:
                return
            with suppress(OSError):
                file.unlink()
                size_bytes -= size
                file.parent.rmdir()  # fails if other entries are left


def note_uses(folder: Path) -> None:
    """Note that the files of a folder are used, which puts off their deletion."""
    with suppress(OSError):
        for file in folder.iterdir():
            _note_use(file, file.lstat().st_mtime)


def _note_use(file: Path, modified_s: float) -> None:
    if clock.now_us() / 1e6 - modified_s > _TOUCHED_AFTER_S:
        with suppress(OSError):  # a folder may be read-only
            os.utime(file, follow_symlinks=False)


def _digest(data: bytes) -> bytes:
    return xxhash.xxh3_128(data).digest()
