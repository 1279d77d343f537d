"""Comparisons of local times with a repeated local time, which Spark's optimiser changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import Timestamp
from rowsieve.types.time_zones import Micros, RepeatedTime, SkippedTime, zone

_LOCAL = Timestamp(utc=False)


def check_repeated(predicate: ir.Predicate) -> None:
    """Raise for a local time compared with a constant that occurs twice in the zone.

    Spark's optimiser compares the instants instead: of a constant that occurs twice it takes the
    earlier one, so that `CAST(tz AS TIMESTAMP_NTZ) = …` finds one of two rows there.
    """
    for node in ir.walk(predicate):
        match node:
            case ir.Comparison(left=left, right=right):
                pairs = [(left, _micros(right)), (right, _micros(left))]
            case ir.InList(operand=operand, values=values) if values.type == _LOCAL:
                pairs = [(operand, values.array.drop_null().cast(pa.int64()).to_numpy())]
            case _:
                continue
        for side, constants in pairs:
            if (name := _zone_of_cast(side)) is not None and _occur_twice(name, constants):
                raise UnsupportedOperation(
                    f"a local time of {name} compared with a constant that occurs twice: Spark's "
                    "optimiser compares instants; compare it with an instant, TIMESTAMP '…'"
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
    constant = isinstance(operand, ir.Literal) and operand.type == _LOCAL
    value = operand.value if constant and isinstance(operand, ir.Literal) else None
    return np.array([value] if isinstance(value, int) else [], dtype=np.int64)


def _occur_twice(name: str, local: Micros) -> bool:
    """Whether one of these local times occurs twice."""
    _, failed, _ = zone(name).instants(local, RepeatedTime.FAIL, SkippedTime.SHIFTED)
    return bool(failed.any())
