"""Constants that are compared with PostgreSQL's arrays: text such as `{1,2}`, and `ARRAY[1, 2]`.

Text is read as PostgreSQL reads it: `[0:1]={1,2}` names the bounds of each dimension, which begin
at 1 otherwise, items may be quoted, and a bare NULL is NULL. Soundness: text that PostgreSQL would
refuse is InvalidPredicate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NoReturn, TypeAlias

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.binding.coerce import typed
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import List, LogicalType, Struct

_BOUNDS = re.compile(r"\[([+-]?\d{1,10})(?::([+-]?\d{1,10}))?\]")
_TOKEN = re.compile(
    r'\s*(?:([{},])|(?:"((?:[^"\\]|\\.)*)"|((?:[^{},"\\\s]|\\.)(?:[^{},"\\]|\\.)*?))\s*(?=[},]))',
    re.S,
)
_MAX_DIMENSIONS: Final = 6
_INT32_MIN: Final = -(2**31)

_Item: TypeAlias = str | None
_Nested: TypeAlias = "list[_Nested] | _Item"


def array_literal(text: str, type_: LogicalType, semantics: Semantics) -> ir.Literal:
    """Return the array that text is, as a value of the column's type."""
    dimensions, items = _read(text)
    return ir.Literal((dimensions, _typed(items, type_, semantics)), type_)


def array_elements(text: str, type_: LogicalType, semantics: Semantics) -> ir.Literal:
    """Return the elements of the array that text is, as a list."""
    return ir.Literal(_typed(_read(text)[1], type_, semantics), _member(type_, 1))


def equals_items(column: ir.Operand, items: ir.Operand, type_: LogicalType) -> ir.Predicate | None:
    """Return `column = ARRAY[…]`; None for another operand, InvalidPredicate for nested ones."""
    match items.operand if isinstance(items, ir.Cast) else items:
        case ir.Call(function="make_list", arguments=members):
            pass
        case ir.Literal(value=(), type=List()):
            members = ()
        case _:
            return None
    if any(isinstance(each, ir.Call) and each.function == "make_list" for each in members):
        raise InvalidPredicate(
            "an array of several dimensions is compared with text, such as '{{1,2},{3,4}}'"
        )
    count = len(members)
    shape = ir.Literal(((1, count),) if count else (), _member(type_, 0))
    equal = ir.ComparisonOp.EQ
    return ir.And((
        ir.Comparison(equal, ir.FieldAccess(column, "dimensions"), shape),
        ir.Comparison(equal, ir.FieldAccess(column, "elements"), items),
    ))  # fmt: skip


def _member(type_: LogicalType, place: int) -> List:
    assert isinstance(type_, Struct)
    list_type = type_.fields[place].type
    assert isinstance(list_type, List)
    return list_type


def _typed(
    items: list[_Item], type_: LogicalType, semantics: Semantics
) -> tuple[ir.PhysicalValue, ...]:
    element = _member(type_, 1).element.type
    return tuple(typed(ir.Literal(each), element, semantics).value for each in items)


def _read(text: str) -> tuple[tuple[tuple[int, int], ...], list[_Item]]:
    """The lower bound and length of each dimension, and the items in their order."""
    before, mark, after = text.partition("=") if text.lstrip().startswith("[") else ("", "", text)
    named = _BOUNDS.findall(before)
    if "".join(before.split()) != "".join(match[0] for match in _BOUNDS.finditer(before)):
        _refuse(text)
    tokens = list(_tokens(after, text))
    if not tokens or tokens[0] != "{":
        _refuse(text)
    nested, end = _list(tokens, 1, text)
    if end != len(tokens) or bool(named) != bool(mark):
        _refuse(text)
    lengths = _lengths(nested, text)
    lows = [int(low) if high else 1 for low, high in named] or [1] * len(lengths)
    highs = [int(high or low) for low, high in named]
    written_lengths = [high - low + 1 for low, high in zip(lows, highs, strict=False)]
    if (named and written_lengths != lengths) or len(lengths) > _MAX_DIMENSIONS:
        _refuse(text)
    if any(not _INT32_MIN <= low < -_INT32_MIN - n for low, n in zip(lows, lengths, strict=True)):
        _refuse(text)
    return tuple(zip(lows, lengths, strict=True)), _flat(nested)


def _tokens(text: str, whole: str) -> Iterator[str | tuple[_Item]]:
    """Yield braces and commas as text, and items as tuples of one."""
    stripped, place = text.strip(), 0
    while place < len(stripped):
        match = _TOKEN.match(stripped, place)
        if match is None:
            _refuse(whole)
        mark, quoted, bare = match.groups()
        if mark is not None:
            yield mark
        elif quoted is not None:
            yield (_unescaped(quoted),)
        else:
            yield (None if bare.upper() == "NULL" else _unescaped(bare),)
        place = match.end()


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.S)


def _list(tokens: list[str | tuple[_Item]], place: int, text: str) -> tuple[list[_Nested], int]:
    """The items from this place to the brace that ends them, and the place behind it."""
    items: list[_Nested] = []
    if tokens[place : place + 1] == ["}"]:
        return items, place + 1
    while place < len(tokens):
        item = tokens[place]
        if item == "{":
            inner, place = _list(tokens, place + 1, text)
            items.append(inner)
        elif isinstance(item, tuple):
            items.append(item[0])
            place += 1
        else:
            break
        if tokens[place : place + 1] == ["}"]:
            return items, place + 1
        if tokens[place : place + 1] != [","]:
            break
        place += 1
    return _refuse(text)


def _lengths(nested: list[_Nested], text: str) -> list[int]:
    """The length of each dimension; none of an array without items."""
    if not nested:
        return []
    lists = [each for each in nested if isinstance(each, list)]
    if not lists:
        return [len(nested)]
    below = [_lengths(each, text) for each in lists]
    if len(lists) < len(nested) or any(each != below[0] for each in below):
        _refuse(text)
    if not below[0]:  # empty lists add no dimension
        return []
    return [len(nested), *below[0]]


def _flat(nested: list[_Nested]) -> list[_Item]:
    items: list[_Item] = []
    for each in nested:
        items += _flat(each) if isinstance(each, list) else [each]
    return items


def _refuse(text: str) -> NoReturn:
    raise InvalidPredicate(
        f"the text {text!r} is compared with an array and is not the text of "
        "one; write its items in braces, as in '{1,2}' or '{{1,2},{3,4}}'"
    )
