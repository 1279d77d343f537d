"""Whether DataFusion may leave out hidden rows while it evaluates the conditions of a query.

DataFusion evaluates all conditions on a file's rows in one filter, in any order. So a condition may
meet hidden rows: it must not fail on any value (invariant 27).

Soundness: nodes and expressions are allowed by their kind; an unknown one is refused. DataFusion
may move any condition of a plan, also one above an aggregate, so all of them are checked. A filter
that the optimised plan has above a computed column (as its value is random) still moves when
DataFusion makes the physical plan: below the column, with the computation in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from rowsieve.providers.datafusion.hidden_rows import ROW_NUMBER, is_visibility

_SCAN: Final = "TableScan: "
_LEAVES: Final = frozenset({"Column", "Literal", "ScalarVariable"})
# Kinds of conditions that fail on no value.
_TESTS: Final = frozenset(
    {
        *("Not", "IsNull", "IsNotNull", "IsTrue", "IsFalse", "IsUnknown"),
        *("IsNotTrue", "IsNotFalse", "IsNotUnknown", "Between", "InList"),
    }
)
_OPERATORS: Final = frozenset(
    {"=", "!=", "<", "<=", ">", ">=", "AND", "OR", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"}
)


@dataclass(slots=True)
class PlanFacts:
    """What a plan has that decides whether DataFusion may leave out hidden rows.

    `columns` are those that conditions name, without the names of their tables.
    """

    is_total: bool = True
    has_limit: bool = False
    columns: set[str] = field(default_factory=set)


def facts_of(optimised: Any) -> PlanFacts:
    """The facts of an optimised logical plan; not total if one of its conditions may fail.

    Not total either if a part of the plan cannot be visited, such as a subquery in a SELECT list,
    or if rows are numbered anywhere but directly above the scan of their file.
    """
    try:
        return _facts(optimised)
    except Exception:  # an expression that Python has no class for
        return PlanFacts(is_total=False)


def _facts(optimised: Any) -> PlanFacts:
    found, scans = PlanFacts(), 0
    filtered: set[str] = set()
    computed: list[Any] = []
    for node in _nodes(optimised):
        kind = type(node).__name__
        scans += kind == "TableScan"
        found.has_limit |= kind == "Limit"
        for condition in _conditions(node, kind):
            found.is_total &= _is_total(condition, found.columns)
        if kind == "Filter":
            _is_total(node.predicate(), filtered)
        if kind == "Projection":
            computed += [each for each in node.projections() if each.variant_name() == "Alias"]
        if kind == "Projection" and any(map(_numbers_rows, node.projections())):
            (below,) = node.input()
            found.is_total &= type(below.to_variant()).__name__ == "TableScan"
    found.is_total &= all(
        _numbers_rows(each) or _is_total(each, set())
        for each in computed
        if each.to_variant().alias() in filtered
    )
    lines = optimised.display_indent().splitlines()
    found.is_total &= scans == sum(line.strip().startswith(_SCAN) for line in lines)
    return found


def _nodes(plan: Any) -> Iterator[Any]:
    """Python's objects of the nodes; `plan` itself for a node that has none."""
    waiting = [plan]
    while waiting:
        plan = waiting.pop()
        waiting.extend(plan.inputs())
        try:
            yield plan.to_variant()
        except Exception:  # a node that Python has no class for
            yield plan


def _conditions(node: Any, kind: str) -> list[Any]:
    match kind:
        case "Filter":
            return [node.predicate()]
        case "TableScan":
            return list(node.filters())
        case "Join":
            keys = [key for pair in node.on() for key in pair]
            return keys if node.filter() is None else [*keys, node.filter()]
        case _:
            return []


def _is_total(condition: Any, columns: set[str]) -> bool:
    """Whether a condition fails on no value; adds the columns that it names."""
    waiting = [condition]
    while waiting:
        expression = waiting.pop()
        kind = expression.variant_name()
        if kind == "Column":
            columns.add(expression.to_variant().name())
        if kind in _LEAVES:
            continue
        if kind == "Alias":
            waiting.append(expression.to_variant().expr())
            continue
        operands = expression.rex_call_operands()
        if not _is_total_call(expression, kind, operands):
            return False
        waiting.extend(operands)
    return True


def _is_total_call(expression: Any, kind: str, operands: list[Any]) -> bool:
    match kind:
        case "BinaryExpr":
            return str(expression.rex_call_operator()) in _OPERATORS
        case "Like":
            return bool(operands[-1].variant_name() == "Literal")
        case "ScalarFunction":
            return is_visibility(str(expression.rex_call_operator()))
        case _:
            return kind in _TESTS


def _numbers_rows(expression: Any) -> bool:
    """Whether an expression calls `file_row_index()`, at any depth."""
    waiting = [expression]
    while waiting:
        each = waiting.pop()
        kind = each.variant_name()
        if kind in _LEAVES:
            continue
        if kind == "Alias":
            waiting.append(each.to_variant().expr())
            continue
        if kind == "ScalarFunction" and each.rex_call_operator() == ROW_NUMBER:
            return True
        waiting.extend(each.rex_call_operands())
    return False
