"""Counts the files of a table in its store and their bytes, those of old versions included."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from rowsieve.objects import ObjectStore, together
from rowsieve.shown import size_text
from rowsieve.storage.log.checkpoint import CHECKPOINTS
from rowsieve.storage.log.log_entry import LOG

_FOLDERS: Final = ("data", LOG, CHECKPOINTS)


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """The number of a table's files and their bytes: data, log and checkpoints of all versions."""

    files: int
    size_bytes: int

    def __str__(self) -> str:
        return f"{self.files:,} files, {size_text(self.size_bytes)}"


def usage_of(store: ObjectStore) -> DiskUsage:
    """List the folders of a table. Files that were imported in place lie elsewhere."""
    listed = together(store, [partial(store.details, folder) for folder in _FOLDERS])
    sizes = [detail.size_bytes for details in listed for detail in details.values()]
    return DiskUsage(len(sizes), sum(sizes))
