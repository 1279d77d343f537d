"""Remove orphans: files that no version of the table has, and that no commit can bring any more.

Failed and interrupted writes leave such files. Their names say on which version their writer was
based.

Soundness (invariants, rule 15): the caller lists the files, proves what is kept (`kept_versions`)
and commits a floor F; since then every commit with files that were based on a version below F is
refused. A file listed before, with a base below F and in no kept version, is unreferenced for ever;
no clock is involved. Lists of parts in the folder of the log follow the same rule by their commit
ids, and belong to every entry that can be read by its number; ids of older writers name no version,
and such writers refuse a table with a floor. `grace_s` is patience with writers that are slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rowsieve import clock
from rowsieve.arguments.annotations import Progress
from rowsieve.errors import CorruptData, NotFound, SnapshotExpired, VersionNotFound
from rowsieve.objects import ObjectStore, table_store
from rowsieve.retention.deleting import Deletion
from rowsieve.retention.kept_versions import (
    KeptVersions,
    entries_between,
    entries_down_from,
    read_entries,
)
from rowsieve.retention.listing import Listing
from rowsieve.storage.log.checkpoint import CHECKPOINTS, checkpoint_file, read_checkpoint
from rowsieve.storage.log.floors import paths_of
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.snapshot import Snapshot
from rowsieve.storage.versioned_names import DATA_FILE, base_of_id, base_of_path

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
        return log.as_of(clock.now_us() - round(grace_s * 1_000_000)).version
    except (SnapshotExpired, VersionNotFound):
        return 0


def find_orphans(
    log: LogReader,
    store: ObjectStore,
    listing: Listing,
    versions: KeptVersions,
    floor: int,
    grace_s: float,
) -> Orphans:
    """Find listed files that no kept version and no entry of the log has."""
    data = {
        path: each.size_bytes
        for path, each in listing.data.items()
        if _is_below(path, floor) and path not in versions.paths
    }
    others = _leftovers(store, listing, versions, grace_s)
    if store is table_store(store):
        others |= _abandoned(listing, versions)
    return Orphans(versions.head, floor, data, _lists(log, store, listing, versions, floor), others)


def delete_orphans(
    log: LogReader,
    store: ObjectStore,
    orphans: Orphans,
    now: Snapshot,
    progress: Progress | None = None,
) -> Orphans:
    """Delete the files that are still orphans at `now`, which has the floor; return their sizes."""
    paths: set[str] = set()
    ids: set[str] = set()
    for entry in entries_between(log, store, orphans.head, now):
        ids.add(entry.commit_id)
        if entry.added is not None:
            paths.update(paths_of(entry.added))
    data = {path: size for path, size in orphans.data.items() if path not in paths}
    lists = {path: size for path, size in orphans.lists.items() if _id_of(path) not in ids}
    deleted = Orphans(now, orphans.floor, data, lists, orphans.others)
    Deletion(store, len(deleted.sizes), progress).delete(list(deleted.sizes))
    return deleted


def _abandoned(listing: Listing, versions: KeptVersions) -> dict[str, int]:
    """Return files that branches wrote whose logs are gone, so that nobody can commit them.

    A branch writes its first file after it was registered, and the registered ones were read after
    the files were listed.
    """
    return {
        path: each.size_bytes
        for tag, details in listing.of_others.items()
        if tag not in versions.tags
        for path, each in details.items()
        if path not in versions.paths
    }


def _is_below(path: str, floor: int) -> bool:
    """Return whether this is a file of the table whose base version is below the floor."""
    base = base_of_path(path) if DATA_FILE.fullmatch(path) else None
    return base is not None and base < floor


def _lists(
    log: LogReader, store: ObjectStore, listing: Listing, versions: KeptVersions, floor: int
) -> dict[str, int]:
    """Return the lists of parts whose commit id no entry has.

    Entries are read by number, from the head to the oldest, and those that are listed below a gap.
    """
    candidates = {
        id_: paths
        for id_, paths in listing.lists.items()
        if (base := base_of_id(id_)) is None or base < floor
    }
    if not candidates or not floor:
        return {}
    lowest, taken = versions.head.version + 1, set[str]()
    for entry in entries_down_from(log, store, versions.head.version):
        lowest = entry.version
        taken.add(entry.commit_id)
    if lowest > versions.first.version + 1:
        raise CorruptData(
            f"entry {lowest - 1} of {store.uri} was read and is absent; nothing was deleted"
        )
    rest = [version for version in listing.entries if version < lowest]
    taken.update(entry.commit_id for entry in read_entries(log, store, rest))
    return _sizes(
        listing, [p for id_, paths in candidates.items() if id_ not in taken for p in paths]
    )


def _leftovers(
    store: ObjectStore, listing: Listing, versions: KeptVersions, grace_s: float
) -> dict[str, int]:
    """Return parts of checkpoints that were never finished, and temporary files.

    A put that loses its temporary file fails, so these need no floor.
    """
    sizes = _sizes(listing, _unfinished(store, listing, versions))
    last_us = clock.now_us() - round(max(grace_s, _TEMPORARY_S) * 1_000_000)
    for path, detail in store.leftovers().items():
        if detail.modified_us <= last_us:
            sizes[path] = detail.size_bytes
    return sizes


def _unfinished(store: ObjectStore, listing: Listing, versions: KeptVersions) -> list[str]:
    """The parts of checkpoints that have no file which names them, and that nothing will need.

    These are of versions before a checkpoint from which the kept versions are read: another call
    that finishes such a checkpoint now cannot rely on it. Their ids say which file would name them;
    ids of older writers do not, so their files stay.
    """
    bases = {id_: base for id_ in listing.checkpoint_parts if (base := base_of_id(id_)) is not None}
    if not any(base < versions.first.version for base in bases.values()):
        return []
    start = _newest_readable(store, [v for v in listing.checkpoints if v <= versions.first.version])
    return [
        listing.checkpoint_parts[id_]
        for id_, base in bases.items()
        if base < start and not _may_have(store, base, listing.checkpoint_parts[id_])
    ]


def _newest_readable(store: ObjectStore, checkpoints: Sequence[int]) -> int:
    """The newest of the checkpoints that reads back; -1 without one."""
    for version in reversed(checkpoints):
        try:
            read_checkpoint(store, version)
        except (CorruptData, NotFound):
            continue
        return version
    return -1


def _may_have(store: ObjectStore, version: int, path: str) -> bool:
    """Return whether the checkpoint of a version exists and may name the file of its parts."""
    try:
        return f"{CHECKPOINTS}/{checkpoint_file(store, version)}" == path
    except NotFound:
        return False
    except CorruptData:
        return True


def _sizes(listing: Listing, paths: Sequence[str]) -> dict[str, int]:
    return {path: listing.details[path].size_bytes for path in paths}


def _id_of(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]
