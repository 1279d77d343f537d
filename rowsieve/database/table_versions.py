"""A table as it is in a version of its database."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from rowsieve.changes.table_handle import Handle
from rowsieve.errors import SnapshotExpired
from rowsieve.objects import ObjectNotFound
from rowsieve.objects.shared.section_store import SectionStore
from rowsieve.objects.shared.shared_log import SharedLog
from rowsieve.objects.shared.shared_state import State
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import LogEntry, decode_entry, log_path
from rowsieve.storage.snapshot import Snapshot

_REPLAYED: Final = 64  # entries; for more, the table's checkpoints are looked for


def at_state(handle: Handle, known: Snapshot, shared: SharedLog, state: State) -> Snapshot:
    """Return the table of a handle as the database has it at `state`: `known`, if it is that.

    A table that the database does not have there, or no longer, is at the version that is known.
    """
    assert isinstance(handle.store, SectionStore)
    assert isinstance(handle.log, CommitLog)
    table_id = handle.store.member.table
    table = shared.table(table_id, state)
    if table is None or table.has_left or table.next_number == known.version + 1:
        return known
    return newest_of(shared, handle.log, table_id, state)


def newest_of(shared: SharedLog, log: CommitLog, table_id: str, state: State) -> Snapshot:
    """Return the newest version of a table that the database has at `state`.

    The entries of a table with few of them are known without a listing.
    """
    table = shared.table(table_id, state)
    assert table is not None
    is_all_here = table.first == 0 and table.place_uri is None
    if is_all_here and len(table.places) <= _REPLAYED:
        with suppress(ObjectNotFound):  # what an old entry names may be gone
            entries: list[LogEntry] = []
            for number in range(len(table.places)):
                data = shared.data(table, number, state)
                assert data is not None
                where = f"{log_path(number)} in {log.store.uri}"
                entries.append(decode_entry(data, number, where))
            return log.replayed(entries)
    newest = log.latest()
    if newest.version == table.next_number - 1:
        return newest
    try:
        return log.at(table.next_number - 1)
    except SnapshotExpired as error:
        raise SnapshotExpired(
            f"version {state.version} of {shared.store.uri} needs version "
            f"{table.next_number - 1} of a table, which has expired: {error}"
        ) from error
