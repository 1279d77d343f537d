"""A table that takes part in a commit of several tables of its database."""

from __future__ import annotations

from dataclasses import dataclass

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.changes.table_handle import Handle
from rowsieve.database.table_versions import at_state, newest_of
from rowsieve.errors import TableNotFound
from rowsieve.objects import open_store
from rowsieve.objects.shared.section_store import Committer, SectionStore
from rowsieve.objects.shared.shared_state import State
from rowsieve.objects.shared.shared_tables import SharedTables
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.table import Table


@dataclass(frozen=True, slots=True)
class JointTable:
    """Two handles of a table: entries of `waiting` wait for those of the other tables.

    `plain` is the handle before and after that commit.
    """

    plain: Handle
    waiting: Handle

    @staticmethod
    def of(plain: Handle, shared: SharedTables, state: State, hold: Committer) -> JointTable:
        """The table as it is in a version of the database; TableNotFound if it has none there."""
        store = plain.store
        assert isinstance(store, SectionStore)
        table_id = store.member.table
        if shared.log.table(table_id, state) is None:
            raise TableNotFound(
                f"{plain.store.uri} is not in version {state.version} of {shared.log.store.uri}, "
                "which is read: it was created since"
            )
        snapshot = at_state(plain, plain.newest, shared.log, state)
        store = shared.member(store.inner, table_id, hold, store.uri)
        options = plain.storage_options
        waiting = Handle(store, CommitLog(store), snapshot, storage_options=options)
        waiting.collecting, waiting.own_reporter = plain.collecting, plain.own_reporter
        waiting.writer = plain.writer  # the commit takes its turn among its calls (rule 19)
        return JointTable(plain, waiting)

    @staticmethod
    def opened(
        shared: SharedTables,
        table_id: str,
        state: State,
        hold: Committer,
        storage_options: StorageOptions,
    ) -> JointTable:
        """Open a table by its id."""
        store = open_store(shared.place_of(table_id), storage_options)
        log = CommitLog(store)
        snapshot = newest_of(shared.log, log, table_id, state)
        plain = Table(Handle(store, log, snapshot, storage_options=storage_options)).handle
        return JointTable.of(plain, shared, state, hold)

    def follow(self) -> None:
        """Do what follows each commit of a table, once that of all tables is there."""
        self.plain.pin(self.waiting.newest)
        self.plain.follow_up()
