"""What gives disk space back, and the lease that protects a reader from it.

`expire_versions` expires old versions and deletes the files that only they had. `remove_orphans`
deletes files that no version has. `vacuum` does both. All of them may run at the same time, in any
number of processes, concurrently with writers and readers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any, Final

from rowsieve import clock
from rowsieve.arguments import Example
from rowsieve.arguments.annotations import Metadata, Moment, Progress
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import InvalidInput, SnapshotExpired, UnsupportedOperation
from rowsieve.objects import ObjectStore, table_store
from rowsieve.retention.dropped_refs import remove_dropped, unregistered
from rowsieve.retention.expiring import (
    KEPT_S,
    checked_retain_last,
    delete_expired,
    oldest_to_keep,
)
from rowsieve.retention.kept_versions import (
    KeptVersions,
    lower_version,
    proven_head,
)
from rowsieve.retention.leases import LEASE_S, Lease, LeaseWatch, lease_files, oldest_leased
from rowsieve.retention.listing import Listing
from rowsieve.retention.orphans import (
    Orphans,
    delete_orphans,
    find_orphans,
    floor_for,
)
from rowsieve.retention.other_logs import with_proof
from rowsieve.retention.removed_files import RemovedFiles
from rowsieve.storage.differential import readable_time
from rowsieve.storage.log.commit_log import CommitLog, check_writable
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.floors import check_kept, floors_of, raised
from rowsieve.storage.log.version_arguments import log_of_ref
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.instants import to_microseconds

_CLOCKS_DIFFER_US: Final = 60_000_000
_OWN_LEASE_S: Final = 300.0
Seconds = Annotated[float, Example("60.0", "a number of seconds")]


@contextmanager
def leased(
    handle: Handle,
    duration_s: float = LEASE_S,
    version: int | str | None = None,
    as_of: Moment | None = None,
    holder: str = "",
    since: Any = None,
) -> Iterator[Handle]:
    """Protect a version from deletion in a `with` block; yields a read-only handle at it.

    `since`: the earliest time of a differential table that is still read, at later versions too.
    """
    if version is None and as_of is None and isinstance(handle.read_only, str):
        raise UnsupportedOperation(f"lease: {handle.read_only}")
    if isinstance(version, str):
        log, version = log_of_ref(handle.log, version), None
        handle = handle.at_log(log, log.latest(), read_only=True)
    is_newest = version is None and as_of is None
    with ExitStack() as stack:
        while True:
            snapshot = handle.committed() if is_newest else handle.resolve(version, as_of)
            try:
                leased = stack.enter_context(
                    _leased_version(handle, snapshot, duration_s, holder, since)
                )
                break
            except SnapshotExpired:
                if not is_newest or handle.committed().version == snapshot.version:
                    raise  # else commits and an expiry came before the lease
        yield handle.fixed_at(leased)


@contextmanager
def _leased_version(
    handle: Handle, snapshot: Snapshot, duration_s: float, holder: str, since: Any
) -> Iterator[Snapshot]:
    """Hold a lease of a version; SnapshotExpired if it had expired before the lease existed."""
    uuid, version = snapshot.table.uuid, snapshot.version
    time = None if since is None else readable_time(snapshot, since, "lease: since=")
    with Lease(handle.store, uuid, version, duration_s, holder, time):
        check_kept(snapshot.version, handle.latest())  # after the lease: invariants, rule 16
        if not snapshot.parts.in_memory:  # read columns from a checkpoint that stays
            snapshot = handle.log.read_version(snapshot.version)
        yield snapshot


def expire_versions(
    handle: Handle,
    older_than: Moment | None,
    retain_last: int | None,
    grace_s: float,
    metadata: Metadata | None,
    progress: Progress | None,
    *,
    dry_run: bool,
) -> RemovedFiles:
    """Raise the floor of the versions as `Table.expire_versions` says, and delete what is below."""
    handle.require_writable("expire_versions")
    checked_retain_last(retain_last)
    checked_grace(grace_s)
    if older_than is None and retain_last is None:
        older_than_us: int | None = clock.now_us() - round(KEPT_S * 1_000_000)
    else:
        older_than_us = None if older_than is None else checked_past(older_than)
    log, store, head = handle.log, handle.store, handle.latest()
    check_writable("expire_versions", head)
    wanted = oldest_to_keep(log, store, head, older_than_us, retain_last)
    if dry_run:
        return _expired(handle, head, wanted, lambda: oldest_leased(lease_files(store)))
    listing = Listing.of(store)
    floor = floors_of(head.table.properties).oldest_version
    if wanted <= floor <= listing.is_trimmed_at:
        return RemovedFiles("expire_versions", oldest_version=floor)
    with Lease(store, head.table.uuid, wanted, _OWN_LEASE_S, "expire_versions") as lease:
        watch = LeaseWatch(store, lease)
        oldest = lower_version(wanted, watch.oldest)
        now = proven_head(log, store, listing, watch.oldest)
        if oldest > floors_of(now.table.properties).oldest_version:
            _raise_floors(handle, "expire_versions", metadata, oldest_version=oldest)
        return _delete_given_up(handle, head, watch, grace_s, progress)


def remove_orphans(
    handle: Handle,
    grace_s: float,
    metadata: Metadata | None,
    progress: Progress | None,
    *,
    dry_run: bool,
) -> RemovedFiles:
    """Delete files that no version has, as `Table.remove_orphans` says."""
    handle.require_writable("remove_orphans")
    checked_grace(grace_s)
    log, store, head = handle.log, handle.store, handle.latest()
    check_writable("remove_orphans", head)
    floors = floors_of(head.table.properties)
    floor = max(floors.oldest_base, floor_for(log, head, grace_s))
    if dry_run:
        orphans = _orphans(handle, lambda: oldest_leased(lease_files(store)), floor, grace_s)
        return RemovedFiles(
            "remove_orphans", orphans.sizes, oldest_version=floors.oldest_version, dry_run=True
        )
    over: dict[str, int] = {}
    with Lease(store, head.table.uuid, head.version, _OWN_LEASE_S, "orphans") as lease:
        watch = LeaseWatch(store, lease)

        def look_again() -> int | None:
            oldest, ended = watch.look_again(0.0)
            store.delete(list(ended))
            over.update(ended)
            return oldest

        orphans = _orphans(handle, look_again, floor, grace_s)
        head, floors = orphans.head, floors_of(orphans.head.table.properties)
        need_floor = orphans.need_floor or unregistered(store, head, floor)
        if need_floor and floors.oldest_base < floor:
            head = _raise_floors(handle, "remove_orphans", metadata, oldest_base=floor)
        deleted = delete_orphans(log, store, orphans, head, progress)
    sizes = {**deleted.sizes, **over}
    if store is table_store(store):
        sizes |= remove_dropped(store, log)
        handle.latest()
    return RemovedFiles("remove_orphans", sizes, oldest_version=floors.oldest_version)


def check_newest(store: ObjectStore, log: CommitLog) -> None:
    """Raise CorruptData if a file or a lease shows that the log has lost its newest entries."""
    proven_head(log, store, Listing.of(store), oldest_leased(lease_files(store)))


def _delete_given_up(
    handle: Handle,
    before: Snapshot,
    watch: LeaseWatch,
    grace_s: float,
    progress: Progress | None,
) -> RemovedFiles:
    """Look at the leases again, then delete the files of versions below the floor."""
    over: dict[str, int] = {}

    def look_again() -> int | None:
        nonlocal grace_s
        oldest, ended = watch.look_again(grace_s)
        grace_s = 0.0
        handle.store.delete(list(ended))
        over.update(ended)
        return oldest

    removed = _expired(handle, before, None, look_again, progress)
    return dataclasses.replace(removed, sizes={**removed.sizes, **over})


def _expired(
    handle: Handle,
    before: Snapshot,
    wanted: int | None,
    leases: Callable[[], int | None],
    progress: Progress | None = None,
) -> RemovedFiles:
    """Delete the files that only versions below the floor have; return the call's result.

    With `wanted`, only say what would be deleted if that were the floor. `leases` lists them
    and returns the oldest leased version.
    """
    log, store, dry_run = handle.log, handle.store, wanted is not None

    def delete(listing: Listing, versions: KeptVersions) -> tuple[dict[str, int], KeptVersions]:
        sizes = delete_expired(log, store, listing, versions, dry_run=dry_run, progress=progress)
        return sizes, versions

    sizes, kept_versions = with_proof(log, store, delete, leases, wanted)
    known = floors_of(before.table.properties).oldest_version
    now = floors_of(kept_versions.head.table.properties).oldest_version
    available = max(known, now if wanted is None else kept_versions.oldest)
    return RemovedFiles(
        "expire_versions", sizes, available - known, available, kept_versions.leased, dry_run
    )


def _orphans(
    handle: Handle, leases: Callable[[], int | None], floor: int, grace_s: float
) -> Orphans:
    """Find the orphans of the newest version."""
    log, store = handle.log, handle.store

    def find(listing: Listing, versions: KeptVersions) -> Orphans:
        return find_orphans(log, store, listing, versions, floor, grace_s)

    return with_proof(log, store, find, leases)


def _raise_floors(
    handle: Handle,
    operation: str,
    metadata: Metadata | None,
    *,
    oldest_version: int = 0,
    oldest_base: int = 0,
) -> Snapshot:
    """Commit floors of at least these; return the version that has them."""
    change = handle.change(operation, metadata)

    def request_for(head: Snapshot) -> CommitRequest:
        info = raised(head.table, oldest_version=oldest_version, oldest_base=oldest_base)
        return dataclasses.replace(change.request(None), info=info)

    handle.commit(change, handle.latest(), request_for)
    return handle.latest()


def checked_grace(grace_s: float, name: str = "grace_s") -> None:
    """Raise InvalidInput unless this is a number of seconds from 0 to 100 years."""
    if not 0 <= grace_s <= 3.2e9:  # NaN, too
        raise InvalidInput(f"{name} is {grace_s!r}; it is a number of seconds from 0")


def checked_past(moment: Moment) -> int:
    """Return a time in microseconds; InvalidInput if it is in the future."""
    moment_us = to_microseconds(moment)
    if moment_us > clock.now_us() + _CLOCKS_DIFFER_US:
        raise InvalidInput(
            f"older_than is {moment!s}, which is in the future; give a time that has passed, or "
            "retain_last=1 to keep the newest version only"
        )
    return moment_us
