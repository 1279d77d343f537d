"""Delete the logs of dropped branches and tags, and of those that were never registered.

Soundness (invariant 42): a dropped log is closed first, as a dropped table is: its floors rise
above every version, so that no writer commits to it and no reader takes a new lease, and a lease
that exists stops the call. Of the data files that it wrote, those go that no other log needs. A
folder that was never registered goes once the table's floor refuses to register it (rule 15).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from rowsieve.errors import CommitConflict, UnsupportedOperation
from rowsieve.objects import Details, ObjectStore, RefStore, table_store
from rowsieve.objects.location import Location
from rowsieve.objects.ref_store import OWN, REFS, tag_of
from rowsieve.retention.dropping import alone, close
from rowsieve.retention.other_logs import folders_of, needed_by_others
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.floors import floors_of
from rowsieve.storage.log.log_entry import log_path
from rowsieve.storage.log.refs import dropped_of, refs_of, store_of, with_refs
from rowsieve.storage.log.retries import Retries
from rowsieve.storage.snapshot import Snapshot
from rowsieve.storage.versioned_names import base_of_id, writer_of_path

_OPERATION: Final = "remove_orphans"


def unregistered(store: ObjectStore, head: Snapshot, floor: int) -> list[str]:
    """The listed folders that a floor refuses to register, and that are not registered."""
    known = folders_of(head)
    return [
        folder
        for folder in store.folders(REFS)
        if folder not in known and (base := base_of_id(tag_of(folder))) is not None and base < floor
    ]


def remove_dropped(store: ObjectStore, log: CommitLog) -> dict[str, int]:
    """Delete what the table needs no more of its dropped refs; return the sizes by path.

    What a lease protects stays for a later call.
    """
    table, head = table_store(store), log.latest()
    dropped = dropped_of(head.table.properties)
    folders = [*dropped, *unregistered(table, head, floors_of(head.table.properties).oldest_base)]
    if not folders:
        return {}
    written = written_by_tag(table)
    sizes: dict[str, int] = {}
    for folder in folders:
        ref_store, last = store_of(table, folder), None
        if folder in dropped:
            try:
                with alone(ref_store, 0.0):
                    last_snapshot = close(ref_store)
            except (UnsupportedOperation, CommitConflict):  # a lease or another call has it
                continue
            last = None if last_snapshot is None else log_path(last_snapshot.version)
        sizes |= _delete(ref_store, written, last)
        if folder in dropped:
            head = _forget(log, head, folder)
    return sizes


def written_by_tag(store: ObjectStore) -> dict[str, Details]:
    """List the data files that branches wrote, by tag."""
    written: dict[str, Details] = {}
    for path, detail in store.details("data").items():
        if (tag := writer_of_path(path)) is not None:
            written.setdefault(tag, {})[path] = detail
    return written


def _delete(store: RefStore, written: dict[str, Details], last: str | None) -> dict[str, int]:
    """Delete the data files that no other log needs, then the folder; its last entry goes last."""
    needed, _ = needed_by_others(store, written)
    ref_files = written.get(tag_of(store.folder), {})
    data = {path: detail.size_bytes for path, detail in ref_files.items() if path not in needed}
    root = f"{REFS}/{store.folder}"
    of_log = {path: each.size_bytes for path, each in store.table.details(root).items()}
    end = [] if last is None else [f"{root}/{last.removeprefix(OWN)}"]
    store.table.delete([*data, *(path for path in of_log if path not in end)])
    store.delete(list(store.leftovers()))
    store.table.delete(end)
    _remove_empty_folders(store.table.uri, root)
    return data | of_log


def _remove_empty_folders(uri: str, root: str) -> None:
    """Remove the empty folders of a ref on a disk; a file that came meanwhile keeps its own."""
    location = Location.parse(uri)
    if location.scheme == "file":
        for folder, _, _ in os.walk(f"{location.path}/{root}", topdown=False):
            with suppress(OSError):
                os.rmdir(folder)  # noqa: PTH106 - as in the stores


def _forget(log: CommitLog, head: Snapshot, folder: str) -> Snapshot:
    """Commit that the folder is gone; return the new version."""

    def request_for(newest: Snapshot) -> CommitRequest:
        properties = newest.table.properties
        left = [each for each in dropped_of(properties) if each != folder]
        info = with_refs(newest.table, refs_of(properties), left)
        return CommitRequest(_OPERATION, info=info)

    def again(newest: Snapshot, _: object) -> CommitRequest:
        return request_for(newest)

    return log.commit(request_for(head), head, again, Retries(_OPERATION))[1]
