"""Read Spark's functions of named zones, whose zones may be offsets, too.

Soundness: a local time that occurs twice or never becomes an instant by Java's rules.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from rowsieve.bridges.sql.constructs.named_zones import JAVA, zone_argument
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.predicate.binding import zoned
from rowsieve.predicate.ir import Call, Cast, Literal, Operand
from rowsieve.types.logical import Timestamp

_LOCAL, _INSTANT = Timestamp(utc=False), Timestamp(utc=True)


def from_utc(reader: Reads, node: Any) -> Operand:
    """Read `from_utc_timestamp(x, z)`, which the grammar parses as AT TIME ZONE."""
    reader.only(node, "this", "zone")
    if any(token.text.upper() == "ZONE" for token in reader.source.tokens):
        raise reader.source.refusal(node, "spark has no AT TIME ZONE; write convert_timezone")
    name, operand = zone_argument(reader, node.args["zone"]), _timestamp(reader, node.this)
    return _instant("UTC", zoned.local_time(str(name.value), operand))


def from_time_zone(reader: Reads, node: Any) -> Operand:
    """Read `to_utc_timestamp(x, z)`."""
    reader.only(node, "this", "zone")
    name = zone_argument(reader, node.args["zone"])
    return _instant(str(name.value), zoned.local_time("UTC", _timestamp(reader, node.this)))


def converted(reader: Reads, node: Any) -> Operand:
    """Read `convert_timezone([from,] to, x)`; `from` defaults to the session's zone."""
    reader.only(node, "source_tz", "target_tz", "timestamp")
    local = _as(reader.operand(node.args["timestamp"]), _LOCAL)
    target = str(zone_argument(reader, node.args["target_tz"]).value)
    source = node.args.get("source_tz")
    if source is None:
        return zoned.local_time(target, Cast(local, _INSTANT))
    name = str(zone_argument(reader, source).value)
    return zoned.local_time(target, _instant(name, local))


def _timestamp(reader: Reads, node: Any) -> Operand:
    """Return the argument of a function, without the cast that the grammar adds."""
    inserted = isinstance(node, exp.Cast) and node.args["to"].this == exp.DataType.Type.TIMESTAMP
    return _as(reader.operand(node.this if inserted else node), _INSTANT)


def _as(operand: Operand, type_: Timestamp) -> Operand:
    return operand if isinstance(operand, Cast) and operand.type == type_ else Cast(operand, type_)


def _instant(name: str, local: Operand) -> Operand:
    return Call("instant", (Literal(name), local, *(Literal(rule) for rule in JAVA)))
