"""Write a bound tree as Iceberg's expression, which keeps the rows on which it is TRUE.

Conditions on a column and a constant are written in the term-based form, which the specification
keeps for compatibility and which the clients of Java and pyiceberg read; with ids, and between two
columns, in the newer one.

Soundness: a negative test is TRUE for NULL there, so it is written with not-null, and with not-nan
where NaN is not to be kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rowsieve.bridges.base import path_of
from rowsieve.bridges.chains import balanced
from rowsieve.bridges.iceberg_json.function_table import COMPARISONS
from rowsieve.bridges.iceberg_json.single_values import as_json, check_compared
from rowsieve.bridges.leaves import KeptRows, Leaf, Members, zeros_apart
from rowsieve.bridges.ticks import as_ticks
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Float

_NAMES = {op.value: name for name, op in COMPARISONS.items()} | {
    "IN": "in",
    "NOT IN": "not-in",
    "STARTS WITH": "starts-with",
    "NOT STARTS WITH": "not-starts-with",
}
_FALSE_FOR_NULL = ("eq", "lt", "lt-eq", "gt", "gt-eq", "in", "starts-with", "is-nan")


class IcebergJsonWriter(KeptRows[Any]):
    """Writes bound trees with the given semantics; `ids` are the field ids of names."""

    def __init__(self, semantics: Semantics, ids: Mapping[str, int] | None) -> None:
        super().__init__(semantics)
        self._ids = ids

    def rows(self, node: ir.Predicate, *, negated: bool = False) -> Any:
        """Write the rows on which the condition, or its negation, is TRUE."""
        match node:
            case ir.Comparison(left=left, right=right) if left != right and not isinstance(
                right, ir.Literal
            ):
                return self._of_columns(node, negated=negated)
        return super().rows(node, negated=negated)

    def always(self, *, value: bool) -> Any:
        """Write true or false."""
        return value

    def junction(self, terms: Sequence[Any], *, all_of: bool) -> Any:
        """Write a balanced AND or OR."""
        if not terms:
            return self.always(value=all_of)
        kind = "and" if all_of else "or"
        if all_of:
            terms = _without_repeats(terms)
        return balanced(terms, lambda left, right: {"type": kind, "left": left, "right": right})

    def leaf(self, leaf: Leaf) -> Any:
        """Write a leaf, with its results for NULL and NaN."""
        name, type_ = self._name(leaf.operand), type_of(leaf.operand)
        is_float = isinstance(type_, Float)
        nan = is_float and bool(leaf.on_nan)
        tests = ["not-null", "not-nan"] if is_float and not nan else ["not-null"]
        terms: list[Any] = []
        keeps_nan = bool(leaf.others)  # by the tests, NaN among them
        if isinstance(leaf.others, tuple):
            test, constant = leaf.others
            keeps_nan = test in ("<>", "NOT IN", "NOT STARTS WITH")
            if isinstance(constant, Members):
                terms.append(self._in(test, name, constant))
            else:
                value = as_json(constant.value, type_)
                terms.append(self._with_constant(_NAMES[test], name, value))
        if keeps_nan:
            terms = [self.junction([*(self._test(t, name) for t in tests), *terms], all_of=True)]
        elif nan:
            terms.append(self._test("is-nan", name))
        null = [self._test("is-null", name)] if leaf.on_null else []
        return self.junction([*null, self.junction(terms, all_of=False)], all_of=False)

    def _of_columns(self, node: ir.Comparison, *, negated: bool) -> Any:
        """Write a comparison of two columns."""
        types = {type_of(node.left), type_of(node.right)}
        if len(types) > 1 or isinstance(next(iter(types)), Float):
            raise UnsupportedOperation(
                "readers of Iceberg compare columns of one type that is not a float; compare each "
                "column with constants"
            )
        check_compared(next(iter(types)))
        names = [self._name(operand) for operand in (node.left, node.right)]
        op = node.op
        if op.is_null_safe:
            kind = "eq" if (op is ir.ComparisonOp.NOT_DISTINCT) is not negated else "not-eq"
            return self._between(kind, names)
        kind = _NAMES[(op.negated if negated else op).value]
        known = [self._test("not-null", name) for name in names]
        return self.junction([*known, self._between(kind, names)], all_of=True)

    def _name(self, operand: ir.Operand) -> str:
        column, names = path_of(operand, "Iceberg")
        if any("." in name for name in (column.name, *names)):
            raise UnsupportedOperation("a dot in the name of a column would be a path in Iceberg")
        name = ".".join((column.name, *names))
        if self._ids is not None and name not in self._ids:
            raise UnsupportedOperation(f"ids= has no field id of {name!r}")
        return name

    def _reference(self, name: str) -> Any:
        if self._ids is None:
            return {"type": "reference", "name": name}
        return {"type": "reference", "id": self._ids[name]}

    def _test(self, kind: str, name: str) -> Any:
        if self._ids is None:
            return {"type": kind, "term": name}
        return {"type": kind, "child": self._reference(name)}

    def _with_constant(self, kind: str, name: str, value: Any) -> Any:
        if self._ids is None:
            return {"type": kind, "term": name, "value": value}
        return {"type": kind, "left": self._reference(name), "right": value}

    def _between(self, kind: str, names: Sequence[str]) -> Any:
        left, right = map(self._reference, names)
        return {"type": kind, "left": left, "right": right}

    def _in(self, test: str, name: str, members: Members) -> Any:
        array, signs = zeros_apart(members)
        if members.bitwise and len(signs) == 1:
            raise UnsupportedOperation(
                "a list that distinguishes -0.0 from 0.0 has no counterpart in Iceberg"
            )
        values = as_ticks(array, members.type).to_pylist()
        constants = [as_json(value, members.type) for value in values] + [0.0] * bool(signs)
        return {**self._test(_NAMES[test], name), "values": constants}


def _without_repeats(terms: Sequence[Any]) -> Sequence[Any]:
    """Leave out not-null where another condition of the AND is FALSE for NULL of that column."""
    known = [
        _subject(term)
        for term in terms
        if _kind(term) in _FALSE_FOR_NULL and not isinstance(term.get("right"), dict)
    ]
    return [
        term for term in terms if _kind(term) != "not-null" or _subject(term) not in known
    ] or terms


def _kind(term: Any) -> Any:
    return term["type"] if isinstance(term, dict) else term


def _subject(term: Any) -> Any:
    """Return the column of a test or comparison with a constant, in either form."""
    return next((term[name] for name in ("term", "child", "left") if name in term), None)
