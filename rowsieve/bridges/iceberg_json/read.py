"""Read Iceberg's expressions, as JSON, into our tree.

Soundness: predicates are two-valued there, so that the result for NULL and NaN is written out: a
condition that was read is TRUE or FALSE on every row, and may be negated or stand in a constraint.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, Final

import pyarrow as pa

from rowsieve.bridges.base import TreeReader
from rowsieve.bridges.chains import balanced, flattened
from rowsieve.bridges.iceberg_json import function_table
from rowsieve.bridges.iceberg_json.single_values import as_constant, type_named
from rowsieve.bridges.iceberg_json.transforms import Term, transformed
from rowsieve.bridges.ticks import from_ticks
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.binding.enum_labels import with_text
from rowsieve.predicate.comparison_op import ComparisonOp
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Decimal, Field, Float, Int, LogicalType, Struct, type_name
from rowsieve.types.schema import Schema

_FUNCTIONS: Final = "iceberg_functions"
_TESTS: Final = ("is-null", "not-null", "is-nan", "not-nan")


def chain(expression: Any, kind: str) -> list[Any]:
    """Return the terms of an AND or OR, in the order written."""

    def terms_of(item: Any) -> tuple[Any, Any] | None:
        if not isinstance(item, Mapping) or _kind(item) != kind:
            return None
        return (item["left"], item["right"]) if {"left", "right"} <= item.keys() else None

    return flattened(expression, terms_of)


def joined(terms: list[Any]) -> Any:
    """Return the AND of conditions."""
    return balanced(terms, lambda left, right: {"type": "and", "left": left, "right": right})


def member(node: Mapping[str, Any], name: str) -> Any:
    """Return a member of an object; `InvalidPredicate` if it lacks it."""
    if name not in node:
        raise InvalidPredicate(f"the expression {_kind(node)!r} lacks its member {name!r}")
    return node[name]


def _kind(node: Mapping[str, Any]) -> str:
    kind = node.get("type")
    return kind.lower().replace("_", "-") if isinstance(kind, str) else ""


class IcebergJsonReader(TreeReader[Any]):
    """Reads expressions over the columns of one schema; `ids` are the names of columns by id."""

    max_depth = 150

    def __init__(self, schema: Schema, ids: Mapping[int, str] | None) -> None:
        super().__init__(with_text(schema), Semantics.ICEBERG_JSON)
        self._ids = ids

    def read(self, node: Any) -> ir.Predicate:
        """Read one predicate by its type."""
        if isinstance(node, bool):
            return ir.TRUE if node else ir.FALSE
        if not isinstance(node, Mapping):
            raise InvalidPredicate(f"a predicate is a JSON object or boolean, not {node!r}")
        match kind := _kind(node):
            case "literal" if isinstance(node.get("value"), bool):  # as Java reads constants
                return ir.TRUE if node["value"] else ir.FALSE
            case "and" | "or":
                for side in ("left", "right"):
                    member(node, side)
                return self.junction(chain(node, kind), all_of=kind == "and")
            case "not":
                return ir.Not(self.predicate(member(node, "child")))
        if kind not in function_table.ROWS or kind in ("true", "false"):
            raise UnsupportedOperation(f"the predicate {node.get('type')!r} is unknown")
        if kind in _TESTS:
            return self._tested(kind, self._first(node, "child"))
        if kind in ("in", "not-in"):
            return self._listed(kind, self._first(node, "child"), member(node, "values"))
        if "term" in node:
            return self._compared(kind, self._term(node["term"]), member(node, "value"))
        return self._between(kind, member(node, "left"), member(node, "right"))

    def _first(self, node: Mapping[str, Any], name: str) -> Term:
        """Return the term of a test, in the newer or the older form."""
        if "term" in node:
            return self._term(node["term"])
        return self._reference(member(node, name))

    def _term(self, node: Any) -> Term:
        """Read a term of the older form, where a string is a name."""
        if isinstance(node, str):
            return self._named(node)
        if isinstance(node, Mapping) and _kind(node) == "transform":
            return transformed(self._term(member(node, "term")), member(node, "transform"))
        return self._reference(node)

    def _reference(self, node: Any) -> Term:
        """Read a reference or a call of a transform."""
        kind = _kind(node) if isinstance(node, Mapping) else ""
        if kind == "reference":
            if "id" in node:
                return self._by_id(node["id"])
            name = node.get("name", node.get("term"))
            if not isinstance(name, str):
                raise InvalidPredicate("a reference has neither a name nor an id")
            return self._named(name)
        if kind == "apply":
            return self._applied(node)
        raise UnsupportedOperation(f"a test of {node!r} is not read: it takes a column")

    def _applied(self, node: Mapping[str, Any]) -> Term:
        function, arguments = member(node, "function"), member(node, "arguments")
        catalog = function.get("catalog") if isinstance(function, Mapping) else None
        name = function.get("identifier") if isinstance(function, Mapping) else function
        names = name if isinstance(name, list) else [name]
        if catalog != _FUNCTIONS or len(names) != 1 or names[0] == "if_else":
            shown = ".".join(map(str, ([] if catalog is None else [catalog]) + names))
            raise UnsupportedOperation(
                f"the function {shown} is not read; transforms of {_FUNCTIONS} are"
            )
        if not isinstance(arguments, list) or not arguments or len(arguments) > 2:
            raise InvalidPredicate(f"{names[0]} takes a column, and a width before it")
        width = _plain(arguments[0]) if len(arguments) == 2 else None
        if isinstance(width, bool) or not isinstance(width, int | None):
            raise InvalidPredicate(f"the width of {names[0]} is {width!r}, not an integer")
        text = names[0] if width is None else f"{names[0]}[{width}]"
        return transformed(self._reference(arguments[-1]), text)

    def _by_id(self, field_id: Any) -> Term:
        if self._ids is None:
            raise UnsupportedOperation(
                "a column is referred to by its field id: give from_iceberg_json the names of "
                "fields by id as ids="
            )
        if isinstance(field_id, bool) or not isinstance(field_id, int) or field_id not in self._ids:
            raise InvalidPredicate(f"no column has the field id {field_id!r}")
        return self._named(self._ids[field_id])

    def _named(self, name: str) -> Term:
        """Return a column, or a field of a struct by its path, which may not mean two."""
        paths = [path for path in _paths(name) if self._has(path)]
        if len(paths) > 1:
            raise InvalidPredicate(f"{name!r} is a column and a field of a struct")
        if not paths:
            self.schema.field(name.partition(".")[0])  # UnknownColumn
            raise InvalidPredicate(f"there is no field {name!r}")
        column: ir.Operand = ir.Column(paths[0][0])
        operand = reduce(ir.FieldAccess, paths[0][1:], column)
        type_ = self.type_of(operand)
        assert type_ is not None
        return Term(operand, name, type_)

    def _has(self, path: tuple[str, ...]) -> bool:
        fields: tuple[Field, ...] = self.schema.fields
        for name in path:
            found = next((field for field in fields if field.name == name), None)
            if found is None:
                return False
            fields = found.type.fields if isinstance(found.type, Struct) else ()
        return True

    def _tested(self, kind: str, term: Term) -> ir.Predicate:
        null = ir.IsNull(term.operand)
        if kind in ("is-null", "not-null"):
            if term.name == "void":
                return ir.TRUE if kind == "is-null" else ir.FALSE
            return null if kind == "is-null" else ir.Not(null)
        if not isinstance(term.type, Float) or term.name is not None:
            raise InvalidPredicate(f"{kind} takes float and double, not {term.shown}")
        op = ComparisonOp.NE if kind == "is-nan" else ComparisonOp.EQ
        return self._two_valued(kind, term, ir.Comparison(op, term.operand, term.operand))

    def _compared(self, kind: str, term: Term, value: Any) -> ir.Predicate:
        value, stated_type = _literal(value)
        if kind in ("starts-with", "not-starts-with"):
            test = term.starts_with(value, stated_type)
            return self._two_valued(kind, term, ir.Not(test) if kind[0] == "n" else test)
        op = function_table.COMPARISONS[kind]
        return self._two_valued(kind, term, term.compared(op, value, stated_type))

    def _listed(self, kind: str, term: Term, values: Any) -> ir.Predicate:
        stated_type = None
        if isinstance(values, Mapping):
            stated_type = type_named(member(values, "data-type"))
            values = member(values, "values")
        if not isinstance(values, list | tuple):
            raise InvalidPredicate(f"{kind} takes a JSON array of values, not {values!r}")
        test: ir.Predicate
        if (
            stated_type is None
            and term.name is None
            and not any(isinstance(v, dict) for v in values)
        ):
            test = self._in(term, values)
        else:
            pairs = [_literal(value) for value in values]
            equal = [term.compared(ComparisonOp.EQ, v, type_ or stated_type) for v, type_ in pairs]
            test = ir.Or(tuple(equal)) if len(equal) != 1 else equal[0]
        return self._two_valued(kind, term, ir.Not(test) if kind == "not-in" else test)

    def _in(self, term: Term, values: Any) -> ir.Predicate:
        if not values:
            return ir.FALSE
        constants = [as_constant(value, term.type).value for value in values]
        type_ = Int(64) if isinstance(term.type, Int) else term.type
        is_cut = isinstance(type_, Int) and any(not isinstance(each, int) for each in constants)
        try:
            if not is_cut:  # Arrow makes 1 of 1.5
                return ir.InList(term.operand, ir.ValueSet(from_ticks(constants, type_), type_))
        except (pa.ArrowException, OverflowError, TypeError):
            pass  # compared one by one
        equal = [term.compared(ComparisonOp.EQ, value, None) for value in values]
        return ir.Or(tuple(equal)) if len(equal) > 1 else equal[0]

    def _between(self, kind: str, left: Any, right: Any) -> ir.Predicate:
        """Read a comparison of two values."""
        if _is_constant(right) and not _is_constant(left):
            return self._compared(kind, self._reference(left), right)
        if _is_constant(left):
            if _is_constant(right):
                raise UnsupportedOperation("two constants are compared; write true or false")
            if kind in ("starts-with", "not-starts-with"):
                raise UnsupportedOperation(f"{kind} takes a constant on the right only")
            return self._compared(function_table.mirrored(kind), self._reference(right), left)
        first, second = self._reference(left), self._reference(right)
        if kind not in function_table.COMPARISONS or first.name or second.name:
            raise UnsupportedOperation(f"{kind} of {first.shown} and {second.shown} is not read")
        if not _aligned(first.type, second.type):
            raise UnsupportedOperation(
                f"{kind} of {type_name(first.type)} and {type_name(second.type)}: cast one of them"
            )
        return _of_columns(kind, first, second)

    def _two_valued(self, kind: str, term: Term, test: ir.Predicate) -> ir.Predicate:
        """Give a test its result for NULL: TRUE if it is negative."""
        if isinstance(test, ir.TruePredicate | ir.FalsePredicate):
            return test
        null = ir.IsNull(term.operand)
        if (
            isinstance(term.operand, ir.Column)
            and not self.schema.field(term.operand.name).nullable
        ):
            return test
        return ir.Or((null, test)) if kind.startswith("not-") else ir.And((ir.Not(null), test))


def _of_columns(kind: str, first: Term, second: Term) -> ir.Predicate:
    """Compare two columns, null-safe; two NaN are equal, and have no order with numbers."""
    left, right = first.operand, second.operand
    if kind in ("lt", "gt"):
        op = function_table.COMPARISONS[kind]
        return _known_both(left, right, ir.Comparison(op, left, right))
    equal: ir.Predicate = ir.Comparison(ComparisonOp.NOT_DISTINCT, left, right)
    if isinstance(first.type, Float):
        unequal = [ir.Comparison(ComparisonOp.NE, each, each) for each in (left, right)]
        equal = ir.Or((equal, _known_both(left, right, *unequal)))
    if kind in ("eq", "not-eq"):
        return equal if kind == "eq" else ir.Not(equal)
    return ir.Or((equal, _of_columns(kind.removesuffix("-eq"), first, second)))


def _known_both(left: ir.Operand, right: ir.Operand, *tests: ir.Predicate) -> ir.Predicate:
    return ir.And((ir.Not(ir.IsNull(left)), ir.Not(ir.IsNull(right)), *tests))


def _aligned(left: LogicalType, right: LogicalType) -> bool:
    kinds = (Int, Float, Decimal)
    return left == right or any(isinstance(left, k) and isinstance(right, k) for k in kinds)


def _is_constant(node: Any) -> bool:
    return not isinstance(node, Mapping) or _kind(node) not in ("reference", "apply")


def _literal(node: Any) -> tuple[Any, LogicalType | None]:
    """Return the value of a constant and its type, if it is given."""
    if not isinstance(node, Mapping):
        return node, None
    if _kind(node) != "literal":
        raise UnsupportedOperation(f"{dict(node)!r} is not compared: it takes a constant")
    type_text = node.get("data-type")
    return member(node, "value"), None if type_text is None else type_named(type_text)


def _plain(node: Any) -> Any:
    return _literal(node)[0]


def _paths(name: str) -> list[tuple[str, ...]]:
    """Return all ways to read a name with dots as a path of names."""
    parts = name.split(".")
    if len(parts) > 8:
        return [(name,), tuple(parts)]
    found: list[tuple[str, ...]] = [(parts[0],)]
    for part in parts[1:]:
        found = [
            way for path in found for way in ((*path[:-1], f"{path[-1]}.{part}"), (*path, part))
        ]
    return found
