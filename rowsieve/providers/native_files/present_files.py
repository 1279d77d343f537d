"""Checks that files which an engine reads by itself still exist.

Engines may treat a missing file as an empty one. Files of a table are never overwritten, and no
name is used twice: a file that exists now has existed since it was planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore
from rowsieve.objects.location import in_place
from rowsieve.parquet.footer import reading
from rowsieve.storage.log.missing_files import missing_files_named
from rowsieve.storage.manifests.manifest import FileRef

_ASKED_SINGLY: Final = 8  # files for which requests of their own are sent, not one for a thousand


def check_files(store: ObjectStore, version: int, files: Iterable[FileRef]) -> None:
    """Raise SnapshotExpired or CorruptData unless all files exist and have their sizes."""
    checked = list(files)
    with missing_files_named(store, version):
        listed = _listed(store, checked) if len(checked) > _ASKED_SINGLY else {}
        for file in checked:
            if (size_bytes := listed.get(file.path)) is None:
                with reading(file.path):
                    size_bytes = store.size(file.path)
            if size_bytes != file.size_bytes:
                raise CorruptData(
                    f"{file.path} of {store.uri} has {size_bytes:,} bytes, and the manifest says "
                    f"{file.size_bytes:,}; restore the file from a copy"
                )


def _listed(store: ObjectStore, files: Sequence[FileRef]) -> Mapping[str, int]:
    """The sizes of the files that a remote store lists in their folders; none of a local disk."""
    if not store.overlaps:
        return {}
    own = [file.path for file in files if in_place(file.path) is None]
    folders = {path.rpartition("/")[0] for path in own}
    sizes = [store.details(folder) for folder in sorted(folders)]
    return {path: detail.size_bytes for each in sizes for path, detail in each.items()}
