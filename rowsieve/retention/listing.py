"""The names of a table's files as they were listed: candidates for deletion, and hints.

Soundness (invariants, rule 5): a listing may lag behind the store. A name in it proves that its
file existed; the absence of a name proves nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from rowsieve.objects import Details, ObjectStore, together
from rowsieve.objects.ref_store import ref_tag
from rowsieve.retention.leases import LEASES, leased_version_of
from rowsieve.storage.log.checkpoint import CHECKPOINTS, checkpoint_version_of
from rowsieve.storage.log.incremental_checkpoint import versions_of_incremental
from rowsieve.storage.log.log_entry import LOG, version_of
from rowsieve.storage.versioned_names import base_of_id, base_of_path, writer_of_path

_LIST: Final = re.compile(rf"{LOG}/(?P<id>[0-9a-f]{{32}})\.(arrow|stats)")
_CHECKPOINT_PARTS: Final = re.compile(rf"{CHECKPOINTS}/(?P<id>[0-9a-f]{{32}})\.(arrow|shards)")


@dataclass(frozen=True, slots=True)
class Listing:
    """The files in the folders of the data, the log and the checkpoints, and the leased versions.

    `data` are the data files that the log of this store wrote, or foreign ones; `of_others` those
    of branches, by their tags. `details` are the files of log and checkpoints; `lists` the paths of
    lists of parts, by commit id; `checkpoint_parts` the paths of files with the parts of a
    checkpoint, by their ids; `incremental` the versions of incremental checkpoints, each with the
    one of its checkpoint; `leases` the versions.
    """

    data: Details
    details: Details
    entries: tuple[int, ...] = ()
    checkpoints: tuple[int, ...] = ()
    lists: dict[str, list[str]] = field(default_factory=dict)
    checkpoint_parts: dict[str, str] = field(default_factory=dict)
    incremental: tuple[tuple[int, int], ...] = ()
    leases: tuple[int, ...] = ()
    of_others: dict[str, Details] = field(default_factory=dict)

    @classmethod
    def of(cls, store: ObjectStore, data_files: Details | None = None) -> Listing:
        """List the folders; `data_files` are the data files, if they are known."""
        folders = [partial(store.details, folder) for folder in (LOG, CHECKPOINTS, LEASES)]
        if data_files is None:
            folders.append(partial(store.details, "data"))
        log, checkpoints, leases, *listed = together(store, folders)
        by_writer: dict[str | None, Details] = {}
        for path, detail in (data_files if data_files is not None else listed[0]).items():
            by_writer.setdefault(writer_of_path(path), {})[path] = detail
        data = by_writer.pop(ref_tag(store.uri), {})
        lists: dict[str, list[str]] = {}
        for path in log:
            if (name := _LIST.fullmatch(path)) is not None:
                lists.setdefault(name["id"], []).append(path)
        parts = (_CHECKPOINT_PARTS.fullmatch(path) for path in checkpoints)
        return cls(
            data,
            {**log, **checkpoints},
            tuple(sorted(v for path in log if (v := version_of(path)) is not None)),
            tuple(
                sorted(v for path in checkpoints if (v := checkpoint_version_of(path)) is not None)
            ),
            lists,
            {name["id"]: name[0] for name in parts if name is not None},
            tuple(both for path in checkpoints if (both := versions_of_incremental(path))),
            tuple(v for path in leases if (v := leased_version_of(path)) is not None),
            {tag: details for tag, details in by_writer.items() if tag is not None},
        )

    @property
    def is_trimmed_at(self) -> int:
        """The version at which the log begins, if that has its own checkpoint; else 0.

        An entry before it is left where a listing that lagged had hidden it from an expiry.
        """
        first = min(self.entries, default=0)
        return first if first in self.checkpoints else 0

    def newest_named(self) -> tuple[int, str]:
        """The newest version that a name proves to have been read or committed, and that name."""
        names = [(version, f"entry {version}") for version in self.entries]
        names += [(version, f"checkpoint {version}") for version in self.checkpoints]
        names += [(version, "a lease") for version in self.leases]
        for path in (*self.data, *self.details):
            base = base_of_path(path) if path in self.data else _base_of_list(path)
            if base is not None:
                names.append((base, path))
        return max(names, default=(-1, ""))


def _base_of_list(path: str) -> int | None:
    """The version on which a list of parts, or the parts of a checkpoint, are based."""
    match = _LIST.fullmatch(path) or _CHECKPOINT_PARTS.fullmatch(path)
    return None if match is None else base_of_id(match["id"])
