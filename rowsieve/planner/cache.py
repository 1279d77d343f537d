"""The plan cache: plans by query and table version.

Soundness (invariants 22 and 30, trap T22): the key holds the table's uuid, version, commit and
schema, the predicate, its semantics with the time zone, and all options that determine the splits.
If the predicate uses the current time, the key holds the time too, so each statement is planned
again. Otherwise the time is not in the key; it and the output columns are filled in at each use.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, TypeAlias, TypedDict, Unpack

import msgspec

from rowsieve.byte_cache import ByteCache, Origin
from rowsieve.planner.plan import OutputColumn, ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate import ir
from rowsieve.predicate.limits import check_limits
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.parts.reading_views import reading_rules
from rowsieve.storage.snapshot import Snapshot

CACHE_BYTES: Final = 64 * 1024 * 1024
ONCE_BYTES: Final = 4 * 1024 * 1024  # most conditions differ in a value and never come again
_BYTES_PER_PART: Final = 1024  # with its piece, read and file; measured: about 0.9 KB
_BYTES_PER_NODE: Final = 512


class PlanOptions(TypedDict, total=False):
    """The options of `plan_scan` that determine the plan."""

    limit: int | None
    ordered: bool
    semantics: Semantics
    pruning: bool
    split_bytes: int
    in_process: bool


_Answer: TypeAlias = tuple[ScanPlan, object]
"""A resolved plan, and the objects whose identities are its key."""


class PlanCache:
    """An LRU cache of plans and resolved plans. Thread-safe."""

    def __init__(self, limit_bytes: int = CACHE_BYTES, name: str | None = None) -> None:
        once_bytes = min(limit_bytes, ONCE_BYTES)
        self._plans: ByteCache[Hashable, ScanPlan] = ByteCache(
            limit_bytes, name, once_bytes=once_bytes
        )
        self._resolved: ByteCache[tuple[int, int, bool], _Answer] = ByteCache(
            limit_bytes, name and f"{name}, resolved", once_bytes=once_bytes
        )

    def plan(
        self,
        snapshot: Snapshot,
        table_uri: str,
        *,
        now_us: int,
        predicate: ir.Predicate = ir.TRUE,
        columns: tuple[OutputColumn, ...] | None = None,
        **options: Unpack[PlanOptions],
    ) -> tuple[ScanPlan, bool]:
        """Return the result of `plan_scan`, and whether it was cached.

        `snapshot` must be a committed version, not a modified copy of one.
        """
        if snapshot.on_read is not None:  # a version that only its transaction reads, and is told
            planned = plan_scan(
                snapshot, table_uri, predicate=predicate, columns=columns, now_us=now_us, **options
            )
            return planned, False
        nodes = check_limits(predicate)  # hashing fails for a tree that is too deep
        key = (
            table_uri,
            snapshot.table.uuid,
            snapshot.version,
            snapshot.commit_id,
            snapshot.schema.id,
            snapshot.reading,
            reading_rules(snapshot),
            predicate,
            now_us if ir.Now in set(map(type, nodes)) else None,
            frozenset(options.items()),
        )
        plan = self._plans.get(key)
        known = plan is not None
        if plan is None:  # no lock is held: concurrent callers may plan the same query twice
            plan = plan_scan(
                snapshot,
                table_uri,
                predicate=predicate,
                now_us=now_us,
                within_limits=True,
                constrained=True,
                **options,
            )
            origin = Origin((table_uri, snapshot.table.uuid), snapshot.version)
            self._plans.put(key, plan, _size_of(plan) + _size_of_tree(nodes), origin)
        output = plan.columns if columns is None else columns
        return msgspec.structs.replace(plan, columns=output, now_us=now_us), known

    def resolved(self, plan: ScanPlan, resolve: Callable[[ScanPlan], ScanPlan]) -> ScanPlan:
        """Return the plan with the rows to read of each part, cached or from `resolve`.

        The key is the identity of the plan's splits and filter, not their columns. The entry holds
        references to these objects, so that their ids cannot be reused while it exists.
        """
        if plan.resolved is not None:
            return plan
        if not plan.splits:  # all empty tuples are the same object
            return resolve(plan)
        key = (id(plan.splits), id(plan.filter), plan.pruning)
        if (known := self._resolved.get(key)) is not None:
            full_plan, _ = known
        else:
            full_plan = resolve(plan)
            size_bytes = sum(part.rows.size_bytes for part in full_plan.resolved or ())
            identified = (plan.splits, plan.filter)
            size_bytes += _size_of(full_plan)
            origin = Origin(plan.table_uri, plan.version)
            self._resolved.put(key, (full_plan, identified), size_bytes, origin)
        return msgspec.structs.replace(
            plan, splits=full_plan.splits, pruned=full_plan.pruned, resolved=full_plan.resolved
        )

    def clear(self) -> None:
        """Remove all plans."""
        self._plans.clear()
        self._resolved.clear()


def _size_of(plan: ScanPlan) -> int:
    """Estimate the memory of the plan's parts in bytes."""
    parts = sum(len(piece.parts) for split in plan.splits for piece in split.pieces)
    return (parts + len(plan.resolved or ())) * _BYTES_PER_PART


def _size_of_tree(nodes: Sequence[ir.Node]) -> int:
    """Estimate the memory of a predicate, which the key and the plan hold in three forms."""
    values = sum([node.values.array.nbytes for node in nodes if isinstance(node, ir.InList)])
    return 3 * int(values) + len(nodes) * _BYTES_PER_NODE


PLANS: Final = PlanCache(name="plans")
"""The plan cache of this process."""
