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
from rowsieve.byte_cache import ByteCache
from rowsieve.errors import RowsieveError
from rowsieve.predicate.ir import TRUE, Predicate, conjoin, disjoin
from rowsieve.predicate.later_now import from_now_on
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion.part_choice.named_scans import ScanName, scan_name
from rowsieve.providers.datafusion.part_choice.subquery_values import SubqueryValues, inherited
from rowsieve.types.schema import Schema

# Optimiser rules that would hide conditions: the first folds now() to a constant, the second moves
# common subexpressions into a projection.
_REMOVED_RULES: Final = ("simplify_expressions", "common_sub_expression_eliminate")
_SCAN: Final = "TableScan: "
_NODE_BYTES: Final = 100  # of a predicate, for each byte of the expression; an estimate
_KNOWN: Final[ByteCache[tuple[bytes, Schema], Predicate]] = ByteCache(
    4 * 1024 * 1024, "conditions of scans", once_bytes=1024 * 1024
)
_SEMI_JOIN: Final = re.compile(r"^\s*LeftSemi Join: ", re.MULTILINE)


def optimised(plan: Any) -> Any:
    """Return the optimised form of a logical plan; None if DataFusion lacks what this needs."""
    if (context := _optimiser()) is None:
        return None
    return context.create_dataframe_from_logical_plan(plan).optimized_logical_plan()


def conditions(
    optimised: Any,
    schemas: Mapping[str, Schema],
    name_of: ScanName,
    values: SubqueryValues | None = None,
) -> dict[str, Predicate]:
    """For each table, a condition that all rows that the plan needs match; TRUE if none is known.

    `optimised` is a plan from `optimised`. `schemas` has the tables by the names that `name_of`
    gives their scans. The result omits tables that the plan does not scan, and is empty if the plan
    has scans that cannot be visited. With `values`, semi joins count too.
    """
    terms: dict[str, list[Predicate]] = {name: [] for name in schemas}
    scans = list(_scans(optimised, values))
    for parts, filters in scans:
        if (name := name_of(parts)) in terms:
            terms[name].append(conjoin(_read(each, schemas[name]) for each in filters))
    if len(scans) != optimised.display_indent().count(_SCAN):
        return {}  # a subquery in an expression, which Python cannot visit, may scan any of them
    return {name: disjoin(each) for name, each in terms.items() if each}


def scan_count(optimised: Any, name: str, name_of: ScanName) -> int:
    """How often a plan scans a table, outside of subqueries in expressions."""
    return sum(name_of(parts) == name for parts, _ in _scans(optimised, None))


@cache
def _optimiser() -> Any:
    """A session without `_REMOVED_RULES`; None if this version of DataFusion lacks one of them."""
    context = imported("datafusion", "datafusion").SessionContext()
    return context if all(map(context.remove_optimizer_rule, _REMOVED_RULES)) else None


def has_semi_joins(optimised: Any) -> bool:
    """Return whether `SubqueryValues` may know more conditions of a plan."""
    return _SEMI_JOIN.search(optimised.display_indent()) is not None


def _scans(plan: Any, values: SubqueryValues | None) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield the parts of each scan's name, and the conditions on its rows.

    These are the ones that DataFusion pushed to the scan, and those of semi joins above it.
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
        if isinstance(scan, expressions.TableScan):
            yield scan_name(scan), [*scan.filters(), *held]


def _read(expression: Any, schema: Schema) -> Predicate:
    """Translate to a predicate that is TRUE wherever the expression is; TRUE if impossible."""
    try:
        key = expression.to_bytes(), schema
    except Exception:  # of DataFusion, which serialises no subqueries
        key = None
    predicate = None if key is None else _KNOWN.get(key)
    if predicate is None:
        predicate = _translated(expression, schema)
        if key is not None:
            _KNOWN.put(key, predicate, _NODE_BYTES * len(key[0]))
    return from_now_on(predicate, Semantics.DATAFUSION, clock.now_us())


def _translated(expression: Any, schema: Schema) -> Predicate:
    try:
        predicate = from_datafusion(expression, schema).expression
    except RowsieveError:
        return TRUE
    return TRUE if predicate is None else predicate
