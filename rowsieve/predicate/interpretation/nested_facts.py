"""Conditions on length, items and fields, implied by comparison with a constant list or struct.

Statistics describe these, not whole lists and structs.

Soundness: each condition is TRUE on every row on which the comparison is TRUE, so a part where one
of them is never TRUE has no match.
"""

from __future__ import annotations

from collections.abc import Sequence

from rowsieve.predicate import ir
from rowsieve.predicate.binding.coerce import compare_operands
from rowsieve.predicate.semantics import NanOrder, NestedNulls, Semantics
from rowsieve.types.logical import Field, Float, Int, List, LogicalType, Struct, is_nested

_MAX_ITEMS = 8  # statistics do not distinguish items, so the first ones are enough
_MAX_FIELDS = 4  # the order of rows that agree in as many fields is not used


def implied_by_equality(
    operand: ir.Operand, type_: LogicalType, constant: ir.Literal, semantics: Semantics
) -> list[ir.Predicate]:
    """Return bound conditions that hold wherever `operand`, of this type, equals the constant."""
    value, constant_type = constant.value, constant.type
    if not isinstance(value, tuple) or semantics.nan is NanOrder.IEEE:
        return []
    assert semantics.nested_nulls is not NestedNulls.UNKNOWN
    terms: list[ir.Predicate] = []
    match type_, constant_type:
        case (List(element=element), List(element=item_type)):
            length = ir.Call("list_length", (operand,))
            terms.append(ir.Comparison(ir.ComparisonOp.EQ, length, ir.Literal(len(value), Int(32))))
            for place, item in enumerate(value[:_MAX_ITEMS], 1):
                at = ir.Call("list_element", (operand, ir.Literal(place, Int(64))))
                terms += _equal(at, element.type, item, item_type.type, semantics)
        case (Struct(fields=fields), Struct(fields=others)) if _are_named(fields):
            for field, other, member in zip(fields, others, value, strict=True):
                at_member = ir.FieldAccess(operand, field.name)
                terms += _equal(at_member, field.type, member, other.type, semantics)
    return terms


def implied_by_order(
    op: ir.ComparisonOp,
    operand: ir.Operand,
    type_: LogicalType,
    constant: ir.Literal,
    semantics: Semantics,
) -> ir.Predicate:
    """Return a bound condition that holds wherever `operand op constant` is TRUE for `<` to `>=`.

    `operand` is a list or struct of this type. Fields compare in order, where two NULLs are equal
    and `NestedNulls` orders NULL and values; so do items, and a list is below every longer one that
    begins with it.
    """
    if not isinstance(constant.value, tuple) or semantics.nan is NanOrder.IEEE:
        return ir.TruePredicate()
    assert constant.type is not None
    return _ordered(op, operand, type_, constant, semantics)


def _ordered(
    op: ir.ComparisonOp,
    operand: ir.Operand,
    type_: LogicalType,
    constant: ir.Literal,
    semantics: Semantics,
) -> ir.Predicate:
    """Return a condition that holds wherever `operand op constant` does; NULL is a value here."""
    null_is_below = semantics.nested_nulls is NestedNulls.LEAST
    null_holds = op.holds_if_less is null_is_below
    if constant.value is None:
        if op is op.strict:
            return ir.FalsePredicate() if null_holds else ir.Not(ir.IsNull(operand))
        return ir.IsNull(operand) if null_holds else ir.TruePredicate()
    if isinstance(type_, List):
        condition = _ordered_items(op, operand, type_, constant, semantics)
    elif isinstance(type_, Struct):
        condition = _ordered_fields(op, operand, type_, constant, semantics)
    else:
        assert constant.type is not None
        if semantics.nested_zeros_differ and isinstance(type_, Float) and constant.value == 0:
            op = op.weak  # -0.0 is below 0.0, which compare as equal here
        condition = compare_operands(op, operand, type_, constant, constant.type, semantics)
    return ir.disjoin((condition, ir.IsNull(operand))) if null_holds else condition


def _ordered_fields(
    op: ir.ComparisonOp,
    operand: ir.Operand,
    type_: Struct,
    constant: ir.Literal,
    semantics: Semantics,
) -> ir.Predicate:
    """The first field decides, or it is equal and the others decide."""
    value, constant_type = constant.value, constant.type
    assert isinstance(value, tuple)
    assert isinstance(constant_type, Struct)
    if not _are_named(type_.fields):
        return ir.TruePredicate()
    condition: ir.Predicate | None = None
    members = list(zip(type_.fields, constant_type.fields, value, strict=True))[:_MAX_FIELDS]
    if len(members) < len(value):
        op = op.weak
    for field, other, item in reversed(members):
        member, literal = ir.FieldAccess(operand, field.name), ir.Literal(item, other.type)
        if condition is None:
            condition = _ordered(op, member, field.type, literal, semantics)
            continue
        decided = _ordered(op.strict, member, field.type, literal, semantics)
        equal = _equal(member, field.type, item, other.type, semantics)
        condition = ir.disjoin((decided, ir.conjoin((*equal, condition))))
    assert condition is not None
    return condition


def _ordered_items(
    op: ir.ComparisonOp,
    operand: ir.Operand,
    type_: List,
    constant: ir.Literal,
    semantics: Semantics,
) -> ir.Predicate:
    """The first item decides, or it is equal and the others decide, or the list ends before it."""
    value, constant_type = constant.value, constant.type
    assert isinstance(value, tuple)
    assert isinstance(constant_type, List)
    length = ir.Call("list_length", (operand,))

    def longer(than: int, by: ir.ComparisonOp = ir.ComparisonOp.GT) -> ir.Predicate:
        return ir.Comparison(by, length, ir.Literal(than, Int(32)))

    known = value[:_MAX_FIELDS]
    condition: ir.Predicate = ir.TruePredicate()  # later items decide
    if len(known) == len(value) and op is not ir.ComparisonOp.GE:  # a longer list is greater
        condition = longer(len(value), ir.ComparisonOp.LE if op is ir.ComparisonOp.LE else op)
    for place in reversed(range(len(known))):
        item = ir.Call("list_element", (operand, ir.Literal(place + 1, Int(64))))
        literal = ir.Literal(known[place], constant_type.element.type)
        strict = op.strict
        decided = _ordered(strict, item, type_.element.type, literal, semantics)
        equal = _equal(
            item, type_.element.type, known[place], constant_type.element.type, semantics
        )
        condition = ir.disjoin((decided, ir.conjoin((*equal, condition))))
        if op.holds_if_less:
            condition = ir.disjoin((longer(place, ir.ComparisonOp.LE), condition))
        else:
            condition = ir.conjoin((longer(place), condition))
    return condition


def _are_named(fields: Sequence[Field]) -> bool:
    """Whether each field has a name of its own; the values of `struct(a, b)` have none."""
    return len({field.name for field in fields}) == len(fields)


def _equal(
    operand: ir.Operand,
    type_: LogicalType,
    value: ir.PhysicalValue,
    constant_type: LogicalType,
    semantics: Semantics,
) -> list[ir.Predicate]:
    if value is None:
        return [ir.IsNull(operand)]
    if is_nested(type_):
        return implied_by_equality(operand, type_, ir.Literal(value, constant_type), semantics)
    return [
        compare_operands(
            ir.ComparisonOp.EQ,
            operand,
            type_,
            ir.Literal(value, constant_type),
            constant_type,
            semantics,
        )
    ]
