"""Finds the files that a range of versions needs, and those that only expired versions had.

Soundness: the files of every version from `oldest` to the head are its parts, their tombstones and
deletion vectors; any error while they are collected stops the caller before it deletes anything. A
file of an expired version is garbage only if none of those versions needs it. The removal of
orphans deletes unreadable parts of expired versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final

from rowsieve.errors import CorruptData, NotFound
from rowsieve.objects import Details, ObjectStore, together
from rowsieve.storage.log.checkpoint import (
    CHECKPOINTS,
    checkpoint_file,
    checkpoint_version_of,
    read_checkpoint,
    read_files,
    read_parts,
)
from rowsieve.storage.log.floors import DATA_FILE, paths_of
from rowsieve.storage.log.log_entry import LOG, LogEntry, log_path, version_of
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot

_BLOCK: Final = 64  # entries that are read at once
_LIST = re.compile(rf"{LOG}/(?P<id>[0-9a-f]{{32}})\.(arrow|stats)")
_CHECKPOINT_PARTS = re.compile(rf"{CHECKPOINTS}/(?P<id>[0-9a-f]{{32}})\.(arrow|shards)")


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The files of the log and the checkpoints as they were listed.

    `lists` are the paths of lists of parts in the folder of the log, by commit id;
    `checkpoint_parts` the ids of files with the parts of a checkpoint.
    """

    details: Details
    entries: tuple[int, ...] = ()
    checkpoints: tuple[int, ...] = ()
    lists: dict[str, list[str]] = field(default_factory=dict)
    checkpoint_parts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, store: ObjectStore) -> LogFiles:
        """List both folders."""
        log, checkpoints = together(
            store, [partial(store.details, LOG), partial(store.details, CHECKPOINTS)]
        )
        lists: dict[str, list[str]] = {}
        for path in log:
            if (name := _LIST.fullmatch(path)) is not None:
                lists.setdefault(name["id"], []).append(path)
        parts = (_CHECKPOINT_PARTS.fullmatch(path) for path in checkpoints)
        return cls(
            {**log, **checkpoints},
            tuple(sorted(v for path in log if (v := version_of(path)) is not None)),
            tuple(
                sorted(v for path in checkpoints if (v := checkpoint_version_of(path)) is not None)
            ),
            lists,
            {name["id"]: name[0] for name in parts if name is not None},
        )

    @property
    def first_version(self) -> int:
        """The oldest version that can be read: the first one, or one with its own checkpoint."""
        if 0 in self.entries:
            return 0
        return min(set(self.entries).intersection(self.checkpoints), default=0)


def read_entries(log: LogReader, store: ObjectStore, versions: Sequence[int]) -> Iterator[LogEntry]:
    """Yield the entries that exist, in order, without their parts; a few are read at once."""
    for start in range(0, len(versions), _BLOCK):
        block = versions[start : start + _BLOCK]
        for entry in together(store, [partial(log.entry, version) for version in block]):
            if entry is not None:
                yield entry


def needed_files(log: LogReader, store: ObjectStore, oldest: int, head: Snapshot) -> set[str]:
    """Return the data files of all versions from `oldest` to the head.

    Every error of the log is raised: an incomplete set would delete a file that is needed.
    """
    base = head if oldest == head.version else log.read_version(oldest)
    return set(paths_of(base.parts)).union(added_files(log, store, base, head))


def added_files(log: LogReader, store: ObjectStore, base: Snapshot, head: Snapshot) -> set[str]:
    """Return the data files that the commits after `base` up to the head added."""
    found: set[str] = set()
    previous, versions = base.commit_id, range(base.version + 1, head.version + 1)
    count = 0
    for entry, parts in _with_parts(store, read_entries(log, store, versions)):
        if entry.predecessor != previous:
            break
        previous, count = entry.commit_id, count + 1
        found.update(paths_of(parts))
    if count < len(versions) or previous != head.commit_id:
        raise CorruptData(
            f"{log_path(base.version + 1 + count)} in {store.uri} is not the entry that follows "
            f"commit {previous}; nothing was deleted. Restore the log from a copy"
        )
    return found


@dataclass(frozen=True, slots=True)
class Expired:
    """Files of expired versions: data files with their sizes, and the commit id of each entry."""

    sizes: dict[str, int]
    commit_ids: dict[int, str]


def expired_files(log: LogReader, store: ObjectStore, files: LogFiles, oldest: int) -> Expired:
    """Return the data files that versions up to `oldest` had; reads each entry once.

    Skips what cannot be read: another process may be deleting the same versions.
    """
    found: dict[str, int] = {}
    start = 0
    if 0 not in files.entries:
        for start in (version for version in files.checkpoints if version <= oldest):
            try:
                found.update(sizes_of_files(read_checkpoint(store, start).parts))
                break
            except (CorruptData, NotFound):
                continue
    versions = [version for version in files.entries if version <= oldest]
    commit_ids: dict[int, str] = {}
    for entries in _blocks(read_entries(log, store, versions)):
        commit_ids.update((entry.version, entry.commit_id) for entry in entries)
        complete = [entry for entry in entries if entry.version >= start]
        for parts in together(store, [partial(_files_or_none, store, each) for each in complete]):
            found.update(sizes_of_files(parts))
    sizes = {path: size for path, size in found.items() if DATA_FILE.fullmatch(path)}
    return Expired(sizes, commit_ids)


def sizes_of_files(parts: PartTable) -> Iterator[tuple[str, int]]:
    """Yield the path and the size of every file of the parts."""
    for prefix in ("data", "deletes", "dv"):
        paths = parts.column(f"{prefix}.path")
        if paths.null_count < len(paths):
            sizes = parts.column(f"{prefix}.size_bytes").to_pylist()
            both = zip(paths.to_pylist(), sizes, strict=True)
            yield from ((path, size or 0) for path, size in both if path is not None)
    yield from ((ref.path, ref.file_bytes) for ref in parts.vectors() if ref and ref.path)


def parts_path_of(store: ObjectStore, version: int) -> str | None:
    """Return the path of the file with a checkpoint's parts; None if it cannot be read."""
    try:
        return f"{CHECKPOINTS}/{checkpoint_file(store, version)}"
    except (CorruptData, NotFound):
        return None


def _with_parts(
    store: ObjectStore, entries: Iterator[LogEntry]
) -> Iterator[tuple[LogEntry, PartTable]]:
    for block in _blocks(entries):
        tables = together(store, [partial(_parts_of, store, entry) for entry in block])
        yield from zip(block, tables, strict=True)


def _blocks(entries: Iterator[LogEntry]) -> Iterator[list[LogEntry]]:
    """Cut the entries into lists of those whose parts are read at once."""
    while block := list(islice(entries, _BLOCK)):
        yield block


def _parts_of(store: ObjectStore, entry: LogEntry) -> PartTable:
    if entry.file is None:
        return PartTable.empty()
    return read_parts(store, LOG, entry.file, entry.version)


def _files_or_none(store: ObjectStore, entry: LogEntry) -> PartTable:
    """The parts that a commit added, with only the columns of their files; None if unreadable."""
    if entry.file is None:
        return PartTable.empty()
    try:
        return read_files(store, LOG, entry.file)
    except (CorruptData, NotFound):
        return PartTable.empty()
