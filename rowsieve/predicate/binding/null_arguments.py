"""Bind calls with an untyped NULL that no overload accepts, such as `abs(NULL)`: they are NULL.

Engines give such a NULL the type of an overload, and then do not call the function. The result has
the type that all overloads for it agree on. If they differ, it stays untyped: it may be compared or
passed to another such function. A function that chooses among its arguments rejects it, because the
type would decide how the others are converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.binding.coerce import typed
from rowsieve.predicate.binding.members import member_literals
from rowsieve.predicate.functions.registry import find
from rowsieve.predicate.functions.row import Argument, Function, NullRule, Signature
from rowsieve.predicate.literal_values import constant_type
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import (
    Bool,
    Date,
    Field,
    Float,
    Int,
    Interval,
    Json,
    List,
    LogicalType,
    String,
    Time,
    Timestamp,
)

Typed: TypeAlias = tuple[ir.Operand, LogicalType | None]

_STRICT: Final = frozenset({NullRule.STRICT, NullRule.PARTIAL})
_SUMS: Final = frozenset({"add", "subtract"})
_TIMES: Final = (Date, Time, Timestamp, Interval)
# Arguments that stand for a NULL to find its overloads: values of types, and constants.
_STAND_INS: Final = (
    Argument(Int(64)),
    Argument(Float(64)),
    Argument(String()),
    Argument(Bool()),
    Argument(Date()),
    Argument(Timestamp(utc=False)),
    Argument(Timestamp(utc=True)),
    Argument(Json()),
    Argument(List(Field(0, "element", Int(64)))),
    Argument(List(Field(0, "element", String()))),
    Argument(Int(64), is_constant=True, constant=1),
    Argument(String(), is_constant=True, constant="a"),
    Argument(String(), is_constant=True, constant="day"),
    Argument(String(), is_constant=True, constant="%Y-%m-%d"),
)


def null_result(
    name: str, nodes: Sequence[ir.Operand], bound: Sequence[Typed], arguments: Sequence[Argument]
) -> Typed | None:
    """Return the NULL of a call that is NULL by an untyped argument; None for other calls.

    `nodes` are the arguments before they were bound; raises as `check_choice`.
    """
    check_choice(name, nodes, bound)
    bare = Argument(None, is_constant=True)
    places = [place for place, argument in enumerate(arguments) if argument == bare]
    if not places or (row := find(name)).nulls not in _STRICT or _signature(row, arguments):
        return None
    results = {signature.result for signature in _overloads(row, arguments, places)}
    if len(results) == 1:
        (type_,) = results
        return ir.Literal(None, type_), type_
    moves = name in _SUMS and any(isinstance(argument.type, _TIMES) for argument in arguments)
    return (ir.Literal(None), None) if results or moves else None


def check_choice(name: str, nodes: Sequence[ir.Operand], bound: Sequence[Typed]) -> None:
    """Raise for an untyped result of another call among arguments that the function chooses from.

    `nodes` are the arguments before they were bound.
    """
    untyped = [node for node, (_, type_) in zip(nodes, bound, strict=True) if type_ is None]
    calls = [node for node in untyped if isinstance(node, ir.Call)]
    if calls and (name == "CASE" or find(name).nulls not in _STRICT):
        raise InvalidPredicate(
            f"the type of {calls[0].function} of NULL is not known, which {name} needs; cast the "
            "NULL, as in CAST(NULL AS INTEGER)"
        )


def typed_by_members(
    operand: ir.Operand, values: ir.ValueSet, semantics: Semantics
) -> tuple[ir.Operand, LogicalType]:
    """Give a bare NULL the type of the members that it is looked for among, and bare text text."""
    assert isinstance(operand, ir.Literal)
    members = member_literals(values) if operand.value is None else ()
    known = (member.type or constant_type(member.value) for member in members)
    type_ = next((each for each in known if each is not None), None) or String()
    return typed(operand, type_, semantics), type_


def _overloads(
    row: Function, arguments: Sequence[Argument], places: Sequence[int]
) -> list[Signature]:
    """Return the signatures of the call with the same stand-in for each NULL."""
    signatures = []
    for stand_in in _STAND_INS:
        tried = list(arguments)
        for place in places:
            tried[place] = stand_in
        if (signature := _signature(row, tried)) is not None:
            signatures.append(signature)
    return signatures


def _signature(row: Function, arguments: Sequence[Argument]) -> Signature | None:
    """Resolve a call; None also where the resolver names a wrong constant."""
    try:
        return row.resolve(arguments)
    except InvalidPredicate:
        return None
