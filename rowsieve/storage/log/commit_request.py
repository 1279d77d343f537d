"""Requests to commit, and their validation before anything is written.

Soundness (invariants, I1 and rules 12, 13): a removal is valid only for the part that was read, so
a part that another commit has replaced since is a conflict. A commit_ts is never later than the
head.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import pyarrow.compute as pc

from rowsieve.errors import CommitConflict, InvalidInput, UnsupportedOperation
from rowsieve.objects import Uploads
from rowsieve.properties import (
    COLUMN_ORDER_BY,
    COMBINE,
    CONSTRAINTS,
    HISTORY,
    OLDEST_BASE,
    is_by_column,
    resolves_upserts,
)
from rowsieve.storage.constraints import check_new_parts
from rowsieve.storage.log.conflicts import OPERATIONS, Kind
from rowsieve.storage.log.floors import (
    check_bases,
    check_not_lowered,
    is_given_up,
)
from rowsieve.storage.log.inline_parts import bytes_in_memory, bytes_of_vectors
from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.storage.log.moves import check_mark_kept
from rowsieve.storage.log.refs import check_refs_kept
from rowsieve.storage.log.sealed_lines import seal
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.row_versions import keeps_versions, noted_restore
from rowsieve.storage.snapshot import INLINE_PROTOCOL, Snapshot, TableInfo
from rowsieve.types.evolution import why_not_written_before
from rowsieve.types.schema import Schema

_MAX_METADATA_BYTES: Final = 1024 * 1024
_LONGEST_APPLICATION_ID: Final = 256
_COMBINING: Final = frozenset({"upsert", "apply"})
_EVENTS: Final = frozenset({*_COMBINING, "cherry_pick"})
_BY_KEY: Final = frozenset({*_COMBINING, "delete_keys", "insert", "merge"})
_OPERATION = re.compile(r"[a-z][a-z_]{0,63}")


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """A change of the table's parts, properties or protocol.

    `added` are new parts; those without commit_ts get the commit's version (invariant I1).
    `restored` are parts that keep their commit_ts. `token` is (application id, sequence): after a
    sequence was committed, it and lower sequences of the same application are not committed again.
    `info` is the new table information, if it changes, `schema` the new schema with the next free
    field id. `uploads` are uploads of the parts' files that may still be running; the commit waits
    for them. `rows_late` counts changes that were left out, because their key has a newer version
    in the event order; `keeps_order`: the new parts were made with regard to that order.
    `keeps_rules`: their values were combined by the table's rules; `keeps_history`: they close the
    intervals of the versions that they end; `adopts`: restored parts without commit_ts are a
    branch's, and get the commit's version.
    """

    operation: str
    added: PartTable | None = None
    removed: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    token: tuple[str, int] | None = None
    rows_written: int = 0
    rows_deleted: int = 0
    restored: PartTable | None = None
    info: TableInfo | None = None
    schema: Schema | None = None
    next_field_id: int | None = None
    uploads: Uploads | None = None
    rows_late: int = 0
    keeps_order: bool = False
    keeps_rules: bool = False
    keeps_history: bool = False
    adopts: bool = False


OnConflict: TypeAlias = Callable[[Snapshot, tuple[LogEntry, ...]], CommitRequest]


def check_for(request: CommitRequest, head: Snapshot, known: Mapping[int, Schema]) -> None:
    """Check all that the head must allow; `known` are the schemas since the change began, by id."""
    check_request(request)
    check_against(request, head)
    check_in_memory(request, head.table)
    properties = head.table.properties
    if head.table.sequence:
        check_order(request, head)
    for name, check in _BY_PROPERTY:
        if name in properties:
            check(request, head)
    check_schemas(request, head, known)
    if CONSTRAINTS in properties:
        check_constraints(request, head)


def check_request(request: CommitRequest) -> None:
    """Raise InvalidInput for a request that could not be written or read back."""
    if _OPERATION.fullmatch(request.operation) is None:
        raise InvalidInput(f"operation {request.operation!r} is not a lower-case word")
    if request.operation not in OPERATIONS:  # invariant 34: the feed must know what it did
        raise InvalidInput(
            f"operation {request.operation!r} has no kind, so neither concurrent writers nor the "
            "change feed would know whether it changes rows; commit as one of "
            f"{', '.join(sorted(OPERATIONS))}, and name the procedure in the metadata"
        )
    if len(set(request.removed)) != len(request.removed):
        raise InvalidInput(f"this {request.operation} removes a part twice")
    if request.metadata:
        size = len(seal([dict(request.metadata)]))
        if size > _MAX_METADATA_BYTES:
            raise InvalidInput(
                f"the metadata of this {request.operation} has {size} bytes as JSON; the "
                f"limit is {_MAX_METADATA_BYTES}: store it elsewhere and refer to it here"
            )
    if request.token is not None:
        application, sequence = request.token
        if not 0 < len(application) <= _LONGEST_APPLICATION_ID or sequence < 0:
            raise InvalidInput(
                f"idempotency token {request.token!r} is not (application id of 1 to "
                f"{_LONGEST_APPLICATION_ID} characters, sequence from 0)"
            )


def check_against(request: CommitRequest, head: Snapshot) -> None:
    """Check the request against the head.

    CommitConflict if a removed part is not live in the head, or a new file is based on a version
    below the head's floor (invariants, rule 15). InvalidInput if a restored part has no commit_ts,
    a commit_ts is later than the head (invariant I1), or a floor is lowered (rule 7).
    """
    if request.info is not None:
        check_not_lowered(request.operation, request.info, head)
        check_refs_kept(request.operation, request.info, head)
        check_mark_kept(request.operation, request.info, head)
    if request.removed:
        live = len(head.parts) - len(head.parts.without(request.removed))
        if live != len(request.removed):
            raise CommitConflict(
                f"{len(request.removed) - live} parts that this {request.operation} replaces are "
                f"not in version {head.version}; refresh the table and do it again"
            )
    if OLDEST_BASE in head.table.properties:
        check_bases(request.operation, request.added, request.removed, head)
    if request.restored and not request.adopts and _lacks_commit_ts(request.restored):
        raise InvalidInput(f"this {request.operation} restores a part that has no commit_ts")
    for parts in (request.added, request.restored):
        newest = pc.max(parts.column("commit_ts_max")).as_py() if parts else None
        if newest is not None and newest > head.version:  # invariant I1
            raise InvalidInput(
                f"this {request.operation} adds a part with commit_ts {newest}, which is after "
                f"version {head.version}"
            )


def check_in_memory(request: CommitRequest, info: TableInfo) -> None:
    """Raise InvalidInput if parts are in memory, and older releases may read the table."""
    if info.reader_version >= INLINE_PROTOCOL:
        return
    for parts in (request.added, request.restored):
        if parts and (bytes_in_memory(parts) or bytes_of_vectors(parts)):
            raise InvalidInput(
                f"this {request.operation} adds rows or deletions that no file has to a table that "
                "older releases read; set its property inline_bytes first"
            )


def check_order(request: CommitRequest, head: Snapshot) -> None:
    """Raise UnsupportedOperation if new parts were made without regard to the table's event order.

    Their rows would win because they were committed last (invariant 36).
    """
    if request.keeps_order or not head.table.sequence or not request.added:
        return
    if len(request.added.without(request.removed)):
        raise UnsupportedOperation(
            f"{request.operation}: the table has an event order by its sequence "
            f"({', '.join(head.table.sequence)}), which this way of writing does not keep; nothing "
            "was committed. Use upsert, apply_changes, update, delete or overwrite of the table"
        )


def check_rules(request: CommitRequest, head: Snapshot) -> None:
    """Raise UnsupportedOperation for an upsert that replaces values which the table combines.

    The property COMBINE has rules for its columns; other operations assign values on purpose. An
    order of each column is a rule for all of them.
    """
    properties = head.table.properties
    if request.keeps_rules or not resolves_upserts(properties) or not request.added:
        return
    if not len(request.added.without(request.removed)):
        return
    if is_by_column(properties) and request.operation in _EVENTS:
        raise UnsupportedOperation(
            f"{request.operation}: events of the table change the columns that nothing newer has "
            "set (column_order='each'), and this way of writing would replace whole rows; nothing "
            "was committed. Use upsert, apply_changes or delete of the table"
        )
    if request.operation in _COMBINING and COMBINE in properties:
        raise UnsupportedOperation(
            f"{request.operation}: the table combines values by its property {COMBINE} "
            f"({head.table.properties[COMBINE]}), and this way of writing would replace them; "
            "nothing was committed. Use upsert or apply_changes of the table, after refresh() if "
            "the property has just been set, or unset it"
        )


def check_history(request: CommitRequest, head: Snapshot) -> None:
    """Raise UnsupportedOperation for rows that would leave intervals of a history open, or overlap.

    Updates, deletes and overwrites by a condition correct the versions themselves.
    """
    if request.keeps_history or HISTORY not in head.table.properties or not request.added:
        return
    if request.operation in _BY_KEY and len(request.added.without(request.removed)):
        raise UnsupportedOperation(
            f"{request.operation}: the table keeps the history of its rows in "
            f"({head.table.properties[HISTORY]}), and this way of writing closes no interval; "
            "nothing was committed. Use apply_changes(…, op=, sequence=), which keeps history; "
            "update and delete by a condition correct versions"
        )


def check_schemas(request: CommitRequest, head: Snapshot, known: Mapping[int, Schema]) -> None:
    """Raise CommitConflict if new parts have columns that were dropped or changed since (rule 14).

    `known` are the schemas since the change began, by id. Parts that are removed and added again
    are not new.
    """
    now = head.schema if request.schema is None else request.schema
    if not request.added or _schema_ids(request.added) == {now.id}:
        return
    fresh = request.added.without(request.removed)
    for schema_id in sorted(_schema_ids(fresh) - {now.id}):
        old = known.get(schema_id)
        if schema_id > now.id:
            why = f"it has only schema {now.id}"
        elif old is None:
            why = f"it has schema {now.id}"
        else:
            why = why_not_written_before(old, now)
        if why:
            raise CommitConflict(
                f"this {request.operation} wrote rows with schema {schema_id}, and version "
                f"{head.version} of the table has changed since: {why}; nothing was committed. "
                "Refresh the table and do it again"
            )


def check_constraints(request: CommitRequest, head: Snapshot) -> None:
    """Raise CommitConflict if rows were written before a constraint of the head was added.

    Rewrites write visible rows, which obey it; foreign files and restored parts were checked for
    this head by who brings them.
    """
    if CONSTRAINTS not in head.table.properties or not request.added:
        return
    if OPERATIONS[request.operation] is Kind.REWRITING:
        return
    check_new_parts(request.operation, _written(request.added, request.removed), head)


_BY_PROPERTY: Final[tuple[tuple[str, Callable[[CommitRequest, Snapshot], None]], ...]] = (
    (COMBINE, check_rules),
    (COLUMN_ORDER_BY, check_rules),
    (HISTORY, check_history),
)
"""What upserts of a table must have regard to if it has a property."""


REFUSING_PARTS: Final = frozenset({OLDEST_BASE, CONSTRAINTS})
"""Without these properties, `must_write_again` is False."""


def must_write_again(
    operation: str, added: PartTable | None, removed: tuple[str, ...], head: Snapshot
) -> bool:
    """Return whether the head refuses these new parts, and may take the same rows in new files."""
    if is_given_up(added, removed, head):
        return True
    if CONSTRAINTS not in head.table.properties or not added:
        return False
    try:
        check_new_parts(operation, _written(added, removed), head)
    except CommitConflict:
        return True
    return False


def _written(added: PartTable, removed: tuple[str, ...]) -> PartTable:
    """The new parts whose rows Rowsieve wrote."""
    fresh = added.without(removed)
    refs = enumerate(fresh.files("data"))
    return fresh.take([i for i, ref in refs if ref is not None and ref.owned])


def _lacks_commit_ts(parts: PartTable) -> bool:
    return bool(parts.column("commit_ts_max").null_count)


def _schema_ids(parts: PartTable) -> set[int]:
    return set(pc.unique(parts.column("schema_id")).to_pylist())


def rebased(
    before: CommitRequest, after: CommitRequest, entries: Sequence[LogEntry], *, keyed: bool
) -> CommitRequest:
    """Return `after`; CommitConflict if an entry removed a part that it removes (rule 13).

    Checked only if `after` is `before` itself, that is, was not computed again. A part may have
    been removed and added again with more hidden rows: its id is live, but it is not the part that
    was read. In a table with a key, only the keys decide which rows are hidden, so such a part is
    the same (invariant I3).
    """
    if after is before and before.removed:
        touched = {part_id for entry in entries for part_id in entry.removed}
        if keyed:
            again = (entry.added.part_ids for entry in entries if entry.added is not None)
            touched -= {part_id for ids in again for part_id in ids}
        if lost := touched.intersection(before.removed):
            raise CommitConflict(
                f"part {min(lost)} was replaced by another commit while this {before.operation} "
                "replaced it too; refresh the table and do it again"
            )
    return after


def with_noted_rewrite(head: Snapshot, request: CommitRequest) -> CommitRequest:
    """Note a rewrite that changes values, if the table keeps the versions of rows.

    Its parts keep the commit_ts of those that they replace: a newer version of a key, which another
    commit wrote meanwhile, still wins.
    """
    if request.operation != "rewrite_rows" or not keeps_versions(head.table.properties):
        return request
    floor = head.table.late_floor if request.info is None else request.info.late_floor
    properties = noted_restore(head.table.properties, head.version + 1)
    return replace(request, info=replace(head.table, late_floor=floor, properties=properties))
