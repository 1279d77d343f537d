"""The parts of our tables that a statement must read, by the statement's own conditions.

Soundness: `scan_conditions` says what each condition keeps; a part is skipped only if the planner
proves that none of its rows is kept. Where DataFusion cannot plan or optimise the statement,
nothing is skipped: DataFusion reports the error when the statement runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rowsieve.predicate.ir import TRUE, conjoin
from rowsieve.providers.datafusion.own_table import OwnTable
from rowsieve.providers.datafusion.part_choice.first_rows import condition_of, first_rows
from rowsieve.providers.datafusion.part_choice.named_scans import ScanName
from rowsieve.providers.datafusion.part_choice.scan_conditions import (
    conditions,
    has_semi_joins,
    optimised,
    scan_count,
)
from rowsieve.providers.datafusion.part_choice.subquery_values import SubqueryValues


def pruned_parts(
    plan: Any,
    named: Mapping[str, OwnTable],
    name_of: ScanName,
    values: SubqueryValues | None,
) -> dict[str, frozenset[str]]:
    """Return the ids of the parts to read, for each table that has parts to skip.

    `plan` is the logical plan of the statement over all parts. `name_of` gives the scans in it the
    names of `named`. `values` runs the other sides of semi joins; None reads no rows for the
    choice.
    """
    many = {name: own for name, own in named.items() if own.has_choice}
    if not many:
        return {}
    try:
        plan = optimised(plan)
    except Exception:  # of DataFusion, which has no class for its errors
        return {}
    if plan is None:
        return {}
    schemas = {name: own.snapshot.schema for name, own in many.items()}
    predicates = conditions(plan, schemas, name_of)
    if values is not None and has_semi_joins(plan):
        for name in predicates:
            if _may_run_twice(named, name):
                predicates |= conditions(plan, {name: schemas[name]}, name_of, values)
    firsts = {} if values is None else first_rows(plan, predicates, name_of)
    for name, first in firsts.items():
        if (
            scan_count(plan, name, name_of) == 1
            and len(many[name].read_parts(predicates[name])) > 1
        ):
            reached = condition_of(many[name], first)
            predicates[name] = conjoin((predicates[name], reached))
    return {
        name: many[name].read_parts(condition)
        for name, condition in predicates.items()
        if condition != TRUE
    }


def _may_run_twice(named: Mapping[str, OwnTable], outer: str) -> bool:
    """Return whether the other sides of joins have no more rows of ours than the table itself."""
    rows = {name: int(own.snapshot.parts.data_rows().sum()) for name, own in named.items()}
    return sum(rows.values()) <= 2 * rows[outer]
