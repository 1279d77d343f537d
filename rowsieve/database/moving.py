"""Move a table into a database, or out of it, by metadata alone: its files stay where they are.

In: a commit of the table's own log says where the table goes on. Then one entry of the database
gives it a name and says from which number on its entries are here. Out: the table's last entry in
the database takes its name; then its entries are put into its folder, where the next ones follow.

Soundness (invariants, I6 and rule 40): one log takes commits at any time. A call that ends after
the first step of a move in leaves a table that nobody can change until the call is repeated, with
this name or another one. A call that ends after the first step of a move out needs no repetition:
what is left is done before the table's next commit, or before it moves in again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import NotFound, TableExists, TableMoved, UnsupportedOperation
from rowsieve.objects import ObjectStore, RefStore, open_store
from rowsieve.objects.shared.section_store import SectionStore
from rowsieve.objects.shared.shared_entry import Section
from rowsieve.objects.shared.shared_tables import SharedTables
from rowsieve.objects.shared.table_pages import new_table_id
from rowsieve.storage.log.commit_log import CommitLog, check_writable
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.moves import OPERATION, Mark, check_place, with_mark
from rowsieve.storage.log.retries import Retries
from rowsieve.storage.snapshot import Snapshot

_RETRY_S: Final = 60.0


class _LeavingLog(CommitLog):
    """The log of a table at its former place, which may say that the table has moved."""

    def check_in_place(self, snapshot: Snapshot) -> None:
        """Do nothing: a move that was interrupted goes on."""


def move_in(
    shared: SharedTables, name: str, uri: str, storage_options: StorageOptions | None
) -> None:
    """Let a table that exists elsewhere be a table of the database, under a name that is free."""
    store = open_store(uri, storage_options)
    _check_movable(store)
    try:
        head, mark = _marked(store, Mark(shared.log.store.uri, new_table_id(name)))
    except TableMoved as moved:
        if _completed(moved.uri, storage_options):
            move_in(shared, name, uri, storage_options)
            return
        table = moved.uri[-32:]
        if moved.database != shared.log.store.uri:
            raise TableMoved(
                f"move_in: the table at {store.uri} is in the database {moved.database}, or on "
                "its way there; move it out of that one first",
                uri=moved.uri,
                database=moved.database,
            ) from moved
        if shared.log.table(table, shared.log.latest()) is not None:
            raise TableExists(
                f"move_in: {store.uri} is in {moved.database} already; open it there"
            ) from moved
        head, mark = _LeavingLog(store).latest(), Mark(moved.database, table)
    here = Section(mark.table, name=name, place=store.uri, starts_at=head.version + 1)
    shared.group.change("move_in", [here])


def move_out(shared: SharedTables, name: str, handle: Handle) -> str:
    """Let a table of the database have a log of its own again; return where it is."""
    store = handle.store
    assert isinstance(store, SectionStore)
    inner, member = store.inner, store.member

    def leave(section: Section) -> None:
        last = Section(section.table, section.number, section.data, former=name, leaves=True)
        shared.group.commit([last])
        store.complete()  # before the checkpoint of this version

    log = CommitLog(shared.member(inner, member.table, leave, store.uri))
    head = log.latest()
    check_writable(OPERATION, head)
    _committed(log, head, None)
    return inner.uri


def uri_of_own_log(uri: str, storage_options: StorageOptions | None) -> str:
    """Return where a table of a database will be after `move_out`."""
    store = open_store(uri, storage_options)
    assert isinstance(store, SectionStore)
    return store.inner.uri


def _check_movable(store: ObjectStore) -> None:
    if isinstance(store, RefStore):
        raise UnsupportedOperation(
            f"move_in: {store.uri} is a branch or tag; move its table, with all of them"
        )
    if isinstance(store, SectionStore) and not store.has_left():
        raise UnsupportedOperation(
            f"move_in: the table at {store.uri} is in the database {store.member.log.store.uri}; "
            "move it out of that one first"
        )


def _completed(uri: str, storage_options: StorageOptions | None) -> bool:
    """Whether the table at its place in a database has left it; if so, end the move out."""
    store = open_store(uri, storage_options)
    with suppress(NotFound):  # the database was dropped
        if isinstance(store, SectionStore) and store.has_left():
            store.complete()
            return True
    return False


def _marked(store: ObjectStore, mark: Mark) -> tuple[Snapshot, Mark]:
    """Commit the mark; TableMoved if there is one."""
    head = CommitLog(store).latest()
    check_writable(OPERATION, head)
    return _committed(_LeavingLog(store), head, mark), mark


def _committed(log: CommitLog, head: Snapshot, mark: Mark | None) -> Snapshot:
    """Commit the mark, or that there is none, on any head."""

    def request_for(newest: Snapshot) -> CommitRequest:
        if mark is not None:
            check_place(log.store, newest.table)
        return CommitRequest(OPERATION, info=with_mark(newest.table, mark))

    def again(newest: Snapshot, _: object) -> CommitRequest:
        return request_for(newest)

    return log.commit(request_for(head), head, again, Retries(OPERATION, _RETRY_S))[1]
