"""Advance `since`: give up early times, as far as leases allow.

Soundness (invariant 33): `since` only rises, stays below `upper`, and is never above that of the
oldest leased version. Leases are listed for each attempt, after the version that it commits on is
known. A lease that begins later reads its own version, whose files and frontiers stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from rowsieve.changes.change import Change, nothing_done
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import InvalidInput
from rowsieve.retention.leases import lease_files, oldest_leased
from rowsieve.storage.differential import (
    TIME,
    Frontiers,
    frontiers_of,
    physical_time,
    shown_time,
    with_frontiers,
)
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.snapshot import Snapshot

ADVANCE: Final = "advance_since"


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
    """How far `since` may go on this version: to the wanted time, or where leases hold it."""
    since = frontiers_of(head.table).since
    leased = oldest_leased(lease_files(handle.store))
    if leased is not None and leased <= head.version:
        held = head if leased == head.version else handle.log.at(leased)
        wanted = min(wanted, frontiers_of(held.table).since)
    return max(since, wanted)
