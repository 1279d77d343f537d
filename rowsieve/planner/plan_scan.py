"""Build a `ScanPlan` from a snapshot and a query: bind, prune, group, cut into splits."""

from __future__ import annotations

import msgspec

from rowsieve.config import DEFAULT
from rowsieve.errors import UnsupportedOperation
from rowsieve.planner.by_constraints import Decision, decide
from rowsieve.planner.differential.consolidation import consolidation_of, updates_of
from rowsieve.planner.part_facts import part_facts
from rowsieve.planner.pieces import pieces_of, summary
from rowsieve.planner.plan import OutputColumn, ScanPlan, bound_filter, table_columns
from rowsieve.planner.prune_parts import prune_parts, pruned_by_constraints
from rowsieve.planner.split import Split
from rowsieve.planner.splits import cut_splits
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.limits import check_limits
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.differential import is_differential
from rowsieve.storage.parts.reading_views import as_read, believes_columns
from rowsieve.storage.snapshot import Snapshot


def plan_scan(
    snapshot: Snapshot,
    table_uri: str,
    *,
    predicate: Predicate = TRUE,
    columns: tuple[OutputColumn, ...] | None = None,
    limit: int | None = None,
    ordered: bool = False,
    semantics: Semantics = Semantics.SQL,
    now_us: int,
    pruning: bool = True,
    split_bytes: int = DEFAULT.split_bytes,
    in_process: bool = True,
    within_limits: bool = False,
    constrained: bool = False,
) -> ScanPlan:
    """Plan a scan of `snapshot`; reads no files. O(parts), vectorised over the parts.

    `now_us` is the statement's time in microseconds since 1970; all its branches use the same time.
    `in_process`: whether one process reads all splits. `within_limits`: whether the caller has
    called `check_limits` on the predicate. `constrained`: whether the constraints of the table may
    decide, because the snapshot is a committed version and no modified copy of one. A version that
    is inside a transaction is told the condition.
    """
    if snapshot.on_read is not None:
        snapshot.on_read(predicate, semantics, now_us)
    snapshot = as_read(snapshot)
    constrained = constrained and believes_columns(snapshot)
    if is_differential(snapshot.table):
        return _plan_at_a_time(
            snapshot,
            table_uri,
            predicate=predicate,
            columns=columns,
            limit=limit,
            semantics=semantics,
            now_us=now_us,
            pruning=pruning,
        )
    schema, facts = snapshot.schema, part_facts(snapshot)
    if not within_limits:
        check_limits(predicate)
    predicate = normalize(predicate, semantics, within_limits=True)
    bound = bound_filter(predicate, schema, semantics, now_us)
    decision = decide(snapshot, bound) if pruning and constrained else Decision(bound)
    if decision.refuted:
        pruned = pruned_by_constraints(facts)
    else:
        enough = limit if pruning and not ordered else None
        pruned = prune_parts(facts, decision.filter if pruning else None, limit=enough)
    pieces = pieces_of(facts, pruned, filtered=decision.filter is not None)
    return ScanPlan(
        table_uri=table_uri,
        table_uuid=snapshot.table.uuid,
        version=snapshot.version,
        schema=schema,
        key=snapshot.table.key,
        columns=table_columns(schema.names) if columns is None else columns,
        predicate=predicate,
        filter=decision.filter,
        semantics=semantics,
        now_us=now_us,
        limit=limit,
        ordered=ordered,
        pruning=pruning,
        splits=cut_splits(pieces, split_bytes, ordered=ordered, in_process=in_process),
        pruned=summary(facts, pruned.reasons),
        statistics_contradicting=pruned.contradicting,
        statistics_unreadable=pruned.unreadable,
        constraints=decision.names,
    )


def _plan_at_a_time(
    snapshot: Snapshot,
    table_uri: str,
    *,
    predicate: Predicate,
    columns: tuple[OutputColumn, ...] | None,
    limit: int | None,
    semantics: Semantics,
    now_us: int,
    pruning: bool,
) -> ScanPlan:
    """Plan the sums of a differential table: one split, because any two parts may share rows."""
    if (reading := snapshot.reading) is None:
        raise UnsupportedOperation(
            "the table is differential, its rows are updates with a time and a difference, and "
            "this way of reading does not add them up; use scan(at=…), count or to_arrow"
        )
    check_limits(predicate)
    predicate = normalize(predicate, semantics, within_limits=True)
    consolidation = consolidation_of(snapshot, reading, predicate, semantics, now_us)
    updates = plan_scan(
        updates_of(snapshot, reading),
        table_uri,
        predicate=consolidation.updates,
        semantics=semantics,
        now_us=now_us,
        pruning=pruning,
    )
    pieces = tuple(piece for split in updates.splits for piece in split.pieces)
    return msgspec.structs.replace(
        updates,
        schema=snapshot.schema,
        columns=table_columns(snapshot.schema.names) if columns is None else columns,
        predicate=predicate,
        filter=bound_filter(predicate, snapshot.schema, semantics, now_us),
        limit=limit,
        splits=(Split(pieces),) if pieces else (),
        consolidation=consolidation,
    )
