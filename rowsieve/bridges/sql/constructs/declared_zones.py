"""Columns declared with a zone other than UTC, whose fields, dates and text DataFusion reads in it.

Our functions use the zone of the semantics. Fields and dates of such a column are those of its
local time, which can be written; comparisons of instants do not depend on the zone.

Soundness: any other condition that may depend on the column's zone is rejected in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator

from rowsieve.bridges.sql.constructs.sql_literals import WITH_OFFSET
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.binding.zoned import local_time
from rowsieve.types.logical import Date, List, LogicalType, Map, Struct, Timestamp
from rowsieve.types.schema import Schema
from rowsieve.types.time_zones import UNTIL_2100, fixed_offset, zone

_INSTANT = Timestamp(utc=True)


def with_local_times(predicate: ir.Predicate, schema: Schema) -> ir.Predicate:
    """Rewrite an unbound condition to use the local times of columns whose zones matter."""
    declared = {
        field.name: field.type.zone
        for field in schema
        if isinstance(field.type, Timestamp) and field.type.utc and not zone(field.type.zone).is_utc
    }

    def local(operand: ir.Operand) -> ir.Operand:
        name = declared.get(operand.name) if isinstance(operand, ir.Column) else None
        if name is None:
            return in_operand(operand)
        known = name if fixed_offset(name) is not None else name + UNTIL_2100
        return local_time(known, operand)

    def in_operand(node: ir.Operand) -> ir.Operand:
        match node:
            case ir.Call(function="extract", arguments=(field, operand)):
                return ir.Call("extract", (field, local(operand)))
            case ir.Call(function=name, arguments=(operand,)) if name.startswith("extract_"):
                return ir.Call(name, (local(operand),))
            case ir.Cast(operand=operand, type=Date(), try_=False):
                return ir.Cast(local(operand), Date())
            case _:
                return ir.map_children(node, in_predicate, in_operand)

    def in_predicate(node: ir.Predicate) -> ir.Predicate:
        return ir.map_children(node, in_predicate, in_operand)

    return in_predicate(predicate) if declared else predicate


def check_zones(predicate: ir.Predicate, schema: Schema) -> None:
    """UnsupportedOperation if a column's zone may affect the predicate."""
    zoned = {field.name for field in schema if _has_zone(field.type)}
    if not zoned:
        return
    nodes = list(ir.walk(predicate))
    compared = {id(side) for node in nodes for side in _compared_as_instants(node, schema)}
    for node in nodes:
        if isinstance(node, ir.Column | ir.BoundColumn) and id(node) not in compared:
            name = schema.field(node.name).name
            if name in zoned:
                raise UnsupportedOperation(
                    f"column {name!r} was declared with a zone other than UTC, in which DataFusion "
                    "reads it; compare it with an instant"
                )


def _has_zone(type_: LogicalType) -> bool:
    match type_:
        case Timestamp(utc=True, zone=zone):
            return zone != "UTC"
        case List(element=element):
            return _has_zone(element.type)
        case Struct(fields=fields):
            return any(_has_zone(field.type) for field in fields)
        case Map(key=key, value=value):
            return _has_zone(key.type) or _has_zone(value.type)
        case _:
            return False


def _compared_as_instants(node: object, schema: Schema) -> Iterator[ir.Operand]:
    """Return the operands that the node only compares as instants, or tests for NULL."""
    match node:
        case ir.IsNull(operand=operand):
            yield operand
        case ir.Call(function="local_time", arguments=(_, operand)):
            yield operand
        case ir.Comparison(left=left, right=right):
            if all(_is_instant(side, schema) for side in (left, right)):
                yield from (left, right)
        case ir.InList(operand=operand, values=values):
            if values.type == _INSTANT:
                yield operand


def _is_instant(side: ir.Operand, schema: Schema) -> bool:
    match side:
        case ir.Column(name=name) | ir.BoundColumn(name=name):
            return schema.field(name).type == _INSTANT
        case ir.Literal(value=value, type=type_):
            has_offset = isinstance(value, str) and WITH_OFFSET.fullmatch(value) is not None
            return value is None or type_ == _INSTANT or (type_ is None and has_offset)
        case _:
            return False
