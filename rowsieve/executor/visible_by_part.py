"""Finds the visible rows of each file, for engines with a Parquet reader of their own."""

from __future__ import annotations

from collections.abc import Iterator

from rowsieve.executor.execute import Execution
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.split import PlannedPart
from rowsieve.predicate.ir import TRUE
from rowsieve.predicate.rowset import RowSet


def visible_by_part(
    plan: ScanPlan, store: ObjectStore
) -> Iterator[tuple[PlannedPart, RowSet | None]]:
    """Yield every part with rows that the plan reads, and its visible rows; None if all are.

    The plan's predicate excludes none of them.
    """
    unfiltered = plan.with_predicate(TRUE, plan.semantics)
    by_part: dict[str, tuple[PlannedPart, RowSet | None]] = {}
    for source, rows in Execution(unfiltered, store).visible_parts():
        _, before = by_part.get(source.part.part_id, (None, RowSet.empty(source.row_count)))
        joined = None if before is None or rows is None else before.union(rows)
        by_part[source.part.part_id] = source.part, joined
    yield from (each for each in by_part.values() if each[0].data is not None)
