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


ROWS = (
    Difference(
        *("datafusion", Direction.ANSWERS, frozenset({ir.Cast}), _tries_timestamp),
        "makes NULL of a TRY_CAST to TIMESTAMP, which has nanoseconds, outside of 1677 to 2262",
        "write CAST, which cannot fail here",
    ),
)
