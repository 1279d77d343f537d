"""Decides which commits write a checkpoint.

A checkpoint is due every `checkpoint_interval` versions. A commit that only changes columns writes
none, so that its time does not grow with the number of parts. The next commit that changes rows
writes it instead, or the commit at which the next checkpoint is due, even if that only changes
columns. So a checkpoint is late by less than one interval.

On a store across a network a version of few parts has one more often, in one put beside the commit,
so that opening reads two entries at most. Versions of more parts have an incremental checkpoint
instead, at every second version, so that opening reads that and one entry at most.

Soundness: a checkpoint that is missing, early or late changes no result. The rule depends only on
log entries since the last checkpoint, so processes agree on it, unless one began from a checkpoint
that `rewrite_manifests` wrote in between: it writes the next one later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rowsieve.errors import InvalidInput
from rowsieve.storage.log.floors import floors_of
from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.storage.snapshot import INLINE_PROTOCOL, Snapshot
from rowsieve.types.encodings import sizes_of

DEFAULT_INTERVAL: Final = 32
_INTERVAL: Final = "checkpoint_interval"
_SMALL_TURN: Final = 3
_SMALL_BYTES: Final = 72 * 1024  # of the list in memory; less than a quarter of it when compressed
_SMALL_PARTS: Final = 2_000
_INCREMENTAL_TURN: Final = 2
_INCREMENTAL_PARTS: Final = 8_000
_FIRST_TURN: Final = 8  # of the checkpoint that incremental ones follow, if a process knows none
_LISTED_VERSIONS: Final = 1_792
"""Versions kept by retention up to which all checkpoints fit in one page of a listing."""


def checkpoint_interval(properties: Mapping[str, str]) -> int:
    """Read the property `checkpoint_interval`; InvalidInput unless it is a positive number."""
    text = properties.get(_INTERVAL, str(DEFAULT_INTERVAL))
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise InvalidInput(
            f"table property checkpoint_interval is {text!r}; it is a number of commits, at least 1"
        )
    return int(text)


def is_turn(version: int, properties: Mapping[str, str]) -> bool:
    """Return whether a checkpoint is due at this version; False if the interval is invalid."""
    try:
        return version > 0 and version % checkpoint_interval(properties) == 0
    except InvalidInput:
        return False


def is_early_turn(snapshot: Snapshot) -> bool:
    """Return whether a version has a checkpoint that no interval asks for.

    It has one if it is small, or if incremental checkpoints have none to follow.
    """
    if not _has_more_checkpoints(snapshot):
        return False
    if _is_small(snapshot):
        return snapshot.version % _SMALL_TURN == 0
    is_turn_of_first = snapshot.version == _INCREMENTAL_TURN or not snapshot.version % _FIRST_TURN
    return snapshot.since is None and is_turn_of_first and _may_be_incremental(snapshot)


def is_incremental_turn(snapshot: Snapshot) -> bool:
    """Return whether a version that has no checkpoint has an incremental one."""
    return (
        snapshot.version % _INCREMENTAL_TURN == 0
        and snapshot.since is not None
        and _may_be_incremental(snapshot)
        and _has_more_checkpoints(snapshot)
        and not _is_small(snapshot)
    )


def _has_more_checkpoints(snapshot: Snapshot) -> bool:
    """Return whether a version may have a checkpoint that no interval asks for.

    False if the table states its interval, or if an older release reads it: its checkpoints are two
    objects.
    """
    info = snapshot.table
    version_count = snapshot.version - floors_of(info.properties).oldest_version
    return (
        info.reader_version >= INLINE_PROTOCOL
        and _INTERVAL not in info.properties
        and not snapshot.owes_checkpoint
        and version_count < _LISTED_VERSIONS
    )


def _may_be_incremental(snapshot: Snapshot) -> bool:
    return len(snapshot.parts) <= _INCREMENTAL_PARTS


def _is_small(snapshot: Snapshot) -> bool:
    parts = snapshot.parts
    return len(parts) <= _SMALL_PARTS and sum(sizes_of(parts.table)) <= _SMALL_BYTES


def owes_after(entry: LogEntry, properties: Mapping[str, str], *, owed: bool) -> bool:
    """Return whether a checkpoint is overdue after an entry, because changes of columns wrote none.

    `owed`: the same for the version before; `properties` are those of the entry's version.
    """
    turn = is_turn(entry.version, properties)
    only_columns = entry.schema is not None and entry.file is None and not entry.removed
    return only_columns and (owed != turn)


def has_checkpoint(snapshot: Snapshot, before: Snapshot) -> bool:
    """Return whether the commit of a version writes a checkpoint; `before`: its predecessor."""
    due = before.owes_checkpoint or is_turn(snapshot.version, snapshot.table.properties)
    return due and not snapshot.owes_checkpoint
