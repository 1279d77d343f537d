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
    """A part with visible rows; `hidden` are the others, None if there are none."""

    part_id: str
    file: FileRef
    hidden: RowSet | None


def published_parts(
    snapshot: Snapshot, source: ObjectStore, touched: Mask
) -> tuple[PartTable, list[PublishedPart | None]]:
    """Return the touched parts that have rows; None stands for one without visible rows.

    `touched` has whole groups of overlapping parts.
    """
    parts = snapshot.parts.take(np.flatnonzero(touched))
    some = replace(snapshot, parts=parts)
    plan = plan_scan(some, source.uri, now_us=0)
    visible: Mapping[str, RowSet | None] = {
        part.part_id: rows for part, rows in visible_by_part(plan, source)
    }
    places, published = [], []
    for place, (part_id, file) in enumerate(zip(parts.part_ids, parts.files("data"), strict=True)):
        if file is None:
            continue
        places.append(place)
        published.append(_published(part_id, file, visible))
    return parts.take(np.array(places, dtype=np.int64)), published


def _published(
    part_id: str, file: FileRef, visible: Mapping[str, RowSet | None]
) -> PublishedPart | None:
    if part_id not in visible:
        return None
    rows = visible[part_id]
    if rows is None or rows.is_full:
        return PublishedPart(part_id, file, None)
    return None if rows.is_empty else PublishedPart(part_id, file, rows.complement())
