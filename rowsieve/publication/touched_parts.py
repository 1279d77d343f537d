"""The parts whose published rows may differ from those of an earlier version.

Soundness: rows of a part become hidden or visible only if a part that may share a key with it is
added or removed, or if its own vector of deleted rows changes. So whole groups of overlapping parts
are touched, of both versions together; in a table with an event order, too, because a group does
not depend on the order of its parts (invariant 36).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from rowsieve.planner.overlap import group_by_codes, key_codes
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder

Mask = npt.NDArray[np.bool_]


def unchecked_parts(before: Snapshot | None, now: Snapshot) -> Mask:
    """(n,) whether the file of each part has to be checked: not if it was, with these columns."""
    if before is None or before.schema != now.schema:
        return np.ones(len(now.parts), dtype=np.bool_)
    return _absent(now.parts, before.parts)


def touched_parts(before: Snapshot | None, now: Snapshot) -> Mask:
    """(n,) whether the published rows of each part of `now` may differ from those of `before`."""
    if before is None or _are_written_again(before, now):
        return np.ones(len(now.parts), dtype=np.bool_)
    added = _absent(now.parts, before.parts)
    removed = _absent(before.parts, now.parts)
    touched = added | _with_other_vectors(before.parts, now.parts)
    if not now.table.key or not (added.any() or removed.any()):
        return touched
    order = KeyOrder.of(now.schema, now.table.key)
    gone = before.parts.take(np.flatnonzero(removed))
    both = now.parts.append(gone).select("key.")
    groups = group_by_codes(*key_codes(both.table, order))
    changed = np.concatenate([touched, np.ones(len(gone), dtype=np.bool_)])
    number = groups.of_members()
    hit = np.zeros(len(groups), dtype=np.bool_)
    hit[number[changed[groups.members]]] = True
    in_hit = np.zeros(len(both), dtype=np.bool_)
    in_hit[groups.members] = hit[number]
    return in_hit[: len(now.parts)]


def _are_written_again(before: Snapshot, now: Snapshot) -> bool:
    """Return whether files beside the publication change, because they have other columns."""
    return before.schema != now.schema and bool(now.parts.held_in_memory().any())


def _absent(parts: PartTable, others: PartTable) -> Mask:
    """(n,) whether each part is not among the others."""
    known = others.column("part_id").combine_chunks()
    present = pc.is_in(parts.column("part_id"), value_set=known)
    return ~np.asarray(present.to_numpy(), dtype=np.bool_)


def _with_other_vectors(before: PartTable, now: PartTable) -> Mask:
    """(n,) whether each part that is in both has another vector of deleted rows than before.

    Vectors are compared by part: those in the manifest have their bytes as a path, so that several
    parts may have the same one.
    """
    place = pc.index_in(now.column("part_id"), value_set=before.column("part_id").combine_chunks())
    former = before.column("dv.path").combine_chunks().take(place)
    vectors = now.column("dv.path").combine_chunks()
    both_null = pc.and_(vectors.is_null(), former.is_null())
    same = pc.coalesce(pc.equal(vectors, former), both_null)
    return ~np.asarray(same.to_numpy(zero_copy_only=False), dtype=np.bool_)
