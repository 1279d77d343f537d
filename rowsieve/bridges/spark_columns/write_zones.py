"""Calls that name a time zone as Spark's functions, which go by the zone of their session.

Soundness: a call is written where the session has the zone that it names and Spark its rules for
hours that occur twice or never; in a session of UTC, by the functions that name a zone themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rowsieve.bridges.spark_columns.write import Write, Writer
from rowsieve.bridges.spark_columns.write_calls import moved, truncated
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import zoned
from rowsieve.predicate.ir import Call, Cast, Literal, Operand
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Date

_NTZ = "timestamp_ntz"


def _local_time(writer: Writer, node: Call) -> Any:
    name, operand = _name(node.arguments[0]), writer.operand(node.arguments[1])
    if writer.session.is_in(name):
        return operand.cast(_NTZ)
    _check_utc(writer, name)
    return writer.functions.from_utc_timestamp(operand, writer.functions.lit(name)).cast(_NTZ)


def _instant(writer: Writer, node: Call) -> Any:
    name, operand = _name(node.arguments[0]), node.arguments[1]
    is_day = isinstance(operand, Cast) and type_of(operand.operand) == Date()
    if is_day and isinstance(operand, Cast) and writer.session.is_in(name):
        if node != _cast_in(name, operand.operand, Date()):
            raise UnsupportedOperation(f"a date becomes another instant of {name} there")
        return writer.operand(operand.operand).cast("timestamp")
    if node != _cast_in(name, operand, zoned.LOCAL):
        raise UnsupportedOperation(f"a local time of {name} becomes another instant there")
    made = writer.operand(operand).cast("timestamp")
    if writer.session.is_in(name):
        return made
    _check_utc(writer, name)
    return writer.functions.to_utc_timestamp(made, writer.functions.lit(name))


def _truncated(writer: Writer, node: Call) -> Any:
    unit, name, operand = node.arguments[0], _name(node.arguments[1]), node.arguments[2]
    if node != zoned.zoned_trunc(unit, name, operand, _rules(name)):
        raise UnsupportedOperation(f"date_trunc in {name} takes other instants there")
    _check_in(writer, name)
    return truncated(writer, Call("date_trunc", (unit, operand)))


def _shifted(writer: Writer, node: Call) -> Any:
    name, parts = _name(node.arguments[0]), node.arguments[1:5]
    types = [type_of(part) for part in parts]
    if node != zoned.zoned_call("shift_timestamp", parts, types, _rules(name)):
        raise UnsupportedOperation(f"an interval in {name} leads to another instant there")
    _check_in(writer, name)
    return moved(writer, Call("shift_timestamp", parts))


def _name(operand: Operand) -> str:
    assert isinstance(operand, Literal)
    return str(operand.value)


def _rules(name: str) -> Semantics:
    return Semantics.of_spark(ansi=True, time_zone=name)


def _cast_in(name: str, operand: Operand, source: Any) -> Operand:
    return zoned.zoned_cast(operand, source, zoned.INSTANT, _rules(name), try_=False)


def _check_in(writer: Writer, name: str) -> None:
    if not writer.session.is_in(name):
        raise UnsupportedOperation(
            f"the session there is not in {name}, but {writer.session.shown_zone}"
        )


def _check_utc(writer: Writer, name: str) -> None:
    if not writer.session.is_in("UTC"):
        raise UnsupportedOperation(
            f"Spark's functions that name a zone go by way of the session's, which is "
            f"{writer.session.shown_zone}, neither {name} nor UTC"
        )


CALLS: Mapping[str, Write] = {
    "local_time": _local_time,
    "instant": _instant,
    "zoned_trunc": _truncated,
    "zoned_shift": _shifted,
}
