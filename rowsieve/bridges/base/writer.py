"""`TreeWriter`: convert our tree to an engine's expressions.

Soundness: every kind of node has a method. A construct that the engine lacks raises
`UnsupportedOperation`, which omits the whole condition.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar, assert_never, cast

from rowsieve.bridges.chains import balanced
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.like import parse_pattern

E = TypeVar("E")


class TreeWriter(ABC, Generic[E]):
    """Writes bound trees; subclasses implement the leaves."""

    engine: ClassVar[str]  # its name in messages

    def predicate(self, node: ir.Predicate) -> E:
        """Write a condition; `UnsupportedOperation` with the reason if impossible."""
        match node:
            case ir.TruePredicate() | ir.FalsePredicate():
                return self.truth(value=isinstance(node, ir.TruePredicate))
            case ir.And(terms=terms) | ir.Or(terms=terms):
                written = [self.predicate(term) for term in terms]
                return self.junction(written, all_of=isinstance(node, ir.And))
            case ir.Not(term=term):
                return self.negation(self.predicate(term))
            case ir.Comparison(op=op, left=left, right=right):
                return self.comparison(op, left, right)
            case ir.InList():
                return self.in_list(node)
            case ir.IsNull(operand=operand):
                return self.is_null(self.operand(operand))
            case ir.Like():
                return self.like(node)
            case ir.BooleanOperand(operand=operand):
                return self.operand(operand)
            case ir.Opaque(description=description):
                raise UnsupportedOperation(
                    f"the condition {description} of another engine has no counterpart in "
                    f"{self.engine}"
                )
            case _:
                assert_never(node)

    def operand(self, node: ir.Operand) -> E:
        """Write a value; `UnsupportedOperation` with the reason if impossible."""
        match node:
            case ir.BoundColumn():
                return self.column(node)
            case ir.Column(name=name):
                raise AssertionError(f"the column {name!r} is not bound")
            case ir.Literal():
                return self.constant(node)
            case ir.Call():
                return self.call(node)
            case ir.Cast():
                return self.cast(node)
            case ir.FieldAccess():
                return self.field_access(node)
            case ir.Case():
                return self.case(node)
            case ir.Now():
                raise UnsupportedOperation(
                    f"{self.engine} has no now(); bind with now_us= first, or write the time"
                )
            case ir.Condition(predicate=predicate):
                return self.predicate(predicate)
            case _:
                assert_never(node)

    def junction(self, terms: Sequence[E], *, all_of: bool) -> E:
        """Join terms with AND or OR in a balanced tree, because engines recurse over its depth."""
        if not terms:
            return self.truth(value=all_of)
        return balanced(terms, partial(self.pair, all_of=all_of))

    @abstractmethod
    def truth(self, *, value: bool | None) -> E:
        """Write TRUE, FALSE or NULL."""

    @abstractmethod
    def pair(self, left: E, right: E, *, all_of: bool) -> E:
        """Write AND or OR of two conditions."""

    @abstractmethod
    def negation(self, term: E) -> E:
        """Write NOT of a condition."""

    @abstractmethod
    def comparison(self, op: ir.ComparisonOp, left: ir.Operand, right: ir.Operand) -> E:
        """Write a comparison of two values of one type."""

    @abstractmethod
    def in_list(self, node: ir.InList) -> E:
        """Write an IN list of constants."""

    @abstractmethod
    def is_null(self, operand: E) -> E:
        """Write IS NULL."""

    @abstractmethod
    def like(self, node: ir.Like) -> E:
        """Write a LIKE pattern."""

    @abstractmethod
    def column(self, node: ir.BoundColumn) -> E:
        """Write a column."""

    @abstractmethod
    def constant(self, literal: ir.Literal) -> E:
        """Write a constant of its type."""

    @abstractmethod
    def call(self, node: ir.Call) -> E:
        """Write a function call."""

    @abstractmethod
    def cast(self, node: ir.Cast) -> E:
        """Write a cast."""

    @abstractmethod
    def field_access(self, node: ir.FieldAccess) -> E:
        """Write a field access."""

    @abstractmethod
    def case(self, node: ir.Case) -> E:
        """Write CASE."""


class OperatorWriter(TreeWriter[E]):
    """Writes for an engine whose expressions have Python's operators and `is_null`."""

    def pair(self, left: E, right: E, *, all_of: bool) -> E:
        """Write `&` or `|`."""
        joined: E = (operator.and_ if all_of else operator.or_)(left, right)
        return joined

    def negation(self, term: E) -> E:
        """Write `~`."""
        negated: E = operator.inv(cast("Any", term))
        return negated

    def is_null(self, operand: E) -> E:
        """Write `is_null`."""
        test: E = cast("Any", operand).is_null()
        return test


def path_of(node: ir.Operand, engine: str) -> tuple[ir.BoundColumn, list[str]]:
    """Return the column and the field names from it downwards; raise for any other operand."""
    names: list[str] = []
    while isinstance(node, ir.FieldAccess):
        names.append(node.name)
        node = node.operand
    if not isinstance(node, ir.BoundColumn):
        raise UnsupportedOperation(
            f"{engine} has conditions of columns and fields of columns, not of values that are "
            "computed from them; compare the column itself"
        )
    return node, names[::-1]


def as_text_test(node: ir.Like) -> tuple[str, str] | None:
    """Return the function (`=`, `starts_with`, …) and text equivalent to a pattern, or None."""
    if node.ignore_case:
        return None
    whole = parse_pattern(node.pattern, node.escape)
    if whole.is_exact:
        return "=", whole.prefix
    if whole.is_prefix:
        return "starts_with", whole.prefix
    if node.pattern[0] != "%" or node.escape == "%":
        return None
    rest = parse_pattern(node.pattern.lstrip("%"), node.escape)
    if rest.is_exact:
        return "ends_with", rest.prefix
    return ("contains", rest.prefix) if rest.is_prefix else None
