"""Expire versions: choose the oldest version to keep, then delete files that only older ones need.

Soundness (invariants, rules 6 and 16): the caller commits the floor, then lists the leases, then
proves what is kept (`kept_versions`); nothing goes that the proof has, whatever was listed. Data
files go first, the log after them, so that an interrupted call can be repeated: the log still names
the remaining files. Log entries go in ascending order, and only below a version
whose checkpoint was read back and is of the commit that the log has there; a checkpoint of a later
version is verified too, as the fallback.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Final

from rowsieve.arguments.annotations import Progress
from rowsieve.errors import CorruptData, InvalidInput, NotFound, SnapshotExpired, VersionNotFound
from rowsieve.objects import ObjectStore
from rowsieve.retention.deleting import Deletion
from rowsieve.retention.garbage import expired_files, parts_path_of
from rowsieve.retention.kept_versions import BLOCK, KeptVersions, read_entries
from rowsieve.retention.listing import Listing
from rowsieve.storage.log.checkpoint import checkpoint_path, read_checkpoint, write_checkpoint
from rowsieve.storage.log.conflicts import RETENTION_OPERATIONS
from rowsieve.storage.log.floors import floors_of
from rowsieve.storage.log.incremental_checkpoint import incremental_path
from rowsieve.storage.log.log_entry import log_path
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.manifests.segments import STATISTICS
from rowsieve.storage.manifests.shards import digest_of_ids
from rowsieve.storage.snapshot import Snapshot

KEPT_S: Final = 7 * 86_400.0
"""The time that versions stay readable, unless a call says otherwise."""

_log = logging.getLogger(__name__)


def oldest_to_keep(
    log: LogReader,
    store: ObjectStore,
    head: Snapshot,
    older_than_us: int | None,
    retain_last: int | None,
) -> int:
    """Return the oldest version that the arguments keep; with both, what either one keeps.

    `older_than_us` keeps every version that was the newest one at that time or later.
    `retain_last` keeps that many versions, those of retention itself not counted.
    """
    oldest_needed = []
    floor = floors_of(head.table.properties).oldest_version
    if retain_last is not None:
        oldest_needed.append(_last_versions(log, store, head.version, floor, retain_last))
    if older_than_us is not None:
        newest = _newest_at(log, older_than_us)
        oldest_needed.append(_last_versions(log, store, newest, floor, 1))
    return min(oldest_needed, default=head.version)


def _last_versions(log: LogReader, store: ObjectStore, newest: int, floor: int, count: int) -> int:
    """Return the oldest of the last `count` versions up to `newest`, from the floor on.

    A commit of retention does not count: it has the rows of the version before it.
    """
    oldest = newest
    while oldest >= floor and count > 0:
        versions = range(oldest, max(oldest - min(count, BLOCK), floor - 1), -1)
        for entry in read_entries(log, store, versions):
            oldest = entry.version
            count -= entry.operation not in RETENTION_OPERATIONS
        if oldest > versions[-1]:  # the log ends here
            break
        oldest -= count > 0
    return max(oldest, floor)


def checked_retain_last(retain_last: int | None) -> None:
    """Raise InvalidInput unless at least the newest version is kept."""
    if retain_last is not None and retain_last < 1:
        raise InvalidInput(
            f"retain_last is {retain_last}; keep at least 1 version: the newest is always kept"
        )


def delete_expired(
    log: LogReader,
    store: ObjectStore,
    listing: Listing,
    versions: KeptVersions,
    *,
    dry_run: bool,
    progress: Progress | None = None,
) -> dict[str, int]:
    """Delete listed files that only versions before the kept ones need; return sizes by path.

    If the checkpoints cannot be verified, the log stays whole and a later call tries again.
    """
    if all(version >= versions.oldest for version in (*listing.entries, *listing.checkpoints)):
        return {}
    expired = expired_files(log, store, listing, versions.oldest)
    garbage = {
        path: size for path, size in sorted(expired.sizes.items()) if path not in versions.paths
    }
    of_log = dict.fromkeys(_expired_log(store, listing, versions.oldest, expired.commit_ids))
    details = listing.details
    log_sizes = {path: details[path].size_bytes for path in of_log if path in details}
    if dry_run:
        return garbage | log_sizes
    deletion = Deletion(store, len(garbage) + len(log_sizes), progress)
    deletion.delete([*garbage])
    if not _ensure_checkpoints(log, store, listing, versions):
        return garbage
    deletion.delete([*log_sizes])
    return garbage | log_sizes


def _newest_at(log: LogReader, timestamp_us: int) -> int:
    """Return the version that was the newest one at a time; 0 before the table's creation."""
    try:
        return log.as_of(timestamp_us).version
    except (SnapshotExpired, VersionNotFound):
        return 0


def _expired_log(
    store: ObjectStore, listing: Listing, oldest: int, ids: Mapping[int, str]
) -> Iterator[str]:
    """Yield the log's files below a version: by version, each entry after all that it names.

    `ids` are the commit ids of the entries that could be read; the others stay.
    The newest checkpoint below it stays if it is in shards: a process that opened the table by it
    may not have read all columns of the parts yet. Incremental checkpoints go with the one that
    they follow.
    """
    for version, base in listing.incremental:
        if base < oldest:
            yield incremental_path(version, base)
    versions = [version for version in listing.entries if version < oldest]
    checkpoints = [version for version in listing.checkpoints if version < oldest]
    for version in sorted({*versions, *checkpoints}):
        if version in checkpoints:
            parts = parts_path_of(store, version)
            if version != checkpoints[-1] or parts is None or not parts.endswith(".shards"):
                yield from [parts] if parts else []
                yield checkpoint_path(version)
        yield from listing.lists.get(ids.get(version, ""), ())
        if version in ids:
            yield log_path(version)


def _ensure_checkpoints(
    log: LogReader, store: ObjectStore, listing: Listing, versions: KeptVersions
) -> bool:
    """Return whether the oldest version and a later one have verified checkpoints.

    Writes missing ones. False if the oldest one cannot be read: the log stays for its lease.
    SnapshotExpired if another call has removed its entry since it was proved.
    """
    oldest, head = versions.first, versions.head
    if log.entry(oldest.version) is None:
        raise SnapshotExpired(
            f"expire_versions: another call has expired version {oldest.version} of {store.uri} "
            "meanwhile; call it again"
        )
    if oldest.version == head.version or oldest.version > versions.oldest:
        return False  # without a later version there is no fallback
    later = [version for version in listing.checkpoints if oldest.version < version < head.version]
    return _has_checkpoint(log, store, oldest) and (
        any(_has_checkpoint(log, store, log.read_version(each)) for each in reversed(later))
        or _has_checkpoint(log, store, head)
    )


def _has_checkpoint(log: LogReader, store: ObjectStore, snapshot: Snapshot) -> bool:
    """Return whether a version's checkpoint reads back as the version; writes a missing one."""
    if not store.exists(checkpoint_path(snapshot.version)):
        write_checkpoint(store, snapshot)
    try:
        checkpoint, entry = read_checkpoint(store, snapshot.version), log.entry(snapshot.version)
        names = [n for n in checkpoint.parts.schema.names if not n.startswith(STATISTICS)]
        checkpoint.parts.read(names)  # verifies them where they are read on demand
    except (CorruptData, NotFound) as error:
        _log.warning("a checkpoint of %s does not read back: %s", store.uri, error)
        return False
    is_same = (
        entry is not None
        and checkpoint.commit_id == snapshot.commit_id == entry.commit_id
        and (checkpoint.schema, checkpoint.table, checkpoint.tokens)
        == (snapshot.schema, snapshot.table, snapshot.tokens)
        and digest_of_ids(checkpoint.parts) == digest_of_ids(snapshot.parts)
    )
    if not is_same:
        _log.warning("%s is not version %d of the log", store.uri, snapshot.version)
    return is_same
