"""Read pyiceberg's expressions as our tree.

Each leaf is bound by pyiceberg, which converts its constants.

Soundness: the result for NULL is written out, as in a scan or in the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import count
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.base import TreeReader, supported
from rowsieve.bridges.chains import flattened
from rowsieve.bridges.extras import imported
from rowsieve.bridges.iceberg_exprs import function_table
from rowsieve.bridges.ticks import from_ticks
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.binding.enum_labels import with_text
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Decimal, Field, Float, Int, LogicalType, String, Struct
from rowsieve.types.schema import Schema

_SHOWN = 20  # leaves of an expression that a note still shows


def chain(expression: Any, kind: str) -> list[Any]:
    """Return the terms of an AND or OR, in the order written."""

    def terms_of(item: Any) -> tuple[Any, Any] | None:
        return (item.left, item.right) if type(item).__name__ == kind else None

    return flattened(expression, terms_of)


def joined(terms: Sequence[Any]) -> Any:
    """Return the AND of conditions."""
    return terms[0] if len(terms) == 1 else imported("pyiceberg.expressions", "iceberg").And(*terms)


def shown(expression: Any) -> str:
    """Return pyiceberg's text of the expression, if short."""
    leaves, stack = 0, [expression]
    while stack and leaves <= _SHOWN:
        item = stack.pop()
        below = [getattr(item, name, None) for name in ("left", "right", "child")]
        stack.extend(part for part in below if part is not None)
        leaves += 1 + len(getattr(item, "literals", ()))
    return str(expression) if leaves <= _SHOWN else f"a long {type(expression).__name__}"


def foreign_schema(schema: Schema) -> Any:
    """Return pyiceberg's schema of the columns and struct fields whose types Iceberg has.

    A condition on any other is refused when pyiceberg binds it. Names with a dot would be paths.
    """
    types: Any = imported("pyiceberg.types", "iceberg")
    ids = count(1)

    def nested_fields(fields: Iterable[Field], *, of_struct: bool) -> Iterator[Any]:
        for field in fields:
            match field.type:
                case Decimal(precision=precision, scale=scale):
                    type_ = types.DecimalType(precision, scale)
                case Struct(fields=below):
                    type_ = types.StructType(*nested_fields(below, of_struct=True))
                case _ if field.type in function_table.TYPES:
                    type_ = getattr(types, function_table.TYPES[field.type])()
                case _:
                    continue
            if "." not in field.name:
                required = not (field.nullable or of_struct)
                yield types.NestedField(next(ids), field.name, type_, required=required)

    return imported("pyiceberg.schema", "iceberg").Schema(*nested_fields(schema, of_struct=False))


class IcebergReader(TreeReader[Any]):
    """Reads expressions over the columns of one schema."""

    max_depth = 150

    def __init__(self, schema: Schema, *, two_valued: bool) -> None:
        super().__init__(with_text(schema), Semantics.ICEBERG)
        self._foreign = foreign_schema(self.schema)
        self._two_valued = two_valued

    def read(self, node: Any) -> ir.Predicate:
        """Read one expression by its class."""
        kind = type(node).__name__
        supported(function_table.ROWS.get(kind), f"the expression {kind}", "unknown to Rowsieve")
        match kind:
            case "AlwaysTrue" | "AlwaysFalse":
                return ir.TRUE if kind == "AlwaysTrue" else ir.FALSE
            case "And" | "Or":
                return self.junction(chain(node, kind), all_of=kind == "And")
            case "Not":
                return ir.Not(self.predicate(node.child))
        if kind.startswith("Bound"):
            return self._leaf(node, self._named(node.term))
        if kind in ("In", "NotIn"):  # whose own `bind` validates each literal twice more
            term = self._attempt(node, node.term.bind, self._foreign)
            type_ = term.ref().field.field_type
            literals = self._attempt(node, _converted, node.literals, type_)
            if len(literals) > 1:
                return self._listed(kind, self._operand_of(term), literals)
        bound = self._attempt(node, node.bind, self._foreign)
        if not type(bound).__name__.startswith("Bound"):
            return self.read(bound)  # decided by the type alone
        return self._leaf(bound, self._operand_of(bound.term))

    def _attempt(self, expression: Any, step: Callable[..., Any], *arguments: Any) -> Any:
        self.schema.field(expression.term.name.partition(".")[0])
        try:
            return step(*arguments)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise UnsupportedOperation(f"pyiceberg cannot bind it: {error}") from error

    def _operand_of(self, term: Any) -> ir.Operand:
        """Return the column, or field of a struct, that was bound here."""
        name, *below = self._foreign.find_column_name(term.ref().field.field_id).split(".")
        column: ir.Operand = ir.Column(name)
        return reduce(ir.FieldAccess, below, column)

    def _named(self, term: Any) -> ir.Operand:
        """Return the column of a term that was bound elsewhere, by name, if the types agree."""
        field = term.ref().field
        if term.ref().accessor.inner is not None:
            raise UnsupportedOperation("a member of a struct was bound; give it unbound")
        self.schema.field(field.name)  # UnknownColumn where there is none
        if (field.name, field.field_type) not in [
            (f.name, f.field_type) for f in self._foreign.fields
        ]:
            raise UnsupportedOperation(
                f"the column {field.name!r} was bound as {field.field_type}; give it unbound"
            )
        return ir.Column(field.name)

    def _leaf(self, bound: Any, operand: ir.Operand) -> ir.Predicate:
        kind = type(bound).__name__.removeprefix("Bound")
        test: ir.Predicate
        match kind:
            case "IsNull":
                return ir.IsNull(operand)
            case "NotNull":
                return ir.Not(ir.IsNull(operand))
            case "IsNaN" | "NotNaN":
                op = ir.ComparisonOp.NE if kind == "IsNaN" else ir.ComparisonOp.EQ
                test = ir.Comparison(op, operand, operand)
            case "In" | "NotIn":
                return self._listed(kind, operand, bound.literals)
            case "StartsWith" | "NotStartsWith":
                prefix = ir.Literal(bound.literal.value, String())
                test = ir.BooleanOperand(ir.Call("starts_with", (operand, prefix)))
            case _:
                constant = self._constant(bound.literal, self.type_of(operand))
                test = ir.Comparison(function_table.COMPARISONS[kind], operand, constant)
        return self._tested(kind, operand, test)

    def _tested(self, kind: str, operand: ir.Operand, test: ir.Predicate) -> ir.Predicate:
        """Return the test or its negation, with its result for NULL if that is not NULL."""
        negative = kind.startswith("Not")
        if kind in ("NotIn", "NotStartsWith"):
            test = ir.Not(test)
        if not self._two_valued and kind not in ("In", "NotIn"):
            return test
        null = ir.IsNull(operand)
        return ir.Or((null, test)) if negative else ir.And((ir.Not(null), test))

    def _constant(self, literal: Any, type_: LogicalType | None) -> ir.Literal:
        supported(function_table.ROWS.get(type(literal).__name__), f"the constant {literal!r}")
        value: Any = literal.value
        match type_:
            case Int():
                return ir.Literal(int(value))
            case Float(bits=32) if not self._two_valued:  # a scan compares in the column's type
                return ir.Literal(pa.scalar(value, pa.float32()).as_py(), type_)
            case Float():
                return ir.Literal(float(value), Float(64))
            case Decimal():
                return ir.Literal(value)
            case _:
                return ir.Literal(value, type_)

    def _listed(self, kind: str, operand: ir.Operand, literals: set[Any]) -> ir.Predicate:
        """Return a list of literals that were converted to the operand's type."""
        if any(
            type_.__name__.endswith(("AboveMax", "BelowMin")) for type_ in set(map(type, literals))
        ):
            raise UnsupportedOperation(
                f"{kind} with a value that is beyond the column's type; leave it out"
            )
        members = self.type_of(operand)
        assert members is not None
        wide = isinstance(members, Float) and self._two_valued
        if wide or isinstance(members, Int):
            members = Float(64) if wide else Int(64)
        try:
            array = from_ticks(map(attrgetter("root"), literals), members)
        except (pa.ArrowException, OverflowError, TypeError) as error:
            raise UnsupportedOperation(f"a member of IN is of another type: {error}") from error
        if wide and pc.any(pc.equal(array, 0.0)).as_py():
            array = pa.concat_arrays([array, pa.array([0.0, -0.0])])
        return self._tested(kind, operand, ir.InList(operand, ir.ValueSet(array, members)))


def _converted(literals: set[Any], type_: Any) -> set[Any]:
    """Convert literals to a column's type, which for a million takes seconds one by one.

    Soundness: literals of one class are all kept by a type that keeps the least and the greatest;
    of text and bytes, any one. Not decimals, whose scales may differ.
    """
    if len(kinds := set(map(type, literals))) == 1 and kinds.pop().__name__ != "DecimalLiteral":
        root = attrgetter("root")
        ends = [next(iter(literals))]
        if not isinstance(root(ends[0]), str | bytes):
            ends = [min(literals, key=root), max(literals, key=root)]
        if all(end.to(type_) is end for end in ends):
            return literals
    return {item.to(type_) for item in literals}
