"""A write-ahead log in a local directory: records that are durable before they are acknowledged.

It knows no table: records are bytes, in order, with sequences from 1. `Wal` takes the directory
over, reads what is there, and appends. One thread appends; `forget` may run in another one.

Soundness: after a failed write or sync nothing more is written and nothing acknowledged (invariant
21). A sequence is never used twice, so the log's id and a sequence name one record for ever.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal

from rowsieve.disk_errors import NOT_A_PLACE, described, has_remedy
from rowsieve.errors import InvalidInput, StoreError, WriterFailed
from rowsieve.locks import ForkSafeLock
from rowsieve.writer.wal_frames import MAX_PAYLOAD_BYTES, FrameKind
from rowsieve.writer.wal_owner import WalOwner, sync_directory
from rowsieve.writer.wal_segments import Identity, Record, SegmentFile, read_segments

Recovery = Literal["trim", "strict"]
SEGMENT_BYTES: Final = 64 << 20


class Wal:
    """The log in a directory, for the life of one writer."""

    def __init__(
        self, directory: Path, table_uuid: str, preamble: bytes, *, recovery: Recovery = "trim"
    ) -> None:
        """Take the directory over, which is created if it is absent, and read its records.

        WalLocked if another writer has it; InvalidInput if it is the log of another table;
        CorruptData if it is damaged. With `recovery="strict"`, an incomplete last record is damage.
        """
        self.directory = directory
        self._failure: BaseException | None = None
        self._lock = ForkSafeLock()
        try:
            _make_directory(directory)
            self.owner = WalOwner(directory, table_uuid)
        except OSError as error:
            raise _unopened(directory, error) from error
        try:
            self._open(table_uuid, preamble, trims=recovery == "trim")
        except BaseException as error:
            self.owner.release()
            if isinstance(error, OSError):
                raise _unopened(directory, error) from error
            raise

    def _open(self, table_uuid: str, preamble: bytes, *, trims: bool) -> None:
        content = read_segments(self.directory, table_uuid, self.owner.wal_id, trims=trims)
        self._identity = Identity(table_uuid, self.owner.wal_id, preamble)
        self._finished = content.finished
        self._position = content.position
        self._number = content.next_number
        self.first_sequence = content.first_sequence
        self.torn_bytes = content.torn_bytes
        self.recovered: list[Record] = content.records
        self._file = SegmentFile(self.directory, self._number, self._identity, self._position)

    @property
    def wal_id(self) -> str:
        """The log's id, which stays the same when a writer takes it over."""
        return self.owner.wal_id

    @property
    def last_sequence(self) -> int:
        """The sequence of the newest record; 0 if there was never one."""
        return self._position.next_sequence - 1

    @property
    def size_bytes(self) -> int:
        """Bytes of the file that is being written."""
        return self._file.size_bytes

    def append(self, payload: bytes | memoryview) -> int:
        """Write a record and return its sequence; it is durable after the next `sync`."""
        if memoryview(payload).nbytes > MAX_PAYLOAD_BYTES:
            raise InvalidInput(
                f"a record of the write-ahead log has {memoryview(payload).nbytes} bytes; the "
                f"limit is {MAX_PAYLOAD_BYTES}: write the rows in several calls"
            )
        self._check()
        try:
            if self._file.size_bytes > SEGMENT_BYTES:
                self._roll()
            self._file.write(FrameKind.RECORD, payload)
        except OSError as error:
            raise self._fail("write to", error) from error
        return self.last_sequence

    def sync(self) -> None:
        """Make all records durable, then check that the log still belongs to this writer."""
        self._check()
        try:
            self._file.sync()
            self.owner.check()
        except OSError as error:
            raise self._fail("sync", error) from error
        except WriterFailed as error:
            self._failure = error
            raise

    def check_owner(self) -> None:
        """Raise WriterFenced if another writer has taken over."""
        self._check()
        try:
            self.owner.check()
        except WriterFailed as error:
            self._failure = error
            raise

    def begin(self, preamble: bytes) -> None:
        """Begin a new file with another preamble, which later records are read by."""
        self._check()
        self._identity = Identity(self._identity.table, self._identity.wal, preamble)
        try:
            self._roll()
        except OSError as error:
            raise self._fail("write to", error) from error

    def forget(self, through: int) -> None:
        """Remove closed files whose records all have sequences up to `through`."""
        with self._lock:
            gone = [each for each in self._finished if each.last_sequence <= through]
            self._finished = [each for each in self._finished if each.last_sequence > through]
        for each in gone:  # in ascending order: a crash leaves no gap
            each.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Seal the file, if nothing failed, and give the directory up."""
        try:
            if self._failure is None and not self.owner.is_inherited:
                self.owner.check()
                self._file.seal()
        except OSError as error:
            raise self._fail("close", error) from error
        finally:
            self._failure = self._failure or WriterFailed(f"{self.directory} is closed")
            self._file.close()
            self.owner.release()

    def abandon(self) -> None:
        """Give the directory up without writing to it."""
        self._failure = self._failure or WriterFailed(f"{self.directory} was given up")
        self._file.close()
        self.owner.release()

    def _roll(self) -> None:
        segment = self._file.seal()
        self._number += 1
        self._file = SegmentFile(self.directory, self._number, self._identity, self._position)
        with self._lock:  # not before: the newest file alone knows the next sequence
            self._finished.append(segment)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _fail(self, what: str, error: OSError) -> WriterFailed:
        way_out = "open a new writer"
        cause = described(error, then=way_out) if has_remedy(error) else f"{error}; {way_out}"
        failure = WriterFailed(
            f"could not {what} the write-ahead log in {self.directory}. Records that were not "
            f"acknowledged may be lost; nothing more is written: {cause}"
        )
        self._failure = failure
        return failure


def _unopened(directory: Path, error: OSError) -> StoreError | InvalidInput:
    """Build the error for a directory that cannot have a log, or not now."""
    text = f"cannot open a write-ahead log in {directory}: {described(error)}"
    if error.errno in NOT_A_PLACE:
        return InvalidInput(f"{text}; give wal_dir= another directory")
    return StoreError(text)


def _make_directory(path: Path) -> None:
    """Create a directory and its ancestors durably."""
    if path.is_dir():
        return
    _make_directory(path.parent)
    try:
        os.mkdir(path)  # noqa: PTH102 - tests watch calls of `os`
    except FileExistsError:
        if not path.is_dir():
            raise
    sync_directory(path.parent)
