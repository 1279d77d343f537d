"""The parts of a version without the rewrites that only moved its rows to other files.

A compaction changes no row, but no part of the version before it is left, so net changes across it
would read all rows of both versions. The version before the compaction, with the parts that later
commits added, has the same rows, and shares most of its parts with older versions.

Soundness: rewrites change no visible row, and in commit order a later part hides the same rows
before and after one. So commits that only add parts may follow an undone rewrite, and commits of
properties. Commits that remove parts may not: a rewrite drops hidden rows, and the part that hides
them may go since. In tables with an event order no added part may follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rowsieve.change_feed.commit_parts import CommitParts, parts_of_range, touched_parts
from rowsieve.storage.log.conflicts import OPERATIONS, Kind
from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot

ENTRIES_AT_MOST: Final = 256
"""Log entries that are read to find rewrites; one is less than a millisecond on a local disk."""


def net_parts(log: LogReader, before: Snapshot | None, target: Snapshot) -> CommitParts | None:
    """The parts to compute net changes from; None if no row can differ. See `parts_of_range`."""
    if before is not None:
        target = replace(target, parts=parts_without_moves(log, before, target))
    return parts_of_range(before, target)


def parts_without_moves(log: LogReader, before: Snapshot, target: Snapshot) -> PartTable:
    """Parts with the rows of `target` that differ least in bytes from those of `before`."""
    chosen, least = target.parts, _differing_bytes(before.parts, target.parts)
    parts, added_since = target.parts, list[PartTable]()
    for entry in _entries(log, range(before.version + 1, target.version + 1)):
        if entry is None or not before.parts.without(parts.part_ids):
            return chosen
        match OPERATIONS.get(entry.operation):
            case Kind.REWRITING:
                parts = log.at(entry.version - 1).parts
                for added in reversed(added_since):
                    parts = parts.append(added)
                size_bytes = _differing_bytes(before.parts, parts)
                if size_bytes < least:
                    chosen, least = parts, size_bytes
            case Kind.BLIND if not (entry.removed or target.table.sequence):
                if entry.added is not None and len(entry.added):
                    added_since.append(entry.added)
            case Kind.SETTING:
                pass
            case _:
                return chosen
    return chosen


def _entries(log: LogReader, versions: range) -> Iterator[LogEntry | None]:
    """The entries of the last versions, the newest first, in reads of twice as many each time."""
    versions, count = versions[-ENTRIES_AT_MOST:], 1  # the newest one is often the compaction
    while versions:
        yield from reversed(log.loaded_entries(versions[-count:]))
        versions, count = versions[:-count], 2 * count


def _differing_bytes(before: PartTable, after: PartTable) -> int:
    touched = touched_parts(before, after)
    return before.chosen(touched).stored_bytes + after.chosen(touched).stored_bytes
