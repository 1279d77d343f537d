"""Timestamps beyond the years 1677 to 2262, which DataFusion's nanoseconds do not hold."""

from __future__ import annotations

from rowsieve.bridges.differences.engine_difference import Difference, Direction
from rowsieve.predicate import ir
from rowsieve.predicate.operand_types import type_of
from rowsieve.types.logical import Date, Nanos, Timestamp


def _tries_timestamp(node: ir.Cast) -> bool:
    if not node.try_ or not isinstance(node.type, Timestamp):
        return False
    return isinstance(type_of(node.operand), Date | Timestamp)


def _truncates_far_constant(node: ir.Call) -> bool:
    """Find a constant that the engine converts to nanoseconds, and fails on."""
    match node.arguments:
        case (_, ir.Literal(value=int(micros), type=Timestamp())):
            return abs(micros) >= _NANOSECONDS_END
    return False


def _truncates_by_nanoseconds(node: ir.Call) -> bool:
    """Find units that the engine computes in nanoseconds, of values that may lie beyond them."""
    *unit, value = node.arguments
    if isinstance(value, ir.Literal | ir.Now) or isinstance(type_of(value), Nanos):
        return False
    if isinstance(value, ir.Cast) and isinstance(type_of(value.operand), Nanos):
        return False
    coarse = _UNITS_OF_INSTANTS if type_of(value) == Timestamp(utc=True) else _UNITS_OF_NANOSECONDS
    return not unit or (isinstance(unit[0], ir.Literal) and unit[0].value in coarse)


_UNITS_OF_NANOSECONDS = frozenset({"week", "month", "quarter", "year"})
_UNITS_OF_INSTANTS = _UNITS_OF_NANOSECONDS | {"hour", "day"}
_NANOSECONDS_END = 2**63 // 1000  # microseconds from 1970 to the end of nanoseconds

ROWS = (
    Difference(
        *("datafusion", Direction.TRANSLATES, frozenset({"date_trunc", "last_day"})),
        _truncates_by_nanoseconds,
        "truncates to weeks and longer units, of instants also to hours and days, in nanoseconds, "
        "and fails outside of 1677 to 2262",
        "compare the time with the ends of the unit",
    ),
    Difference(
        *("datafusion", Direction.WRITES, frozenset({"date_trunc"}), _truncates_far_constant),
        "fails to truncate a constant outside of 1677 to 2262, which it converts to nanoseconds",
        "write the truncated time",
    ),
    Difference(
        *("datafusion", Direction.ANSWERS, frozenset({ir.Cast}), _tries_timestamp),
        "makes NULL of a TRY_CAST to TIMESTAMP, which has nanoseconds, outside of 1677 to 2262",
        "write CAST, which cannot fail here",
    ),
)
