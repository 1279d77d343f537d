"""Proves which versions are kept, from the log itself; every deletion of retention needs it.

The caller lists the files first, and the proof comes after: a file that is committed in between is
known to it. It reads the log by numbers, never by names of a listing:

- the head is the entry after whose number there is none, and no listed name is of a later version;
- the oldest kept version is the lower one of the table's floor and of the oldest leased version;
- every entry from it to the head exists, and follows the commit before it.

Soundness (invariants, rules 5, 6, 12, 15, 16): a listing that lags, or that was taken while another
call expired versions, can hide a candidate, but never makes one of a file that is kept. The floor
is read before the leases are listed, or a reader's lease could be older than the floor and newer
than the list. If newest entries were lost, nothing is deleted and nothing is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from rowsieve.errors import CorruptData, NotFound, SnapshotExpired
from rowsieve.objects import ObjectStore, together
from rowsieve.retention.listing import Listing
from rowsieve.storage.log.checkpoint import checkpoint_path, read_checkpoint
from rowsieve.storage.log.floors import check_open, floors_of, paths_of
from rowsieve.storage.log.log_entry import LogEntry, log_path
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.log.replay import replay
from rowsieve.storage.snapshot import Snapshot

BLOCK: Final = 64
"""Entries that are read at once."""

_RETRIES: Final = 3  # when another call expires versions at the same time

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeptVersions:
    """The versions from `oldest` to `head`; `paths` are the data files that they need.

    `first` is the oldest of them that can be read: a lease may name a version whose files went
    before it was taken. `leased` is the oldest leased version, None without one. `paths` include
    what other logs of the table need, and `tags` are those of the open ones.
    """

    oldest: int
    leased: int | None
    first: Snapshot
    head: Snapshot
    paths: frozenset[str]
    tags: frozenset[str] = frozenset()


def proven(
    log: LogReader,
    store: ObjectStore,
    listed: Callable[[], Listing],
    prove: Callable[[Listing, KeptVersions], T],
    leases: Callable[[], int | None],
    wanted: int | None = None,
) -> T:
    """List the files, read the floor, then list the leases; `prove` gets what this log keeps.

    Again if other calls delete files meanwhile. `leases` returns the oldest leased version. With
    `wanted`, what would be kept if that were the floor.
    """
    tries = _RETRIES
    while True:
        listing = listed()
        floors = floors_of(log.newest().table.properties)
        floor = floors.oldest_version if wanted is None else wanted
        leased = leases()
        try:
            return prove(listing, prove_kept(log, store, listing, floor, leased))
        except (CorruptData, NotFound, SnapshotExpired):
            tries -= floors_of(log.newest().table.properties) == floors
            if tries < 0:
                raise


def lower_version(version: int, leased: int | None) -> int:
    """Return the lower one of a version and a leased version, which may be None."""
    return version if leased is None else min(version, leased)


def proven_head(
    log: LogReader, store: ObjectStore, listing: Listing, leased: int | None
) -> Snapshot:
    """Read the head after the listing; CorruptData if a name or a lease is of a later version.

    In that case the newest entries of the log were lost. They may be put back from a copy, unless
    their files have been deleted, or their numbers taken, meanwhile.
    """
    head = log.newest()
    newest, name = listing.newest_named()
    if leased is not None and leased > newest:
        newest, name = leased, "a lease"
    if newest > head.version:
        raise CorruptData(
            f"{store.uri} has files that were written on version {newest}, but the newest version "
            f"of its log is {head.version}: later entries of the log were lost ({name} is of a "
            "later version). Nothing was deleted; restore the log from a copy"
        )
    return head


def prove_kept(
    log: LogReader, store: ObjectStore, listing: Listing, floor: int, leased: int | None
) -> KeptVersions:
    """Prove what is kept; `floor` was read before the leases were listed, both after `listing`.

    CorruptData, NotFound or SnapshotExpired, before anything is deleted, if an entry is absent or
    damaged, or if other calls delete files at the same time: try again from the listing on.
    """
    head = proven_head(log, store, listing, leased)
    check_open("retention", head)
    oldest = lower_version(floor, leased)
    first = head
    if oldest < head.version:
        first = _first_readable(log, store, listing, oldest, floor)
    paths = {*paths_of(first.parts)}
    for entry in entries_between(log, store, first, head):
        if entry.added is not None:
            paths.update(paths_of(entry.added))
    return KeptVersions(oldest, leased, first, head, frozenset(paths))


def entries_between(
    log: LogReader, store: ObjectStore, base: Snapshot, head: Snapshot
) -> Iterator[LogEntry]:
    """Yield the entries after `base` up to the head with their parts; CorruptData if one is lost.

    All of them exist, each follows the one before it, and the last one is the head's.
    """
    version, commit_id = base.version, base.commit_id
    while version < head.version:
        block = range(version + 1, min(version + BLOCK, head.version) + 1)
        for number, entry in zip(block, log.loaded_entries(block), strict=True):
            if entry is None or entry.predecessor != commit_id:
                raise _not_the_next(store, number, commit_id)
            version, commit_id = number, entry.commit_id
            yield entry
    if (version, commit_id) != (head.version, head.commit_id):
        raise _not_the_next(store, head.version, base.commit_id)


def entries_down_from(log: LogReader, store: ObjectStore, version: int) -> Iterator[LogEntry]:
    """Yield entries without their parts by descending numbers, until one is absent."""
    for start in range(version, -1, -BLOCK):
        block = range(start, max(start - BLOCK, -1), -1)
        for entry in together(store, [partial(log.entry, number) for number in block]):
            if entry is None:
                return
            yield entry


def read_entries(log: LogReader, store: ObjectStore, versions: Sequence[int]) -> Iterator[LogEntry]:
    """Yield the entries that exist, in order, without their parts; a few are read at once."""
    for start in range(0, len(versions), BLOCK):
        block = versions[start : start + BLOCK]
        for entry in together(store, [partial(log.entry, version) for version in block]):
            if entry is not None:
                yield entry


def _first_readable(
    log: LogReader, store: ObjectStore, listing: Listing, oldest: int, floor: int
) -> Snapshot:
    """Read the oldest version from `oldest` to the floor that can be read.

    Only a version below the floor may be unreadable: a reader takes its lease before it reads the
    floor, and its version may have gone by then.
    """
    try:
        return _read_by_numbers(log, store, listing, oldest)
    except (CorruptData, NotFound, SnapshotExpired):
        if oldest == floor:
            raise
    # No entries lead to `oldest`, so a later version is read from a checkpoint after it.
    for version in _checkpoints_by_number(store, range(oldest + 1, floor)):
        if (snapshot := _checkpoint(store, version)) is not None:
            return snapshot
    return _read_by_numbers(log, store, listing, floor)


def _read_by_numbers(
    log: LogReader, store: ObjectStore, listing: Listing, version: int
) -> Snapshot:
    """Read a version from a checkpoint and the entries after it, whatever the listing lacks."""
    hints = [each for each in reversed(listing.checkpoints) if each <= version]
    base = next((snapshot for each in hints if (snapshot := _checkpoint(store, each))), None)
    is_whole = base is not None or 0 in listing.entries
    if is_whole and (snapshot := _replayed(log, base, version)) is not None:
        return snapshot
    lowest = version + 1
    for entry in entries_down_from(log, store, version):
        lowest = entry.version
    if lowest == 0 and (snapshot := _replayed(log, None, version)) is not None:
        return snapshot
    for number in _checkpoints_by_number(store, range(version, max(lowest - 1, 0) - 1, -1)):
        base = _checkpoint(store, number)
        if base is not None and (snapshot := _replayed(log, base, version)) is not None:
            return snapshot
    raise SnapshotExpired(
        f"version {version} of {store.uri} cannot be read: no checkpoint and entries lead to it; "
        "nothing was deleted"
    )


def _checkpoints_by_number(store: ObjectStore, versions: range) -> Iterator[int]:
    """Yield those of the versions that have a checkpoint, in their order."""
    for start in range(0, len(versions), BLOCK):
        block = versions[start : start + BLOCK]
        looks = [partial(store.exists, checkpoint_path(version)) for version in block]
        there = together(store, looks)
        yield from (version for version, is_there in zip(block, there, strict=True) if is_there)


def _replayed(log: LogReader, base: Snapshot | None, version: int) -> Snapshot | None:
    """Apply the entries after a checkpoint up to a version; None if one is absent."""
    start = 0 if base is None else base.version + 1
    entries = log.loaded_entries(range(start, version + 1))
    present = [entry for entry in entries if entry is not None]
    return replay(base, present) if len(present) == len(entries) else None


def _checkpoint(store: ObjectStore, version: int) -> Snapshot | None:
    """Read a checkpoint with all its columns; None if it is absent or damaged."""
    try:
        snapshot = read_checkpoint(store, version)
        paths_of(snapshot.parts)
    except (CorruptData, NotFound):
        return None
    return snapshot


def _not_the_next(store: ObjectStore, version: int, commit_id: str) -> CorruptData:
    return CorruptData(
        f"{log_path(version)} in {store.uri} is not the entry that follows commit {commit_id}; "
        "nothing was deleted. Restore the log from a copy"
    )
