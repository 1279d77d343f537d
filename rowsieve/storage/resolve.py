"""Which version of a table is meant: the newest, or the one at a number or a time."""

from __future__ import annotations

from rowsieve.arguments.annotations import Moment
from rowsieve.errors import InvalidInput
from rowsieve.storage.commit_log import CommitLog
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.instants import to_microseconds


def resolve_snapshot(log: CommitLog, version: int | None, as_of: Moment | None) -> Snapshot:
    """The newest version, or the one at a number or a time; not both."""
    if version is not None and as_of is not None:
        raise InvalidInput("version= and as_of= exclude each other")
    if version is not None:
        return log.at(version)
    if as_of is not None:
        return log.as_of(to_microseconds(as_of))
    return log.latest()
