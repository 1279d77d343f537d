"""Bind `=`, `<>` and `@>` over JSON, which compare as PostgreSQL's `jsonb` does.

Only semantics with `casts_json` have them. Constants must be JSON, as PostgreSQL demands. The order
of JSON values has no rule of ours, so `<` stays refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.functions.nested.json_access import is_json
from rowsieve.predicate.functions.nested.json_equality import CONTAINS, EQUAL
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Bool, Json, LogicalType, String, type_name

_Typed: TypeAlias = tuple[ir.Operand, LogicalType | None]


def json_function(name: str, arguments: Sequence[_Typed], semantics: Semantics) -> str:
    """Return the function that a call over JSON means; `@>` also stands between lists."""
    if name != "list_contains_all" or not semantics.casts_json:
        return name
    if not any(isinstance(type_, Json) for _, type_ in arguments):
        return name
    check_constants(arguments)
    return CONTAINS


def compares_json(
    op: ir.ComparisonOp, types: Iterable[LogicalType | None], semantics: Semantics
) -> bool:
    """Return whether a comparison is one of JSON values."""
    equality = op in (ir.ComparisonOp.EQ, ir.ComparisonOp.NE)
    return equality and semantics.casts_json and any(isinstance(each, Json) for each in types)


def compare_json(op: ir.ComparisonOp, left: _Typed, right: _Typed) -> ir.Predicate:
    """Bind `left op right`; bare text is JSON. InvalidPredicate for a value of another type."""
    check_constants((left, right))
    equal = ir.BooleanOperand(ir.Call(EQUAL, (_as_json(*left), _as_json(*right))))
    return equal if op is ir.ComparisonOp.EQ else ir.Not(equal)


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
    return operand
