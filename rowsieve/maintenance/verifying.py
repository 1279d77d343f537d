"""Compare every file of a version with the size and the checksums that the manifest has of it.

Soundness: each byte of a file that the table wrote is covered by a checksum; of a file that was
imported in place only the footer is. The log and the lists of parts were verified when the version
was opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from rowsieve.arguments.annotations import Progress
from rowsieve.errors import CorruptData, SnapshotExpired
from rowsieve.maintenance.file_sums import KnownFile, known_files
from rowsieve.objects import ObjectStore, together
from rowsieve.parquet.footer import reading
from rowsieve.shown import printable, size_text
from rowsieve.storage.log.floors import check_kept
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.snapshot import Snapshot

_AT_ONCE: Final = 16  # files


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A file that is not as the manifest says, and the difference."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The files of one version that were compared, and those that are damaged or missing."""

    version: int
    files: int
    size_bytes: int
    quick: bool
    damaged: tuple[DamagedFile, ...]

    @property
    def is_whole(self) -> bool:
        """True if no file is damaged or missing."""
        return not self.damaged

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "version": self.version,
            "files": self.files,
            "size_bytes": self.size_bytes,
            "quick": self.quick,
            "damaged": [{"path": each.path, "reason": each.reason} for each in self.damaged],
        }

    def __str__(self) -> str:
        checked = "sizes and footers" if self.quick else "all bytes"
        state = f"{len(self.damaged):,} damaged" if self.damaged else "all whole"
        head = (
            f"version {self.version}: {checked} of {self.files:,} files, "
            f"{size_text(self.size_bytes)}: {state}"
        )
        rows = [f"  {printable(each.path)}: {each.reason}" for each in self.damaged]
        return "\n".join([head, *rows])


def verify_version(
    store: ObjectStore, version: Snapshot, *, quick: bool, progress: Progress | None
) -> Verification:
    """Compare the files with the manifest; `quick`: only their sizes and footers.

    SnapshotExpired if the version has been given up, with files that are missing now.
    """
    files = known_files(version.parts)
    paths = sorted(files)
    damaged: list[DamagedFile] = []
    for start in range(0, len(paths), _AT_ONCE):
        block = paths[start : start + _AT_ONCE]
        checks = [partial(_damage, store, path, files[path], quick) for path in block]
        damaged += filter(None, together(store, checks))
        if progress is not None:
            progress(start + len(block), len(paths))
    if damaged:
        check_kept(version.version, LogReader(store).latest())
    total = sum(file.size_bytes for file in files.values())
    return Verification(version.version, len(paths), total, quick, tuple(damaged))


def _damage(store: ObjectStore, path: str, file: KnownFile, quick: bool) -> DamagedFile | None:
    try:
        with reading(path):
            reason = next(_reasons(store, path, file, quick), None)
    except SnapshotExpired:
        reason = "it does not exist"
    except CorruptData as error:  # it has become shorter meanwhile
        reason = str(error)
    return None if reason is None else DamagedFile(path, reason)


def _reasons(store: ObjectStore, path: str, file: KnownFile, quick: bool) -> Iterator[str]:
    size_bytes = store.size(path)
    if size_bytes != file.size_bytes:
        yield f"it has {size_bytes:,} bytes, and the manifest says {file.size_bytes:,}"
    for span in file.footer if quick else file.spans:
        actual = span.read(store, path)
        if actual != span.checksum:
            yield (
                f"bytes {span.start:,} to {span.stop:,} have the checksum {actual}, and "
                f"{span.checksum} was written"
            )
