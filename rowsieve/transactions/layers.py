"""The changes of a transaction to one table: layers of parts over the version that it began with.

A change is written as a commit would write it before its log entry, and becomes a layer: the next
version of a log that only the transaction has. So every reader, and every later change of the
transaction, reads an ordinary snapshot, whose newest parts are the layers (invariant 41).

Soundness: a layer's version is above every version of a log, and no two transactions of a process
have one in common. Its files are named after the committed version that they are based on.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, Final

from rowsieve.changes.mutation import Check, never
from rowsieve.errors import UnsupportedOperation
from rowsieve.properties import TRUNCATED
from rowsieve.storage.log.commit_request import (
    CommitRequest,
    check_against,
    check_constraints,
    check_history,
    check_order,
    check_request,
    check_rules,
)
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.log.log_entry import Commit, LogEntry
from rowsieve.storage.log.replay import replay
from rowsieve.storage.snapshot import Snapshot, TableInfo
from rowsieve.storage.versioned_names import new_id
from rowsieve.transactions.condition_log import ConditionLog
from rowsieve.types.instants import from_microseconds

_VERSIONS: Final = itertools.count(1 << 62)  # of layers: above those of every log


@dataclass(frozen=True, slots=True)
class Layer:
    """One change: the request that would commit it alone, and what it depends on."""

    request: CommitRequest
    kind: Kind
    touched_by: Check


@dataclass(frozen=True, slots=True)
class Mark:
    """The state that a savepoint returns to."""

    layers: tuple[Layer, ...]
    head: Snapshot


class TableLayers:
    """The layers over `pinned`; `head` is what the transaction reads and changes next."""

    def __init__(self, pinned: Snapshot) -> None:
        self.pinned = pinned
        self.reads = ConditionLog()
        self.layers: tuple[Layer, ...] = ()
        self.head = replace(pinned, on_read=self.reads.add, based_on=pinned.version)

    def mark(self) -> Mark:
        """The present state."""
        return Mark(self.layers, self.head)

    def return_to(self, mark: Mark) -> None:
        """Drop the layers since a mark; what was read stays logged."""
        self.layers, self.head = mark.layers, mark.head

    def add(self, request: CommitRequest, kind: Kind, touched_by: Check = never) -> Commit:
        """Put a change over the others, with the checks of its own commit; its files are stored."""
        _refuse_other_changes(request, self.head)
        check_request(request)
        check_against(request, self.head)
        check_order(request, self.head)
        check_rules(request, self.head)
        check_history(request, self.head)
        check_constraints(request, self.head)
        if request.uploads is not None:
            request.uploads.wait()
        version = next(_VERSIONS)
        entry = LogEntry(
            version=version,
            commit_id=new_id(self.pinned.version),
            predecessor=self.head.commit_id,
            table_uuid=self.head.table.uuid,
            timestamp_us=self.head.timestamp_us,
            operation=request.operation,
            info=request.info,
            removed=request.removed,
            added=None if request.added is None else request.added.with_commit_ts(version),
        )
        after = replay(replace(self.head, version=version - 1), (entry,))
        self.head = replace(after, on_read=self.reads.add, based_on=self.pinned.version)
        self.layers = (*self.layers, Layer(request, kind, touched_by))
        return self._result(request, entry.commit_id)

    def metadata(self) -> dict[str, Any]:
        """What the calls of all layers have as metadata; a later one wins."""
        notes: dict[str, Any] = {}
        for layer in self.layers:
            notes.update(layer.request.metadata)
        return notes

    def _result(self, request: CommitRequest, layer_id: str) -> Commit:
        """The result of one call: nothing is committed yet."""
        return Commit(
            version=self.pinned.version,
            commit_id=layer_id,
            timestamp=from_microseconds(self.pinned.timestamp_us),
            operation=request.operation,
            rows_written=request.rows_written,
            rows_deleted=request.rows_deleted,
            parts_added=0 if request.added is None else len(request.added),
            parts_removed=len(request.removed),
            metadata=request.metadata,
            committed=False,
            rows_late=request.rows_late,
        )


def _refuse_other_changes(request: CommitRequest, head: Snapshot) -> None:
    """Raise UnsupportedOperation for a change of anything but rows."""
    changes_columns = request.schema is not None and request.schema != head.schema
    info = request.info
    changes_info = info is not None and _without_floors(info) != _without_floors(head.table)
    if changes_columns or changes_info or request.restored:
        what = "columns" if changes_columns else "properties" if changes_info else "versions"
        raise UnsupportedOperation(
            f"{request.operation}: it changes the {what} of the table, which a transaction cannot: "
            "the transaction stays open, without this change. Make it before or after the "
            "transaction"
        )


def _without_floors(info: TableInfo) -> TableInfo:
    """All but what a change of rows says of an event order: what is overtaken in it."""
    properties = {name: text for name, text in info.properties.items() if name != TRUNCATED}
    return replace(info, late_floor=(), writer_version=0, properties=properties)
