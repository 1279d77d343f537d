"""Handles at the branches and tags of a table, and at the table itself."""

from __future__ import annotations

from rowsieve.changes.table_handle import Handle
from rowsieve.errors import TableNotFound, VersionNotFound
from rowsieve.objects import ObjectStore, table_store
from rowsieve.objects.shared.shown_place import shown_place
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.refs import MAIN, Ref, RefKind, own_ref, ref_named, store_of
from rowsieve.storage.snapshot import Snapshot


def table_log(handle: Handle) -> CommitLog:
    """The table's own log, given a handle of it or of one of its branches and tags."""
    store = table_store(handle.store)
    return handle.log if store is handle.store else CommitLog(store)


def ref_snapshot(store: ObjectStore, name: str, ref: Ref) -> tuple[CommitLog, Snapshot]:
    """Open the log of a branch or tag, and read its newest version."""
    log = CommitLog(store_of(store, ref.folder))
    try:
        return log, log.latest()
    except TableNotFound as error:
        raise VersionNotFound(
            f"the {ref.kind.value} {name!r} of {table_store(store).uri} was dropped: {error}; "
            "refs() lists those that there are"
        ) from error


def handle_at(handle: Handle, name: str) -> Handle:
    """A handle at a branch or the table itself, or a read-only one at a tag; VersionNotFound."""
    table = table_log(handle)
    if name == MAIN:
        return handle.at_log(table, table.latest(), read_only=False)
    ref = ref_named(name, table.newest(), shown_place(table.store))
    log, snapshot = ref_snapshot(table.store, name, ref)
    return handle.at_log(log, snapshot, read_only=ref.is_tag)


def is_tag(snapshot: Snapshot) -> bool:
    """Return whether a version is that of a tag, opened by its own URI."""
    ref = own_ref(snapshot.table.properties)
    return ref is not None and ref.kind is RefKind.TAG
