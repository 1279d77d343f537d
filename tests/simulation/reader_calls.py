"""Calls that read: the newest version, an older one, one under a lease, the change feed."""

from __future__ import annotations

from typing import Any, Final, Literal

from rowsieve import Table
from rowsieve.errors import SnapshotExpired, VersionNotFound
from tests.simulation.calls import Actor, Call, Run, operation
from tests.simulation.model import draw_condition

PRUNING: Final[tuple[Literal["on", "soft", "off"], ...]] = ("on", "on", "soft", "off")


def reading(run: Run) -> Call:
    """A call that commits nothing."""
    return Call(run, refusals=(SnapshotExpired, VersionNotFound), acknowledges=False)


@operation("read", keyed=5, unkeyed=5)
def read(actor: Actor) -> Call:
    """Read the newest version by a condition, rows or their count."""
    draws, table, seen, mark = actor.draws, actor.table, actor.seen, actor.mark
    condition = draw_condition(draws, actor.keys) if draws.random() < 0.6 else None
    pruning, counts = draws.choice(PRUNING), draws.random() < 0.2

    def run() -> None:
        scan = table.scan(None if condition is None else str(condition), pruning=pruning)
        try:
            found = scan.count() if counts else scan.to_arrow().to_pylist()
        except SnapshotExpired:
            seen.expired.append((mark, scan.version))
        else:
            seen.reads.append((mark, scan.version, condition, found))

    return reading(run)


@operation("read", keyed=2, unkeyed=2)
def read_older(actor: Actor) -> Call:
    """Read an earlier version."""
    version, table, seen, mark = actor.earlier(6), actor.table, actor.seen, actor.mark

    def run() -> None:
        try:
            found = table.scan(version=version).to_arrow().to_pylist()
        except SnapshotExpired:
            seen.expired.append((mark, version))
        else:
            seen.reads.append((mark, version, None, found))

    return reading(run)


@operation("read", keyed=2, unkeyed=2)
def read_leased(actor: Actor) -> Call:
    """Read a version under a lease several times, with pauses."""
    draws, table = actor.draws, actor.table
    version = None if draws.random() < 0.5 else actor.earlier(4)
    duration_s = draws.choice([3.0, 600.0])
    pauses = [draws.randrange(3) for _ in range(2)]

    def run() -> None:
        with table.lease(duration_s, version=version) as pinned:
            for pause in pauses:
                for _ in range(pause):
                    actor.scheduler.park("hold")
                read_pinned(actor, pinned, duration_s)

    return reading(run)


def read_pinned(actor: Actor, pinned: Table, duration_s: float) -> None:
    """Read a leased version, which must be there while its lease can be renewed in time."""
    store: Any = pinned.handle.store
    try:
        found = pinned.scan().to_arrow().to_pylist()
    except SnapshotExpired as error:
        if not store.injected:
            actor.seen.problems.append(f"{actor.mark}: leased version {pinned.version}: {error}")
    else:
        actor.seen.reads.append((actor.mark, pinned.version, None, found))


@operation("read", keyed=1, unkeyed=1)
def clone(actor: Actor) -> Call:
    """Copy a version into a table of its own, and read that."""
    table, seen, mark = actor.table, actor.seen, actor.mark
    version = None if actor.draws.random() < 0.5 else actor.earlier(4)

    def run() -> None:
        copy = table.clone(f"memory:///clone-{mark}", version=version)
        seen.reads.append((mark, copy.version, None, copy.scan().to_arrow().to_pylist()))

    return reading(run)


@operation("read", keyed=1, unkeyed=1)
def read_changes(actor: Actor) -> Call:
    """Read the change feed of the last versions."""
    first, last, seen, mark = actor.earlier(5), actor.table.version, actor.seen, actor.mark
    table = actor.table

    def run() -> None:
        found = table.changes(first, last).read_all().to_pylist()
        seen.feeds.append((mark, first, last, found))

    return reading(run)
