"""Finds the files that only expired versions had.

Soundness: what is kept is proved in `kept_versions`; this module only names candidates, and skips
what it cannot read. The removal of orphans deletes unreadable parts of expired versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from rowsieve.errors import CorruptData, NotFound
from rowsieve.objects import ObjectStore, together
from rowsieve.retention.kept_versions import BLOCK, read_entries
from rowsieve.retention.listing import Listing
from rowsieve.storage.log.checkpoint import (
    CHECKPOINTS,
    checkpoint_file,
    read_checkpoint,
    read_files,
)
from rowsieve.storage.log.log_entry import LogEntry
from rowsieve.storage.log.log_reader import LogReader
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.versioned_names import DATA_FILE


@dataclass(frozen=True, slots=True)
class Expired:
    """Files of expired versions: data files with their sizes, and the commit id of each entry."""

    sizes: dict[str, int]
    commit_ids: dict[int, str]


def expired_files(log: LogReader, store: ObjectStore, listing: Listing, oldest: int) -> Expired:
    """Return the data files that versions up to `oldest` had; reads each entry once.

    Skips what cannot be read: another process may be deleting the same versions.
    """
    file_sizes: dict[str, int] = {}
    start = 0
    if 0 not in listing.entries:
        for start in (version for version in listing.checkpoints if version <= oldest):
            try:
                file_sizes.update(sizes_of_files(read_checkpoint(store, start).parts))
                break
            except (CorruptData, NotFound):
                continue
    versions = [version for version in listing.entries if version <= oldest]
    commit_ids: dict[int, str] = {}
    for entries in _blocks(read_entries(log, store, versions)):
        commit_ids.update((entry.version, entry.commit_id) for entry in entries)
        complete = [entry for entry in entries if entry.version >= start]
        for parts in together(store, [partial(_files_or_none, store, each) for each in complete]):
            file_sizes.update(sizes_of_files(parts))
    sizes = {path: size for path, size in file_sizes.items() if DATA_FILE.fullmatch(path)}
    return Expired(sizes, commit_ids)


def sizes_of_files(parts: PartTable) -> Iterator[tuple[str, int]]:
    """Yield the path and the size of every file of the parts."""
    for prefix in ("data", "deletes", "dv"):
        paths = parts.column(f"{prefix}.path")
        if paths.null_count < len(paths):
            sizes = parts.column(f"{prefix}.size_bytes").to_pylist()
            files = set(parts.file_paths().get(f"{prefix}.path", ()))
            both = zip(paths.to_pylist(), sizes, strict=True)
            yield from ((path, size or 0) for path, size in both if path in files)
    yield from ((ref.path, ref.file_bytes) for ref in parts.vectors() if ref and ref.path)


def parts_path_of(store: ObjectStore, version: int) -> str | None:
    """Return the path of the file with a checkpoint's parts; None if it has none, or is damaged."""
    try:
        name = checkpoint_file(store, version)
    except (CorruptData, NotFound):
        return None
    return None if name is None else f"{CHECKPOINTS}/{name}"


def _blocks(entries: Iterator[LogEntry]) -> Iterator[list[LogEntry]]:
    """Cut the entries into lists of those whose parts are read at once."""
    while block := list(islice(entries, BLOCK)):
        yield block


def _files_or_none(store: ObjectStore, entry: LogEntry) -> PartTable:
    """The parts that a commit added, with only the columns of their files; None if unreadable."""
    if entry.file is None:
        return PartTable.empty()
    try:
        return read_files(store, entry.file)
    except (CorruptData, NotFound):
        return PartTable.empty()
