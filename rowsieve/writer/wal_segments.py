"""The files of a write-ahead log: written at their end, closed with a seal, read back and checked.

A file begins with a SEGMENT frame, goes on with RECORD frames without a gap in their sequences, and
ends with a SEAL once it is closed. Files are numbered without a gap, and each continues the
checksums of the one before. A file is filled with zeros ahead of its frames, so that a sync writes
data only; closing cuts the zeros off.

Soundness (invariant 18): only the newest file may lack its seal and end in the middle of a frame.
Such an end is cut off; anything else that does not fit is CorruptData.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData, UnsupportedProtocol
from rowsieve.writer.wal_frames import (
    Frame,
    FrameKind,
    decode_frame,
    encode_frame,
    frames_after,
    newer_version,
)
from rowsieve.writer.wal_owner import NEW_FILE, sync_directory, temporary_name

FILLED_BYTES: Final = 1 << 20  # zeros ahead of the frames
_NAME = re.compile(r"segment-(\d{20})\.wal")
_ZEROS: Final = memoryview(bytes(FILLED_BYTES))


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Payload of a SEGMENT frame: the log, its table, and what its writer reads records by."""

    table: str
    wal: str
    preamble: bytes


class Record(NamedTuple):
    """Changes as they were appended, with the preamble of their file."""

    sequence: int
    payload: memoryview
    preamble: bytes


@dataclass(slots=True)
class Position:
    """The end of a log: its next sequence, what is durable, and the checksum of its last frame."""

    next_sequence: int = 1
    durable: int = 0
    checksum: int = 0


@dataclass(frozen=True, slots=True)
class FinishedSegment:
    """A sealed file and its last sequence."""

    path: Path
    last_sequence: int


@dataclass(slots=True)
class Content:
    """What the files of a directory hold."""

    records: list[Record] = field(default_factory=list)
    finished: list[FinishedSegment] = field(default_factory=list)
    position: Position = field(default_factory=Position)
    first_sequence: int = 1
    next_number: int = 1
    torn_bytes: int = 0


class SegmentFile:
    """The file that a writer appends to."""

    def __init__(self, directory: Path, number: int, identity: Identity, at: Position) -> None:
        """Create the file durably, with its first frame."""
        self.path = directory / f"segment-{number:020d}.wal"
        self._descriptor = os.open(self.path, NEW_FILE, 0o666)
        self._at = at
        self._filled_bytes = 0
        self.size_bytes = 0
        self.write(FrameKind.SEGMENT, msgspec.json.encode(identity))
        self.sync()
        sync_directory(directory)

    def write(self, kind: FrameKind, payload: bytes | memoryview) -> None:
        """Write a frame at the end; it is durable after the next `sync`."""
        at = self._at
        header, checksum = encode_frame(kind, at.next_sequence, at.durable, at.checksum, payload)
        data = memoryview(b"".join((header, payload)))
        end = self.size_bytes + len(data)
        if end > self._filled_bytes and kind is not FrameKind.SEAL:
            self._put(_ZEROS, end)
            self._filled_bytes = end + FILLED_BYTES
        self._put(data, self.size_bytes)
        self.size_bytes = end
        at.checksum = checksum
        if kind is FrameKind.RECORD:
            at.next_sequence += 1

    def sync(self) -> None:
        """Make all frames durable."""
        os.fsync(self._descriptor)
        self._at.durable = self._at.next_sequence - 1

    def seal(self) -> FinishedSegment:
        """Write the last frame, cut the zeros off, sync and close the file."""
        self.sync()  # so that no valid frame is ever cut off with the zeros
        self.write(FrameKind.SEAL, b"")
        os.ftruncate(self._descriptor, self.size_bytes)
        self.sync()
        self.close()
        return FinishedSegment(self.path, self._at.next_sequence - 1)

    def close(self) -> None:
        """Close the descriptor without a seal."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _put(self, data: memoryview, offset: int) -> None:
        while data.nbytes:
            count = os.pwrite(self._descriptor, data, offset)
            data, offset = data[count:], offset + count


def read_segments(directory: Path, table: str, wal: str, *, trims: bool) -> Content:
    """Read and check all files; close the newest one after its last valid frame.

    Without `trims`, a torn end is CorruptData, too.
    """
    names = [match for name in os.listdir(directory) if (match := _NAME.fullmatch(name))]  # noqa: PTH208
    numbers = sorted(int(match[1]) for match in names)
    content = Content()
    for place, number in enumerate(numbers):
        path = directory / f"segment-{number:020d}.wal"
        if place and number != numbers[place - 1] + 1:
            before = directory / f"segment-{number - 1:020d}.wal"
            raise _damaged(before, 0, "the file is missing")
        reading = _Reading(path, content, table, wal, is_first=not place)
        reading.read(is_newest=place == len(numbers) - 1, trims=trims)
        content.next_number = number + path.exists()  # a file without a first frame is removed
    return content


class _Reading:
    """Reads one file into the content of its directory."""

    def __init__(self, path: Path, content: Content, table: str, wal: str, *, is_first: bool):
        self._path, self._content, self._is_first = path, content, is_first
        self._table, self._wal = table, wal
        self._data = memoryview(path.read_bytes())
        self._offset = 0
        self._preamble = b""

    def read(self, *, is_newest: bool, trims: bool) -> None:
        """Add the records; `is_newest`: the file may lack its seal, which it gets now."""
        while True:
            frame = decode_frame(self._data, self._offset)
            if frame is None:
                break
            self._check(frame)
            self._offset += frame.size_bytes
            if frame.kind is FrameKind.SEAL:
                self._check_end(is_newest=is_newest)
                self._close()
                return
        if not is_newest:
            raise _damaged(self._path, self._offset, "a frame of a closed file is invalid")
        self._check_torn(trims=trims)
        self._finish()

    def _check(self, frame: Frame) -> None:
        """Take a valid frame; CorruptData if it does not follow the one before."""
        at, is_start = self._content.position, self._offset == 0
        if (frame.kind is FrameKind.SEGMENT) != is_start:
            raise _damaged(self._path, self._offset, f"a frame is of kind {frame.kind.name}")
        if is_start:
            self._identify(frame)
        if is_start and self._is_first:
            self._content.first_sequence = at.next_sequence = frame.sequence
        elif (frame.sequence, frame.previous) != (at.next_sequence, at.checksum):
            raise _damaged(self._path, self._offset, "a frame does not follow the one before it")
        if frame.kind is FrameKind.RECORD:
            self._content.records.append(Record(frame.sequence, frame.payload, self._preamble))
            at.next_sequence += 1
        at.checksum = frame.checksum

    def _identify(self, frame: Frame) -> None:
        try:
            identity = msgspec.json.decode(frame.payload, type=described(Identity))
        except msgspec.DecodeError as error:
            raise _damaged(self._path, 0, f"its first frame has no identity: {error}") from error
        if (identity.table, identity.wal) != (self._table, self._wal):
            raise _damaged(
                self._path,
                0,
                f"it belongs to the log {identity.wal} of the table {identity.table}, "
                f"and the directory to the log {self._wal} of {self._table}",
            )
        self._preamble = identity.preamble

    def _check_end(self, *, is_newest: bool) -> None:
        """Cut zeros off that follow the seal of the newest file; anything else is CorruptData."""
        rest = bytes(self._data[self._offset :])
        if not rest:
            return
        if not is_newest or rest.count(0) != len(rest):
            raise _damaged(self._path, self._offset, "bytes follow the last frame")
        _replace(self._path, self._data[: self._offset])

    def _check_torn(self, *, trims: bool) -> None:
        rest = self._data[self._offset :]
        if (version := newer_version(self._data, self._offset)) is not None:
            raise UnsupportedProtocol(
                f"{self._path} has a frame of version {version} at byte {self._offset}, which this "
                "version of rowsieve does not know: upgrade rowsieve"
            )
        expected = self._content.position.next_sequence
        for later in frames_after(self._data, self._offset):
            if later.durable >= expected or not self._offset:  # a first frame is durable first
                raise _damaged(self._path, self._offset, "a frame that was durable is invalid")
        self._content.torn_bytes = 0 if rest.nbytes == bytes(rest).count(0) else rest.nbytes
        if self._content.torn_bytes and not trims:
            raise _damaged(
                self._path,
                self._offset,
                "the last frame is incomplete, as after a crash. Open the writer with "
                "recovery='trim' to cut it off: it was not acknowledged after a sync",
            )

    def _finish(self) -> None:
        """Write the file again with its valid frames and a seal; remove one without any.

        The former owner may still write to the old file, which then has no name any more.
        """
        if not self._offset:
            os.unlink(self._path)  # noqa: PTH108 - tests watch calls of `os`
            sync_directory(self._path.parent)
            return
        at = self._content.position
        at.durable = at.next_sequence - 1
        header, checksum = encode_frame(
            FrameKind.SEAL, at.next_sequence, at.durable, at.checksum, b""
        )
        _replace(self._path, self._data[: self._offset], header)
        at.checksum = checksum
        self._close()

    def _close(self) -> None:
        at = self._content.position
        at.durable = at.next_sequence - 1
        self._content.finished.append(FinishedSegment(self._path, at.next_sequence - 1))


def _replace(path: Path, *pieces: bytes | memoryview) -> None:
    """Give a file a new content, all of it or none."""
    temporary = path.parent / temporary_name()
    descriptor = os.open(temporary, NEW_FILE, 0o666)
    try:
        data, offset = memoryview(b"".join(pieces)), 0
        while offset < len(data):
            offset += os.pwrite(descriptor, data[offset:], offset)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(temporary, path)  # noqa: PTH105 - tests watch calls of `os`
    sync_directory(path.parent)


def _damaged(path: Path, offset: int, what: str) -> CorruptData:
    return CorruptData(
        f"the write-ahead log is damaged: {path} at byte {offset}: {what}. Nothing was changed; "
        "restore the file from a copy"
    )
