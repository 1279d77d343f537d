"""What the other logs of a table need: the table's own, and those of its branches and tags.

Soundness (invariants 16 and 42): every log proves by itself what it keeps, its floor read before
its leases. Which logs there are is read from the table's own log before all that, and once more
after it: a branch or tag that was registered in between began with a version that a lease protected
until then, or that was kept anyway. A log that is registered and cannot be read stops the deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from rowsieve.errors import CorruptData, NotFound, TableNotFound
from rowsieve.objects import Details, ObjectStore, table_store
from rowsieve.objects.ref_store import tag_of
from rowsieve.retention.kept_versions import KeptVersions, proven
from rowsieve.retention.leases import lease_files, oldest_leased
from rowsieve.retention.listing import Listing
from rowsieve.storage.log.floors import is_closed
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.log.refs import dropped_of, refs_of, store_of
from rowsieve.storage.snapshot import Snapshot

_TRIES: Final = 8
T = TypeVar("T")


def folders_of(head: Snapshot) -> dict[str, bool]:
    """The folders of the branches and tags that a version has; True for a dropped one."""
    properties = head.table.properties
    folders = {ref.folder: False for ref in refs_of(properties).values()}
    return folders | dict.fromkeys(dropped_of(properties), True)


def with_proof(
    log: LogReader,
    store: ObjectStore,
    prove: Callable[[Listing, KeptVersions], T],
    leases: Callable[[], int | None],
    wanted: int | None = None,
) -> T:
    """As `proven`, and `prove` also gets what the other logs of the table need."""

    def with_others(listing: Listing, versions: KeptVersions) -> T:
        head = versions.head if store is table_store(store) else None
        needed, tags = needed_by_others(store, listing.of_others, head)
        return prove(listing, replace(versions, paths=versions.paths | needed, tags=tags))

    return proven(log, store, lambda: Listing.of(store), with_others, leases, wanted)


def needed_by_others(
    store: ObjectStore, written: Mapping[str, Details], head: Snapshot | None = None
) -> tuple[frozenset[str], frozenset[str]]:
    """The data files that the logs beside that of `store` need, and the tags of all open ones.

    `written` are the listed data files of branches, by tag; `head` is a version of the table that
    was read after its leases were listed.
    """
    table = table_store(store)
    log = LogReader(table)
    folders = folders_of(log.newest() if head is None else head)
    if not folders and store is table:
        return frozenset(), frozenset()
    for _ in range(_TRIES):
        paths: set[str] = set()
        tags: set[str] = set()
        if store is not table:
            paths |= _needed(table, None)
        for folder, is_dropped in folders.items():
            other = store_of(table, folder)
            if other.uri == store.uri:
                continue
            details = written.get(tag_of(folder), {})
            if is_dropped and _is_gone(other):
                continue
            paths |= _needed(other, details)
            tags.add(tag_of(folder))
        if (now := folders_of(log.newest())) == folders:
            return frozenset(paths), frozenset(tags)
        folders = now
    raise CorruptData(
        f"the branches and tags of {table.uri} changed {_TRIES} times while it was proved what "
        "they need; nothing was deleted. Try again"
    )


def _needed(store: ObjectStore, details: Details | None) -> frozenset[str]:
    """The data files of the versions that a log keeps; `details` are those that it wrote."""

    def leases() -> int | None:
        return oldest_leased(lease_files(store))

    def paths(_: Listing, versions: KeptVersions) -> frozenset[str]:
        return versions.paths

    return proven(LogReader(store), store, lambda: Listing.of(store, details), paths, leases)


def _is_gone(store: ObjectStore) -> bool:
    """Return whether the log of a dropped branch or tag is closed, or deleted."""
    try:
        return is_closed(LogReader(store).latest())
    except TableNotFound:
        return True
    except NotFound:
        return True
