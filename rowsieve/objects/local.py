"""A directory of the local disk as an object store that survives a power cut.

Soundness (invariants, rule 3): `put_new` writes a temporary file beside the final name, syncs it,
links it to its name (the link is what is create-only and atomic), removes the temporary name and
syncs the directory; directories that are new are synced into their parents first. An fsync that
fails is SyncFailed and never tried again: the kernel may have dropped what it could not write, and
would report success. Temporary files that a crash leaves behind (`.tmp-*`) are never listed.

A path never leaves the table's directory, not by a symbolic link either.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from rowsieve.errors import CorruptData, InvalidInput, StoreError, UnsupportedOperation
from rowsieve.objects.location import Location
from rowsieve.objects.store import (
    TEMPORARY_PREFIX,
    NativeFile,
    ObjectExists,
    ObjectNotFound,
    Paths,
    Place,
    SyncFailed,
    checked_path,
    checked_range,
    within,
)

_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS, errno.EXDEV)


class _FsyncError(OSError):
    """fsync failed, and nothing else did."""


class LocalStore:
    """Objects as files under one directory, which need not exist yet."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._location = Location.local(os.fspath(root))
        self._root = self._location.path
        self._durable: set[str] = set()  # directories known to be synced into their parents

    @property
    def overlaps(self) -> bool:
        """Never: the disk answers sooner than a thread begins."""
        return False

    def expect(self, places: Iterable[Place], *, keep: bool = False) -> None:
        """Nothing: files are read when they are asked for."""

    @property
    def uri(self) -> str:
        """`file://` and the absolute directory, percent-encoded."""
        return self._location.uri

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r})"

    def get(self, path: str) -> bytes:
        """All bytes of a file."""
        with self._reading(path) as full, Path(full).open("rb", buffering=0) as file:
            return file.read()

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Bytes `[start, stop)` of a file."""
        missing = checked_range(path, start, stop)
        with self._reading(path) as full, Path(full).open("rb", buffering=0) as file:
            file.seek(start)
            chunks = []
            while missing and (chunk := file.read(missing)):
                chunks.append(chunk)
                missing -= len(chunk)
        if missing:
            raise CorruptData(
                f"{path} in {self.uri} ends {missing} bytes before byte {stop}: it was truncated"
            )
        return b"".join(chunks)

    def size(self, path: str) -> int:
        """Size of the file in bytes."""
        with self._reading(path) as full:
            return self._size(full, path)

    def exists(self, path: str) -> bool:
        """Whether a file stands at `path`."""
        try:
            self.size(path)
        except ObjectNotFound:
            return False
        return True

    def put_new(self, path: str, data: bytes | memoryview) -> None:
        """Create a file; it and its name are on disk when this returns."""
        final = self._resolve(path)
        if os.path.lexists(final):  # saves the sync of a loser; the link below decides
            raise self._taken(path)
        directory = final.parent
        temporary = directory / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
        with self._failing("create", path):
            self._ensure_directory(directory)
            try:
                _write_synced(temporary, data)
            except FileNotFoundError:  # the directory went away since it was made
                self._durable.clear()
                self._ensure_directory(directory)
                _write_synced(temporary, data)
            try:
                os.link(temporary, final)
            except FileExistsError:
                raise self._taken(path) from None
            except OSError as error:
                if error.errno in _NO_HARD_LINKS:
                    raise UnsupportedOperation(
                        f"{self.uri} is on a file system without hard links, which create-only "
                        f"writes need ({error.strerror}); use another disk or an object store"
                    ) from error
                raise
            finally:
                temporary.unlink()
            with self._standing(path):
                _sync_directory(directory)

    def make_durable(self, path: str) -> None:
        """Sync a file that stands, and its directory."""
        final = self._resolve(path)
        with self._failing("sync", path), self._standing(path):
            self._ensure_directory(final.parent)
            _sync(final, os.O_RDONLY)
            _sync_directory(final.parent)

    def list(self, prefix: str, after: str | None = None, until: str | None = None) -> Paths:
        """Paths of all files below the folder `prefix`, sorted; symbolic links are not followed."""
        folder = self._resolve(prefix) if prefix else Path(self._root)
        with self._failing("list", prefix):
            return sorted(path for path in _walk(str(folder), prefix) if within(path, after, until))

    def children(self, prefix: str = "") -> Paths:
        """Names in a folder."""
        folder = self._resolve(prefix) if prefix else Path(self._root)
        with self._failing("list", prefix):
            try:
                names = [child.name for child in folder.iterdir()]
            except FileNotFoundError:
                return []
        return sorted(name for name in names if not name.startswith(TEMPORARY_PREFIX))

    def open_input(
        self,
        path: str,
        size_bytes: int | None = None,  # noqa: ARG002 - the disk knows
    ) -> NativeFile:
        """Open the file, not memory mapped: a short file is an error then, not a signal."""
        with self._reading(path) as full:
            self._size(full, path)  # a pipe would be waited for
            return pa.OSFile(os.fsencode(full), "rb")

    def _size(self, full: Path, path: str) -> int:
        status = full.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ObjectNotFound(f"{path} in {self.uri} is not a file", path=path)
        return status.st_size

    def _taken(self, path: str) -> ObjectExists:
        return ObjectExists(f"{path} exists already in {self.uri}", path=path)

    def _resolve(self, path: str) -> Path:
        """Find the file of a path; InvalidInput if a symbolic link leads out of the directory."""
        full = self._root.rstrip("/")  # the root of the disk is a place like others
        for segment in checked_path(path).split("/"):
            full = f"{full}{os.sep}{segment}"
            if os.path.islink(full):  # noqa: PTH114 - a Path takes as long as opening the file
                real = os.path.realpath(full)
                if os.path.commonpath((real, self._root)) != self._root:
                    raise InvalidInput(
                        f"{path} in {self.uri} leads out of the table's directory by a symbolic "
                        "link, which is refused"
                    )
        return Path(full)

    @contextmanager
    def _reading(self, path: str) -> Iterator[Path]:
        try:
            with self._failing("read", path):
                yield self._resolve(path)
        except StoreError as error:
            if isinstance(
                error.__cause__, FileNotFoundError | NotADirectoryError | IsADirectoryError
            ):
                raise ObjectNotFound(f"no object {path} in {self.uri}", path=path) from None
            raise

    @contextmanager
    def _failing(self, action: str, path: str) -> Iterator[None]:
        try:
            yield
        except _FsyncError as error:
            raise self._sync_failed(path, error, stands=False) from error
        except OSError as error:
            if isinstance(error, NotADirectoryError | FileExistsError) and self._is_file():
                raise InvalidInput(
                    f"{self.uri} is a file, or lies in one; a table is a directory: give the "
                    "directory's path"
                ) from None
            what = path or "the directory"
            raise StoreError(
                f"cannot {action} {what} in {self.uri}: {error.strerror or error}"
            ) from error

    @contextmanager
    def _standing(self, path: str) -> Iterator[None]:
        """The syncs of a file that can be seen already."""
        try:
            yield
        except _FsyncError as error:
            raise self._sync_failed(path, error, stands=True) from error

    def _sync_failed(self, path: str, error: OSError, *, stands: bool) -> SyncFailed:
        seen = (
            "it can be seen there, but may be gone after a crash" if stands else "it is not there"
        )
        return SyncFailed(
            f"cannot sync {path} in {self.uri}: fsync of {error.filename} failed "
            f"({error.strerror}); {seen}. Check the disk",
            path=path,
            stands=stands,
        )

    def _is_file(self) -> bool:
        """Whether something that is no directory stands at the table's place, or above it."""
        place = Path(self._root)
        standing = next((each for each in (place, *place.parents) if _exists(each)), place)
        return not standing.is_dir()

    def _ensure_directory(self, directory: Path) -> None:
        """Make a directory and its ancestors, each synced into its parent; once per store.

        Also for directories that exist: whoever made them may have been cut off before its sync.
        """
        if str(directory) in self._durable:
            return
        at_root = str(directory) == self._root
        if not at_root:
            self._ensure_directory(directory.parent)
        else:
            _make_ancestors(directory.parent)
        made = _make(directory)
        try:
            _sync_directory(directory.parent)
        except PermissionError:
            # A table's directory made by someone else in a folder we may not open: theirs to sync.
            if made or not at_root:
                raise
        self._durable.add(str(directory))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder on the way may not be searched
        return False


def _make_ancestors(directory: Path) -> None:
    if directory.is_dir():
        return
    _make_ancestors(directory.parent)
    _make(directory)
    _sync_directory(directory.parent)


def _make(directory: Path) -> bool:
    try:
        directory.mkdir()
    except FileExistsError:
        if not directory.is_dir():
            raise
        return False
    return True


def _write_synced(path: Path, data: bytes | memoryview) -> None:
    """Write a new file and sync it; nothing is left of it after an error."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            view = memoryview(data).cast("B")
            while view.nbytes:
                view = view[os.write(descriptor, view) :]
            _fsync(descriptor, path)
        finally:
            os.close(descriptor)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def _sync_directory(path: Path) -> None:
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        _fsync(descriptor, path)
    finally:
        os.close(descriptor)


def _fsync(descriptor: int, path: Path) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise _FsyncError(error.errno, error.strerror, str(path)) from error


def _walk(folder: str, prefix: str) -> Iterator[str]:
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:
        return
    with entries:
        for entry in entries:
            if entry.name.startswith(TEMPORARY_PREFIX):
                continue
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path, path)
            elif not entry.is_symlink():
                yield path
