"""Years before 1, which PostgreSQL counts without a year 0: the year before 1 is -1.

Soundness: every value is the engine's. A comparison with a year of our era alone is left as it is,
so that it becomes a range of the column: earlier years are less than it in both counts.

Source: `timestamp_part_common` of PostgreSQL 18; PostgreSQL 15 run.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow.compute as pc

from rowsieve.bridges.constant_values import whole_of
from rowsieve.predicate import ir
from rowsieve.types.logical import Int

YEARS: Final = ("extract_year", "extract_isoyear")
_ONE: Final = ir.Literal(1, Int(64))


def without_year_zero(call: ir.Call, _: Any) -> ir.Operand:
    """Return the year as PostgreSQL counts it."""
    before = ir.Comparison(ir.ComparisonOp.LT, call, _ONE)
    return ir.Case(((before, ir.Call("subtract", (call, _ONE))),), call)


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


def _is_plain(operand: ir.Operand) -> bool:
    """Whether it is the year of a column, also as the float of date_part."""
    if isinstance(operand, ir.Cast):
        operand = operand.operand
    return (
        isinstance(operand, ir.Call)
        and operand.function in YEARS
        and isinstance(operand.arguments[0], ir.Column)
    )
