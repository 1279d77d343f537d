"""The visible rows of the parts that a publication has to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rowsieve.executor.visible_by_part import visible_by_part
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.rowset import RowSet
from rowsieve.publication.touched_parts import Mask
from rowsieve.storage.manifests.manifest import FileRef, PartTable
from rowsieve.storage.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class PublishedPart:
    """A part with a file; `hidden` are rows that are not visible, None if all are.

    A part without visible rows is not published: `has_rows` is False.
    """

    part_id: str
    file: FileRef
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
    published = [_published(part_id, file, visible) for _, part_id, file in with_files]
    return parts.take(places), published


def _published(part_id: str, file: FileRef, visible: Mapping[str, RowSet | None]) -> PublishedPart:
    if part_id not in visible:
        return PublishedPart(part_id, file, has_rows=False)
    rows = visible[part_id]
    if rows is None or rows.is_full:
        return PublishedPart(part_id, file)
    return PublishedPart(part_id, file, rows.complement(), has_rows=not rows.is_empty)
