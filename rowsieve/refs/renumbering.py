"""The ages of a branch's parts in the numbers of the table that takes them over.

Soundness (invariants I1, I4, 10 and 11): a published part keeps its place in the order of commits.
Up to the base of the branch both logs have the same numbers. What was published by an earlier
fast-forward has the number of that commit, and newer parts get that of the next one, like any new
part. The newer ones hold pairwise disjoint keys, which `layers` proves, so one number suffices. A
stored vector is known up to the last fast-forward that it covers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from rowsieve.compaction.slices import Slice
from rowsieve.planner.overlap import overlap_groups
from rowsieve.storage.log.refs import Published, Ref
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.vector_columns import VectorRef
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder


class Ages:
    """Numbers of a branch's versions as numbers of the table's."""

    def __init__(self, ref: Ref) -> None:
        self._known: Sequence[Published] = (Published(ref.version, ref.version), *ref.published)

    @property
    def last(self) -> Published:
        """The last version that both have in common."""
        return self._known[-1]

    def is_new(self, parts: PartTable) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which parts the table has never had: (n,) bool."""
        return np.asarray(parts.numbers("commit_ts_max") > self.last.of_branch)

    def renumbered(self, parts: PartTable, next_version: int) -> PartTable:
        """The parts as the table has them; new ones have no commit_ts yet (invariant I1).

        Vectors that cover all new parts are known up to `next_version`.
        """
        if not len(parts):
            return parts
        newest = parts.numbers("commit_ts_max")
        is_new = self.is_new(parts)
        table = parts.with_base_version(next_version - 1).table
        for name in ("commit_ts_min", "commit_ts_max"):
            ages = [
                None if new else self._age(age)
                for age, new in zip(parts.numbers(name).tolist(), is_new.tolist(), strict=True)
            ]
            place = table.schema.get_field_index(name)
            table = table.set_column(place, table.schema.field(place), pa.array(ages, pa.int64()))
        result = PartTable(table)
        vectors = parts.vectors()
        if any(vector is not None for vector in vectors):
            covered = int(newest.max())
            result = result.with_vectors(
                [self._vector(vector, covered, next_version) for vector in vectors]
            )
        return result

    def _age(self, age: int) -> int:
        """The number of the commit that brought a part; parts of the base keep theirs."""
        if age <= self._known[0].of_branch:
            return age
        place = bisect_left(self._known, age, key=lambda each: each.of_branch)
        return self._known[place].of_table

    def _vector(
        self, vector: VectorRef | None, covered: int, next_version: int
    ) -> VectorRef | None:
        if vector is None or vector.complete_through < self._known[0].of_branch:
            return vector
        if vector.complete_through >= max(covered, self.last.of_branch + 1):
            return replace(vector, complete_through=next_version)
        place = bisect_right(self._known, vector.complete_through, key=lambda each: each.of_branch)
        return replace(vector, complete_through=self._known[place - 1].of_table)


def layers(snapshot: Snapshot, ages: Ages) -> tuple[Slice, ...]:
    """The groups of new parts that several commits wrote over the same keys; merge each one.

    Empty without any: the new parts then hold pairwise disjoint keys, as those of one commit do.
    """
    if not snapshot.table.key:
        return ()
    places = np.flatnonzero(ages.is_new(snapshot.parts))
    if len(places) < 2:
        return ()
    parts = snapshot.parts.take(places)
    order = KeyOrder.of(snapshot.schema, snapshot.table.key)
    newest, oldest = (parts.numbers(f"commit_ts_{end}") for end in ("max", "min"))
    sizes = parts.numbers("data.size_bytes") + parts.numbers("deletes.size_bytes")
    slices = []
    for members in overlap_groups(parts.select("key.").table, order):
        group = np.asarray(members)
        if len(group) < 2 or len({*newest[group].tolist(), *oldest[group].tolist()}) < 2:
            continue
        ranked = group[np.argsort(-newest[group], kind="stable")]
        slices.append(Slice(tuple(places[ranked].tolist()), int(sizes[group].sum())))
    return tuple(slices)
