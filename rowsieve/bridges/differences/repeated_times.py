"""Comparisons of local times with a repeated local time, which Spark's optimiser changes.

It compares the instants instead, and converts a constant that occurs twice to the earlier instant,
so that `CAST(tz AS TIMESTAMP_NTZ) = …` finds one of two rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rowsieve.bridges.constant_values import value_of
from rowsieve.bridges.differences.engine_difference import Difference, Direction
from rowsieve.predicate import ir
from rowsieve.types.logical import Timestamp
from rowsieve.types.time_zones import Micros, RepeatedTime, SkippedTime, zone

_LOCAL = Timestamp(utc=False)


def _compares_repeated(node: ir.Comparison | ir.InList) -> bool:
    """Find a local time compared with a constant that occurs twice in its zone."""
    match node:
        case ir.Comparison(left=left, right=right):
            pairs = [(left, _micros(right)), (right, _micros(left))]
        case ir.InList(operand=operand, values=values) if values.type == _LOCAL:
            pairs = [(operand, values.array.drop_null().cast(pa.int64()).to_numpy())]
        case _:
            return False
    return any(
        (name := _zone_of_cast(side)) is not None and _occur_twice(name, constants)
        for side, constants in pairs
    )


def _zone_of_cast(operand: ir.Operand) -> str | None:
    """Return the zone of a cast of an instant to local time; None for other operands."""
    match operand:
        case ir.Call(function="local_time", arguments=(ir.Literal(value=str() as name), inner)):
            other = isinstance(inner, ir.Call) and inner.function == "instant"
            same = isinstance(inner, ir.Call) and inner.arguments[0] == operand.arguments[0]
            return None if other and not same else name
    return None


def _micros(operand: ir.Operand) -> Micros:
    """Return a constant local time as an array of one; empty for other operands."""
    is_local = isinstance(operand, ir.Literal) and operand.type == _LOCAL
    value = value_of(operand) if is_local else None
    return np.array([value] if isinstance(value, int) else [], dtype=np.int64)


def _occur_twice(name: str, local: Micros) -> bool:
    """Whether one of these local times occurs twice."""
    _, failed, _ = zone(name).instants(local, RepeatedTime.FAIL, SkippedTime.SHIFTED)
    return bool(failed.any())


ROWS = (
    Difference(
        *("spark", Direction.ANSWERS, frozenset({ir.Comparison, ir.InList}), _compares_repeated),
        "compares instants instead of a local time and a constant that occurs twice in its zone",
        "compare with an instant, TIMESTAMP '…'",
    ),
)
