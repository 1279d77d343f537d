"""Type checks for comparisons of lists and structs.

Two nested types are comparable if they have one shape, and each pair of values inside compares by
value without rounding, except for float64 with another number. Maps, JSON, intervals, and orders
that the engine does not define are rejected.
"""

from __future__ import annotations

from rowsieve.errors import InvalidPredicate, UnknownColumn
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import NestedNulls, Semantics
from rowsieve.types.logical import (
    Decimal,
    Enum,
    Field,
    Float,
    Int,
    Interval,
    Json,
    List,
    LogicalType,
    Map,
    Numeric,
    Struct,
    type_name,
)


def compare_nested_operands(
    op: ir.ComparisonOp,
    left: ir.Operand,
    left_type: LogicalType | None,
    right: ir.Operand,
    right_type: LogicalType | None,
    semantics: Semantics,
) -> ir.Predicate:
    """Bind `left op right` if a side is a list or struct; bare text and NULL have type None."""
    if left_type is None or right_type is None:
        left, left_type = _null_of(left, left_type, right_type)
        right, right_type = _null_of(right, right_type, left_type)
    if semantics.nested_nulls is NestedNulls.REFUSED:
        raise InvalidPredicate(
            f"{semantics.name} does not compare lists and structs; compare an item or a field"
        )
    if not are_comparable(left_type, right_type):
        raise InvalidPredicate(
            f"{type_name(left_type)} {op.value} {type_name(right_type)} has no meaning; compare "
            "lists and structs of one shape, or one of their fields"
        )
    if op.is_order and semantics.nested_nulls is NestedNulls.UNKNOWN:
        raise InvalidPredicate(
            f"{semantics.name} does not order lists and structs with NULL; compare an item "
            "or a field"
        )
    return ir.Comparison(op, left, right)


def are_comparable(left: LogicalType, right: LogicalType) -> bool:
    """Whether values of the two types, nested or not, compare item by item."""
    match left, right:
        case (List(element=a), List(element=b)):
            return are_comparable(a.type, b.type)
        case (Struct(fields=a), Struct(fields=b)):
            alike = len(a) == len(b) and all(map(_named_alike, a, b))
            return alike and all(
                are_comparable(one.type, other.type) for one, other in zip(a, b, strict=True)
            )
        case (Map() | Json() | Interval() | Numeric() | Enum(), _):
            return False
        case (_, Map() | Json() | Interval() | Numeric() | Enum()):
            return False
        case (Int() | Decimal(), Int() | Decimal()) | (Float(), Float()):
            return True
        case (Float(bits=64), Int() | Decimal()) | (Int() | Decimal(), Float(bits=64)):
            return True
    return left == right


def _named_alike(one: Field, other: Field) -> bool:
    """Whether two fields have one name; a field of an unnamed row, as `ROW(1, 2)`, fits any."""
    return not one.name or not other.name or one.name.lower() == other.name.lower()


def _null_of(
    operand: ir.Operand, type_: LogicalType | None, other: LogicalType | None
) -> tuple[ir.Operand, LogicalType]:
    if type_ is not None:
        return operand, type_
    assert other is not None
    assert isinstance(operand, ir.Literal)
    if operand.value is not None:
        raise InvalidPredicate(
            f"the text {operand.value!r} is compared with a {type_name(other)}; write its items, "
            "as in ARRAY[1, 2]"
        )
    return ir.Literal(None, other), other


def member_of(type_: Struct, name: str) -> Field:
    """Return the field of a struct; in any case, unless the case decides."""
    exact = [field for field in type_.fields if field.name == name]
    candidates = exact or [field for field in type_.fields if field.name.lower() == name.lower()]
    if len(candidates) != 1:
        names = ", ".join(field.name for field in type_.fields)
        raise UnknownColumn(
            f"the struct ({names}) does not have exactly one field {name!r}", name=name
        )
    return candidates[0]
