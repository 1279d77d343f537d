"""`TreeReader`: convert an engine's nodes to our tree.

Soundness: a node without a row in the bridge's table, or nested deeper than the limit, is rejected;
operands have known types before they are compared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, Generic, TypeAlias, TypeVar

from rowsieve.bridges.base.depth import Depth
from rowsieve.bridges.translation import Exactness, Row
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Bool, LogicalType, type_name
from rowsieve.types.schema import Schema

N = TypeVar("N")
NO_COUNTERPART: Final = "it has no counterpart in Rowsieve"
Read: TypeAlias = ir.Predicate | ir.Operand


class TreeReader(ABC, Generic[N]):
    """Reads an engine's nodes over the columns of one schema."""

    max_depth: ClassVar[int] = 100  # levels; each takes several Python calls

    def __init__(self, schema: Schema, semantics: Semantics) -> None:
        self.schema = schema
        self.semantics = semantics
        self._depth = Depth(self.max_depth)

    def predicate(self, node: N) -> ir.Predicate:
        """Read the node as a condition; `UnsupportedOperation` with the reason if impossible."""
        return as_predicate(self._bounded(node))

    def operand(self, node: N) -> ir.Operand:
        """Read the node as a value; `UnsupportedOperation` with the reason if impossible."""
        return as_operand(self._bounded(node))

    def junction(self, nodes: Iterable[N], *, all_of: bool) -> ir.Predicate:
        """Read the nodes as conditions, joined with AND or OR."""
        terms = tuple(map(self.predicate, nodes))
        return ir.And(terms) if all_of else ir.Or(terms)

    @abstractmethod
    def read(self, node: N) -> Read:
        """Read one node; `predicate` and `operand` read its children."""

    def _bounded(self, node: N) -> Read:
        with self._depth:
            return self.read(node)

    def type_of(self, operand: ir.Operand) -> LogicalType | None:
        """Return the type of an operand; None for a constant without a type yet."""
        match operand:
            case ir.Column(name=name):
                return self.schema.field(name).type
            case ir.Literal(type=type_) | ir.Cast(type=type_):
                return type_
            case ir.Condition():
                return Bool()
            case _:
                return bind_operand(operand, self.schema, self.semantics).type

    def one_type(self, what: str, operands: Sequence[ir.Operand]) -> LogicalType | None:
        """Return the common type of the operands, ignoring constants without a type."""
        types = {type_ for item in operands if (type_ := self.type_of(item)) is not None}
        if len(types) > 1:
            shown = " and ".join(sorted(map(type_name, types)))
            raise UnsupportedOperation(
                f"{what} of {shown}: the types must be one; cast one of them"
            )
        return next(iter(types), None)


def as_predicate(read: Read) -> ir.Predicate:
    """Convert the result to a condition."""
    if isinstance(read, ir.Condition):
        return read.predicate
    if isinstance(read, ir.Literal) and isinstance(read.value, bool):
        return ir.TRUE if read.value else ir.FALSE
    return read if isinstance(read, ir.Predicate) else ir.BooleanOperand(read)


def as_operand(read: Read) -> ir.Operand:
    """Convert the result to a value."""
    if isinstance(read, ir.BooleanOperand):
        return read.operand
    return ir.Condition(read) if isinstance(read, ir.Predicate) else read


def supported(row: Row | None, what: str, otherwise: str = NO_COUNTERPART) -> Row:
    """Return the row of a construct if it is read; otherwise raise with its note."""
    if row is None or row.reads is not Exactness.EXACT:
        raise UnsupportedOperation(f"{what}: {row.note if row else otherwise}")
    return row
