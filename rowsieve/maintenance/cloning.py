"""Copies one version of a table, with its data files, into a table of its own.

Soundness: the caller holds a lease on the version, so that no file goes while it is copied. Each
copy is compared with the size and the checksum of the manifest before the new table exists. Files
that were imported in place stay where they are; the new table refers to them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from rowsieve.arguments.annotations import Progress
from rowsieve.errors import CorruptData
from rowsieve.maintenance.file_sums import Span, known_files
from rowsieve.objects import ObjectStore, put_fresh, together
from rowsieve.parquet.footer import reading
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.floors import paths_of
from rowsieve.storage.log.missing_files import missing_files_named
from rowsieve.storage.planting import check_plantable, plant
from rowsieve.storage.snapshot import Snapshot
from rowsieve.storage.versioned_names import DATA_FILE

_AT_ONCE: Final = 4  # files in memory


def clone_version(
    source: ObjectStore, version: Snapshot, target: ObjectStore, progress: Progress | None
) -> Snapshot:
    """Copy the version's files into `target`, then create a table with this version there.

    TableExists or InvalidInput if the folder is not empty. An interrupted call leaves no table; the
    same call continues it.
    """
    log = CommitLog(target)
    check_plantable(log, version)
    files = known_files(version.parts)
    paths = sorted({path for path in paths_of(version.parts) if DATA_FILE.fullmatch(path)})
    for start in range(0, len(paths), _AT_ONCE):
        block = paths[start : start + _AT_ONCE]
        with missing_files_named(source, version.version):
            together(
                target, [partial(_copy, source, target, path, files[path].spans) for path in block]
            )
        if progress is not None:
            progress(start + len(block), len(paths))
    return plant(log, version, {"cloned_from": source.uri, "version": version.version})


def _copy(source: ObjectStore, target: ObjectStore, path: str, spans: Sequence[Span]) -> None:
    with reading(path):
        data = memoryview(source.get(path))
    if not all(span.is_of(data) for span in spans):
        raise CorruptData(
            f"{path} in {source.uri} does not match its checksum: nothing was created in "
            f"{target.uri}; restore the file from a copy"
        )
    put_fresh(target, path, data)
