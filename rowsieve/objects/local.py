"""A local directory as an object store that survives a power cut.

Soundness (invariants, rule 3): `put_new` writes a temporary file in the directory of the final
name, syncs it, hard-links it to the final name (the link is create-only and atomic), removes the
temporary name and syncs the directory. New directories are synced into their parents first. A
failed fsync raises SyncFailed and is never retried: the kernel may have dropped the unwritten data
and would report success. Temporary files that a crash leaves behind (`.tmp-*`) are never listed.

A path never leads out of the table's directory, not even through a symbolic link. Reads also take
the `file://` URI of a file that a table refers to in place (`rowsieve.objects.location.in_place`).
"""

from __future__ import annotations

import errno
import io
import os
import stat
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from rowsieve.disk_errors import described, has_remedy
from rowsieve.errors import CorruptData, InvalidInput, StoreError, UnsupportedOperation
from rowsieve.objects.drafts import DraftFile
from rowsieve.objects.location import Location, in_place
from rowsieve.objects.store import (
    TEMPORARY_PREFIX,
    Converting,
    Details,
    NativeFile,
    NotCreated,
    ObjectDetail,
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
_UNBLOCKED: Final = os.O_NONBLOCK | os.O_CLOEXEC  # opening a FIFO does not wait for its writer
_NEW_FILE: Final = os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_PUT_FOLDERS: Final = ("_rowsieve", "data", "metadata", "_delta_log")  # publications, too
_KINDS: Final[Mapping[int, str]] = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class _FsyncError(OSError):
    """Failure of an fsync, distinct from other I/O errors."""


class _NotRegularError(OSError):
    """A FIFO, socket or device is in the place of a file; its text says which."""


class LocalStore:
    """Objects as files below one directory. The directory need not exist yet.

    `uri`: the absolute directory as a percent-encoded `file://` URI. `overlaps` is always False: a
    disk read takes less time than starting a thread.
    """

    overlaps: Final = False

    def __init__(self, root: str | os.PathLike[str]) -> None:
        location = Location.local(os.fspath(root))
        self.uri: Final = location.uri
        self._root = location.path
        self._durable: set[str] = set()  # directories already synced into their parents

    def expect(self, places: Iterable[Place], *, keep: bool = False) -> None:
        """Do nothing: files are read on demand."""

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r})"

    def get(self, path: str) -> bytes:
        """Return all bytes of a file."""
        try:
            with io.FileIO(self._readable(path), opener=_open_regular) as file:
                return file.readall()
        except FileNotFoundError:
            raise self._not_found(path) from None
        except OSError:
            with self._reading(path):
                raise

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Return bytes `[start, stop)` of a file; CorruptData if it is shorter."""
        missing_bytes = checked_range(path, start, stop)
        chunks = []
        with (
            self._reading(path),
            io.FileIO(self._readable(path), opener=_open_regular) as file,
        ):
            file.seek(start)
            while missing_bytes and (chunk := file.read(missing_bytes)):
                chunks.append(chunk)
                missing_bytes -= len(chunk)
        if missing_bytes:
            raise CorruptData(
                f"{path} in {self.uri} ends {missing_bytes} bytes before byte {stop}: it was "
                "truncated; restore it from a copy"
            )
        return b"".join(chunks)

    def size(self, path: str) -> int:
        """Return the size of the file in bytes."""
        try:
            return self._size(self._readable(path), path)
        except OSError:
            with self._reading(path):
                raise

    def exists(self, path: str) -> bool:
        """Return whether a regular file exists at `path`."""
        try:
            self.size(path)
        except ObjectNotFound:
            return False
        return True

    def put_new(self, path: str, data: bytes | memoryview) -> None:
        """Create a file durably; ObjectExists if the name is taken.

        The file's data and its directory entry are on disk when this returns.
        """
        final = self._resolve(path)
        if os.path.lexists(final):  # saves a sync; the link below decides
            raise self._object_exists(path)
        directory = final.parent
        temporary = directory / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
        with self._failing("create", path, creates=True):
            self._ensure_directory(directory)
            try:
                _write_synced(temporary, data)
            except FileNotFoundError:  # the directory was removed after it was created
                self._durable.clear()
                self._ensure_directory(directory)
                _write_synced(temporary, data)
        self._link(temporary, final, path)

    def put_hint(self, path: str, data: bytes) -> None:
        """Replace a file by another one of the same name."""
        final = self._resolve(path)
        temporary = final.parent / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
        with self._failing("create", path, creates=True):
            self._ensure_directory(final.parent)
            _write_synced(temporary, data)
            temporary.replace(final)

    def draft(self, path: str) -> DraftFile:
        """Create a temporary file that its `publish` makes the file `path`, as `put_new` does."""
        final = self._resolve(path)
        temporary = final.parent / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"

        failing = partial(self._failing, "create", path, creates=True)

        def publish(descriptor: int, temporary: Path) -> None:
            with self._failing("create", path):
                _fsync(descriptor, temporary)
            self._link(temporary, final, path)

        with failing():
            self._ensure_directory(final.parent)
            descriptor = os.open(temporary, _NEW_FILE | os.O_RDWR, 0o666)
        return DraftFile(descriptor, temporary, failing, publish)

    def _link(self, temporary: Path, final: Path, path: str) -> None:
        """Give a synced file its name, remove the temporary one, and sync the directory."""
        try:
            with self._failing("create", path, creates=True):
                try:
                    os.link(temporary, final)
                except FileExistsError:
                    raise self._object_exists(path) from None
                except OSError as error:
                    if error.errno not in _NO_HARD_LINKS:
                        raise
                    raise UnsupportedOperation(
                        f"{self.uri} is on a file system without hard links, which create-only "
                        f"writes need ({error.strerror}); use another disk or an object store"
                    ) from error
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        with self._failing("create", path, visible=True):
            temporary.unlink()
            _sync(final.parent)

    def make_durable(self, path: str) -> None:
        """Sync an existing file and its directory."""
        final = self._resolve(path)
        with self._failing("sync", path, visible=True):
            self._ensure_directory(final.parent)
            _sync(final, os.O_RDONLY)
            _sync(final.parent)

    def list(self, prefix: str, after: str | None = None, until: str | None = None) -> Paths:
        """List the files below the folder `prefix`, sorted; symbolic links are not followed."""
        folder = self._resolve(prefix) if prefix else Path(self._root)
        with self._failing("list", prefix):
            return sorted(path for path in _walk(str(folder), prefix) if within(path, after, until))

    def children(self, prefix: str = "") -> Paths:
        """List the names in a folder, sorted; empty if the folder does not exist."""
        folder = self._resolve(prefix) if prefix else Path(self._root)
        with self._failing("list", prefix):
            try:
                names = [child.name for child in folder.iterdir()]
            except FileNotFoundError:
                return []
        return sorted(name for name in names if not name.startswith(TEMPORARY_PREFIX))

    def folders(self, prefix: str = "") -> Paths:
        """List the folders in a folder, sorted; omits links that lead out of the root."""
        folder = self._resolved(prefix) if prefix else self._root
        with self._failing("list", prefix):
            try:
                with os.scandir(folder) as entries:
                    return sorted(entry.name for entry in entries if self._is_folder(entry))
            except (FileNotFoundError, NotADirectoryError):
                return []

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        if not entry.is_symlink():
            return entry.is_dir()
        real = os.path.realpath(entry.path)
        return entry.is_dir() and os.path.commonpath((real, self._root)) == self._root

    def details(self, prefix: str, most: int | None = None) -> Details:  # noqa: ARG002 - one page
        """List the files below the folder `prefix` with their sizes and times, sorted."""
        return self._details(prefix, temporary=False)

    def leftovers(self) -> Details:
        """List the temporary files of the table's own folders; a put may still write to one."""
        return {
            path: detail
            for folder in _PUT_FOLDERS
            for path, detail in self._details(folder, temporary=True).items()
        }

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files in this order; ignores absent ones.

        A crash may undo the last deletions, which are not synced.
        """
        folders = {"": self._root}  # many files are in few folders
        for path in paths:
            folder, _, name = path.rpartition("/")
            checked_path(f"{folder or 'x'}/{name.removeprefix(TEMPORARY_PREFIX)}")
            if folder not in folders:
                folders[folder] = self._resolved(folder)
            with self._failing("delete", path), suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(f"{folders[folder]}{os.sep}{name}")  # noqa: PTH108 - there may be many

    def open_input(
        self,
        path: str,
        size_bytes: int | None = None,  # noqa: ARG002 - the file system knows it
    ) -> NativeFile:
        """Open the file unmapped: reading a truncated memory map would raise SIGBUS."""
        try:
            full = self._readable(path)
            self._size(full, path)  # opening a FIFO would block
            return pa.OSFile(os.fsencode(full), "rb")
        except OSError:
            with self._reading(path):
                raise

    def _details(self, prefix: str, *, temporary: bool) -> Details:
        with self._failing("list", prefix):
            details = {}
            for path in sorted(_walk(str(self._resolve(prefix)), prefix, temporary=temporary)):
                with suppress(FileNotFoundError):  # deleted by another process
                    status = os.stat(f"{self._root}{os.sep}{path}", follow_symlinks=False)  # noqa: PTH116
                    details[path] = ObjectDetail(status.st_size, status.st_mtime_ns // 1000)
            return details

    def _size(self, full: str, path: str) -> int:
        status = os.stat(full)  # noqa: PTH116 - a Path is slow to build
        if stat.S_ISDIR(status.st_mode):
            raise ObjectNotFound(f"{path} in {self.uri} is a directory, not a file", path=path)
        _check_regular(status.st_mode)
        return status.st_size

    def _not_found(self, path: str) -> ObjectNotFound:
        return ObjectNotFound(f"no object {path} in {self.uri}", path=path)

    def _object_exists(self, path: str) -> ObjectExists:
        return ObjectExists(f"{path} already exists in {self.uri}", path=path)

    def _resolve(self, path: str) -> Path:
        return Path(self._resolved(path))

    def _readable(self, path: str) -> str:
        """Return the file of a path of the table, or of a file in place by its URI."""
        other = in_place(path) if "://" in path else None
        return self._resolved(path) if other is None else _local(other)

    def _resolved(self, path: str) -> str:
        """Return the file of a path; InvalidInput if a symbolic link leaves the directory."""
        full = self._root.rstrip("/")  # the table may be at "/" itself
        for segment in checked_path(path).split("/"):
            full = f"{full}{os.sep}{segment}"
            if os.path.islink(full):  # noqa: PTH114 - building a Path is as slow as opening the file
                real = os.path.realpath(full)
                if os.path.commonpath((real, self._root)) != self._root:
                    raise InvalidInput(
                        f"cannot use {path} in {self.uri}: a symbolic link leads out of the "
                        "table's directory"
                    )
        return full

    def _reading(self, path: str) -> Converting:
        return Converting(partial(self._convert_read, path))

    def _convert_read(self, path: str, error: Exception) -> None:
        try:
            self._convert("read", path, error)
        except StoreError:
            if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
                raise self._not_found(path) from None
            raise

    def _failing(
        self, action: str, path: str, *, creates: bool = False, visible: bool = False
    ) -> Converting:
        """Convert an OSError of a block to an error of the store.

        `creates`: an error that leaves no file, and that a retry does not change, is NotCreated.
        `visible`: readers can already see the file that could not be synced.
        """
        return Converting(partial(self._convert, action, path, creates=creates, visible=visible))

    def _convert(
        self,
        action: str,
        path: str,
        error: Exception,
        *,
        creates: bool = False,
        visible: bool = False,
    ) -> None:
        if isinstance(error, _FsyncError):
            raise self._sync_failed(path, error, visible=visible) from error
        if isinstance(error, _NotRegularError):
            raise CorruptData(
                f"cannot {action} {path} in {self.uri}: it is {error}, not a regular file; put the "
                "file back from a copy"
            ) from None
        if not isinstance(error, OSError):
            return
        if creates and has_remedy(error):
            raise NotCreated(self._failure(action, path, error)) from error
        if isinstance(error, NotADirectoryError | FileExistsError) and self._is_file():
            raise InvalidInput(
                f"{self.uri} is a file, or lies in one; a table is a directory: give the path "
                "of a directory"
            ) from None
        if error.errno == errno.ENAMETOOLONG:
            raise InvalidInput(
                f"{self.uri} is too long: the file system limits names, usually to 255 bytes, and "
                "paths, usually to 4,096; give a shorter one"
            ) from None
        raise StoreError(self._failure(action, path, error)) from error

    def _failure(self, action: str, path: str, error: OSError) -> str:
        return f"cannot {action} {path or 'the directory'} in {self.uri}: {described(error)}"

    def _sync_failed(self, path: str, error: OSError, *, visible: bool) -> SyncFailed:
        state = (
            "the file is visible, but a crash may remove it"
            if visible
            else "the file was not created"
        )
        return SyncFailed(
            f"cannot sync {path} in {self.uri}: fsync of {error.filename} failed "
            f"({error.strerror}); {state}. Check the disk",
            path=path,
            is_visible=visible,
        )

    def _is_file(self) -> bool:
        """Return whether the table's path, or its nearest existing ancestor, is not a directory."""
        root = Path(self._root)
        existing = next((each for each in (root, *root.parents) if _exists(each)), root)
        return not existing.is_dir()

    def _ensure_directory(self, directory: Path) -> None:
        """Create a directory and its ancestors, each synced into its parent; once per store.

        Existing directories are synced too: their creator may have crashed before its sync.
        """
        if str(directory) in self._durable:
            return
        at_root = str(directory) == self._root
        if not at_root:
            self._ensure_directory(directory.parent)
        else:
            _make_ancestors(directory.parent)
        created = _make(directory)
        try:
            _sync(directory.parent)
        except PermissionError:
            # Another user created the table's directory in a folder that we may not open; syncing
            # that folder is their responsibility.
            if created or not at_root:
                raise
        self._durable.add(str(directory))


def _local(location: Location) -> str:
    if location.scheme != "file":
        raise InvalidInput(
            f"cannot read {location.uri}: a table on the local disk can refer to local files only"
        )
    return location.path


def _open_regular(path: str, flags: int) -> int:
    """Open a file to read it; _NotRegularError for a FIFO or device, without waiting for data."""
    descriptor = os.open(path, flags | _UNBLOCKED)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISDIR(mode):  # FileIO refuses a directory itself
            _check_regular(mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise _NotRegularError(_KINDS.get(stat.S_IFMT(mode), "a special file"))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # we may lack search permission on an ancestor
        return False


def _make_ancestors(directory: Path) -> None:
    if directory.is_dir():
        return
    _make_ancestors(directory.parent)
    _make(directory)
    _sync(directory.parent)


def _make(directory: Path) -> bool:
    try:
        directory.mkdir()
    except FileExistsError:
        if not directory.is_dir():
            raise
        return False
    return True


def _write_synced(path: Path, data: bytes | memoryview) -> None:
    """Write and sync a new file; remove it after an error."""
    descriptor = os.open(path, _NEW_FILE | os.O_WRONLY, 0o666)
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


def _sync(path: Path, flags: int = os.O_RDONLY | os.O_DIRECTORY) -> None:
    """Sync a directory, or what the flags open."""
    descriptor = os.open(path, flags | _UNBLOCKED)
    try:
        _fsync(descriptor, path)
    finally:
        os.close(descriptor)


def _fsync(descriptor: int, path: Path) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise _FsyncError(error.errno, error.strerror, str(path)) from error


def _walk(folder: str, prefix: str, *, temporary: bool = False) -> Iterator[str]:
    """Yield the files of a folder and its folders; only temporary ones, or only the others."""
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:
        return
    with entries:
        for entry in entries:
            is_temporary = entry.name.startswith(TEMPORARY_PREFIX)
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.is_dir(follow_symlinks=False):
                if not is_temporary:
                    yield from _walk(entry.path, path, temporary=temporary)
            elif is_temporary is temporary and not entry.is_symlink():
                yield path
