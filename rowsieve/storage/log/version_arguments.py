"""Resolve the arguments `version` and `as_of` to a snapshot."""

from __future__ import annotations

from rowsieve.arguments.annotations import Moment
from rowsieve.errors import InvalidInput
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.instants import to_microseconds


def resolve_snapshot(log: CommitLog, version: int | None, as_of: Moment | None) -> Snapshot:
    """Read the newest version, or that of a number or a time; InvalidInput if both are given."""
    if version is not None and as_of is not None:
        raise InvalidInput("version= and as_of= exclude each other")
    if version is not None:
        return log.at(version)
    if as_of is not None:
        return log.as_of(to_microseconds(as_of))
    return log.latest()
