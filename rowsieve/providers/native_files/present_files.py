"""Checks that files which an engine reads by itself still exist.

Engines may treat a missing file as an empty one. Files of a table are never overwritten, and no
name is used twice: a file that exists now has existed since it was planned.
"""

from __future__ import annotations

from collections.abc import Iterable

from rowsieve.errors import CorruptData
from rowsieve.objects import ObjectStore
from rowsieve.parquet.footer import reading
from rowsieve.storage.log.missing_files import missing_files_named
from rowsieve.storage.manifests.manifest import FileRef


def check_files(store: ObjectStore, version: int, files: Iterable[FileRef]) -> None:
    """Raise SnapshotExpired or CorruptData unless all files exist and have their sizes."""
    with missing_files_named(store, version):
        for file in files:
            with reading(file.path):
                size_bytes = store.size(file.path)
            if size_bytes != file.size_bytes:
                raise CorruptData(
                    f"{file.path} of {store.uri} has {size_bytes:,} bytes, and the manifest says "
                    f"{file.size_bytes:,}; restore the file from a copy"
                )
