"""The parts of our tables that a statement must read, by the statement's own conditions.

Soundness: `scan_conditions` says what each condition keeps; a part is skipped only if the planner
proves that none of its rows is kept. Where DataFusion cannot plan or optimise the statement,
nothing is skipped: the statement is planned again, and that reports the error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from rowsieve.predicate.ir import TRUE, conjoin
from rowsieve.providers.datafusion.hybrid_table import may_skip
from rowsieve.providers.datafusion.own_table import OwnTable
from rowsieve.providers.datafusion.part_choice.first_rows import condition_of, first_rows
from rowsieve.providers.datafusion.part_choice.scan_conditions import (
    conditions,
    has_semi_joins,
    optimised,
)
from rowsieve.providers.datafusion.part_choice.subquery_values import SubqueryValues

Planner: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""Returns the logical plan of the statement over these readers, by the names of their tables."""


def pruned_parts(
    named: Mapping[str, OwnTable], planned: Planner, values: SubqueryValues | None
) -> dict[str, frozenset[str]]:
    """Return the ids of the parts to read, for each table that has parts to skip.

    `values` runs the other sides of semi joins; None reads no rows for the choice.
    """
    many = {
        name: own
        for name, own in named.items()
        if len(own.snapshot.parts.part_ids) > 1 and may_skip(own.snapshot)
    }
    if not many:
        return {}
    stubs = {f"rowsieve_table_{number}": name for number, name in enumerate(many)}
    views = {name: many[name].stub(stub) for stub, name in stubs.items()}
    try:
        plan = optimised(planned(views))
    except Exception:  # of DataFusion, which has no class for its errors
        return {}
    schemas = {stub: many[name].snapshot.schema for stub, name in stubs.items()}
    if plan is None:
        return {}
    predicates = conditions(plan, schemas)
    if values is not None and has_semi_joins(plan):
        for stub, name in stubs.items():
            if stub in predicates and _may_run_twice(named, name):
                alone = optimised(planned({name: views[name]}))  # subqueries read the other tables
                predicates |= conditions(alone, {stub: schemas[stub]}, values)
    firsts = {} if values is None else first_rows(plan, frozenset(predicates))
    for stub, first in firsts.items():
        own = many[stubs[stub]]
        if _scans_once(plan, stub) and len(own.read_parts(predicates[stub])) > 1:
            predicates[stub] = conjoin((predicates[stub], condition_of(own, first)))
    return {
        stubs[stub]: many[stubs[stub]].read_parts(condition)
        for stub, condition in predicates.items()
        if condition != TRUE
    }


def _scans_once(plan: Any, name: str) -> bool:
    """Return whether a plan has one scan of this name, also in the text of its subqueries."""
    return len(re.findall(rf"TableScan: {name}\b", plan.display_indent())) == 1


def _may_run_twice(named: Mapping[str, OwnTable], outer: str) -> bool:
    """Return whether the other sides of joins have no more rows of ours than the table itself."""
    rows = {name: int(own.snapshot.parts.data_rows().sum()) for name, own in named.items()}
    return sum(rows.values()) <= 2 * rows[outer]
