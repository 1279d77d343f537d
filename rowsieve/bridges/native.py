"""The bridge of our own predicates, which are passed through."""

from __future__ import annotations

from rowsieve.bridges.translation import Exactness, Translation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema


def is_predicate(value: object) -> bool:
    """Whether this is a node of our tree."""
    return isinstance(value, Predicate)


def read_predicate(predicate: Predicate, schema: Schema) -> Translation[Predicate, Predicate]:
    """Return the predicate itself, after checking that it binds to the schema."""
    bound = bind(predicate, schema, simplified=False)
    return Translation(predicate, Exactness.EXACT, bound=(bound,))


def write_predicate(
    predicate: Predicate, schema: Schema, semantics: Semantics
) -> Translation[Predicate, Predicate]:
    """Return the predicate with columns by name, because their ids belong to one table."""
    del schema, semantics
    return Translation(_by_name(predicate), Exactness.EXACT)


def _by_name(node: Predicate) -> Predicate:
    return ir.map_children(node, _by_name, _value)


def _value(node: ir.Operand) -> ir.Operand:
    if isinstance(node, ir.BoundColumn):
        return ir.Column(node.name)
    return ir.map_children(node, _by_name, _value)
