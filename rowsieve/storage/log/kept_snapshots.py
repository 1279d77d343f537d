"""The newest version of a table that a process of this machine read, in `Config.cache_dir`.

    <folder>/tables/<hash of URI and server>/    a store with one checkpoint of that version

Its files count for `Config.cache_bytes`, and go when they were not used for longest.

A process that opens the table begins there and asks the store only what has been committed since.

Soundness: the version is only a guess where the log's end may be. `LogHead` uses it as it uses a
version that it has read before: the entry of the log must have the same table and commit id. So a
table that was replaced, restored from a copy, or is on another server of the same name is noticed.
Errors of the disk are logged at most, and never fail a read.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import xxhash

from rowsieve.errors import RowsieveError
from rowsieve.objects import LocalStore
from rowsieve.objects.byte_files import note_uses
from rowsieve.storage.log.checkpoint import (
    CHECKPOINTS,
    SHARDED_FROM,
    checkpoint_version_of,
    read_checkpoint,
    write_checkpoint,
)
from rowsieve.storage.snapshot import Snapshot

_log = logging.getLogger(__name__)


def kept_snapshot(store: Any) -> Snapshot | None:
    """The version that was kept last of the table in `store`; None if there is none to read."""
    if (folder := _folder_of(store)) is None:
        return None
    try:
        versions = _versions(folder)
        if not versions:
            return None
        note_uses(store.cache_folder / _name_of(store) / CHECKPOINTS)
        return read_checkpoint(folder, versions[-1])
    except (RowsieveError, OSError) as error:
        _log.info("the version of %s in the cache is not used: %s", store.uri, error)
        _clear(folder)
        return None


def keep_snapshot(store: Any, snapshot: Snapshot) -> None:
    """Keep a version for processes that open the table later, instead of the one kept before.

    Not if its parts take several files or too many bytes, or if its next checkpoint is overdue,
    which a checkpoint does not say.
    """
    folder = _folder_of(store)
    if folder is None or snapshot.owes_checkpoint or len(snapshot.parts) >= SHARDED_FROM:
        return
    try:
        if _versions(folder) != [snapshot.version]:
            _clear(folder)
            write_checkpoint(folder, snapshot)
            sizes = [each.size_bytes for each in folder.details(CHECKPOINTS).values()]
            if not store.admits_files(sum(sizes)):
                _clear(folder)
    except (RowsieveError, OSError) as error:  # a full disk, for example
        _log.info("version %d of %s is not kept: %s", snapshot.version, store.uri, error)
        _clear(folder)


def forget_snapshot(store: Any) -> None:
    """Delete what is kept of the table in `store`, because it is not a version of it."""
    if (folder := _folder_of(store)) is not None:
        _clear(folder)


def _folder_of(store: Any) -> LocalStore | None:
    folder: Path | None = getattr(store, "cache_folder", None)
    if folder is None:
        return None
    return LocalStore(folder / _name_of(store))


def _name_of(store: Any) -> str:
    return xxhash.xxh3_128(store.cache_place.encode()).hexdigest()


def _versions(folder: LocalStore) -> list[int]:
    numbers = map(checkpoint_version_of, folder.list(CHECKPOINTS))
    return sorted(number for number in numbers if number is not None)


def _clear(folder: LocalStore) -> None:
    try:
        folder.delete(folder.list(CHECKPOINTS))
    except (RowsieveError, OSError) as error:
        _log.info("files of the cache cannot be deleted: %s", error)
