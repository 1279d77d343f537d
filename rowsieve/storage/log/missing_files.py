"""Errors for a missing file of a version.

Expiry removes a file only together with the versions that need it, so the newest version has all of
its files: if one is missing, something else deleted it. An older version may have expired.
Soundness: in both cases a read that needs the file fails; it never returns fewer rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rowsieve.errors import (
    CorruptData,
    RowsieveError,
    SnapshotExpired,
    StoreError,
    TableNotFound,
)
from rowsieve.objects import ObjectStore
from rowsieve.storage.log.floors import check_kept, paths_of
from rowsieve.storage.log.log_entry import log_path
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.snapshot import Snapshot


@contextmanager
def missing_files_named(store: ObjectStore, version: int) -> Iterator[None]:
    """Convert SnapshotExpired to CorruptData if `version` is the newest version.

    If the version is below the table's floor, the error says which versions are available.
    """
    try:
        yield
    except SnapshotExpired as error:
        _check_kept(store, version, error)
        if not _is_newest(store, version):
            raise
        raise CorruptData(
            f"a file of version {version}, which is the newest of {store.uri}, is missing: "
            f"{error.path or error}; restore the file from a copy, or restore the table to a "
            "version without it"
        ) from error


@contextmanager
def missing_files_of(store: ObjectStore, snapshot: Snapshot) -> Iterator[None]:
    """`missing_files_named`, for files of `snapshot` only: the block reads older versions, too."""
    try:
        yield
    except SnapshotExpired as error:
        if error.path not in paths_of(snapshot.parts):
            raise
        with missing_files_named(store, snapshot.version):
            raise


def _check_kept(store: ObjectStore, version: int, error: SnapshotExpired) -> None:
    try:
        head = LogReader(store).latest()
    except TableNotFound as gone:  # it was dropped with its files
        raise SnapshotExpired(f"{gone}. {error}", path=error.path) from error
    except RowsieveError:
        return  # the missing file is the error to report
    try:
        check_kept(version, head)
    except SnapshotExpired as expired:
        raise SnapshotExpired(f"{expired}. {error}", path=error.path) from error


def _is_newest(store: ObjectStore, version: int) -> bool:
    try:
        return store.exists(log_path(version)) and not store.exists(log_path(version + 1))
    except StoreError:
        return False
