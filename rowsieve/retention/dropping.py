"""Delete a table with all its files: take its name, close it, look for leases, then delete.

Soundness: the closing commit raises both floors above every version. A reader creates its lease
first and reads the floor then (invariants, rule 16), so after that commit a reader is refused, or
its lease is listed. A writer that commits later is refused, too. Only files whose place and name
show that they are the table's own are deleted: the folder may hold other tables and other files.

Before that, the log must prove which versions there are (`kept_versions`): a purge of a table whose
entries were lost would delete what can still be restored. The entry of the closing commit goes
last, so that an interrupted deletion can be recognised by `is_dropped` and repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from rowsieve.errors import CorruptData, NotFound, TableMoved, UnsupportedOperation
from rowsieve.objects import ObjectStore
from rowsieve.retention.kept_versions import KeptVersions
from rowsieve.retention.leases import Lease, LeaseWatch, check_published_here
from rowsieve.retention.listing import Listing
from rowsieve.retention.other_logs import with_proof
from rowsieve.retention.published_files import is_published
from rowsieve.storage.log.commit_log import CommitLog, check_writable
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.floors import CLOSED, DroppedTable, is_closed, raised
from rowsieve.storage.log.log_entry import log_path
from rowsieve.storage.log.refs import refs_of
from rowsieve.storage.log.retries import Retries
from rowsieve.storage.snapshot import Snapshot
from rowsieve.storage.versioned_names import PUBLISHED_FOLDERS

_OWN_LEASE_S: Final = 300.0
_FOLDERS: Final = ("data", "_rowsieve", *PUBLISHED_FOLDERS)
_FILE: Final = re.compile(
    rf"data/[0-9a-f]{{32}}\.[^/]*|(?:data|{'|'.join(PUBLISHED_FOLDERS)})/\.tmp-[^/]*", re.ASCII
)


def close(store: ObjectStore, release: Callable[[], object] | None = None) -> Snapshot | None:
    """Give up all versions of the table in `store`; return the newest one.

    None if nothing of its log is left that can be read: its files are being deleted already, or its
    log is. UnsupportedOperation if a lease protects the table, CorruptData if its log does not
    prove which versions there are, as every deletion needs it. `release` is called after that,
    before the table is closed: it removes the table's name, so that nobody renames a closed table.
    If a lease was taken after that, the table stays closed for others, and a later call continues.
    """
    log = CommitLog(store)
    head = _newest(log, store)
    if head is not None and not is_closed(head):
        check_writable("drop_table", head)
    uuid, version = ("unknown", 0) if head is None else (head.table.uuid, head.version)
    with Lease(store, uuid, version, _OWN_LEASE_S, "drop_table") as lease:
        watch = LeaseWatch(store, lease, published=False)
        _check_unleased(store, watch.oldest)
        if head is not None and not is_closed(head):
            head = _proven_whole(log, store, watch.oldest)
            _check_no_refs(store, head)
            check_published_here(store)
        if release is not None:
            release()
        if head is not None and not is_closed(head):
            head = _commit_last_floors(log, head)
        leased, over = watch.look_again(0.0)
        _check_unleased(store, leased)
        store.delete(list(over))
    return head


def delete_files(store: ObjectStore, head: Snapshot | None) -> None:
    """Delete the files of a closed table; `head` as `close` returned it.

    The entry that closed it goes last, and says so as long as anything is left. A repeated call
    continues; several may run at once.
    """
    files = own_files(store)
    last = [] if head is None else [log_path(head.version)]
    store.delete([path for path in files if path not in last])
    store.delete(last)


def own_files(store: ObjectStore) -> list[str]:
    """The files whose place and name show that they are the table's own, and leftovers of puts."""
    paths = [path for folder in _FOLDERS for path in store.list(folder)]
    return [path for path in (*paths, *store.leftovers()) if _is_own(path)]


def is_dropped(store: ObjectStore) -> bool:
    """Return whether a table was closed here whose files are not all deleted yet."""
    try:
        return is_closed(CommitLog(store).latest())
    except DroppedTable:
        return True
    except (CorruptData, NotFound, TableMoved):
        return False


def _proven_whole(log: CommitLog, store: ObjectStore, leased: int | None) -> Snapshot:
    """Prove that the log has lost no version, and return the newest; CorruptData otherwise."""

    def head_of(_: Listing, versions: KeptVersions) -> Snapshot:
        return versions.head

    try:
        return with_proof(log, store, head_of, lambda: leased)
    except CorruptData as error:
        raise _damaged(store, error) from error


def _damaged(store: ObjectStore, error: CorruptData) -> CorruptData:
    return CorruptData(
        f"drop_table: {error}. To give up what may be restored, drop the table without purge, then "
        f"delete the folder {store.uri} yourself"
    )


def _commit_last_floors(log: CommitLog, head: Snapshot) -> Snapshot:
    """Commit the floors above every version; return the version that has them."""

    def request_for(newest: Snapshot) -> CommitRequest:
        _check_no_refs(log.store, newest)
        info = raised(newest.table, oldest_version=CLOSED, oldest_base=CLOSED)
        return CommitRequest("expire_versions", info=info)

    def again(newest: Snapshot, _: object) -> CommitRequest:
        return request_for(newest)

    return log.commit(request_for(head), head, again, Retries("drop_table"))[1]


def _newest(log: CommitLog, store: ObjectStore) -> Snapshot | None:
    try:
        return log.latest()
    except NotFound:
        return None
    except CorruptData as error:
        raise _damaged(store, error) from error


def _is_own(path: str) -> bool:
    """Return whether a file is the table's by its place and name."""
    is_ours = path.startswith("_rowsieve/") or _FILE.fullmatch(path) is not None
    return is_ours or is_published(path)


def _check_no_refs(store: ObjectStore, head: Snapshot) -> None:
    """Raise UnsupportedOperation if a branch or tag reads the table's files (invariant 42)."""
    if names := list(refs_of(head.table.properties)):
        raise UnsupportedOperation(
            f"drop_table: {store.uri} has the branches and tags {', '.join(names[:5])}, which keep "
            "its files; drop them with drop_ref first, or drop the table without purge"
        )


def _check_unleased(store: ObjectStore, leased: int | None) -> None:
    if leased is not None:
        raise UnsupportedOperation(
            f"drop_table: a lease protects version {leased} of {store.uri}; wait until its reader "
            "ends, or drop the table without purge"
        )
