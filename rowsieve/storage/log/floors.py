"""The two floors of a table: properties that record what retention has expired.

- `rowsieve.oldest_version`: versions below it are gone, whether or not their files still exist.
- `rowsieve.oldest_base`: no commit may bring files that were written on a version below it, so that
  such files, if no version has them, can be deleted (invariants, rule 15).

Soundness: a floor is committed before the first file is deleted because of it, and no operation
lowers it (invariants, rule 7). Floors need a writer of protocol 3; older writers, which do not know
them, refuse the table.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import pyarrow.compute as pc

from rowsieve.errors import (
    CommitConflict,
    CorruptData,
    InvalidInput,
    SnapshotExpired,
    TableNotFound,
)
from rowsieve.properties import OLDEST_BASE, OLDEST_VERSION
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import RETENTION_WRITER, Snapshot, TableInfo
from rowsieve.storage.versioned_names import base_of_path

_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
CLOSED: Final = 10**18 - 1
"""The floors of a table that was dropped with all its files: above every version."""


_DROPPED: Final = "table {} was dropped with all its files, which are being deleted"


class DroppedTable(TableNotFound):
    """The folder has the rest of a table whose files are being deleted."""


class Floors(NamedTuple):
    """The floors of a table; 0 where retention has never run."""

    oldest_version: int = 0
    oldest_base: int = 0


def floors_of(properties: Mapping[str, str]) -> Floors:
    """Read the floors; CorruptData if one is not a number of a version."""
    if OLDEST_VERSION not in properties and OLDEST_BASE not in properties:
        return Floors()
    return Floors(_number(properties, OLDEST_VERSION), _number(properties, OLDEST_BASE))


def raised(info: TableInfo, *, oldest_version: int = 0, oldest_base: int = 0) -> TableInfo:
    """Return the table information with floors of at least these; none of them is lowered."""
    now = floors_of(info.properties)
    properties = {
        **info.properties,
        OLDEST_VERSION: str(max(now.oldest_version, oldest_version)),
        OLDEST_BASE: str(max(now.oldest_base, oldest_base)),
    }
    writer = max(info.writer_version, RETENTION_WRITER)
    return dataclasses.replace(info, properties=properties, writer_version=writer)


def check_not_lowered(operation: str, info: TableInfo, head: Snapshot) -> None:
    """Raise InvalidInput if the new table information lowers a floor of the head."""
    before, after = floors_of(head.table.properties), floors_of(info.properties)
    if after.oldest_version < before.oldest_version or after.oldest_base < before.oldest_base:
        raise InvalidInput(
            f"this {operation} lowers a floor of the table from {before} to {after}: files below "
            "it may be deleted already; floors never go back"
        )


def check_bases(
    operation: str, added: PartTable | None, removed: tuple[str, ...], head: Snapshot
) -> None:
    """Raise CommitConflict if a new file was written on a version below the head's floor (rule 15).

    Such a file may be deleted at any time. Files of the head are not new.
    """
    if is_given_up(added, removed, head):
        floor = floors_of(head.table.properties).oldest_base
        raise CommitConflict(
            f"this {operation} wrote files on a version before {floor}, and the table has given up "
            "such files that were not committed; nothing was committed. Refresh the table and do "
            "it again"
        )


def is_given_up(added: PartTable | None, removed: tuple[str, ...], head: Snapshot) -> bool:
    """Return whether a new file of these parts may be deleted at any time: write it again."""
    if not added or OLDEST_BASE not in head.table.properties:
        return False
    floor = floors_of(head.table.properties).oldest_base
    lowest = lowest_base(added, removed, head.parts)
    return lowest is not None and lowest < floor


def lowest_base(added: PartTable, removed: tuple[str, ...], live: PartTable) -> int | None:
    """Return the oldest version that a new file of these parts is based on; None without one.

    A part that is removed and added again keeps its files, except those that the live one lacks.
    """
    fresh = added.without(removed)
    bases = [int(pc.min(fresh.column("base_version")).as_py())] if len(fresh) else []
    if len(fresh) < len(added):
        ids = frozenset(removed)
        again = [part_id for part_id in added.part_ids if part_id in ids]
        old = set(paths_of(live.chosen(again)))
        new = [path for path in paths_of(added.chosen(again)) if path not in old]
        bases += [base for path in new if (base := base_of_path(path)) is not None]
    return min(bases, default=None)


def paths_of(parts: PartTable) -> list[str]:
    """Return the paths of all files of the parts."""
    return [path for paths in parts.file_paths().values() for path in paths]


def is_closed(head: Snapshot) -> bool:
    """Return whether all versions of the table have expired: it was dropped with its files."""
    return floors_of(head.table.properties).oldest_version >= CLOSED


def check_open(operation: str, head: Snapshot) -> None:
    """Raise TableNotFound if the table was dropped with all its files."""
    if is_closed(head):
        raise TableNotFound(
            f"{operation}: {_DROPPED.format(head.table.uuid)}; nothing was committed"
        )


def check_not_dropped(uri: str, info: TableInfo | None) -> None:
    """Raise DroppedTable if these are the properties of a table that was dropped with its files."""
    if info is not None and floors_of(info.properties).oldest_version >= CLOSED:
        raise DroppedTable(f"no table at {uri}: {_DROPPED.format(info.uuid)}")


def check_kept(version: int, head: Snapshot) -> None:
    """Raise SnapshotExpired if `version` is below the head's floor; names the oldest version."""
    oldest = floors_of(head.table.properties).oldest_version
    if is_closed(head):
        raise SnapshotExpired(
            f"version {version} of table {head.table.uuid} is gone: the table was dropped with all "
            "its files. Open the table that has its name now, if there is one"
        )
    if version < oldest:
        raise SnapshotExpired(
            f"version {version} of table {head.table.uuid} has expired: its files may be deleted; "
            f"versions {oldest} to {head.version} are available"
        )


def _number(properties: Mapping[str, str], name: str) -> int:
    text = properties.get(name, "0")
    if _NUMBER.fullmatch(text) is None:
        raise CorruptData(
            f"table property {name} is {text!r} instead of a version; the log is damaged, or "
            "another program wrote it: restore it from a copy"
        )
    return int(text)


def reads_expired_files(known: Snapshot, newer: Snapshot) -> bool:
    """Return whether columns of the parts may be read later from files that have expired since."""
    if newer.table is known.table:
        return False
    before, after = floors_of(known.table.properties), floors_of(newer.table.properties)
    return before.oldest_version < after.oldest_version and not newer.parts.in_memory
