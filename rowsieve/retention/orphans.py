"""Remove orphans: files that no version of the table has, and that no commit can bring any more.

Failed and interrupted writes leave such files. Their names say on which version their writer was
based.

Soundness (invariants, rule 15): the caller commits a floor F, and since then every commit with
files that were based on a version below F is refused. A file listed before that commit, with a base
below F and in no kept version, is unreferenced for ever; no clock is involved. Lists of parts in
the folder of the log follow the same rule by their commit ids; ids of older writers name no
version, and such writers refuse a table with a floor. `grace_s` is patience with writers that are
slow.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rowsieve.arguments.annotations import Progress
from rowsieve.errors import CorruptData, SnapshotExpired, VersionNotFound
from rowsieve.objects import ObjectStore
from rowsieve.retention.deleting import Deletion
from rowsieve.retention.garbage import (
    LogFiles,
    added_files,
    needed_files,
    parts_path_of,
    read_entries,
)
from rowsieve.storage.log.commit_ids import base_of
from rowsieve.storage.log.floors import DATA_FILE, base_of_path
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.snapshot import Snapshot

GRACE_S: Final = 86_400.0
"""The patience with writers whose files are not committed yet, unless a call says otherwise."""


_TEMPORARY_S: Final = 3_600.0
"""The least age of a temporary file: a put that loses one in use fails."""


@dataclass(frozen=True, slots=True)
class Orphans:
    """Unreferenced files at a version of the table: sizes by path.

    `data` and `lists` are deleted once a floor is committed, `others` at any time.
    """

    head: Snapshot
    floor: int
    data: dict[str, int] = field(default_factory=dict)
    lists: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)

    @property
    def sizes(self) -> dict[str, int]:
        """All of them."""
        return {**self.data, **self.lists, **self.others}

    @property
    def need_floor(self) -> bool:
        """True if a commit could still bring one of them."""
        return bool(self.data or self.lists)


def floor_for(log: LogReader, head: Snapshot, grace_s: float) -> int:
    """Return the floor that refuses files based on versions superseded before the grace period.

    Without grace it is the version of the commit of the floor itself.
    """
    if not grace_s:
        return head.version + 1
    try:
        return log.as_of(time.time_ns() // 1000 - round(grace_s * 1_000_000)).version
    except (SnapshotExpired, VersionNotFound):
        return 0


def find_orphans(
    log: LogReader, store: ObjectStore, head: Snapshot, oldest: int, floor: int, grace_s: float
) -> Orphans:
    """Find the orphans at the head; versions from `oldest` on are kept."""
    listed = store.details("data")  # before the head's log: a later file is not in it
    files = LogFiles.of(store)
    _check_head(log, store, head, [*listed, *files.lists])
    data = {path: each.size_bytes for path, each in listed.items() if _is_below(path, floor)}
    if data:
        oldest = max(oldest, files.first_version)
        for path in needed_files(log, store, oldest, head):
            data.pop(path, None)
    return Orphans(
        head,
        floor,
        data,
        _lists(log, store, files, floor),
        _leftovers(store, files, oldest, grace_s),
    )


def delete_orphans(
    log: LogReader,
    store: ObjectStore,
    found: Orphans,
    now: Snapshot,
    progress: Progress | None = None,
) -> Orphans:
    """Delete the files that are still orphans at `now`, which has the floor; return their sizes."""
    kept = added_files(log, store, found.head, now)
    data = {path: size for path, size in found.data.items() if path not in kept}
    lists = found.lists
    if lists:
        versions = range(found.head.version + 1, now.version + 1)
        ids = {entry.commit_id for entry in read_entries(log, store, versions)}
        lists = {path: size for path, size in lists.items() if _id_of(path) not in ids}
    deleted = Orphans(now, found.floor, data, lists, found.others)
    Deletion(store, len(deleted.sizes), progress).delete(list(deleted.sizes))
    return deleted


def _check_head(log: LogReader, store: ObjectStore, head: Snapshot, names: Sequence[str]) -> None:
    """Raise CorruptData if a file's name proves that a version was read which the log lacks.

    In that case the newest entries of the log were lost, and files that only they name are not
    orphans.
    """
    bases = (base_of_path(name) if "/" in name else base_of(name) for name in names)
    newest = max((base for base in bases if base is not None), default=-1)
    if newest > head.version and newest > (found := log.latest().version):
        raise CorruptData(
            f"{store.uri} has files that were written on version {newest}, but the newest version "
            f"of its log is {found}: later entries of the log were lost. Nothing was deleted; "
            "restore the log from a copy"
        )


def _is_below(path: str, floor: int) -> bool:
    """Return whether this is a file of the table whose base version is below the floor."""
    base = base_of_path(path) if DATA_FILE.fullmatch(path) else None
    return base is not None and base < floor


def _lists(log: LogReader, store: ObjectStore, files: LogFiles, floor: int) -> dict[str, int]:
    """Return the lists of parts whose commit id no entry has."""
    candidates = {
        id_: paths
        for id_, paths in files.lists.items()
        if (base := base_of(id_)) is None or base < floor
    }
    if not candidates or not floor:
        return {}
    taken = {entry.commit_id for entry in read_entries(log, store, files.entries)}
    return _sizes(
        files, [p for id_, paths in candidates.items() if id_ not in taken for p in paths]
    )


def _leftovers(store: ObjectStore, files: LogFiles, oldest: int, grace_s: float) -> dict[str, int]:
    """Return parts of checkpoints that were never finished, and temporary files.

    A checkpoint without its parts is skipped by readers, and a put that loses its temporary file
    fails. So neither needs a floor.
    """
    unclaimed = {
        id_: path
        for id_, path in files.checkpoint_parts.items()
        if (base := base_of(id_)) is None or base < oldest
    }
    claimed = {parts_path_of(store, version) for version in files.checkpoints} if unclaimed else ()
    found = _sizes(files, [path for path in unclaimed.values() if path not in claimed])
    last_us = time.time_ns() // 1000 - round(max(grace_s, _TEMPORARY_S) * 1_000_000)
    for path, detail in store.leftovers().items():
        if detail.modified_us <= last_us:
            found[path] = detail.size_bytes
    return found


def _sizes(files: LogFiles, paths: Sequence[str]) -> dict[str, int]:
    return {path: files.details[path].size_bytes for path in paths}


def _id_of(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]
