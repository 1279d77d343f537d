"""Years before 1, which engines count otherwise: the year before 1 is 0 here.

PostgreSQL has no year 0: the year before 1 is -1. DuckDB gives the year of the era for an instant,
1 for the year before 1, and our year for a date and a local time.

Soundness: every value is the engine's. In PostgreSQL a comparison with a year of our era alone is
left as it is, so that it becomes a range of the column: earlier years are less than it in both
counts.

Source: `timestamp_part_common` of PostgreSQL 18; PostgreSQL 15 and DuckDB 2.0 run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeGuard

import pyarrow.compute as pc

from rowsieve.bridges.constant_values import text_at, whole_of
from rowsieve.predicate import ir
from rowsieve.types.logical import Int, LogicalType, Timestamp

YEARS: Final = ("extract_year", "extract_isoyear")
_ONE: Final = ir.Literal(1, Int(64))
_INSTANT: Final = Timestamp(utc=True)


def without_year_zero(call: ir.Call, _: Any) -> ir.Operand:
    """Return the year as PostgreSQL counts it."""
    before = ir.Comparison(ir.ComparisonOp.LT, call, _ONE)
    return ir.Case(((before, ir.Call("subtract", (call, _ONE))),), call)


def year_of_era(call: ir.Call, type_of: Callable[[ir.Operand], LogicalType | None]) -> ir.Operand:
    """Return the year of an instant as DuckDB counts it: the year y before 1 is 1 - y."""
    if type_of(call.arguments[0]) != _INSTANT:
        return call
    return ir.Call("greatest", (call, ir.Call("subtract", (_ONE, call))))


def made_without_year_zero(call: ir.Call, _: Any) -> ir.Operand:
    """Return the date of a year as PostgreSQL counts it; its year 0 is an error there alone."""
    year, *others = call.arguments
    if (whole_of(year) or 0) >= 1:
        return call
    before = ir.Comparison(ir.ComparisonOp.LT, year, ir.Literal(0, Int(64)))
    counted = ir.Case(((before, ir.Call("add", (year, _ONE))),), year)
    return ir.Call("make_date", (counted, *others))


def is_of_our_era(node: ir.Predicate) -> bool:
    """Whether a condition compares the year of a column with years from 1 on."""
    match node:
        case ir.Comparison(left=year, right=constant) if _is_plain(year):
            return (whole_of(constant) or 0) >= 1
        case ir.Comparison(left=constant, right=year) if _is_plain(year):
            return (whole_of(constant) or 0) >= 1
        case ir.InList(operand=year, values=values) if _is_plain(year):
            array = values.array
            return isinstance(values.type, Int) and (pc.min(array).as_py() or 0) >= 1
        case _:
            return False


def written_without_year_zero(node: ir.Predicate) -> ir.Predicate:
    """Return a bound condition for an engine without a year 0, whose years are not ours."""
    if is_of_our_era(node):
        return node
    return ir.map_children(node, written_without_year_zero, _counted_with_year_zero)


def _counted_with_year_zero(node: ir.Operand) -> ir.Operand:
    """Return a value for an engine without a year 0: 1 is added to its years before 1."""
    if (year := _year_without_zero(node)) is not None:
        return ir.map_children(year, written_without_year_zero, _counted_with_year_zero)
    there = ir.map_children(node, written_without_year_zero, _counted_with_year_zero)
    if not _is_year(there):
        return there
    before = ir.Comparison(ir.ComparisonOp.LT, there, ir.Literal(0, Int(64)))
    return ir.Case(((before, ir.Call("add", (there, _ONE))),), there)


def _year_without_zero(node: ir.Operand) -> ir.Call | None:
    """Return the year in a CASE that `without_year_zero` wrote; None for other values."""
    match node:
        case ir.Case(otherwise=year) if _is_year(year) and node == without_year_zero(year, None):
            return year
        case _:
            return None


def _is_plain(operand: ir.Operand) -> bool:
    """Whether it is the year of a column, also as the float of date_part."""
    if isinstance(operand, ir.Cast):
        operand = operand.operand
    return _is_year(operand) and isinstance(operand.arguments[-1], ir.Column | ir.BoundColumn)


def _is_year(operand: ir.Operand) -> TypeGuard[ir.Call]:
    """Whether it is a year, before or after it is bound."""
    if not isinstance(operand, ir.Call):
        return False
    return operand.function in YEARS or (
        operand.function == "extract" and f"extract_{text_at(operand, 0).lower()}" in YEARS
    )
