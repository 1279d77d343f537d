"""Plans made before, for the same question about the same version of the same table.

Soundness (invariants 22 and 30, trap T22): the key holds the table's uuid, version, commit and
schema, the predicate, its semantics with the time zone, and all that shapes the splits; a predicate
that asks for the time is planned anew for every statement. Output columns and the time of a plan
whose predicate does not ask for it are no part of what was planned, and are put in at each use.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, TypeAlias, TypedDict, Unpack

import msgspec

from rowsieve.byte_cache import ByteCache
from rowsieve.planner.plan import OutputColumn, ScanPlan, table_columns
from rowsieve.planner.scan import plan_scan
from rowsieve.predicate.ir import TRUE, InList, Now, Predicate, walk
from rowsieve.predicate.limits import check_limits
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.snapshot import Snapshot

CACHE_BYTES: Final = 64 * 1024 * 1024
_BYTES_PER_PART: Final = 1024  # with its piece, read and file; about 0.9 KB were measured
_BYTES_PER_NODE: Final = 512


class PlanOptions(TypedDict, total=False):
    """The options of `plan_scan` that decide what is planned."""

    limit: int | None
    ordered: bool
    semantics: Semantics
    pruning: bool
    split_bytes: int
    in_process: bool


_Answer: TypeAlias = tuple[ScanPlan, object]
"""A plan resolved, and the objects by whose identity it is found."""


class PlanCache:
    """Plans by their question; the least recently used go first. Safe to share by threads."""

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._plans: ByteCache[Hashable, ScanPlan] = ByteCache(limit_bytes)
        self._resolved: ByteCache[tuple[int, int, bool], _Answer] = ByteCache(limit_bytes)

    def plan(
        self,
        snapshot: Snapshot,
        table_uri: str,
        *,
        now_us: int,
        predicate: Predicate = TRUE,
        columns: tuple[OutputColumn, ...] | None = None,
        **options: Unpack[PlanOptions],
    ) -> tuple[ScanPlan, bool]:
        """What `plan_scan` gives, and whether it was known already.

        `snapshot` is a version as it was committed, never one made from it.
        """
        check_limits(predicate)  # a tree that is too deep has no hash either
        nodes = list(walk(predicate))
        key = (
            table_uri,
            snapshot.table.uuid,
            snapshot.version,
            snapshot.commit_id,
            snapshot.schema.id,
            predicate,
            now_us if any(isinstance(node, Now) for node in nodes) else None,
            frozenset(options.items()),
        )
        plan = self._plans.get(key)
        known = plan is not None
        if plan is None:  # planned outside the lock: two threads may both do it
            plan = plan_scan(
                snapshot,
                table_uri,
                predicate=predicate,
                now_us=now_us,
                within_limits=True,
                **options,
            )
            values = sum(node.values.array.nbytes for node in nodes if isinstance(node, InList))
            size = 3 * values + len(nodes) * _BYTES_PER_NODE + _size_of(plan)
            self._plans.put(key, plan, size)
        output = table_columns(snapshot.schema.names) if columns is None else columns
        return msgspec.structs.replace(plan, columns=output, now_us=now_us), known

    def resolved(self, plan: ScanPlan, resolve: Callable[[ScanPlan], ScanPlan]) -> ScanPlan:
        """The plan with the rows to read of each part, found before or by `resolve`.

        They are those of the same splits under the same filter, whatever the columns: it is the
        very objects that are compared, and they are kept as long as the answer is.
        """
        if plan.resolved is not None:
            return plan
        if not plan.splits:  # all empty tuples are one object
            return resolve(plan)
        key = (id(plan.splits), id(plan.filter), plan.pruning)
        if (known := self._resolved.get(key)) is not None:
            found, _ = known
        else:
            found = resolve(plan)
            size_bytes = sum(part.rows.size_bytes for part in found.resolved or ())
            asked = (plan.splits, plan.filter)
            self._resolved.put(key, (found, asked), size_bytes + _size_of(found))
        return msgspec.structs.replace(
            plan, splits=found.splits, pruned=found.pruned, resolved=found.resolved
        )

    def clear(self) -> None:
        """Forget all plans."""
        self._plans.clear()
        self._resolved.clear()


def _size_of(plan: ScanPlan) -> int:
    """About how many bytes its parts take."""
    parts = sum(len(piece.parts) for split in plan.splits for piece in split.pieces)
    return (parts + len(plan.resolved or ())) * _BYTES_PER_PART


PLANS: Final = PlanCache()
"""The plans of this process."""
