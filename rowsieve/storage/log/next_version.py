"""Reads consecutive versions of a table: each from its predecessor and one log entry."""

from __future__ import annotations

from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.log.replay import replay
from rowsieve.storage.snapshot import Snapshot


def next_version(
    log: LogReader, before: Snapshot | None, version: int
) -> tuple[Snapshot, str | None]:
    """Return a version and the operation of its commit; `before` is the version before it.

    Without its log entry, the version comes from a checkpoint, and its operation is unknown.
    """
    (entry,) = log.loaded_entries([version])
    return version_after(log, before, version, entry)


def version_after(
    log: LogReader, before: Snapshot | None, version: int, entry: LogEntry | None
) -> tuple[Snapshot, str | None]:
    """`next_version` by an entry that was read with its parts, or was absent."""
    if entry is None:
        return log.at(version), None
    return replay(before, [entry]), entry.operation
