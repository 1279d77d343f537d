"""Columns with a declared zone other than UTC, whose fields and text DataFusion reads in it.

Soundness: our functions use the zone of the semantics. A condition that may depend on the column's
zone is rejected in both directions; comparisons of instants do not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from rowsieve.bridges.sql.literals import OFFSET_TOLD
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import List, LogicalType, Map, Struct, Timestamp
from rowsieve.types.schema import Schema

_INSTANT = Timestamp(utc=True)


def check_zones(predicate: ir.Predicate, schema: Schema) -> ir.Predicate:
    """Return the predicate; UnsupportedOperation if a column's zone may affect it."""
    zoned = {field.name for field in schema if _has_zone(field.type)}
    if not zoned:
        return predicate
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
    return predicate


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
            told = isinstance(value, str) and OFFSET_TOLD.fullmatch(value) is not None
            return value is None or type_ == _INSTANT or (type_ is None and told)
        case _:
            return False
