"""Whether DataFusion may leave out hidden rows while it evaluates the conditions of a query.

DataFusion evaluates all conditions on a file's rows in one filter, in any order. So a condition may
meet hidden rows: it must not fail on any value (invariant 27). Sums, differences and products of
integers wrap around in DataFusion and those of floats are infinite or NaN; of decimals, they fail.

Soundness: nodes and expressions are allowed by their kind; an unknown one is refused. DataFusion
may move any condition of a plan, also one above an aggregate, so all of them are checked. A filter
that the optimised plan has above a computed column (as its value is random) still moves when
DataFusion makes the physical plan: below the column, with the computation in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeAlias

import datafusion
import pyarrow as pa

from rowsieve.providers.datafusion.hidden_rows import ROW_NUMBER, is_visibility

_SCAN: Final = "TableScan: "
_OUTER: Final = re.compile(r"\b(Left|Right|Full|LeftMark|RightMark) Join:")
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
_WRAPPING: Final = frozenset({"+", "-", "*"})
_DIVIDING: Final = frozenset({"/", "%"})
_COMPUTED: Final = frozenset({"Negative", "Cast"})
# Nodes that tell rows apart by nothing but their columns.
_COUNTING: Final = frozenset({"Aggregate", "Explain", "Limit", "SubqueryAlias", "Union"})
_MOST_DEPTH: Final = 64  # of arithmetic; deeper expressions are taken for some that may fail
# The bits of the values of integers, without the sign, by DataFusion's names of the types.
_INTEGERS: Final = {"Int8": 7, "Int16": 15, "Int32": 31, "Int64": 63} | {
    "UInt8": 8,
    "UInt16": 16,
    "UInt32": 32,
    "UInt64": 64,
}
_FLOATS: Final = frozenset({"Float32", "Float64"})
_NUMBERS: Final[dict[pa.DataType, str]] = {
    getattr(pa, name.lower())(): name for name in (*_INTEGERS, *_FLOATS)
}

Types: TypeAlias = Mapping[str, str | None]
"""DataFusion's names of the types of columns; None if not a number, or if two columns differ."""


@dataclass(slots=True)
class PlanFacts:
    """What a plan has that decides whether DataFusion may leave out hidden rows.

    `is_total`: no condition may fail. `has_conditions`: there is one. `numbers_at_scans`: rows are
    numbered directly above the scans of their files, if at all. `columns` are those that conditions
    compare as they are, without the names of their tables. `most_taken`: scans have no conditions,
    and DataFusion takes at most so many rows of them all, whichever; None if it may need more.
    `only_counts`: the result depends on how many rows the scans have, and on nothing else of them.
    """

    is_total: bool = True
    has_conditions: bool = False
    numbers_at_scans: bool = True
    has_limit: bool = False
    columns: set[str] = field(default_factory=set)
    most_taken: int | None = None
    only_counts: bool = False


def facts_of(optimised: Any) -> PlanFacts:
    """The facts of an optimised logical plan; not total if one of its conditions may fail.

    Not total either if a part of the plan cannot be visited, such as a subquery in a SELECT list.
    """
    try:
        return _facts(optimised)
    except Exception:  # an expression that Python has no class for
        return PlanFacts(is_total=False, has_conditions=True)


def _facts(optimised: Any) -> PlanFacts:
    found = PlanFacts()
    scans: list[Any] = []
    filtered: set[str] = set()
    computed: list[tuple[Any, _Inputs]] = []
    only_counts = True
    for plan, node in _nodes(optimised):
        kind, inputs = type(node).__name__, _Inputs(plan)
        found.has_limit |= kind == "Limit"
        only_counts &= _only_counts(node, kind)
        if kind == "TableScan":
            scans.append(node)
        for condition in _conditions(node, kind):
            found.has_conditions = True
            found.is_total &= _is_total(condition, inputs, found.columns)
        if kind == "Filter":
            filtered |= _names(node.predicate())
        if kind == "Projection":
            aliases = (each for each in node.projections() if each.variant_name() == "Alias")
            computed += [(each, inputs) for each in aliases]
        if kind == "Projection" and any(map(_numbers_rows, node.projections())):
            (below,) = node.input()
            found.numbers_at_scans &= type(below.to_variant()).__name__ == "TableScan"
    found.is_total &= all(
        _numbers_rows(each) or _is_total(each, inputs, set())
        for each, inputs in computed
        if each.to_variant().alias() in filtered
    )
    lines = optimised.display_indent().splitlines()
    are_known = len(scans) == sum(line.strip().startswith(_SCAN) for line in lines)
    found.is_total &= are_known
    found.has_conditions |= not are_known
    found.only_counts = only_counts and are_known
    if are_known and all(scan.fetch() is not None and not scan.filters() for scan in scans):
        found.most_taken = sum(scan.fetch() for scan in scans)
    return found


def _only_counts(node: Any, kind: str) -> bool:
    """Whether a node gives the same, whichever rows its inputs have, if they are as many.

    A call in a projection may ask for the number or the file of a row.
    """
    match kind:
        case "TableScan":
            return not node.projection() and node.projection() is not None and not node.filters()
        case "Projection":
            return all(map(_is_plain, node.projections()))
        case _:
            return kind in _COUNTING


def _is_plain(expression: Any) -> bool:
    """Whether an expression is a column or a constant, maybe with another name."""
    while expression.variant_name() == "Alias":
        expression = expression.to_variant().expr()
    return expression.variant_name() in _LEAVES


def has_outer_joins(frame: datafusion.DataFrame) -> bool:
    """Whether DataFusion 55 may push a condition above an outer join into the wrong scan.

    It finds the columns of the condition by their names, in the physical plan. Conditions above
    other joins are in the logical plan's scans before.
    """
    return _OUTER.search(frame.optimized_logical_plan().display_indent()) is not None


def joins_nothing(frame: datafusion.DataFrame) -> bool:
    """Whether a statement has no join, and no subquery that becomes one."""
    plan = frame.logical_plan().display_indent()
    return " Join:" not in plan and "Subquery:" not in plan


def numbers_rows_in_scans(frame: datafusion.DataFrame) -> bool:
    """Whether the scans number the rows: a call that is left in the physical plan would fail."""
    return f"{ROW_NUMBER}()" not in frame.execution_plan().display_indent()


class _Inputs:
    """The types of the columns that a node reads, or a scan gives, found when they are needed."""

    def __init__(self, plan: Any) -> None:
        self._plan = plan
        self._types: Types | None = None

    @property
    def types(self) -> Types:
        if self._types is None:
            found: dict[str, str | None] = {}
            for plan in self._plan.inputs() or [self._plan]:
                for column in _reader().create_dataframe_from_logical_plan(plan).schema():
                    type_ = _NUMBERS.get(column.type)
                    is_other = found.get(column.name, type_) != type_
                    found[column.name] = None if is_other else type_
            self._types = found
        return self._types


@cache
def _reader() -> datafusion.SessionContext:
    return datafusion.SessionContext()


def _nodes(plan: Any) -> Iterator[tuple[Any, Any]]:
    """The nodes, each with Python's object for it; the node itself if it has none."""
    waiting = [plan]
    while waiting:
        plan = waiting.pop()
        waiting.extend(plan.inputs())
        try:
            yield plan, plan.to_variant()
        except Exception:  # a node that Python has no class for
            yield plan, plan


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


def _is_total(condition: Any, inputs: _Inputs, columns: set[str]) -> bool:
    """Whether a condition fails on no value; adds the columns that it compares as they are."""
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
        if _computes(expression, kind):
            if _number(expression, inputs.types) is None:
                return False
            continue
        operands = expression.rex_call_operands()
        if not _is_total_call(expression, kind, operands):
            return False
        waiting.extend(operands)
    return True


def _computes(expression: Any, kind: str) -> bool:
    """Whether an expression is arithmetic or a cast."""
    if kind == "BinaryExpr":
        return str(expression.rex_call_operator()) in _WRAPPING | _DIVIDING
    return kind in _COMPUTED


def _number(expression: Any, types: Types, depth: int = 0) -> str | None:
    """The type of an expression that computes a number and fails on no value; None for others."""
    if depth > _MOST_DEPTH:
        return None
    match kind := expression.variant_name():
        case "Column":
            return types.get(expression.to_variant().name())
        case "Literal":
            return _NUMBERS.get(expression.python_value().type)
    if not _computes(expression, kind):
        return None
    operands = [_number(each, types, depth + 1) for each in expression.rex_call_operands()]
    if None in operands or len(set(operands)) != 1:
        return None
    (type_,) = set(operands)
    if kind == "Cast":
        return _cast(expression, str(type_))
    if kind == "Negative":  # DataFusion also negates the bounds of a file, and fails on the least
        return type_ if type_ in _FLOATS else None
    if kind == "BinaryExpr" and str(expression.rex_call_operator()) in _DIVIDING:
        return type_ if type_ in _FLOATS or _divides(expression.rex_call_operands()[1]) else None
    return type_


def _cast(expression: Any, source: str) -> str | None:
    """The type of a cast that keeps all integers, or that makes floats of numbers."""
    target = str(expression.canonical_name()).rpartition(" AS ")[2].removesuffix(")")
    if target in _FLOATS:
        return target if source in _INTEGERS or (source, target) != ("Float64", "Float32") else None
    if source not in _INTEGERS or target not in _INTEGERS:
        return None
    is_signed_lost = source.startswith("I") and target.startswith("U")
    return target if _INTEGERS[source] <= _INTEGERS[target] and not is_signed_lost else None


def _divides(divisor: Any) -> bool:
    """Whether division of all integers by this constant is right: not by 0, nor -1 of the least."""
    if divisor.variant_name() != "Literal":
        return False
    return divisor.python_value().as_py() not in {0, -1}


def _names(expression: Any) -> set[str]:
    """The columns that an expression names, at any depth."""
    found, waiting = set(), [expression]
    while waiting:
        each = waiting.pop()
        kind = each.variant_name()
        if kind == "Column":
            found.add(each.to_variant().name())
        elif kind == "Alias":
            waiting.append(each.to_variant().expr())
        elif kind not in _LEAVES:
            waiting.extend(each.rex_call_operands())
    return found


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
