"""Adapt text inside list and struct constructors to the type of the other side."""

from __future__ import annotations

from dataclasses import replace

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.binding.braced_lists import braced_items
from rowsieve.predicate.binding.coerce import typed
from rowsieve.predicate.functions.registry import known_of, resolve
from rowsieve.predicate.ir import Call, Literal, Operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Field, List, LogicalType, String, Struct, is_nested

_WITH_BRACES = frozenset({Semantics.SQL.name, Semantics.POSTGRES.name})


def is_constructor(node: Operand) -> bool:
    """Whether it is a list or struct constructor."""
    return isinstance(node, Call) and node.function in ("make_list", "make_struct")


def adapts(node: Operand) -> bool:
    """Whether `adapted` may give it a type: a constructor, bare text or NULL."""
    return is_constructor(node) or (isinstance(node, Literal) and node.type is None)


def adapted(node: Operand, type_: LogicalType | None, semantics: Semantics) -> Operand:
    """Give quoted texts, NULLs and `[]` inside an unbound operand the type of the other side.

    InvalidPredicate if a text is not such a value.
    """
    match node, type_:
        case (Literal(value=str(text), type=None), List()) if semantics.name in _WITH_BRACES:
            try:
                items = tuple(map(Literal, braced_items(text)))
            except ValueError:
                return node
            return adapted(Call("make_list", items), type_, semantics)
        case (Call(function="make_list", arguments=()), List()):
            return Literal((), type_)
        case (Call(function="make_list", arguments=items), List(element=element)):
            if is_nested(element.type):
                return Call("make_list", _nested_items(items, element, semantics))
            return Call("make_list", tuple(_item(item, element, semantics) for item in items))
        case (Call(function="make_struct", arguments=parts), Struct(fields=fields)) if len(
            parts
        ) == 2 * len(fields):
            arguments: list[Operand] = []
            for name, value, field in zip(parts[::2], parts[1::2], fields, strict=True):
                arguments += [name, _item(value, field, semantics)]
            return Call("make_struct", tuple(arguments))
        case _:
            return node


def _nested_items(
    items: tuple[Operand, ...], field: Field, semantics: Semantics
) -> tuple[Operand, ...]:
    """Adapt lists or structs to the first one with a type of its own, else to the other side.

    All items of a list have one type; NULL and `[]` take that of their neighbours.
    """
    item_type = next((type_ for item in items if (type_ := _own_type(item)) is not None), None)
    wanted = field if item_type is None else replace(field, type=item_type)
    adapted_items = [item if _is_bare(item) else _item(item, wanted, semantics) for item in items]
    types = (
        _own_type(item, text=String()) for item in adapted_items
    )  # other texts are adapted by now
    item_type = next((type_ for type_ in types if type_ is not None), wanted.type)
    return tuple(_item(item, replace(field, type=item_type), semantics) for item in adapted_items)


def _is_bare(node: Operand) -> bool:
    """Whether it is NULL or `[]`, which have no type."""
    if isinstance(node, Literal):
        return node.type is None and node.value is None
    return isinstance(node, Call) and node.function == "make_list" and not node.arguments


def _own_type(node: Operand, text: LogicalType | None = None) -> LogicalType | None:
    """Return the type of a constructor of typed constants; None for any other operand.

    `text`: the type of quoted text.
    """
    if isinstance(node, Literal):
        return text if node.type is None and isinstance(node.value, str) else node.type
    if not isinstance(node, Call) or not is_constructor(node):
        return None
    values = node.arguments[1::2] if node.function == "make_struct" else node.arguments
    types = [_own_type(value, text) for value in values]
    if not types or None in types:
        return None
    arguments = node.arguments
    known = iter(types)
    if node.function == "make_struct":
        types = [String() if place % 2 == 0 else next(known) for place in range(len(arguments))]
    try:
        return resolve(node.function, known_of(arguments, types))[1].result
    except InvalidPredicate:
        return None


def _item(node: Operand, field: Field, semantics: Semantics) -> Operand:
    if isinstance(node, Literal) and node.type is None and isinstance(node.value, str | None):
        return (
            node
            if field.type == String() and node.value is not None
            else typed(node, field.type, semantics)
        )
    return adapted(node, field.type, semantics)
