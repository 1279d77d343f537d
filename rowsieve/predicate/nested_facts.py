"""Conditions on length, items and fields, implied by equality with a constant list or struct.

Statistics describe these, not whole lists and structs.

Soundness: each condition is TRUE on every row on which the equality is TRUE, so a part where one of
them is never TRUE has no match.
"""

from __future__ import annotations

from rowsieve.predicate import ir
from rowsieve.predicate.coerce import compare_operands
from rowsieve.predicate.semantics import NanOrder, NestedNulls, Semantics
from rowsieve.types.logical import Int, List, LogicalType, Struct, is_nested

_MOST_ITEMS = 8  # statistics do not distinguish items, so the first ones are enough


def implied_by_equality(
    operand: ir.Operand, type_: LogicalType, constant: ir.Literal, semantics: Semantics
) -> list[ir.Predicate]:
    """Return bound conditions that hold wherever `operand`, of this type, equals the constant."""
    value, own = constant.value, constant.type
    if not isinstance(value, tuple) or semantics.nan is NanOrder.IEEE:
        return []
    assert semantics.nested_nulls is not NestedNulls.UNKNOWN
    found: list[ir.Predicate] = []
    match type_, own:
        case (List(element=element), List(element=given)):
            length = ir.Call("list_length", (operand,))
            found.append(ir.Comparison(ir.ComparisonOp.EQ, length, ir.Literal(len(value), Int(32))))
            for place, item in enumerate(value[:_MOST_ITEMS], 1):
                at = ir.Call("list_element", (operand, ir.Literal(place, Int(64))))
                found += _equal(at, element.type, item, given.type, semantics)
        case (Struct(fields=fields), Struct(fields=others)):
            for field, other, member in zip(fields, others, value, strict=True):
                at_member = ir.FieldAccess(operand, field.name)
                found += _equal(at_member, field.type, member, other.type, semantics)
    return found


def _equal(
    operand: ir.Operand,
    type_: LogicalType,
    value: ir.PhysicalValue,
    own: LogicalType,
    semantics: Semantics,
) -> list[ir.Predicate]:
    if value is None:
        return [ir.IsNull(operand)]
    if is_nested(type_):
        return implied_by_equality(operand, type_, ir.Literal(value, own), semantics)
    return [
        compare_operands(ir.ComparisonOp.EQ, operand, type_, ir.Literal(value, own), own, semantics)
    ]
