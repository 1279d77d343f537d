"""Resolve the arguments `version` and `as_of` to a snapshot."""

from __future__ import annotations

from rowsieve.arguments.annotations import Moment
from rowsieve.errors import InvalidInput
from rowsieve.objects import table_store
from rowsieve.objects.shared.shown_place import shown_place
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.refs import MAIN, ref_named, store_of
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.instants import to_microseconds


def resolve_snapshot(log: CommitLog, version: int | str | None, as_of: Moment | None) -> Snapshot:
    """Read the newest version, or that of a number, a tag or a time; InvalidInput for both.

    The name of a branch is its newest version.
    """
    if version is not None and as_of is not None:
        raise InvalidInput("version= and as_of= both name a version; give one of them")
    if isinstance(version, str):
        return log_of_ref(log, version).latest()
    if version is not None:
        return log.at(version)
    if as_of is not None:
        return log.as_of(to_microseconds(as_of))
    return log.latest()


def log_of_ref(log: CommitLog, name: str) -> CommitLog:
    """The log of a branch, tag or `main`, given any log of the table; VersionNotFound if none."""
    store = table_store(log.store)
    table = log if store is log.store else CommitLog(store)
    if name == MAIN:
        return table
    ref = ref_named(name, table.newest(), shown_place(store))
    return CommitLog(store_of(store, ref.folder))
