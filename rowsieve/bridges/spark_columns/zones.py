"""The time zone of the session in which Spark analysed a column, and its functions that name one.

Soundness: each of Spark's expressions over an instant carries the session's zone; the tree names it
too, so that it means the same in a session of any other. A zone that is not known is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from rowsieve.bridges.spark_columns.tree import Node
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir, zoned
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int, LogicalType, Timestamp
from rowsieve.types.zones import Micros, RepeatedTime, SkippedTime, zone

_LOCAL, _INSTANT = Timestamp(utc=False), Timestamp(utc=True)
_RULES = (Semantics.SPARK.repeated_time, Semantics.SPARK.skipped_time)


def session_rules(node: Node) -> Semantics:
    """Spark's rules in the zone that the node was analysed in."""
    name = node.option("timeZoneId")
    if name is None:
        raise UnsupportedOperation(
            "the session's time zone is not known, and UTC is not assumed; give time_zone="
        )
    return replace(Semantics.SPARK, time_zone=known_zone(str(name)))


def known_zone(name: object) -> str:
    """The canonical name of a constant zone."""
    if not isinstance(name, str):
        raise UnsupportedOperation("a time zone that is no constant")
    try:
        return zone(name).name
    except InvalidPredicate as error:
        raise UnsupportedOperation(str(error)) from error


def local(node: Node, operand: ir.Operand, type_: LogicalType | None) -> ir.Operand:
    """An instant as local time of the session, where that is not UTC; other values as they are."""
    if type_ != _INSTANT:
        return operand
    rules = session_rules(node)
    return operand if zoned.is_utc(rules) else zoned.local_time(rules.time_zone, operand)


def cast(
    node: Node, operand: ir.Operand, source: LogicalType, target: LogicalType, *, try_: bool
) -> ir.Operand | None:
    """A cast that goes by the session's zone, where that is not UTC; None for others."""
    if not zoned.depends_on_zone(source, target) or zoned.is_utc(rules := session_rules(node)):
        return None
    return zoned.zoned_cast(operand, source, target, rules, try_=try_)


def truncated(node: Node, unit: str, operand: ir.Operand, type_: LogicalType) -> ir.Operand:
    """`date_trunc` of an instant in the session's zone, or of another value."""
    plain = ir.Call("date_trunc", (ir.Literal(unit), operand))
    if type_ != _INSTANT or zoned.is_utc(rules := session_rules(node)):
        return plain
    return zoned.zoned_trunc(ir.Literal(unit), rules.time_zone, operand, rules)


def moved(node: Node, operand: ir.Operand, parts: Sequence[ir.Literal]) -> ir.Operand:
    """`shift_timestamp` of an instant in the session's zone."""
    types = (_INSTANT, *(Int(64),) * 3)
    found = zoned.zoned_call("shift_timestamp", (operand, *parts), types, session_rules(node))
    return found or ir.Call("shift_timestamp", (operand, *parts))


def check_repeated(predicate: ir.Predicate) -> None:
    """Refuse a local time of an instant beside a constant that the zone has twice.

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
                    f"a local time of {name} beside a constant that occurs twice: Spark's "
                    "optimiser compares instants there; compare it with an instant, TIMESTAMP '…'"
                )


def _zone_of_cast(operand: ir.Operand) -> str | None:
    """The zone of a cast of an instant to local time."""
    match operand:
        case ir.Call(function="local_time", arguments=(ir.Literal(value=str() as name), inner)):
            other = isinstance(inner, ir.Call) and inner.function == "instant"
            same = isinstance(inner, ir.Call) and inner.arguments[0] == operand.arguments[0]
            return None if other and not same else name
    return None


def _micros(operand: ir.Operand) -> Micros:
    """A constant local time, or nothing."""
    constant = isinstance(operand, ir.Literal) and operand.type == _LOCAL
    value = operand.value if constant and isinstance(operand, ir.Literal) else None
    return np.array([value] if isinstance(value, int) else [], dtype=np.int64)


def _occur_twice(name: str, local: Micros) -> bool:
    """Whether one of these local times occurs twice."""
    _, failed, _ = zone(name).instants(local, RepeatedTime.FAIL, SkippedTime.SHIFTED)
    return bool(failed.any())


def converted(
    kind: str, operand: ir.Operand, zones: Sequence[object]
) -> tuple[ir.Operand, Timestamp]:
    """`from_utc_timestamp`, `to_utc_timestamp` and `convert_timezone` with constant zones."""
    names = [known_zone(name) for name in zones]
    if kind == "FromUTCTimestamp":
        return zoned.instant("UTC", zoned.local_time(names[0], operand), *_RULES), _INSTANT
    if kind == "ToUTCTimestamp":
        return zoned.instant(names[0], zoned.local_time("UTC", operand), *_RULES), _INSTANT
    instant = zoned.instant(names[0], operand, *_RULES)
    return zoned.local_time(names[1], instant), _LOCAL
