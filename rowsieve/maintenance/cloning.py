"""Copies one version of a table, with its data files, into a table of its own.

Soundness: the caller holds a lease on the version, so that no file goes while it is copied. Each
copy is compared with the size and the checksum of the manifest before the new table exists. Files
that were imported in place stay where they are; the new table refers to them too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from rowsieve.arguments.annotations import Progress
from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore, put_fresh, together
from rowsieve.storage.data_paths import DATA_FILE
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.floors import paths_of
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot

_AT_ONCE: Final = 4  # files in memory


def clone_version(
    source: ObjectStore, version: Snapshot, target: ObjectStore, progress: Progress | None
) -> Snapshot:
    """Copy the version's files into `target`, then create a table with this version there.

    TableExists or InvalidInput if the folder is not empty. An interrupted call leaves no table.
    """
    log = CommitLog(target)
    log.check_vacant()
    sums = _checksums(version.parts)
    paths = sorted({path for path in paths_of(version.parts) if DATA_FILE.fullmatch(path)})
    for start in range(0, len(paths), _AT_ONCE):
        block = paths[start : start + _AT_ONCE]
        together(
            target, [partial(_copy, source, target, path, sums.get(path, [])) for path in block]
        )
        if progress is not None:
            progress(start + len(block), len(paths))
    return log.plant(version, {"cloned_from": source.uri, "version": version.version})


def _copy(source: ObjectStore, target: ObjectStore, path: str, sums: Sequence[_Sum]) -> None:
    data = memoryview(source.get(path))
    if not all(each.is_of(data) for each in sums):
        raise CorruptData(
            f"{path} in {source.uri} does not match its checksum: nothing was created in "
            f"{target.uri}; restore the file from a copy"
        )
    put_fresh(target, path, data)


class _Sum(NamedTuple):
    """The checksum of the bytes [start, start + size) of a file; of the whole file without size."""

    checksum: str
    start: int = 0
    size_bytes: int | None = None

    def is_of(self, data: memoryview) -> bool:
        """Return whether the file's data has this checksum there."""
        if self.size_bytes is None:
            return checksum(data) == self.checksum
        stop = self.start + self.size_bytes
        return stop <= len(data) and checksum(data[self.start : stop]) == self.checksum


def _checksums(parts: PartTable) -> dict[str, list[_Sum]]:
    """Return what is known of the files of rows, tombstones and vectors, by path.

    A file of stored vectors has those of several parts, each with a checksum.
    """
    checksums: dict[str, list[_Sum]] = defaultdict(list)
    for prefix in ("data", "deletes", "dv"):
        paths: Sequence[str | None] = parts.column(f"{prefix}.path").to_pylist()
        sums: Sequence[str | None] = parts.column(f"{prefix}.checksum").to_pylist()
        for path, known in zip(paths, sums, strict=True):
            if path is not None and known is not None:
                checksums[path].append(_Sum(known))
    for vector in parts.vectors():
        if vector is not None and vector.path is not None and vector.checksum is not None:
            checksums[vector.path].append(_Sum(vector.checksum, vector.start, vector.size_bytes))
    return checksums
