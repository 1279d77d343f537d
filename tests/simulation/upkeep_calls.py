"""Calls that leave all rows as they are: compaction, procedures, properties, retention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rowsieve import Table
from rowsieve.errors import UnsupportedOperation
from rowsieve.procedures.built_in import built_in
from rowsieve.procedures.coordinator import Coordinator
from rowsieve.statements.parse_statement import parse
from rowsieve.storage.log.conflicts import RETENTION_OPERATIONS
from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.types.instants import from_microseconds
from tests.simulation.calls import Actor, Call, operation
from tests.simulation.model import State, Version, floor_of
from tests.simulation.scheduler import REQUEST_US

PROPERTIES: Final = (
    {"visibility": "eager"},
    {"visibility": "lazy"},
    {"compaction": "tiered"},
    {"compaction": "leveled"},
    {"checkpoint_interval": "1"},
    {"checkpoint_interval": "3"},
    {"inline_bytes": "0"},
    {"inline_bytes": "16384"},
    {"statistics_inline_bytes": "1"},
    {"statistics_inline_bytes": "8192"},
    {"statistics": "off"},
    {"statistics": "on"},
    {"pruning": "soft"},
    {"pruning": "on"},
    {"value_forms": "opaque"},
    {"value_forms": "structured"},
    {"row_codec": "msgpack", "write_encoding": "codec"},
    {"row_codec": "msgpack", "write_encoding": "both"},
    {"write_encoding": "columns"},
    {"read_encoding": "shadow", "on_encoding_difference": "raise"},
    {"read_encoding": "codec"},
    {"read_encoding": "columns"},
)
REWRITES: Final = (
    "MAP(ARRAY['rewrite-all'], ARRAY['true'])",
    "MAP(ARRAY['min-input-files'], ARRAY['2'])",
    (
        "MAP(ARRAY['rewrite-all', 'partial-progress.enabled', 'max-file-group-size-bytes'], "
        "ARRAY['true', 'true', '1000'])"
    ),
)


def upkeep(run: Callable[[], Any], *refusals: Any) -> Call:
    """A call whose commits carry no mark."""
    return Call(run, refusals=refusals, acknowledges=False)


@operation("upkeep", keyed=4, unkeyed=4)
def compact(actor: Actor) -> Call:
    """Merge parts."""
    return upkeep(actor.table.compact)


@operation("upkeep", keyed=3)
def build_deletion_vectors(actor: Actor) -> Call:
    """Store which rows are hidden."""
    return upkeep(actor.table.build_deletion_vectors, UnsupportedOperation)


@operation("upkeep", keyed=1, unkeyed=1)
def rewrite_position_delete_files(actor: Actor) -> Call:
    """Merge stored vectors."""
    return upkeep(actor.table.rewrite_position_delete_files, UnsupportedOperation)


@operation("upkeep", keyed=1, unkeyed=1)
def analyze(actor: Actor) -> Call:
    """Compute statistics."""
    table, everything = actor.table, actor.draws.random() < 0.5
    return upkeep(lambda: table.analyze(rewrite_all=everything))


@operation("upkeep", keyed=1, unkeyed=1)
def set_properties(actor: Actor) -> Call:
    """Change how the table is kept."""
    table, properties = actor.table, actor.draws.choice(PROPERTIES)
    if not actor.keyed and "visibility" in properties:
        properties = {"checkpoint_interval": "2"}
    metadata = actor.notes["metadata"]
    return Call(lambda: table.set_properties(properties, metadata=metadata))


@operation("upkeep", keyed=2, unkeyed=2)
def rewrite_data_files(actor: Actor) -> Call:
    """Run the procedure of that name, whose tasks are apart from its commit."""
    return upkeep(lambda: call(actor.table, actor.draws.choice(REWRITES)))


def call(table: Table, options: str) -> Any:
    """Run the statement on the table, by whichever name."""
    coordinator = Coordinator(built_in(), lambda namespace, name: table)
    text = f"CALL system.rewrite_data_files('db', 't', options => {options})"
    return coordinator.run(parse(text))  # type: ignore[arg-type]


@operation("retention", keyed=3, unkeyed=3)
def expire_versions(actor: Actor) -> Call:
    """Give up all but the last versions."""
    table, last, metadata = actor.table, actor.draws.randint(1, 3), actor.notes["metadata"]

    def effect(state: State, versions: Mapping[int, Version], entry: LogEntry) -> State:
        if (floor := floor_of(entry)) <= versions[entry.version - 1].floor:
            return state  # another call had given up as much
        counted = [n for n, each in versions.items() if each.operation not in RETENTION_OPERATIONS]
        kept = [number for number in counted if number >= floor]
        assert len(kept) >= min(last, len(counted)), f"{kept} are kept, not the last {last}"
        return state

    return Call(
        lambda: table.expire_versions(retain_last=last, metadata=metadata),
        effect,
        acknowledges=False,
    )


@operation("retention", keyed=2, unkeyed=2)
def expire_older(actor: Actor) -> Call:
    """Give up the versions that had been replaced some time ago."""
    table, metadata = actor.table, actor.notes["metadata"]
    moment_us = actor.scheduler.now_us - actor.draws.randrange(1, 120) * REQUEST_US

    def effect(state: State, versions: Mapping[int, Version], entry: LogEntry) -> State:
        if (floor := floor_of(entry)) <= versions[entry.version - 1].floor:
            return state  # another call had given up as much
        newest = max((n for n, each in versions.items() if each.time_us <= moment_us), default=0)
        assert floor <= newest, f"{floor}, but {newest} was current then"
        return state

    older_than = from_microseconds(moment_us)
    return Call(
        lambda: table.expire_versions(older_than=older_than, metadata=metadata),
        effect,
        acknowledges=False,
    )


@operation("expiry", keyed=1, unkeyed=1)
def maintain(actor: Actor) -> Call:
    """Delete the rows that expire, and do what else is due; the judge knows these deletes."""
    return upkeep(actor.table.maintain)


@operation("retention", keyed=2, unkeyed=2)
def remove_orphans(actor: Actor) -> Call:
    """Delete files that no version refers to."""
    table = actor.table
    return upkeep(lambda: table.remove_orphans(grace_s=0))


@operation("retention", keyed=2, unkeyed=2)
def vacuum(actor: Actor) -> Call:
    """Expire and remove orphans."""
    table, last = actor.table, actor.draws.randint(1, 2)
    return upkeep(lambda: table.vacuum(retain_last=last, grace_s=0))
