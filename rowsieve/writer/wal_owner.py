"""Who may append to a directory of write-ahead log files: one writer, under a lock and a claim.

The lock is `flock` on the file `lock`, for the writer's life. The claim is a file
`owner-<epoch>.json`, created by a link that only one writer can make; it names the table and the
log. A writer that takes over makes the next claim and removes the one before it.

Soundness (invariants 17 and 43): the former owner checks its claim after its records are durable
and before it acknowledges them. The new owner removes that claim before it reads the records. So a
record that was acknowledged is read by the new owner, and what it did not read is never
acknowledged, even where the lock was lost: its file was removed, or the file system has no locks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final
from weakref import WeakSet

import msgspec

from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData, InvalidInput, WalLocked, WriterFenced

LOCK: Final = "lock"
_TEMPORARY: Final = ".tmp-"
_CLAIM = re.compile(r"owner-(\d{20})\.json")
NEW_FILE: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC


class _Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    table: str
    wal: str
    epoch: int


class WalOwner:
    """The lock and the claim of one writer on a directory."""

    def __init__(self, directory: Path, table_uuid: str) -> None:
        """Take the lock, then the next claim.

        WalLocked if another writer has the lock, InvalidInput if the log is of another table.
        """
        self._directory = directory
        self._process_id = os.getpid()
        self._lock = os.open(directory / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        try:
            self._take_lock()
            last = self._last_claim(table_uuid)
            epoch, self.wal_id = (1, uuid.uuid4().hex) if last is None else (last[0] + 1, last[1])
            self._descriptor = self._claim(_Claim(table_uuid, self.wal_id, epoch))
        except BaseException:
            os.close(self._lock)
            raise
        self.epoch = epoch
        _owners.add(self)

    @property
    def is_inherited(self) -> bool:
        """True in a process that was forked from the writer's."""
        return os.getpid() != self._process_id

    def check(self) -> None:
        """Raise WriterFenced if another writer has taken over, or the directory is gone."""
        try:
            there = os.stat(self._path(self.epoch))  # noqa: PTH116 - once per group of records
        except FileNotFoundError:
            there = None
        ours = os.fstat(self._descriptor)
        if there is None or (there.st_ino, there.st_dev) != (ours.st_ino, ours.st_dev):
            raise WriterFenced(
                f"the write-ahead log in {self._directory} was taken over by another writer, or "
                "its files were removed; this writer acknowledges nothing more. Open a new writer"
            )

    def release(self) -> None:
        """Give the lock up; a forked process only closes its copies of the files."""
        _owners.discard(self)
        for descriptor in (self._descriptor, self._lock):
            with suppress(OSError):
                os.close(descriptor)

    def _path(self, epoch: int) -> Path:
        return self._directory / f"owner-{epoch:020d}.json"

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise WalLocked(
                f"the write-ahead log in {self._directory} belongs to another writer, which holds "
                "its lock; close that one, or give this one a wal_dir= of its own"
            ) from error

    def _last_claim(self, table_uuid: str) -> tuple[int, str] | None:
        epochs = self._epochs()
        if not epochs:
            return None
        path = self._path(epochs[-1])
        try:
            claim = msgspec.json.decode(path.read_bytes(), type=described(_Claim))
        except msgspec.DecodeError as error:
            raise CorruptData(
                f"{path} does not name the owner of a write-ahead log: {error}; restore the "
                "directory from a copy"
            ) from error
        if claim.table != table_uuid:
            raise InvalidInput(
                f"the write-ahead log in {self._directory} belongs to the table {claim.table}, not "
                f"to {table_uuid}: wal_dir= is another table's, or this table was created again. "
                "Use another directory; rows that only the log has are lost if you delete it"
            )
        return claim.epoch, claim.wal

    def _epochs(self) -> list[int]:
        names = (_CLAIM.fullmatch(name) for name in os.listdir(self._directory))  # noqa: PTH208
        return sorted(int(match[1]) for match in names if match)

    def _claim(self, claim: _Claim) -> int:
        """Create the next claim, remove all others, and return a descriptor of its file.

        The descriptor stays open, so that no later file has the same inode.
        """
        target, temporary = self._path(claim.epoch), self._directory / temporary_name()
        descriptor = os.open(temporary, NEW_FILE, 0o666)
        try:
            os.write(descriptor, msgspec.json.encode(claim))
            os.fsync(descriptor)
            try:
                os.link(temporary, target)
            except (FileExistsError, FileNotFoundError) as error:  # it removed our temporary file
                raise WalLocked(
                    f"another writer has just taken the write-ahead log in {self._directory}"
                ) from error
            sync_directory(self._directory)  # a claim is durable before the one before it goes
            for epoch in self._epochs():
                if epoch != claim.epoch:
                    os.unlink(self._path(epoch))  # noqa: PTH108 - tests watch calls of `os`
        except BaseException:
            os.close(descriptor)
            raise
        finally:
            for left in self._directory.glob(f"{_TEMPORARY}*"):  # of a crash, too
                with suppress(FileNotFoundError):
                    os.unlink(left)  # noqa: PTH108
        sync_directory(self._directory)
        return descriptor


def temporary_name() -> str:
    """Return a fresh name, which the next owner removes if a crash leaves it behind."""
    return f"{_TEMPORARY}{uuid.uuid4().hex}"


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_owners: WeakSet[WalOwner] = WeakSet()


def _release_copies() -> None:
    """Close the copies of a forked process, which would keep the lock after its parent's end."""
    for owner in list(_owners):
        owner.release()


os.register_at_fork(after_in_child=_release_copies)
