"""Bind `=`, `<>`, `@>` and `?` over JSON, which compare as PostgreSQL's `jsonb` does.

Only semantics with `casts_json` have them. Constants must be JSON, as PostgreSQL demands. The order
of JSON values has no rule of ours, so `<` stays refused. Their sides are `jsonb`, where the items 0
and -1 of a number, text, boolean or null are that value itself (`'5'::jsonb -> 0`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import pyarrow as pa

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.functions.nested.json_access import is_json
from rowsieve.predicate.functions.nested.json_equality import CONTAINS, EQUAL, EXISTS
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Bool, Json, LogicalType, String, type_name

_GET: Final = "json_get"
_Typed: TypeAlias = tuple[ir.Operand, LogicalType | None]


def json_call(name: str, arguments: list[_Typed], semantics: Semantics) -> tuple[str, list[_Typed]]:
    """Return the function and arguments of a call over JSON; `@>` also stands between lists."""
    if not semantics.casts_json or not any(isinstance(type_, Json) for _, type_ in arguments):
        return name, arguments
    if name == "list_contains_all":
        check_constants(arguments)
        name = CONTAINS
    if name not in (CONTAINS, EQUAL, EXISTS):
        return name, arguments
    return name, [(as_jsonb(operand), type_) for operand, type_ in arguments]


def compares_json(
    op: ir.ComparisonOp, types: Iterable[LogicalType | None], semantics: Semantics
) -> bool:
    """Return whether a comparison is one of JSON values."""
    equality = not op.is_order and semantics.casts_json
    return equality and any(isinstance(each, Json) for each in types)


def compare_json(op: ir.ComparisonOp, left: _Typed, right: _Typed) -> ir.Predicate:
    """Bind `left op right`; bare text is JSON. InvalidPredicate for a value of another type."""
    check_constants((left, right))
    sides = (_as_json(*left), _as_json(*right))
    call = ir.Call(EQUAL, sides)
    equal = ir.BooleanOperand(call)
    if not op.is_null_safe:
        return equal if op is ir.ComparisonOp.EQ else ir.Not(equal)
    missing = ir.And(tuple(ir.IsNull(_kind(each)) for each in sides))
    same = ir.Or((ir.And((ir.Not(ir.IsNull(call)), equal)), missing))
    return same if op is ir.ComparisonOp.NOT_DISTINCT else ir.Not(same)


def json_in_list(operand: ir.Operand, values: ir.ValueSet) -> ir.Predicate:
    """Rewrite IN over JSON as an OR of equalities."""
    if not len(values):
        return ir.And((ir.IsNull(operand), ir.BooleanOperand(ir.Literal(None, Bool()))))
    members = (ir.Literal(member.as_py(), values.type) for member in values.array)
    return ir.disjoin(
        compare_json(ir.ComparisonOp.EQ, (operand, Json()), (member, values.type))
        for member in members
    )


def check_constants(arguments: Iterable[_Typed]) -> None:
    """Raise InvalidPredicate for constant text that is not JSON."""
    for operand, _ in arguments:
        value = operand.value if isinstance(operand, ir.Literal) else None
        if isinstance(value, str) and not is_json(value):
            raise InvalidPredicate(
                f"the text {value!r} is compared with JSON and is not JSON; write text of JSON in "
                "double quotes, as in '\"a\"'"
            )


def _as_json(operand: ir.Operand, type_: LogicalType | None) -> ir.Operand:
    if isinstance(operand, ir.Literal) and type_ in (None, Json(), String()):
        return ir.Literal(operand.value, Json())
    if not isinstance(type_, Json):
        shown = "text" if type_ is None else type_name(type_)
        raise InvalidPredicate(
            f"JSON is compared with a {shown}; compare its text by ->>, or write a JSON constant"
        )
    return as_jsonb(operand)


def as_jsonb(operand: ir.Operand) -> ir.Operand:
    """Return the bound operand, with `->` of `jsonb` in place of that of `json`."""
    if not isinstance(operand, ir.Call) or operand.function != _GET:
        return operand
    document = as_jsonb(operand.arguments[0])
    for key in operand.arguments[1:]:
        item = ir.Call(_GET, (document, key))
        if isinstance(key, ir.Literal) and key.value in (0, -1):
            shape = ir.ValueSet(pa.array(["array", "object"]), String())
            document = ir.Case(((ir.InList(_kind(document), shape), item),), document)
        else:
            document = item
    return document


def _kind(operand: ir.Operand) -> ir.Operand:
    """What the value is, as text; NULL of text that is not JSON."""
    return ir.Call("json_typeof", (operand,))
