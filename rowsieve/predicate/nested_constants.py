"""Adapt text inside list and struct constructors to the type of the other side."""

from __future__ import annotations

from rowsieve.predicate.coerce import typed
from rowsieve.predicate.ir import Call, Literal, Operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Field, List, LogicalType, String, Struct


def is_made(node: Operand) -> bool:
    """Whether it is a list or struct constructor."""
    return isinstance(node, Call) and node.function in ("make_list", "make_struct")


def adapted(node: Operand, type_: LogicalType | None, semantics: Semantics) -> Operand:
    """Give quoted texts, NULLs and `[]` inside an unbound operand the type of the other side.

    InvalidPredicate if a text is not such a value.
    """
    match node, type_:
        case (Call(function="make_list", arguments=()), List()):
            return Literal((), type_)
        case (Call(function="make_list", arguments=items), List(element=element)):
            return Call("make_list", tuple(_item(item, element, semantics) for item in items))
        case (Call(function="make_struct", arguments=parts), Struct(fields=fields)) if len(
            parts
        ) == 2 * len(fields):
            made: list[Operand] = []
            for name, value, field in zip(parts[::2], parts[1::2], fields, strict=True):
                made += [name, _item(value, field, semantics)]
            return Call("make_struct", tuple(made))
        case _:
            return node


def _item(node: Operand, field: Field, semantics: Semantics) -> Operand:
    if isinstance(node, Literal) and node.type is None and isinstance(node.value, str | None):
        return (
            node
            if field.type == String() and node.value is not None
            else typed(node, field.type, semantics)
        )
    return adapted(node, field.type, semantics)
