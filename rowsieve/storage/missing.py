"""What it means that a file of a version is not there.

A file leaves the store together with the versions that need it, so the newest version has all of
its files: one that is missing was deleted by other hands. An older version may have expired.
Soundness: either way a read that needs the file fails; it never returns fewer rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rowsieve.errors import CorruptData, SnapshotExpired, StoreError
from rowsieve.objects import ObjectStore
from rowsieve.storage.log_entry import log_path


@contextmanager
def files_of(store: ObjectStore, version: int) -> Iterator[None]:
    """Turn SnapshotExpired while the newest version is read into CorruptData."""
    try:
        yield
    except SnapshotExpired as error:
        if not _is_newest(store, version):
            raise
        raise CorruptData(
            f"a file of version {version}, which is the newest of {store.uri}, is missing: "
            f"{str(error).partition(' is gone:')[0]}; restore it from a copy, or the table to a "
            "version without it"
        ) from error


def _is_newest(store: ObjectStore, version: int) -> bool:
    try:
        return store.exists(log_path(version)) and not store.exists(log_path(version + 1))
    except StoreError:
        return False
