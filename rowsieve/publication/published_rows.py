"""The visible rows of the parts that a publication has to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rowsieve.executor.visible_by_part import visible_by_part
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.rowset import RowSet
from rowsieve.publication.rows_beside import path_beside
from rowsieve.publication.touched_parts import Mask
from rowsieve.storage.manifests.manifest import FileRef, PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.schema import Schema


@dataclass(frozen=True, slots=True)
class PublishedPart:
    """A part with rows; `hidden` are those that are not visible, None if all are.

    A part without visible rows is not published: `has_rows` is False. `path` is that of its file,
    which lies in the folder of the publication if `is_beside`, for a part in memory.
    """

    file: FileRef
    path: str
    is_beside: bool
    hidden: RowSet | None = None
    has_rows: bool = True


def published_parts(
    snapshot: Snapshot, source: ObjectStore, touched: Mask
) -> tuple[PartTable, list[PublishedPart]]:
    """Return the touched parts that have files, and what is published of each.

    `touched` has whole groups of overlapping parts.
    """
    parts = snapshot.parts.take(np.flatnonzero(touched))
    plan = plan_scan(replace(snapshot, parts=parts), source.uri, now_us=0)
    visible: Mapping[str, RowSet | None] = {
        part.part_id: rows for part, rows in visible_by_part(plan, source)
    }
    files = zip(parts.part_ids, parts.files("data"), strict=True)
    with_files = [(i, part_id, file) for i, (part_id, file) in enumerate(files) if file is not None]
    places = np.array([i for i, _, _ in with_files], dtype=np.int64)
    published = [
        _published(file, snapshot.schema, visible.get(part_id, RowSet.empty(file.rows)))
        for _, part_id, file in with_files
    ]
    return parts.take(places), published


def published_paths(snapshot: Snapshot) -> tuple[set[str], set[str]]:
    """Return the paths of all files of the table, and of those beside a publication of it."""
    parts = snapshot.parts
    paths = parts.column("data.path").to_pylist()
    places = [
        (path, in_memory)
        for path, in_memory in zip(paths, parts.held_in_memory(), strict=True)
        if path
    ]
    table_files = {path for path, is_held in places if not is_held}
    return table_files, {path_beside(path, snapshot.schema) for path, is_held in places if is_held}


def _published(file: FileRef, schema: Schema, rows: RowSet | None) -> PublishedPart:
    path = path_beside(file.path, schema) if file.in_memory else file.path
    if rows is None or rows.is_full:
        return PublishedPart(file, path, file.in_memory)
    return PublishedPart(file, path, file.in_memory, rows.complement(), not rows.is_empty)
