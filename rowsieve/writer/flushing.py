"""The commit of changes that the write-ahead log has.

The commit's token is the log's id and the last sequence that it contains (invariant 18): a version
knows through which sequence it has the log's records, and replay skips those.

Soundness (invariant 43): the through-sequence of the version right before decides which records the
commit contains. If another writer of the same log commits some of them meanwhile, the commit is
computed again without them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from rowsieve.changes.change import Change
from rowsieve.changes.event_order.ordered_commits import changes_in_order
from rowsieve.changes.event_order.too_late import OnTooLate
from rowsieve.changes.mutation import AnyOf, Mutation
from rowsieve.changes.table_handle import Handle
from rowsieve.storage.log.conflicts import Kind
from rowsieve.storage.log.log_entry import Commit, LogEntry
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S
from rowsieve.storage.snapshot import Snapshot
from rowsieve.writer.combining import combined
from rowsieve.writer.memtables import MemtableEntry
from rowsieve.writer.records import Form, adapted


def application_of(wal_id: str) -> str:
    """Return the application id of a log's tokens."""
    return f"wal:{wal_id}"


def through_sequence(snapshot: Snapshot, wal_id: str) -> int:
    """Return the sequence through which a version has the records of a log; 0 if it has none."""
    token = snapshot.tokens.get(application_of(wal_id))
    return 0 if token is None else token.sequence


def commit_records(
    handle: Handle, wal_id: str, entries_after: Callable[[int], list[MemtableEntry]], through: int
) -> Commit:
    """Commit the records up to `through` that the newest version lacks, in one commit."""
    application = application_of(wal_id)
    head = handle.latest()
    operation = _operation(head, entries_after(through_sequence(head, wal_id)))
    # A floor may pass events that were acknowledged: those are left out
    on_too_late: OnTooLate | None = "drop" if head.table.sequence else None
    change = handle.change(operation, None, (application, through), RETRY_TIMEOUT_S, on_too_late)

    def is_of_this_log(entry: LogEntry) -> bool:
        return entry.token is not None and entry.token[0] == application

    def build(snapshot: Snapshot) -> Mutation | None:
        entries = entries_after(through_sequence(snapshot, wal_id))
        if not entries:
            return None
        mutation, late = _mutation(change, snapshot, entries)
        if mutation is None:
            mutation = _without_rows(change, late)
        checks = AnyOf((mutation.touched_by, is_of_this_log))
        return dataclasses.replace(mutation, touched_by=checks)

    return handle.commit_mutation(change, build, any_columns=True, in_background=True)


def commit_changes(handle: Handle, entries: list[MemtableEntry]) -> Commit:
    """Commit changes that no log has, in one commit."""
    change = handle.change(_operation(handle.latest(), entries))
    return handle.commit_mutation(
        change, lambda snapshot: _mutation(change, snapshot, entries)[0], any_columns=True
    )


def _operation(head: Snapshot, entries: list[MemtableEntry]) -> str:
    if not head.table.key:
        return "append"
    has_rows = any(entry.changes.rows for entry in entries)
    has_deletes = any(entry.changes.deletes for entry in entries)
    return "apply" if has_rows and has_deletes else "delete_keys" if has_deletes else "upsert"


def _mutation(
    change: Change, snapshot: Snapshot, entries: list[MemtableEntry]
) -> tuple[Mutation | None, int]:
    """The entries as one mutation, None without any effect, and how many changes are late."""
    form = Form.of(snapshot)
    changes = combined([adapted(each.changes, each.form, form) for each in entries], form)
    if changes.is_empty:
        return None, 0
    if snapshot.table.sequence:
        return changes_in_order(change, snapshot, changes)
    return Mutation(change.write(snapshot, changes), Kind.READING, touched_by=_never), 0


def _without_rows(change: Change, late: int) -> Mutation:
    """Only the token: a replay after a restore, in whose order nothing is late, must skip them."""
    request = dataclasses.replace(change.request(None), rows_late=late)
    return Mutation(request, Kind.READING, touched_by=_never)


def _never(_entry: LogEntry) -> bool:
    return False
