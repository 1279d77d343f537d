"""Advance `since`: give up early times, as far as leases allow.

Soundness (invariant 33): `since` only rises, stays below `upper`, and passes neither a time that a
lease names nor, without one, that of a leased version. Leases are listed for each attempt, after
the version that it commits on is known, by a listing that shows a lease of our own: one that lags
could hide others. A lease that begins later reads its own version, whose files and frontiers stay
as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from rowsieve.changes.change import Change, nothing_done
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import InvalidInput, NotFound
from rowsieve.retention.leases import Lease, LeaseFile, LeaseWatch, since_of
from rowsieve.storage.differential import (
    TIME,
    Frontiers,
    frontiers_of,
    physical_time,
    shown_time,
    with_frontiers,
)
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.floors import floors_of
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.snapshot import Snapshot

ADVANCE: Final = "advance_since"
_OWN_LEASE_S: Final = 300.0
_BEFORE_ALL: Final = -(2**64)


def advance_since(handle: Handle, change: Change, to: Any) -> Commit:
    """Commit the new `since`; see `DifferentialMethods.advance_since`."""
    base = handle.latest()
    if (done := handle.log.committed_before(change.token, base)) is not None:
        return done
    time_type = base.schema.field(TIME).type
    wanted = physical_time(to, time_type, f"{ADVANCE}: to=")
    upper = frontiers_of(base.table).upper
    if wanted >= upper:
        raise InvalidInput(
            f"{ADVANCE}: {shown_time(wanted, time_type)} is not complete: upper is "
            f"{shown_time(upper, time_type)}; since stays at a time that can be read, below upper"
        )
    if _reached(handle, base, wanted) == frontiers_of(base.table).since:
        return nothing_done(ADVANCE, base)

    def request_for(head: Snapshot) -> CommitRequest:
        now = frontiers_of(head.table)
        frontiers = Frontiers(_reached(handle, head, wanted), now.upper)
        return replace(change.request(None), info=with_frontiers(head.table, frontiers))

    return handle.commit(change, base, request_for)


def _reached(handle: Handle, head: Snapshot, wanted: int) -> int:
    """How far `since` may go on this version: to the wanted time, or where leases hold it.

    A lease is ignored once it is over, by the store's clock, as in retention. StoreError if the
    listings lag.
    """
    since = frontiers_of(head.table).since
    if wanted <= since:
        return since
    with Lease(handle.store, head.table.uuid, head.version, _OWN_LEASE_S, ADVANCE) as lease:
        living, _ = LeaseWatch(handle.store, lease).living()
        return max(since, _held_at(handle, head, living, wanted))


def _held_at(handle: Handle, head: Snapshot, leases: Iterable[LeaseFile], wanted: int) -> int:
    """The wanted time, or an earlier one that a lease names or whose version has as `since`."""
    floor = floors_of(head.table.properties).oldest_version
    for lease in sorted(leases, key=lambda each: each.version):
        version = max(lease.version, floor)  # below it, a lease came too late to protect
        if version > head.version:
            break
        snapshot = head if version == head.version else handle.log.at(version)
        since_there = frontiers_of(snapshot.table).since
        if since_there < wanted:  # later versions have no earlier frontier
            wanted = min(wanted, max(since_there, _named_since(handle, lease)))
    return wanted


def _named_since(handle: Handle, lease: LeaseFile) -> int:
    """The time that the lease names; before all times if it names none, or was just renewed."""
    try:
        since = since_of(handle.store, lease)
    except NotFound:
        since = None
    return _BEFORE_ALL if since is None else since
