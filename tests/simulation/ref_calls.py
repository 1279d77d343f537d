"""Calls on branches and tags: make, write, publish, read and drop them."""

from __future__ import annotations

from typing import Final

from rowsieve.errors import (
    InvalidInput,
    SnapshotExpired,
    TableNotFound,
    UnsupportedOperation,
    VersionNotFound,
)
from tests.simulation.calls import Actor, Call, operation
from tests.simulation.model import table_of
from tests.simulation.writer_calls import OTHER_COLUMNS

BRANCHES: Final = ("b0", "b0", "b0", "b1")
GONE: Final = (VersionNotFound, SnapshotExpired, TableNotFound)


@operation("refs", keyed=8, unkeyed=8)
def publish_branch(actor: Actor) -> Call:
    """Publish a branch; the judge knows what its rows were."""
    table, metadata, name = actor.table, actor.notes["metadata"], actor.draws.choice(BRANCHES)
    return Call(
        lambda: table.fast_forward(name, metadata=metadata),
        refusals=GONE,
        acknowledges=False,
    )


@operation("refs", keyed=3, unkeyed=3)
def tag(actor: Actor) -> Call:
    """Name the newest version, or an earlier one."""
    table, metadata, name = actor.table, actor.notes["metadata"], f"t{actor.mark}"
    version = None if actor.draws.random() < 0.6 else actor.earlier(4)
    return Call(
        lambda: table.tag(name, version=version, metadata=metadata),
        refusals=(*GONE, InvalidInput),
        acknowledges=False,
    )


@operation("refs", keyed=4, unkeyed=4)
def branch(actor: Actor) -> Call:
    """Begin a branch."""
    table, metadata, name = actor.table, actor.notes["metadata"], actor.draws.choice(BRANCHES)
    return Call(
        lambda: table.branch(name, metadata=metadata),
        refusals=(*GONE, InvalidInput),
        acknowledges=False,
    )


@operation("refs", keyed=12, unkeyed=12)
def write_branch(actor: Actor) -> Call:
    """Write rows on a branch, which begins now if there is none."""
    table, metadata, mark = actor.table, actor.notes["metadata"], actor.mark
    pairs, name = actor.pairs(4), actor.draws.choice(BRANCHES)

    def run() -> None:
        if name not in table.refs().column("name").to_pylist():
            table.branch(name)
        beside = table.at_ref(name)
        method = beside.upsert if actor.keyed else beside.append
        commit = method(table_of(pairs), metadata=metadata, schema_mode="merge")
        actor.seen.branch_writes.append((mark, beside.uri, commit.version))

    return Call(
        run,
        lambda state, versions, entry: state.with_rows(pairs),
        (*GONE, *OTHER_COLUMNS, InvalidInput),
        acknowledges=False,
    )


@operation("refs", keyed=2, unkeyed=2)
def drop(actor: Actor) -> Call:
    """Drop a branch or tag."""
    table, metadata, draws = actor.table, actor.notes["metadata"], actor.draws

    def run() -> None:
        names = table.refs().column("name").to_pylist()
        table.drop_ref(draws.choice(names) if names else "b0", metadata=metadata)

    return Call(run, refusals=(*GONE, UnsupportedOperation), acknowledges=False)


@operation("refs", keyed=2, unkeyed=2)
def keep_branch(actor: Actor) -> Call:
    """Compact a branch, and give up its older versions."""
    table, name = actor.table, actor.draws.choice(BRANCHES)

    def run() -> None:
        beside = table.at_ref(name)
        beside.compact()
        beside.vacuum(retain_last=1, grace_s=0)

    return Call(run, refusals=GONE, acknowledges=False)


@operation("refs", keyed=3, unkeyed=3)
def read_ref(actor: Actor) -> Call:
    """Read a branch or tag under a lease, with pauses."""
    table, draws, seen, mark = actor.table, actor.draws, actor.seen, actor.mark

    def run() -> None:
        names = table.refs().column("name").to_pylist()
        if not names:
            return
        with table.lease(600.0, version=draws.choice(names)) as pinned:
            for _ in range(draws.randrange(3)):
                actor.scheduler.park("hold")
            try:
                rows = pinned.scan().to_arrow().to_pylist()
            except SnapshotExpired as error:
                if not pinned.handle.store.table.injected:  # type: ignore[attr-defined]
                    seen.problems.append(f"{mark}: leased {pinned.uri} {pinned.version}: {error}")
            else:
                seen.ref_reads.append((mark, pinned.uri, pinned.version, rows))

    return Call(run, refusals=GONE, acknowledges=False)
