"""The version of each database that one statement reads, of all its tables.

Soundness (invariant 40): tables that are looked up one after the other may be in different versions
of their database, so that the statement would see half of a transaction.
"""

from __future__ import annotations

from rowsieve.changes.table_handle import Handle
from rowsieve.database.table_versions import at_state
from rowsieve.objects.shared.section_store import SectionStore
from rowsieve.objects.shared.shared_state import State
from rowsieve.storage.snapshot import Snapshot
from rowsieve.transactions.transaction_handle import TransactionHandle


class StatementVersions:
    """The databases of the tables of one statement, each at one version."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}  # by URI of the database

    def seen(self, handle: Handle, snapshot: Snapshot) -> Snapshot | None:
        """Return the table in the statement's version of its database, which the first call fixes.

        That is `snapshot`, its newest version as far as the caller knows, if no other commit has
        come in between, or if the table is in no database. None if the version lacks what an open
        writer has committed since: then all tables must be looked up again.
        """
        store = handle.store
        if not isinstance(store, SectionStore) or isinstance(handle, TransactionHandle):
            return snapshot
        shared = store.member.log
        state = self._states.setdefault(shared.store.uri, shared.known())
        version = at_state(handle, snapshot, shared, state)
        if version is snapshot or handle.writer is None:
            return version
        return handle.writer.over(version)
