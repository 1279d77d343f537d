"""Checks whether DataFusion may evaluate the conditions of a query on hidden rows, too.

DataFusion evaluates all conditions on a file's rows in one filter, in any order. So a condition may
be evaluated on hidden rows: it must not fail on any value (invariant 27). In DataFusion, `+`, `-`
and `*` wrap around for integers, and give infinity or NaN for floats; for decimals, they fail.

Soundness: nodes and expressions are allowed by their kind; an unknown kind is refused. DataFusion
may move any condition of a plan, even one above an aggregate, so all conditions are checked. The
optimised plan keeps a filter above a column with a random value, but the physical plan may have
moved it below that column, with the computation inside. So computed columns are checked like
conditions if a filter uses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeAlias

import datafusion
import pyarrow as pa

from rowsieve.providers.datafusion.hidden_rows import ROW_NUMBER, is_visibility_filter

_SCAN: Final = "TableScan: "
_OUTER: Final = re.compile(r"\b(Left|Right|Full|LeftMark|RightMark) Join:")
_LITERAL: Final = r'\b[A-Z][a-z]\w*\((?:"[^"]*"|\([^()]*\)|[^()"])*\)'  # such as Int64(5)
_PUSHED_CONSTANT: Final = re.compile(
    rf"_filters=\[.*(?:\bBoolean\(|\(NULL\)|{_LITERAL} (?:[=!<>]|(?:IS|IN|NOT|BETWEEN)\b))"
)
_PUSHED_BYTES: Final = re.compile(
    r'_filters=\[.*\bBinaryView\("[\d,]*\b(?:12[89]|1[3-9]\d|2\d\d)\b'  # a byte above 127
)
_LEAVES: Final = frozenset({"Column", "Literal", "ScalarVariable"})
# Kinds of conditions that never fail.
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
# Nodes whose output row count depends only on the row counts and columns of their inputs.
_COUNTING: Final = frozenset({"Aggregate", "Explain", "Limit", "SubqueryAlias", "Union"})
_MAX_DEPTH: Final = 64  # of arithmetic; deeper expressions count as ones that may fail
# Bits of an integer without its sign, by DataFusion's name of the type.
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
"""DataFusion's type of each column; None if not numeric, or if two columns of one name differ."""


@dataclass(slots=True)
class PlanFacts:
    """Properties of a plan that decide whether DataFusion may scan parts with hidden rows.

    `is_total`: no condition can fail. `has_conditions`: the plan has a condition.
    `numbers_at_scans`: every projection that numbers rows is directly above a scan. `columns`: the
    columns that conditions use outside of arithmetic and casts, without table names. `only_counts`:
    the result depends only on the row counts of the scans. `widest_scan`: the number of columns
    that one scan reads, at most.
    """

    is_total: bool = True
    has_conditions: bool = False
    numbers_at_scans: bool = True
    has_limit: bool = False
    columns: set[str] = field(default_factory=set)
    only_counts: bool = False
    widest_scan: int = 1


def facts_of(optimised: Any) -> PlanFacts:
    """Analyse an optimised logical plan.

    `is_total` is False also if a part of the plan cannot be visited, such as a subquery in a SELECT
    list.
    """
    try:
        return _facts(optimised)
    except Exception:  # Python has no class for an expression of the plan
        return PlanFacts(is_total=False, has_conditions=True)


def _facts(optimised: Any) -> PlanFacts:
    facts = PlanFacts()
    scan_count = 0
    filtered: set[str] = set()
    computed: list[tuple[Any, _Inputs]] = []
    only_counts = True
    for plan, node in _nodes(optimised):
        kind, inputs = type(node).__name__, _Inputs(plan)
        facts.has_limit |= kind == "Limit"
        only_counts &= _only_counts(node, kind)
        if kind == "TableScan":
            scan_count += 1
            facts.widest_scan = max(facts.widest_scan, len(node.projection() or ()))
        for condition in _conditions(node, kind):
            facts.has_conditions = True
            facts.is_total &= _is_total(condition, inputs, facts.columns)
        if kind == "Filter":
            filtered |= _column_names(node.predicate())
        if kind == "Projection":
            aliases = (each for each in node.projections() if each.variant_name() == "Alias")
            computed += [(each, inputs) for each in aliases]
        if kind == "Projection" and any(map(_numbers_rows, node.projections())):
            (below,) = node.input()
            facts.numbers_at_scans &= type(below.to_variant()).__name__ == "TableScan"
    facts.is_total &= all(
        _numbers_rows(each) or _is_total(each, inputs, set())
        for each, inputs in computed
        if each.to_variant().alias() in filtered
    )
    lines = optimised.display_indent().splitlines()
    are_known = scan_count == sum(line.strip().startswith(_SCAN) for line in lines)
    facts.is_total &= are_known
    facts.has_conditions |= not are_known
    facts.only_counts = only_counts and are_known
    return facts


def _only_counts(node: Any, kind: str) -> bool:
    """Return whether the node's output depends only on how many rows its inputs have.

    Projections may only have columns and constants: a function may return a row's number or file.
    """
    match kind:
        case "TableScan":
            return not node.projection() and node.projection() is not None and not node.filters()
        case "Projection":
            return all(map(_is_plain, node.projections()))
        case _:
            return kind in _COUNTING


def _is_plain(expression: Any) -> bool:
    """Return whether an expression is a column or a constant, with or without an alias."""
    while expression.variant_name() == "Alias":
        expression = expression.to_variant().expr()
    return expression.variant_name() in _LEAVES


def has_outer_joins(frame: datafusion.DataFrame) -> bool:
    """Return whether DataFusion 55 may push a condition above an outer join into the wrong scan.

    The physical optimiser finds the columns of such a condition by name. Conditions above other
    joins reach the right scans before, in the logical plan.
    """
    return _OUTER.search(frame.optimized_logical_plan().display_indent()) is not None


def pushes_constants(frame: datafusion.DataFrame) -> bool:
    """Return whether DataFusion 55 may fail to push a condition of the plan to a dataset.

    It makes a Python expression of all conditions on a scan, and has no form for a constant next to
    others. Its optimiser makes constants also of `id IS NOT NULL` and of contradictions, and leaves
    comparisons of constants if it runs once only.
    """
    return _PUSHED_CONSTANT.search(_optimized_plan(frame)) is not None


def pushes_bytes(frame: datafusion.DataFrame) -> bool:
    """Return whether a condition on a scan may have a constant of bytes that are not UTF-8 text.

    pyarrow cannot write such an expression as text, and DataFusion 55 panics when it shows it.
    """
    return _PUSHED_BYTES.search(_optimized_plan(frame)) is not None


def _optimized_plan(frame: datafusion.DataFrame) -> str:
    try:
        return str(frame.optimized_logical_plan().display_indent())
    except Exception:  # of DataFusion, which raises it again when the statement runs
        return ""


def joins_nothing(frame: datafusion.DataFrame) -> bool:
    """Return whether a statement has no join, and no subquery that becomes one."""
    plan = frame.logical_plan().display_indent()
    return " Join:" not in plan and "Subquery:" not in plan


def numbers_rows_in_scans(frame: datafusion.DataFrame) -> bool:
    """Return whether scans produce all row numbers; a call elsewhere in the plan would fail."""
    return f"{ROW_NUMBER}()" not in frame.execution_plan().display_indent()


class _Inputs:
    """The types of a node's input columns (a scan's own columns), computed at first use."""

    def __init__(self, plan: Any) -> None:
        self._plan = plan
        self._types: Types | None = None

    @property
    def types(self) -> Types:
        if self._types is None:
            types: dict[str, str | None] = {}
            for plan in self._plan.inputs() or [self._plan]:
                for column in _reader().create_dataframe_from_logical_plan(plan).schema():
                    type_ = _NUMBERS.get(column.type)
                    is_other = types.get(column.name, type_) != type_
                    types[column.name] = None if is_other else type_
            self._types = types
        return self._types


@cache
def _reader() -> datafusion.SessionContext:
    return datafusion.SessionContext()


def _nodes(plan: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all nodes, each with its Python class; with itself if Python has no class for it."""
    waiting = [plan]
    while waiting:
        plan = waiting.pop()
        waiting.extend(plan.inputs())
        try:
            yield plan, plan.to_variant()
        except Exception:  # Python has no class for this node
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
    """Return whether a condition never fails; adds its columns outside of arithmetic and casts."""
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
            if _number_type(expression, inputs.types) is None:
                return False
            continue
        operands = expression.rex_call_operands()
        if not _is_total_call(expression, kind, operands):
            return False
        waiting.extend(operands)
    return True


def _computes(expression: Any, kind: str) -> bool:
    """Return whether an expression is arithmetic or a cast."""
    if kind == "BinaryExpr":
        return str(expression.rex_call_operator()) in _WRAPPING | _DIVIDING
    return kind in _COMPUTED


def _number_type(expression: Any, types: Types, depth: int = 0) -> str | None:
    """The type of a numeric expression that never fails; None for any other expression."""
    if depth > _MAX_DEPTH:
        return None
    match kind := expression.variant_name():
        case "Column":
            return types.get(expression.to_variant().name())
        case "Literal":
            return _NUMBERS.get(expression.python_value().type)
    if not _computes(expression, kind):
        return None
    operands = [_number_type(each, types, depth + 1) for each in expression.rex_call_operands()]
    if None in operands or len(set(operands)) != 1:
        return None
    (type_,) = set(operands)
    if kind == "Cast":
        return _cast_type(expression, str(type_))
    if kind == "Negative":  # DataFusion also negates a file's bounds, and fails on the minimum
        return type_ if type_ in _FLOATS else None
    if kind == "BinaryExpr" and str(expression.rex_call_operator()) in _DIVIDING:
        divisor = expression.rex_call_operands()[1]
        return type_ if type_ in _FLOATS or _is_safe_divisor(divisor) else None
    return type_


def _cast_type(expression: Any, source: str) -> str | None:
    """The target type of a lossless integer cast or a cast to floats; None for other casts."""
    target = str(expression.canonical_name()).rpartition(" AS ")[2].removesuffix(")")
    if target in _FLOATS:
        return target if source in _INTEGERS or (source, target) != ("Float64", "Float32") else None
    if source not in _INTEGERS or target not in _INTEGERS:
        return None
    is_signed_lost = source.startswith("I") and target.startswith("U")
    return target if _INTEGERS[source] <= _INTEGERS[target] and not is_signed_lost else None


def _is_safe_divisor(divisor: Any) -> bool:
    """Return whether no integer fails to be divided: not for 0, nor -1 (it divides the minimum)."""
    if divisor.variant_name() != "Literal":
        return False
    return divisor.python_value().as_py() not in {0, -1}


def _column_names(expression: Any) -> set[str]:
    """The names of the columns in an expression, at any depth."""
    names, waiting = set(), [expression]
    while waiting:
        each = waiting.pop()
        kind = each.variant_name()
        if kind == "Column":
            names.add(each.to_variant().name())
        elif kind == "Alias":
            waiting.append(each.to_variant().expr())
        elif kind not in _LEAVES:
            waiting.extend(each.rex_call_operands())
    return names


def _is_total_call(expression: Any, kind: str, operands: list[Any]) -> bool:
    match kind:
        case "BinaryExpr":
            return str(expression.rex_call_operator()) in _OPERATORS
        case "Like":
            return bool(operands[-1].variant_name() == "Literal")
        case "ScalarFunction":
            return is_visibility_filter(str(expression.rex_call_operator()))
        case _:
            return kind in _TESTS


def _numbers_rows(expression: Any) -> bool:
    """Return whether an expression calls `file_row_index()`, at any depth."""
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
