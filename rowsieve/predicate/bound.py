"""Trees that `bind` has resolved, each with the semantics of its evaluation.

A bound tree is never bound again under the same semantics: `operand_types.type_of` has the type of
each of its operands, and `conjuncts` has its conditions, each with the one that was bound.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from rowsieve.computed_property import computed_property
from rowsieve.errors import InvalidInput
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import LogicalType


@dataclass(frozen=True)
class BoundPredicate:
    """A predicate over the columns of one schema, under one engine's semantics."""

    root: ir.Predicate
    schema_id: int
    semantics: Semantics
    _source: ir.Predicate | None = field(default=None, compare=False, repr=False)

    @property
    def source(self) -> ir.Predicate:
        """The tree that was bound node by node, of one that is not simplified."""
        assert self._source is not None
        return self._source

    @computed_property
    def columns(self) -> tuple[ir.BoundColumn, ...]:
        """The columns that the predicate reads, each once, in order of appearance."""
        return _columns(self.root)

    @computed_property
    def conjuncts(self) -> tuple[tuple[ir.Predicate, ir.Predicate], ...]:
        """`ir.root_conjuncts` of the source, each with its bound form."""
        pairs: list[tuple[ir.Predicate, ir.Predicate]] = []
        stack = [(self.source, self.root)]
        while stack:
            match pair := stack.pop():
                case (ir.And(terms=terms), ir.And(terms=roots)):
                    stack.extend(reversed(list(zip(terms, roots, strict=True))))
                case (
                    (ir.Or(terms=(term,)), ir.Or(terms=(root,)))
                    | (ir.Not(ir.Not(term)), ir.Not(ir.Not(root)))
                    | (
                        ir.BooleanOperand(ir.Condition(term)),
                        ir.BooleanOperand(ir.Condition(root)),
                    )
                ):
                    stack.append((term, root))
                case (ir.TruePredicate(), _):
                    continue
                case _:
                    pairs.append(pair)
        return tuple(pairs)

    @computed_property
    def remembered(self) -> dict[Hashable, Any]:
        """A cache of results derived from this predicate object, with its lifetime.

        Code that adds an entry must bound its size, and the key must contain everything that the
        result depends on besides the predicate.
        """
        return {}


@dataclass(frozen=True, slots=True)
class BoundOperand:
    """An expression over the columns of one schema, under one engine's semantics."""

    root: ir.Operand
    type: LogicalType
    schema_id: int
    semantics: Semantics

    @property
    def columns(self) -> tuple[ir.BoundColumn, ...]:
        """The columns that the expression reads, each once, in order of appearance."""
        return _columns(self.root)


def refuse_unbound(predicate: object, operation: str) -> None:
    """Raise InvalidInput for a tree that `bind` has not resolved, or anything else."""
    if not isinstance(predicate, BoundPredicate | BoundOperand):
        raise InvalidInput(
            f"{operation} takes what bind(predicate, schema) returns, and got "
            f"{type(predicate).__name__}; bind it first"
        )


def _columns(root: ir.Node) -> tuple[ir.BoundColumn, ...]:
    return tuple(dict.fromkeys(node for node in ir.walk(root) if isinstance(node, ir.BoundColumn)))
