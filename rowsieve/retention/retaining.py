"""The methods of `Table` that give disk space back, and the lease that protects a reader from them.

`expire_versions` expires old versions and deletes the files that only they had. `remove_orphans`
deletes files that no version has. `vacuum` does both. All of them may run at the same time, in any
number of processes, concurrently with writers and readers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final, Self

from rowsieve import clock
from rowsieve.arguments import Example
from rowsieve.arguments.annotations import Metadata, Moment, Progress
from rowsieve.changes.column_methods import Evolving
from rowsieve.changes.table_handle import changes
from rowsieve.errors import InvalidInput, UnsupportedOperation
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
    with_proof,
)
from rowsieve.retention.leases import LEASE_S, Lease, LeaseWatch, lease_files, oldest_leased
from rowsieve.retention.listing import Listing
from rowsieve.retention.orphans import (
    GRACE_S,
    Orphans,
    delete_orphans,
    find_orphans,
    floor_for,
)
from rowsieve.retention.removed_files import RemovedFiles
from rowsieve.storage.log.commit_log import check_writable
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.floors import check_kept, floors_of, raised
from rowsieve.storage.log.version_arguments import resolve_snapshot
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.instants import to_microseconds

_CLOCKS_DIFFER_US: Final = 60_000_000
_OWN_LEASE_S: Final = 300.0
Seconds = Annotated[float, Example("60.0", "a number of seconds")]


class Retaining(Evolving):
    """Base class of `Table` with leases, expiry of versions and removal of orphans."""

    @contextmanager
    def lease(
        self,
        duration_s: Seconds = LEASE_S,
        *,
        version: int | None = None,
        as_of: Moment | None = None,
        holder: str = "",
    ) -> Iterator[Self]:
        """Protect a version from deletion in a `with` block; yields a read-only table at it.

        `with t.lease() as pinned: pinned.to_arrow()`. Without `version` and `as_of` it is the
        newest version, or that of a read-only table. All later versions are protected, too. The
        lease is renewed in the background; if the process dies, it is over `duration_s` seconds
        after the last renewal. SnapshotExpired if the version is gone. The table's folder must be
        writable.
        """
        if version is None and as_of is None:
            if isinstance(self._read_only, str):
                raise UnsupportedOperation(f"lease: {self._read_only}")
            snapshot = self._pinned if self._read_only else self._latest()
        else:
            snapshot = resolve_snapshot(self._log, version, as_of)
        with Lease(self._store, snapshot.table.uuid, snapshot.version, duration_s, holder):
            check_kept(snapshot.version, self._latest())  # after the lease: invariants, rule 16
            if not snapshot.parts.in_memory:  # read columns from a checkpoint that stays
                snapshot = self._log.read_version(snapshot.version)
            yield type(self)(
                self._store,
                self._log,
                snapshot,
                read_only=True,
                storage_options=self._storage_options,
            )

    @changes("expire_versions")
    def expire_versions(
        self,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        grace_s: Seconds = 0.0,
        dry_run: bool = False,
        metadata: Metadata | None = None,
        progress: Progress | None = None,
    ) -> RemovedFiles:
        """Give up old versions, and delete the files that only they had.

        Kept are the newest version, the last `retain_last` versions, every version that was the
        newest one at `older_than` or later, and what a lease protects; without arguments, the
        versions of the last 7 days. Readers of other versions get SnapshotExpired. `grace_s` is
        the time between the commit that gives them up and the first deletion. Commits nothing if no
        version expires. With `dry_run`, only says what would be deleted. `progress` gets the
        numbers of files that are deleted and of all, in runs of 1,000.
        """
        self._writable("expire_versions")
        checked_retain_last(retain_last)
        checked_grace(grace_s)
        if older_than is None and retain_last is None:
            older_than_us: int | None = clock.now_us() - round(KEPT_S * 1_000_000)
        else:
            older_than_us = None if older_than is None else checked_past(older_than)
        head = self._latest()
        check_writable("expire_versions", head)
        wanted = oldest_to_keep(self._log, self._store, head, older_than_us, retain_last)
        if dry_run:
            return self._expired(head, wanted, lambda: oldest_leased(lease_files(self._store)))
        listing = Listing.of(self._store)
        floor = floors_of(head.table.properties).oldest_version
        if wanted <= floor <= listing.is_trimmed_at:
            return RemovedFiles("expire_versions", oldest_version=floor)
        with Lease(self._store, head.table.uuid, wanted, _OWN_LEASE_S, "expire_versions") as own:
            watch = LeaseWatch(self._store, own)
            oldest = lower_version(wanted, watch.oldest)
            now = proven_head(self._log, self._store, listing, watch.oldest)
            if oldest > floors_of(now.table.properties).oldest_version:
                self._raise_floors("expire_versions", metadata, oldest_version=oldest)
            return self._delete_given_up(head, watch, grace_s, progress)

    def _delete_given_up(
        self, before: Snapshot, watch: LeaseWatch, grace_s: float, progress: Progress | None
    ) -> RemovedFiles:
        """Look at the leases again, then delete the files of versions below the floor."""
        over: dict[str, int] = {}

        def look_again() -> int | None:
            nonlocal grace_s
            leased, ended = watch.look_again(grace_s)
            grace_s = 0.0
            self._store.delete(list(ended))
            over.update(ended)
            return leased

        removed = self._expired(before, None, look_again, progress=progress)
        return dataclasses.replace(removed, sizes={**removed.sizes, **over})

    def _expired(
        self,
        before: Snapshot,
        wanted: int | None,
        leases: Callable[[], int | None],
        progress: Progress | None = None,
    ) -> RemovedFiles:
        """Delete the files that only versions below the floor have; return the call's result.

        With `wanted`, only say what would be deleted if that were the floor. `leases` lists them
        and returns the oldest leased version.
        """

        def delete(listing: Listing, kept: KeptVersions) -> tuple[dict[str, int], KeptVersions]:
            sizes = delete_expired(
                self._log,
                self._store,
                listing,
                kept,
                dry_run=wanted is not None,
                progress=progress,
            )
            return sizes, kept

        sizes, kept = with_proof(self._log, self._store, delete, leases, wanted)
        known = floors_of(before.table.properties).oldest_version
        now = floors_of(kept.head.table.properties).oldest_version
        available = max(known, now if wanted is None else kept.oldest)
        return RemovedFiles(
            "expire_versions",
            sizes,
            available - known,
            available,
            kept.leased,
            wanted is not None,
        )

    @changes("remove_orphans")
    def remove_orphans(
        self,
        *,
        grace_s: Seconds = GRACE_S,
        dry_run: bool = False,
        metadata: Metadata | None = None,
        progress: Progress | None = None,
    ) -> RemovedFiles:
        """Delete files that no version has: those of writes that failed or were interrupted.

        A write that is not committed yet loses its files if it began more than `grace_s` seconds
        ago (a day by default), on a version that has been superseded since. It then fails with
        CommitConflict, or writes them again. With `dry_run`, only says what would be deleted.
        """
        self._writable("remove_orphans")
        checked_grace(grace_s)
        head = self._latest()
        check_writable("remove_orphans", head)
        floors = floors_of(head.table.properties)
        floor = max(floors.oldest_base, floor_for(self._log, head, grace_s))
        if dry_run:
            found = self._orphans(lambda: oldest_leased(lease_files(self._store)), floor, grace_s)
            return RemovedFiles(
                "remove_orphans", found.sizes, oldest_version=floors.oldest_version, dry_run=True
            )
        over: dict[str, int] = {}
        with Lease(self._store, head.table.uuid, head.version, _OWN_LEASE_S, "orphans") as own:
            watch = LeaseWatch(self._store, own)

            def look_again() -> int | None:
                leased, ended = watch.look_again(0.0)
                self._store.delete(list(ended))
                over.update(ended)
                return leased

            found = self._orphans(look_again, floor, grace_s)
            head, floors = found.head, floors_of(found.head.table.properties)
            if found.need_floor and floors.oldest_base < floor:
                head = self._raise_floors("remove_orphans", metadata, oldest_base=floor)
            deleted = delete_orphans(self._log, self._store, found, head, progress)
        sizes = {**deleted.sizes, **over}
        return RemovedFiles("remove_orphans", sizes, oldest_version=floors.oldest_version)

    def vacuum(
        self,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        grace_s: Seconds = GRACE_S,
        dry_run: bool = False,
        metadata: Metadata | None = None,
        progress: Progress | None = None,
    ) -> RemovedFiles:
        """Give disk space back: `expire_versions`, then `remove_orphans` with `grace_s`.

        Each of them reports its own `progress`.
        """
        checked_grace(grace_s)  # before anything expires
        expired = self.expire_versions(
            older_than=older_than,
            retain_last=retain_last,
            dry_run=dry_run,
            metadata=metadata,
            progress=progress,
        )
        orphans = self.remove_orphans(
            grace_s=grace_s, dry_run=dry_run, metadata=metadata, progress=progress
        )
        return expired.joined(orphans, "vacuum")

    def _check_newest(self) -> None:
        """Raise CorruptData if a file or a lease shows that the log has lost its newest entries."""
        listing = Listing.of(self._store)
        proven_head(self._log, self._store, listing, oldest_leased(lease_files(self._store)))

    def _orphans(self, leases: Callable[[], int | None], floor: int, grace_s: float) -> Orphans:
        """Find the orphans of the newest version."""

        def find(listing: Listing, kept: KeptVersions) -> Orphans:
            return find_orphans(self._log, self._store, listing, kept, floor, grace_s)

        return with_proof(self._log, self._store, find, leases)

    def _raise_floors(
        self,
        operation: str,
        metadata: Metadata | None,
        *,
        oldest_version: int = 0,
        oldest_base: int = 0,
    ) -> Snapshot:
        """Commit floors of at least these; return the version that has them."""
        change = self._change(operation, metadata, None)

        def request_for(head: Snapshot) -> CommitRequest:
            info = raised(head.table, oldest_version=oldest_version, oldest_base=oldest_base)
            return dataclasses.replace(change.request(None), info=info)

        self._commit(change, self._latest(), request_for)
        return self._latest()


def checked_grace(grace_s: float) -> None:
    """Raise InvalidInput unless this is a number of seconds from 0 to 100 years."""
    if not 0 <= grace_s <= 3.2e9:  # NaN, too
        raise InvalidInput(f"grace_s is {grace_s!r}; it is a number of seconds from 0")


def checked_past(moment: Moment) -> int:
    """Return a time in microseconds; InvalidInput if it is in the future."""
    moment_us = to_microseconds(moment)
    if moment_us > clock.now_us() + _CLOCKS_DIFFER_US:
        raise InvalidInput(
            f"older_than is {moment!s}, which is in the future; give a time that has passed, or "
            "retain_last=1 to keep the newest version only"
        )
    return moment_us
