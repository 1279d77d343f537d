"""Our own predicates as a language among the others: read and written as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from rowsieve.bridges.translation import Exactness, Translation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.ir import (
    And,
    BooleanOperand,
    BoundColumn,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Condition,
    FalsePredicate,
    FieldAccess,
    InList,
    IsNull,
    Like,
    Literal,
    Not,
    Now,
    Opaque,
    Operand,
    Or,
    Predicate,
    TruePredicate,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema


def is_predicate(value: object) -> bool:
    """Whether this is a node of our tree."""
    return isinstance(value, Predicate)


def read_predicate(predicate: Predicate, schema: Schema) -> Translation[Predicate, Predicate]:
    """The predicate itself, once it is known to have a meaning over the schema."""
    bind(predicate, schema, simplified=False)
    return Translation(predicate, Exactness.EXACT)


def write_predicate(
    predicate: Predicate, schema: Schema, semantics: Semantics
) -> Translation[Predicate, Predicate]:
    """The predicate itself, its columns by name: their ids belong to one table."""
    del schema, semantics
    return Translation(_by_name(predicate), Exactness.EXACT)


def _by_name(node: Predicate) -> Predicate:
    match node:
        case And(terms=terms):
            return And(tuple(map(_by_name, terms)))
        case Or(terms=terms):
            return Or(tuple(map(_by_name, terms)))
        case Not(term=term):
            return Not(_by_name(term))
        case Comparison(op=op, left=left, right=right):
            return Comparison(op, _value(left), _value(right))
        case InList() | IsNull() | Like() | BooleanOperand():
            return replace(node, operand=_value(node.operand))
        case TruePredicate() | FalsePredicate() | Opaque():
            return node
        case _:
            assert_never(node)


def _value(node: Operand) -> Operand:
    match node:
        case BoundColumn(name=name):
            return Column(name)
        case Call(arguments=arguments):
            return replace(node, arguments=tuple(map(_value, arguments)))
        case Cast() | FieldAccess():
            return replace(node, operand=_value(node.operand))
        case Case(branches=branches, otherwise=otherwise):
            kept = tuple((_by_name(when), _value(then)) for when, then in branches)
            return Case(kept, _value(otherwise))
        case Condition(predicate=predicate):
            return Condition(_by_name(predicate))
        case Column() | Literal() | Now():
            return node
        case _:
            assert_never(node)
