"""Delete a table with all its files: take its name, close it, look for leases, then delete.

Soundness: the closing commit raises both floors above every version. A reader creates its lease
first and reads the floor then (invariants, rule 16), so after that commit a reader is refused, or
its lease is listed. A writer that commits later is refused, too. Only files whose place and name
show that they are the table's own are deleted: the folder may hold other tables and other files.

Before that, the log must prove which versions there are (`kept_versions`): a purge of a table whose
entries were lost would delete what can still be restored. The entry of the closing commit goes
last, so that an interrupted deletion can be recognised by `is_dropped` and repeated.

The names of log entries come again if a table is created in the same folder. So calls that drop
the table take turns there (`alone`): one that still deletes would delete entries of the new table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rowsieve import clock
from rowsieve.errors import (
    CommitConflict,
    CorruptData,
    NotFound,
    TableMoved,
    TableNotFound,
    UnsupportedOperation,
)
from rowsieve.objects import ObjectStore
from rowsieve.retention.kept_versions import KeptVersions
from rowsieve.retention.leases import (
    NO_VERSION,
    Lease,
    LeaseWatch,
    check_published_here,
    is_of_drop,
)
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

TURN_LEASE_S = 10.0
"""How long a call that drops a table may be silent before the next one has its turn."""

PATIENCE_S = 60.0
"""How long a call waits for its turn."""

_RETRY_S: Final = 0.5
_FOLDERS: Final = ("data", "_rowsieve", *PUBLISHED_FOLDERS)
_FILE: Final = re.compile(
    rf"data/[0-9a-f]{{32}}\.[^/]*|(?:data|{'|'.join(PUBLISHED_FOLDERS)})/\.tmp-[^/]*", re.ASCII
)


@contextmanager
def alone(store: ObjectStore, patience_s: float | None = None) -> Iterator[None]:
    """Drop the table in `store` while no other call does: wait until another one has ended.

    A process that died has ended once it was silent for `TURN_LEASE_S`: until then, a request of
    its own may still arrive. CommitConflict after `patience_s`, without it after `PATIENCE_S`. What
    the caller knew of the table may be over by its turn.
    """
    end_s = clock.monotonic_s() + (PATIENCE_S if patience_s is None else patience_s)
    while True:
        with _lease(store) as lease:
            living, over = LeaseWatch(store, lease, published=False).living()
            store.delete(list(over))
            if all(each.version != NO_VERSION for each in living):
                yield
                return
        if clock.monotonic_s() >= end_s:
            raise CommitConflict(
                f"drop_table: another call drops or replaces the table at {store.uri}, or died "
                f"less than {TURN_LEASE_S:g} s ago; nothing was changed, call it again"
            )
        clock.sleep(_RETRY_S / 2)  # two that met leave both, and come again at random times
        clock.sleep_up_to(_RETRY_S)


def close(store: ObjectStore, release: Callable[[], object] | None = None) -> Snapshot | None:
    """Give up all versions of the table in `store`; return the newest one.

    None if nothing of its log is left that can be read: its files are being deleted already, or its
    log is. UnsupportedOperation if a lease protects the table, CorruptData if its log does not
    prove which versions there are, as every deletion needs it. `release` is called after that,
    before the table is closed: it removes the table's name, so that nobody renames a closed table.
    If a lease was taken after that, the table stays closed for others, and a later call continues.

    Once the table is closed, the only leases that matter are those of readers which came before:
    later readers are refused, and leases of calls that drop the table protect no version.
    """
    log = CommitLog(store)
    head = _newest(log, store)
    if head is not None and not is_closed(head):
        check_writable("drop_table", head)
    with _lease(store) as lease:
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
    continues; several may run at once, unless a table is created in the same place (`alone`).
    Leases of other calls that drop the table stay, by which they know one another.
    """
    files = [path for path in own_files(store) if not is_of_drop(path)]
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


def _commit_last_floors(log: CommitLog, head: Snapshot) -> Snapshot | None:
    """Commit the floors above every version; return the version that has them, if it is there."""

    def request_for(newest: Snapshot) -> CommitRequest:
        _check_no_refs(log.store, newest)
        info = raised(newest.table, oldest_version=CLOSED, oldest_base=CLOSED)
        return CommitRequest("expire_versions", info=info)

    def again(newest: Snapshot, _: object) -> CommitRequest:
        return request_for(newest)

    try:
        return log.commit(request_for(head), head, again, Retries("drop_table"))[1]
    except TableNotFound:  # a late request of a process that died has closed it
        newest = _newest(log, log.store)
        if newest is None or is_closed(newest):
            return newest
        raise


def _lease(store: ObjectStore) -> Lease:
    """A lease that protects no version: it shows the store's clock, and that a call drops."""
    return Lease(store, "unknown", NO_VERSION, TURN_LEASE_S, "drop_table")


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
