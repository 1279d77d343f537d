"""Declared zones of columns, which DataFusion uses for fields and dates.

Fields and dates of such a column are those of its local time there.

Soundness: all other constructs that may depend on the zone are rejected (`column_zones`).
"""

from __future__ import annotations

from rowsieve.predicate import ir
from rowsieve.predicate.zoned import local_time
from rowsieve.types.logical import Date, Timestamp
from rowsieve.types.schema import Schema
from rowsieve.types.time_zones import UNTIL_2100, fixed_offset, zone


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
