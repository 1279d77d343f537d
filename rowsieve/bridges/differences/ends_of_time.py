"""Timestamps beyond the years 1677 to 2262, which DataFusion's nanoseconds do not hold."""

from __future__ import annotations

from rowsieve.bridges.differences.engine_difference import Difference, Direction
from rowsieve.predicate import ir
from rowsieve.predicate.operand_types import type_of
from rowsieve.types.logical import Date, Timestamp


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


_NANOSECONDS_END = 2**63 // 1000  # microseconds from 1970 to the end of nanoseconds

ROWS = (
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
