"""Calls that change rows or columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from rowsieve.errors import (
    InvalidInput,
    InvalidSchemaChange,
    KeyViolation,
    SchemaMismatch,
    SnapshotExpired,
    UnsupportedOperation,
    VersionNotFound,
)
from rowsieve.storage.log.log_entry import LogEntry
from tests.simulation.calls import Actor, Call, operation
from tests.simulation.model import Effect, State, Version, draw_condition, table_of

OTHER_COLUMNS = (InvalidSchemaChange, SchemaMismatch)
GONE = (SnapshotExpired, VersionNotFound, UnsupportedOperation)


def write(actor: Actor, name: str) -> Call:
    """Write a few rows by the method of that name."""
    pairs = actor.pairs(4)
    data, notes, method = table_of(pairs), actor.notes, getattr(actor.table, name)
    return Call(
        lambda: method(data, schema_mode="merge", **notes),
        lambda state, versions, entry: state.with_rows(pairs),
        OTHER_COLUMNS,
        has_token=actor.token is not None,
    )


@operation("write", keyed=8)
def upsert(actor: Actor) -> Call:
    """Insert or replace rows."""
    return write(actor, "upsert")


@operation("write", unkeyed=8)
def append(actor: Actor) -> Call:
    """Add rows."""
    return write(actor, "append")


@operation("write", keyed=2)
def apply_changes(actor: Actor) -> Call | None:
    """Apply a stream of inserts, updates and deletes."""
    if set(actor.table.schema.names) != {"k", "v"}:
        return None
    pairs = actor.pairs(4)
    acts = [actor.draws.choice("iud") for _ in pairs]
    data = table_of(pairs).append_column("_op", pa.array(acts))
    data = data.append_column("_s", pa.array(range(len(acts))))
    notes, table = actor.notes, actor.table

    def effect(state: State, *_: object) -> State:
        gone = [k for (k, _), act in zip(pairs, acts, strict=True) if act == "d"]
        return state.with_rows([pair for pair in pairs if pair[0] not in gone]).without(gone)

    return Call(
        lambda: table.apply_changes(data, op="_op", sequence="_s", **notes),
        effect,
        OTHER_COLUMNS,
        has_token=actor.token is not None,
    )


@operation("write", keyed=3)
def delete_keys(actor: Actor) -> Call:
    """Delete rows by their keys."""
    keys = sorted(actor.draws.sample(actor.keys, actor.draws.randint(1, 3)))
    data, notes, table = pa.table({"k": pa.array(keys, pa.int64())}), actor.notes, actor.table
    return Call(
        lambda: table.delete(keys=data, **notes),
        lambda state, versions, entry: state.without(keys),
        has_token=actor.token is not None,
    )


@operation("write", keyed=3, unkeyed=4)
def delete_where(actor: Actor) -> Call:
    """Delete the rows for which a condition holds."""
    condition = draw_condition(actor.draws, actor.keys)
    notes, table = actor.notes, actor.table

    def effect(state: State, versions: object, entry: Any) -> State:
        gone = state.matching(condition)
        assert entry.rows_deleted == len(gone), f"{entry.rows_deleted} deleted, not {len(gone)}"
        return state.without(gone)

    return Call(
        lambda: table.delete(str(condition), **notes), effect, has_token=actor.token is not None
    )


@operation("write", keyed=4, unkeyed=4)
def update(actor: Actor) -> Call:
    """Add to a column where a condition holds."""
    condition, more = draw_condition(actor.draws, actor.keys), actor.draws.randint(1, 3)
    notes, table = actor.notes, actor.table

    def effect(state: State, versions: object, entry: Any) -> State:
        rows = {k: dict(row) for k, row in state.rows.items()}
        for key in (changed := state.matching(condition)):
            value = rows[key]["v"]
            rows[key]["v"] = None if value is None else value + more
        assert entry.rows_written == len(changed), f"{entry.rows_written}, not {len(changed)}"
        return State(rows, state.defaults)

    return Call(
        lambda: table.update({"v": f"v + {more}"}, where=str(condition), **notes),
        effect,
        has_token=actor.token is not None,
    )


@operation("write", keyed=1, unkeyed=1)
def overwrite(actor: Actor) -> Call | None:
    """Replace all rows, or those from some key on."""
    if set(actor.table.schema.names) != {"k", "v"}:
        return None
    first = actor.draws.choice([None, *actor.keys[:10]])
    pairs = [(k, v) for k, v in actor.pairs(2) if first is None or k >= first]
    notes, table = actor.notes, actor.table
    if not pairs:
        return None

    def effect(state: State, *_: object) -> State:
        return state.without(k for k in state.rows if first is None or k >= first).with_rows(pairs)

    where = None if first is None else f"k >= {first}"
    return Call(
        lambda: table.overwrite(table_of(pairs), where=where, **notes),
        effect,
        (*OTHER_COLUMNS, KeyViolation),
        has_token=actor.token is not None,
    )


@operation("write", keyed=2, unkeyed=2)
def restore(actor: Actor) -> Call:
    """Return to the rows of an earlier version."""
    version, table = actor.earlier(6), actor.table
    metadata = actor.notes["metadata"]

    def effect(state: State, versions: Any, entry: object) -> State:
        rows = {
            k: {**{name: row.get(name, d) for name, d in state.defaults.items()},
                "k": k, "v": row["v"]}
            for k, row in versions[version].state.rows.items()
        }  # fmt: skip
        return State(rows, state.defaults)

    return Call(lambda: table.restore(version, metadata=metadata), effect, GONE)


@operation("write", keyed=1, unkeyed=1)
def cherry_pick(actor: Actor) -> Call:
    """Apply the changes of an earlier commit again; the judge knows it by its own metadata."""
    version, table = max(1, actor.earlier(5)), actor.table
    refusals = (*GONE, *OTHER_COLUMNS, InvalidInput)
    return Call(lambda: table.cherry_pick(version), picked(version), refusals, acknowledges=False)


def picked(version: int) -> Effect:
    """Return the effect of a commit that picks another."""

    def effect(state: State, versions: Mapping[int, Version], entry: LogEntry) -> State:
        original = versions[version].effect
        return state if original is None else original(state, versions, entry)

    return effect


@operation("columns", keyed=1, unkeyed=1)
def add_column(actor: Actor) -> Call:
    """Add a column with a default."""
    name, default = f"c_{actor.name}_{actor.number}", actor.draws.choice([None, 7, 8])
    metadata, table = actor.notes["metadata"], actor.table

    def effect(state: State, *_: object) -> State:
        rows = {k: {**row, name: default} for k, row in state.rows.items()}
        return State(rows, {**state.defaults, name: default})

    return Call(
        lambda: table.add_column(name, "int64", default=default, metadata=metadata),
        effect,
        OTHER_COLUMNS,
    )


@operation("columns", keyed=2, unkeyed=2)
def write_added(actor: Actor) -> Call | None:
    """Write rows with values of a column that somebody added."""
    table, notes = actor.table, actor.notes
    added = [name for name in table.schema.names if name not in ("k", "v")]
    if not added:
        return None
    name, pairs, value = actor.draws.choice(added), actor.pairs(3), actor.draws.randrange(20)
    data = table_of(pairs).append_column(name, pa.array([value] * len(pairs), pa.int64()))
    method = table.upsert if actor.keyed else table.append

    def effect(state: State, versions: object, entry: LogEntry) -> State:
        if name not in state.defaults:  # it was dropped before the call, which adds it again
            assert entry.schema is not None, f"values of {name} are written, which is gone"
            rows = {k: {**row, name: None} for k, row in state.rows.items()}
            state = State(rows, {**state.defaults, name: None})
        written = {k: {**state.row(k, v), name: value} for k, v in pairs}
        return State({**state.rows, **written}, state.defaults)

    return Call(
        lambda: method(data, schema_mode="merge", **notes),
        effect,
        OTHER_COLUMNS,
        has_token=actor.token is not None,
    )


@operation("columns", keyed=1, unkeyed=1)
def drop_column(actor: Actor) -> Call | None:
    """Drop a column that somebody added."""
    return renamed_or_dropped(actor, None)


@operation("columns", keyed=1, unkeyed=1)
def rename_column(actor: Actor) -> Call | None:
    """Rename a column that somebody added."""
    return renamed_or_dropped(actor, f"r_{actor.name}_{actor.number}")


def renamed_or_dropped(actor: Actor, new: str | None) -> Call | None:
    """Give an added column a name, or none."""
    table, metadata = actor.table, actor.notes["metadata"]
    table.refresh()
    added = [name for name in table.schema.names if name not in ("k", "v")]
    if not added:
        return None
    name = actor.draws.choice(added)

    def named(cells: Any) -> dict[str, int | None]:
        kept = {k: v for k, v in cells.items() if k != name}
        return kept if new is None else {**kept, new: cells[name]}

    def effect(state: State, *_: object) -> State:
        return State({k: named(row) for k, row in state.rows.items()}, named(state.defaults))

    if new is None:
        return Call(lambda: table.drop_column(name, metadata=metadata), effect, OTHER_COLUMNS)
    return Call(lambda: table.rename_column(name, new, metadata=metadata), effect, OTHER_COLUMNS)
