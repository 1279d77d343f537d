"""Apply log entries to a snapshot.

Soundness: each entry names its predecessor's commit id and the table's uuid (invariant I6), removes
name live parts, and adds name new parts. Anything else raises CorruptData.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow.compute as pc

from rowsieve.errors import CorruptData
from rowsieve.storage.changes_since import ChangesSince
from rowsieve.storage.log.checkpoint_turns import is_turn, owes_after
from rowsieve.storage.log.log_entry import LogEntry, log_path
from rowsieve.storage.log.sealed_lines import damaged
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot, TableInfo, Token
from rowsieve.types.schema import Schema

_MAX_CHUNKS: Final = 64  # per column of the manifest, before they are combined
_MAX_CHUNKS_OF_SHORT: Final = 8  # the same where a copy costs less than reading so many chunks
_SHORT: Final = 2_000  # parts


def replay(base: Snapshot | None, entries: Sequence[LogEntry]) -> Snapshot:
    """Apply entries with loaded parts in order; without a base the first must be entry 0."""
    check_links(base, entries)
    if base is None:
        base, entries = _first(entries[0]), entries[1:]
    if not entries:
        return base
    info, schema, next_field_id = base.table, base.schema, base.next_field_id
    tokens, owed, since = base.tokens, base.owes_checkpoint, base.since
    for entry in entries:
        before = schema
        if entry.schema is not None and entry.next_field_id is not None:
            _check_later(entry, entry.schema, entry.next_field_id, schema, next_field_id)
            schema, next_field_id = entry.schema, entry.next_field_id
        if entry.info is not None or schema is not before:
            info = _same_table(info, entry, before, schema)
        if entry.token is not None:
            tokens = {**tokens, entry.token[0]: _token(entry, entry.token[1])}
        owed = owes_after(entry, info.properties, owed=owed)
        since = since and since.followed_by(entry.removed, entry.added)
        if since and is_turn(entry.version, info.properties):
            since = ChangesSince(entry.version, entry.commit_id)
    return Snapshot(
        entries[-1].version,
        entries[-1].commit_id,
        entries[-1].timestamp_us,
        info,
        schema,
        next_field_id,
        _apply(base.parts, entries),
        tokens,
        owed,
        since=since,
    )


def check_links(base: Snapshot | None, entries: Sequence[LogEntry]) -> None:
    """Raise CorruptData unless the entries follow the base and each other (invariant I6)."""
    if base is not None:
        version, commit_id, table_uuid = base.version, base.commit_id, base.table.uuid
    elif entries:
        first, entries = entries[0], entries[1:]
        _check_first(first)
        version, commit_id, table_uuid = 0, first.commit_id, first.table_uuid
    for entry in entries:
        where = log_path(entry.version)
        if entry.version != version + 1:
            raise damaged(f"{where} does not follow version {version}: entries are missing")
        if entry.table_uuid != table_uuid:
            raise damaged(f"{where} belongs to table {entry.table_uuid}, not to {table_uuid}")
        if entry.predecessor != commit_id:
            raise damaged(
                f"{where} follows commit {entry.predecessor}, but version {version} is commit "
                f"{commit_id}: the log was mixed from several tables or copies"
            )
        version, commit_id = entry.version, entry.commit_id


def _same_table(info: TableInfo, entry: LogEntry, before: Schema, schema: Schema) -> TableInfo:
    """Return the table information after an entry; only properties and protocol may change.

    The key has the same columns, by id, in the schema before the entry and in the one after it.
    """
    new = entry.info or info
    same_key = _key_ids(new, schema) == _key_ids(info, before)
    if not same_key or (new.uuid, new.mode) != (info.uuid, info.mode):
        raise damaged(
            f"{log_path(entry.version)} changes the table's immutable (uuid, key, mode) from "
            f"{(info.uuid, info.key, info.mode)} to {(new.uuid, new.key, new.mode)}"
        )
    return new


def _key_ids(info: TableInfo, schema: Schema) -> list[int | None]:
    ids = {field.name: field.id for field in schema}
    return [ids.get(name) for name in info.key]


def _check_later(
    entry: LogEntry, schema: Schema, next_field_id: int, before: Schema, next_before: int
) -> None:
    """Raise CorruptData unless ids only grow (rule 7): rows and statistics are looked up by id."""
    if schema.id <= before.id or next_field_id < next_before:
        raise CorruptData(
            f"{log_path(entry.version)} has schema {schema.id} and the next field id "
            f"{next_field_id}, after schema {before.id} and {next_before}: these never go back; "
            "restore the log from a copy"
        )


def _check_first(entry: LogEntry) -> None:
    where = log_path(entry.version)
    if entry.version != 0 or entry.predecessor is not None:
        raise damaged(f"{where} is the first entry of the log, but does not create a table")
    if entry.info is None or entry.schema is None or entry.next_field_id is None:
        raise damaged(f"{where} creates a table without protocol, table and schema lines")
    if entry.info.uuid != entry.table_uuid:
        raise damaged(f"{where} has two table ids: {entry.info.uuid} and {entry.table_uuid}")


def _first(entry: LogEntry) -> Snapshot:
    assert entry.info is not None
    assert entry.schema is not None
    assert entry.next_field_id is not None
    tokens = {} if entry.token is None else {entry.token[0]: _token(entry, entry.token[1])}
    return Snapshot(
        0,
        entry.commit_id,
        entry.timestamp_us,
        entry.info,
        entry.schema,
        entry.next_field_id,
        _first_parts(entry),
        tokens,
    )


def _first_parts(entry: LogEntry) -> PartTable:
    """Return the parts of the table's creation, without the columns of an empty manifest."""
    if entry.removed or not entry.added:
        return _apply(PartTable.empty(), (entry,))
    ids = entry.added.column("part_id")
    if len(pc.unique(ids)) != len(ids):
        raise _repeated_part()
    return entry.added


def _repeated_part() -> CorruptData:
    return damaged("the log adds a part that the table already has")


def _token(entry: LogEntry, sequence: int) -> Token:
    return Token(sequence, entry.version, entry.commit_id, entry.timestamp_us, entry.operation)


def _apply(parts: PartTable, entries: Sequence[LogEntry]) -> PartTable:
    """Remove and add parts; appends are joined only before a removal, so that they stay cheap."""
    pending: list[PartTable] = []
    for entry in entries:
        if entry.removed:
            parts, pending = _join(parts, pending), []
            remaining = parts.without(entry.removed)
            if len(parts) - len(remaining) != len(entry.removed):
                raise damaged(
                    f"{log_path(entry.version)} removes parts that its predecessor does not have"
                )
            parts = remaining
        if entry.added is not None and len(entry.added):
            pending.append(entry.added)
    return _join(parts, pending)


def _join(parts: PartTable, pending: list[PartTable]) -> PartTable:
    if not pending:
        return parts
    added = pending[0].append(*pending[1:])
    ids = added.column("part_id")
    existing = pc.is_in(parts.column("part_id"), value_set=ids.combine_chunks())
    if len(pc.unique(ids)) != len(ids) or pc.any(existing).as_py():
        raise _repeated_part()
    joined = parts.append(added)
    most = _MAX_CHUNKS if len(joined) > _SHORT else _MAX_CHUNKS_OF_SHORT
    many = joined.column("part_id").num_chunks > most
    return joined.in_one_chunk() if many else joined
