"""The types of operands in a tree that is not bound yet.

The rules that add an engine's casts and widths, and the checks of mixed types, take such a tree:
binding adds our casts, after which it is unknown what the text compares. They are the only code
that asks for the type of an operand by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.literal_values import natural_type
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import LogicalType
from rowsieve.types.schema import Schema


@dataclass(frozen=True, slots=True)
class UnboundTyper:
    """Types operands over the columns of a schema, under an engine's semantics."""

    schema: Schema
    semantics: Semantics

    def of(self, operand: ir.Operand) -> LogicalType:
        """Return the type of an operand, text for a bare text; `InvalidPredicate` without one."""
        return bind_operand(operand, self.schema, self.semantics).type

    def of_known(self, operand: ir.Operand) -> LogicalType | None:
        """Return the type of an operand; None without one: it is refused where it is bound."""
        try:
            return self.of(operand)
        except InvalidPredicate:
            return None

    def of_member(self, member: ir.Operand | ir.ValueSet) -> LogicalType | None:
        """Return the type of a list's members or of one; None for quoted text and a bare NULL."""
        match member:
            case ir.ValueSet(type=type_):
                return type_
            case ir.Literal(value=value, type=None):
                return None if isinstance(value, str) else natural_type(value)
            case ir.Literal(type=type_):
                return type_
            case ir.Call(function="make_list" | "make_struct"):
                return self.of_known(member)  # an empty list has no type of its own
            case _:
                return self.of(member)
