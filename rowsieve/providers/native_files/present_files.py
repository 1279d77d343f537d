"""Checks that files which an engine reads by itself still exist.

Engines may treat a missing file as an empty one. Files of a table are never overwritten, and no
name is used twice: a file that exists now has existed since it was planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore, together
from rowsieve.objects.location import in_place
from rowsieve.parquet.footer import reading
from rowsieve.storage.log.missing_files import missing_files_named
from rowsieve.storage.manifests.manifest import FileRef

PAGE_OBJECTS: Final = 1000
FILES_PER_PAGE: Final = 8  # a page of a listing is asked for instead of at least so many files


def check_files(store: ObjectStore, version: int, files: Iterable[FileRef]) -> None:
    """Raise SnapshotExpired or CorruptData unless all files exist and have their sizes.

    Across a network, their folders are listed, by a page for eight files at most, however many
    others are there; the files that these pages lack are asked for, several at a time.
    """
    checked = list(files)
    with missing_files_named(store, version):
        sizes = _listed(store, checked)
        others = [file for file in checked if file.path not in sizes]
        tasks = [partial(_size_of, store, file.path) for file in others]
        sizes |= zip((file.path for file in others), together(store, tasks), strict=True)
    for file in checked:
        if (size_bytes := sizes[file.path]) != file.size_bytes:
            raise CorruptData(
                f"{file.path} of {store.uri} has {size_bytes:,} bytes, and the manifest says "
                f"{file.size_bytes:,}; restore the file from a copy"
            )


def _size_of(store: ObjectStore, path: str) -> int:
    with reading(path):
        return store.size(path)


def _listed(store: ObjectStore, files: Sequence[FileRef]) -> dict[str, int]:
    """The sizes of the files that a remote store lists in their folders; none of a local disk."""
    if not store.overlaps:
        return {}
    paths = {file.path for file in files if in_place(file.path) is None}
    pages, sizes = len(paths) // FILES_PER_PAGE, dict[str, int]()
    for folder in sorted({path.rpartition("/")[0] for path in paths}):
        if pages < 1:
            break
        details = store.details(folder, pages * PAGE_OBJECTS)
        pages -= -(-len(details) // PAGE_OBJECTS)
        sizes |= {path: each.size_bytes for path, each in details.items() if path in paths}
    return sizes
