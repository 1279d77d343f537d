"""The parts of our tables that a statement must read, by the statement's own conditions.

Soundness: `scan_conditions` says what each condition keeps; a part is skipped only if the planner
proves that none of its rows is kept. Where DataFusion cannot plan or optimise the statement,
nothing is skipped: the statement is planned again, and that reports the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from rowsieve.predicate.ir import TRUE
from rowsieve.providers.datafusion.hybrid_table import may_skip
from rowsieve.providers.datafusion.own_table import OwnTable
from rowsieve.providers.datafusion.scan_conditions import conditions, optimised

Planner: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""Returns the logical plan of the statement over these readers, by the names of their tables."""


def pruned_parts(named: Mapping[str, OwnTable], planned: Planner) -> dict[str, frozenset[str]]:
    """Return the ids of the parts to read, for each table that has parts to skip."""
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
    found = {} if plan is None else conditions(plan, schemas)
    return {
        stubs[stub]: many[stubs[stub]].read_parts(condition)
        for stub, condition in found.items()
        if condition != TRUE
    }
