"""Delete what only snapshots have that have left the metadata: because they expired, or for age.

A list of manifests follows from the one before, and names of manifests and of files of vectors are
never used again. So snapshots have a file in one run: what those that left have, and neither the
newest one before them that is left nor the oldest one after them, no other one has. Snapshots of
tags may be left before others that left.

Soundness: only what a snapshot that left refers to is deleted, never what a listing shows, so files
of a publication that is being written stay. Files with rows stay too, as Delta's log may have them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from rowsieve.errors import RowsieveError
from rowsieve.publication.iceberg.manifest_entries import Content
from rowsieve.publication.iceberg.manifests import Manifest, read_list, read_manifests
from rowsieve.publication.places import Folder

_log = logging.getLogger(__name__)


def delete_dropped(folder: Folder, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Delete what `new` metadata has no longer of that before it; what cannot be read stays."""
    try:
        paths = [*_old_metadata(old, new), *_old_files(folder, old, new)]
        if paths:
            folder.store.delete([folder.relative(path) for path in paths])
    except RowsieveError as error:
        _log.warning("%s: files of snapshots that left stay: %s", folder.store.uri, error)


def _old_metadata(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[str]:
    logs = ({each["metadata-file"] for each in one.get("metadata-log", ())} for one in (old, new))
    before, after = logs
    return before - after


def _old_files(folder: Folder, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[str]:
    dropped, neighbours = _dropped(old, new)
    if not dropped:
        return ()
    neighbouring = {each.path: each for place in neighbours for each in read_list(folder, place)}
    gone = {
        each.path: each
        for manifest_list in dropped
        for each in read_list(folder, manifest_list)
        if each.path not in neighbouring
    }
    vectors = _vectors(folder, gone.values())
    if vectors:
        vectors -= _vectors(folder, neighbouring.values())
    return [*dropped, *gone, *vectors]


def _dropped(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The lists of snapshots that left, and those of the snapshots that are left beside them."""
    left = {each["snapshot-id"] for each in new["snapshots"]}
    earlier = {each["snapshot-id"] for each in old.get("snapshots", ())}
    later = [each for each in new["snapshots"] if each["snapshot-id"] not in earlier]
    dropped: list[str] = []
    beside: list[str] = []
    last: str | None = None
    is_after_dropped = False
    for each in [*old.get("snapshots", ()), *later]:
        place = each["manifest-list"]
        if each["snapshot-id"] in left:
            if is_after_dropped:
                beside.append(place)
            last, is_after_dropped = place, False
            continue
        if not is_after_dropped and last is not None:
            beside.append(last)
        dropped.append(place)
        is_after_dropped = True
    return dropped, beside


def _vectors(folder: Folder, manifests: Iterable[Manifest]) -> set[str]:
    """The files of vectors to which manifests refer."""
    of_vectors = [each for each in manifests if each.content is Content.DELETES]
    return {entry.path for each in read_manifests(folder, of_vectors) for entry in each.entries}
