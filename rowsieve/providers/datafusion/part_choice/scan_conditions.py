"""Finds the conditions above each scan of a statement, in DataFusion's optimised plan.

DataFusion evaluates all conditions itself on the rows that it reads. The conditions chosen here
only skip parts of tables (invariant 31), so some may be missed.

Soundness: a part is skipped for all scans of its table at once. So a table is pruned only if every
scan of it in the plan is known. DataFusion reads the clock again when it runs the statement,
so `now()` is the time of planning or later (invariant 30).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from rowsieve import clock
from rowsieve.bridges.datafusion_exprs import from_datafusion
from rowsieve.bridges.extras import imported
from rowsieve.errors import RowsieveError
from rowsieve.predicate.ir import TRUE, Predicate, conjoin, disjoin
from rowsieve.predicate.later_now import from_now_on
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion.part_choice.subquery_values import SubqueryValues, inherited
from rowsieve.types.encodings import zoned_schema
from rowsieve.types.schema import Schema

# Optimiser rules that would hide conditions: the first folds now() to a constant, the second moves
# common subexpressions into a projection.
_REMOVED_RULES: Final = ("simplify_expressions", "common_sub_expression_eliminate")
_SCAN: Final = "TableScan: "
_SEMI_JOIN: Final = re.compile(r"^\s*LeftSemi Join: ", re.MULTILINE)
_NOWHERE: Final = "/nonexistent/rowsieve.parquet"


def scan_of_nothing(name: str, schema: Schema) -> Any:
    """A view over a Parquet scan without a file, into which DataFusion pushes all conditions."""
    context = imported("datafusion", "datafusion").SessionContext()
    context.register_parquet(name, _NOWHERE, schema=zoned_schema(schema))
    return context.table(name).into_view()


def optimised(plan: Any) -> Any:
    """Return the optimised form of a logical plan; None if DataFusion lacks what this needs."""
    if (context := _optimiser()) is None:
        return None
    return context.create_dataframe_from_logical_plan(plan).optimized_logical_plan()


def conditions(
    optimised: Any, schemas: Mapping[str, Schema], values: SubqueryValues | None = None
) -> dict[str, Predicate]:
    """For each table, a condition that all rows that the plan needs match; TRUE if none is known.

    `optimised` is a plan from `optimised`. `schemas` has the tables by the names of their scans in
    the plan. The result omits tables that the plan does not scan. With `values`, semi joins count
    too.
    """
    predicates: dict[str, list[Predicate]] = {name: [] for name in schemas}
    for name, filters in _scans(optimised, frozenset(schemas), values):
        predicates[name].append(conjoin(_read(each, schemas[name]) for each in filters))
    lines = [line.strip() for line in optimised.display_indent().splitlines()]
    scans = [line.removeprefix(_SCAN).partition(" ")[0] for line in lines if _SCAN in line]
    # The text of the plan includes subqueries inside expressions, which Python cannot visit.
    return {
        name: disjoin(terms) if len(terms) == scans.count(name) else TRUE
        for name, terms in predicates.items()
        if terms or name in scans
    }


@cache
def _optimiser() -> Any:
    """A session without `_REMOVED_RULES`; None if this version of DataFusion lacks one of them."""
    context = imported("datafusion", "datafusion").SessionContext()
    return context if all(map(context.remove_optimizer_rule, _REMOVED_RULES)) else None


def has_semi_joins(optimised: Any) -> bool:
    """Return whether `SubqueryValues` may know more conditions of a plan."""
    return _SEMI_JOIN.search(optimised.display_indent()) is not None


def _scans(
    plan: Any, names: frozenset[str], values: SubqueryValues | None
) -> Iterator[tuple[str, list[Any]]]:
    """Yield the scans of these tables, each with the conditions on its rows.

    These are the ones that DataFusion pushed into the scan, and those of semi joins above it.
    """
    expressions = imported("datafusion.expr", "datafusion")
    waiting: list[tuple[Any, tuple[Any, ...]]] = [(plan, ())]
    while waiting:
        node, held = waiting.pop()
        waiting.extend(inherited(node, held, values))
        try:
            scan = node.to_variant()
        except Exception:  # noqa: S112 - Python has no class for this node
            continue
        if isinstance(scan, expressions.TableScan) and scan.table_name() in names:
            yield scan.table_name(), [*scan.filters(), *held]


def _read(expression: Any, schema: Schema) -> Predicate:
    """Translate to a predicate that is TRUE wherever the expression is; TRUE if impossible."""
    try:
        predicate = from_datafusion(expression, schema).expression
    except RowsieveError:
        return TRUE
    if predicate is None:
        return TRUE
    return from_now_on(predicate, Semantics.DATAFUSION, clock.now_us())
