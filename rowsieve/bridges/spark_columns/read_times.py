"""Spark's functions of dates and times as calls of ours.

Soundness: what looks at an instant's date or clock names the session's time zone.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.spark_columns import zones
from rowsieve.bridges.spark_columns.read import Handler, Reader
from rowsieve.bridges.spark_columns.tree import Node
from rowsieve.bridges.spark_columns.values import Value, constant_of
from rowsieve.bridges.sql import spark_rules
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import (
    Date,
    Decimal,
    Int,
    LogicalType,
    Timestamp,
)


def _part_of_date(part: str, shift: int = 0) -> Handler:
    def handler(reader: Reader, node: Node) -> Value:
        value = reader.value(node.children[0])
        if not isinstance(value.type, Date | Timestamp):
            raise UnsupportedOperation(f"{node.kind} of something that is no date")
        operand = zones.local(node, value.exact, value.type)
        if node.children[0].kind == "Cast" and isinstance(value.type, Date):
            cast = node.children[0]
            inner = reader.value(cast.children[0])  # Spark goes by way of the date
            if isinstance(inner.type, Timestamp):
                operand = zones.local(cast, inner.exact, inner.type)
        found: ir.Operand = ir.Call("extract", (ir.Literal(part), operand))
        if shift:
            found = ir.Call("add", (found, ir.Literal(shift, Int(64))))
        return Value(found, Int(32), loose=True)

    return handler


def _second(reader: Reader, node: Node) -> Value:
    value = reader.value(node.children[0])
    if not isinstance(value.type, Timestamp):
        raise UnsupportedOperation("seconds of something that is no timestamp")
    local = zones.local(node, value.exact, value.type)
    if node.kind == "Second":
        found = ir.Call("extract", (ir.Literal("whole_second"), local))
        return Value(found, Int(32), loose=True)
    return Value(ir.Call("extract", (ir.Literal("second"), local)), Decimal(8, 6))


def _truncated(reader: Reader, node: Node) -> Value:
    first, second = node.children
    unit, moment = (second, first) if node.kind == "TruncDate" else (first, second)
    spelled = constant_of(reader.value(unit))
    name = spark_rules.UNITS.get(str(spelled).lower())
    value = reader.value(moment)
    if name is None or (node.kind == "TruncDate" and name not in spark_rules.DATE_UNITS):
        raise UnsupportedOperation(f"truncation to {spelled!r}: it is no unit here")
    if value.type is None:
        raise UnsupportedOperation("truncation of NULL")
    found = zones.truncated(node, name, value.exact, value.type)
    if isinstance(value.type, Date):
        return Value(ir.Cast(found, Date()), Date())
    return Value(found, value.type)


def _moved(reader: Reader, node: Node) -> Value:
    first, second = node.children
    value = reader.value(first)
    if not isinstance(value.type, Date | Timestamp):
        raise UnsupportedOperation("only dates and timestamps are moved")
    months, days, micros = _steps(reader, node.kind, second)
    parts = tuple(ir.Literal(part, Int(64)) for part in (months, days, micros))
    if value.type == Timestamp(utc=True):
        return Value(zones.moved(node, value.exact, parts), value.type)
    name = "shift" if isinstance(value.type, Date) else "shift_timestamp"
    return Value(ir.Call(name, (value.exact, *parts)), value.type)


def _steps(reader: Reader, kind: str, node: Node) -> tuple[int, int, int]:
    if kind in ("DateAdd", "DateSub", "AddMonths"):
        count = constant_of(reader.value(node))
        if not isinstance(count, int):
            raise UnsupportedOperation(f"{kind} takes a constant count here")
        if kind == "AddMonths":
            return count, 0, 0
        return 0, -count if kind == "DateSub" else count, 0
    sign = 1
    while node.kind == "UnaryMinus":
        (node,), sign = node.children, -sign
    spelled, value = str(node.fields.get("dataType")), node.fields.get("value")
    if node.kind != "Literal" and node.constant and node.source is not None:
        java = node.source()
        spelled, value = str(java.dataType().json()).strip('"'), java.eval(None)
    if type(value) not in (int, str) or not spelled.startswith("interval "):
        raise UnsupportedOperation("only a constant interval of years and months, or days and time")
    count = sign * int(value)  # type: ignore[arg-type]
    if spelled.split()[-1] in ("year", "month"):
        return count, 0, 0
    return 0, 0, count


def _of_dates(name: str, type_: LogicalType) -> Handler:
    def handler(reader: Reader, node: Node) -> Value:
        values = [reader.value(child) for child in node.children]
        if any(value.type != Date() for value in values):
            raise UnsupportedOperation(f"{node.kind} of something that is no date")
        found = ir.Call(name, tuple(value.exact for value in values))
        return Value(found, type_, loose=isinstance(type_, Int))

    return handler


def _epoch(reader: Reader, node: Node) -> Value:
    value = reader.value(node.children[0])
    if value.type != Timestamp(utc=True):
        raise UnsupportedOperation("microseconds of something that is no instant")
    return Value(ir.Call("epoch_us", (value.exact,)), Int(64))


def _from_seconds(reader: Reader, node: Node) -> Value:
    value = reader.value(node.children[0])
    if not isinstance(value.type, Int):
        raise UnsupportedOperation("timestamp_seconds of something that is no whole number")
    return Value(ir.Call("timestamp_seconds", (value.exact,)), Timestamp(utc=True))


def _made_date(reader: Reader, node: Node) -> Value:
    if not node.option("failOnError"):
        raise UnsupportedOperation("a date that does not exist is NULL where ANSI mode is off")
    return Value(ir.Call("make_date", tuple(map(reader.exact, node.children))), Date())


def _today(_: Reader, node: Node) -> Value:
    now = zones.local(node, ir.Now(), Timestamp(utc=True))
    return Value(ir.Cast(now, Date()), Date())


def _wall_clock(_: Reader, node: Node) -> Value:
    now = zones.local(node, ir.Now(), Timestamp(utc=True))
    return Value(ir.Cast(now, Timestamp()) if isinstance(now, ir.Now) else now, Timestamp())


def _converted(reader: Reader, node: Node) -> Value:
    *names, moment = node.children if node.kind == "ConvertTimezone" else node.children[::-1]
    value = reader.value(moment)
    if len(names) != (2 if node.kind == "ConvertTimezone" else 1):
        raise UnsupportedOperation(f"{node.kind} without the zone that it comes from")
    if value.type != Timestamp(utc=node.kind != "ConvertTimezone"):
        raise UnsupportedOperation(f"{node.kind} of another type; cast it to the one that it takes")
    given = [constant_of(reader.value(name)) for name in names]
    return Value(*zones.converted(node.kind, value.exact, given))


TIMES: Mapping[str, Handler] = {
    **dict.fromkeys(("FromUTCTimestamp", "ToUTCTimestamp", "ConvertTimezone"), _converted),
    "LastDay": _of_dates("last_day", Date()),
    "DateDiff": _of_dates("days_between", Int(32)),
    "UnixMicros": _epoch,
    "SecondsToTimestamp": _from_seconds,
    "MakeDate": _made_date,
    "YearOfWeek": _part_of_date("isoyear"),
    "Year": _part_of_date("year"),
    "Quarter": _part_of_date("quarter"),
    "Month": _part_of_date("month"),
    "WeekOfYear": _part_of_date("week"),
    "DayOfMonth": _part_of_date("day"),
    "DayOfYear": _part_of_date("doy"),
    "DayOfWeek": _part_of_date("dow", 1),
    "WeekDay": _part_of_date("isodow", -1),
    "Hour": _part_of_date("hour"),
    "Minute": _part_of_date("minute"),
    "Second": _second,
    "SecondWithFraction": _second,
    "TruncTimestamp": _truncated,
    "TruncDate": _truncated,
    "DateAdd": _moved,
    "DateSub": _moved,
    "AddMonths": _moved,
    "DateAddYMInterval": _moved,
    "TimestampAddYMInterval": _moved,
    "TimestampAddInterval": _moved,
    "CurrentTimestamp": lambda _, __: Value(ir.Now(), Timestamp(utc=True)),
    "Now": lambda _, __: Value(ir.Now(), Timestamp(utc=True)),
    "CurrentDate": _today,
    "LocalTimestamp": _wall_clock,
}
