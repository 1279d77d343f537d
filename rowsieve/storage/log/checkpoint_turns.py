"""Decides which commits write a checkpoint.

A checkpoint is due every `checkpoint_interval` versions. A commit that only changes columns writes
none, so that its time does not grow with the number of parts. The next commit that changes rows
writes it instead, or the commit at which the next checkpoint is due, even if that only changes
columns. So a checkpoint is late by less than one interval.

Soundness: a checkpoint that is missing, early or late changes no result. The rule depends only on
log entries since the last checkpoint, so processes agree on it, unless one began from a checkpoint
that `rewrite_manifests` wrote in between: it writes the next one later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rowsieve.errors import InvalidInput
from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.storage.snapshot import Snapshot

DEFAULT_INTERVAL: Final = 32


def checkpoint_interval(properties: Mapping[str, str]) -> int:
    """Read the property `checkpoint_interval`; InvalidInput unless it is a positive number."""
    text = properties.get("checkpoint_interval", str(DEFAULT_INTERVAL))
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
