"""Copies one version of a table, with its data files, into a table of its own.

Soundness: the caller holds a lease on the version, so that no file goes while it is copied. Each
copy is compared with the size and the checksum of the manifest before the new table exists. Files
that were imported in place stay where they are; the new table refers to them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from rowsieve.arguments.annotations import Progress
from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore, put_fresh, together
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.floors import DATA_FILE, paths_of
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
    sums = dict(_checksums(version.parts))
    paths = sorted({path for path in paths_of(version.parts) if DATA_FILE.fullmatch(path)})
    for start in range(0, len(paths), _AT_ONCE):
        block = paths[start : start + _AT_ONCE]
        together(target, [partial(_copy, source, target, path, sums.get(path)) for path in block])
        if progress is not None:
            progress(start + len(block), len(paths))
    return log.plant(version, {"cloned_from": source.uri, "version": version.version})


def _copy(source: ObjectStore, target: ObjectStore, path: str, expected: str | None) -> None:
    data = source.get(path)
    if expected is not None and checksum(data) != expected:
        raise CorruptData(
            f"{path} in {source.uri} does not match its checksum: nothing was created in "
            f"{target.uri}; restore the file from a copy"
        )
    put_fresh(target, path, data)


def _checksums(parts: PartTable) -> Iterator[tuple[str, str]]:
    """Yield the path and the checksum of the files of rows, of tombstones and of vectors."""
    for prefix in ("data", "deletes", "dv"):
        paths: Sequence[str | None] = parts.column(f"{prefix}.path").to_pylist()
        sums: Sequence[str | None] = parts.column(f"{prefix}.checksum").to_pylist()
        for path, found in zip(paths, sums, strict=True):
            if path is not None and found is not None:
                yield path, found
