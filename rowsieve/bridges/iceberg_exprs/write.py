"""Write a bound tree as pyiceberg's expressions, which keep the rows on which it is TRUE.

pyiceberg's scan and its evaluator differ for NULL; a written expression keeps the same rows in both
(`leaves`).
"""

from __future__ import annotations

import gc
import math
from collections import deque
from collections.abc import Sequence
from itertools import islice, repeat
from typing import Any

from rowsieve.bridges.base import path_of
from rowsieve.bridges.extras import imported
from rowsieve.bridges.iceberg_exprs import function_table
from rowsieve.bridges.leaves import KeptRows, Leaf, Members, zeros_apart
from rowsieve.bridges.python_text import is_recording, recorded
from rowsieve.bridges.ticks import as_ticks
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import PhysicalValue
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Decimal, Float, LogicalType, type_name

_NAMES = {op.value: name for name, op in function_table.COMPARISONS.items()} | {
    "IN": "In",
    "NOT IN": "NotIn",
    "STARTS WITH": "StartsWith",
    "NOT STARTS WITH": "NotStartsWith",
}
_NEGATIVE = ("<>", "NOT IN", "NOT STARTS WITH")
LONG = 1_000  # members; shorter lists are written one by one


class IcebergWriter(KeptRows[Any]):
    """Writes bound trees with the given semantics."""

    def __init__(self, semantics: Semantics) -> None:
        super().__init__(semantics)
        self._expressions: Any = recorded(imported("pyiceberg.expressions", "iceberg"))
        self._literals: Any = recorded(imported("pyiceberg.expressions.literals", "iceberg"))

    def always(self, *, value: bool) -> Any:
        """Write AlwaysTrue or AlwaysFalse."""
        return self._expression("AlwaysTrue" if value else "AlwaysFalse")

    def junction(self, terms: Sequence[Any], *, all_of: bool) -> Any:
        """Write And or Or; pyiceberg balances them."""
        if not terms:
            return self.always(value=all_of)
        return terms[0] if len(terms) == 1 else self._expression("And" if all_of else "Or", *terms)

    def leaf(self, leaf: Leaf) -> Any:
        """Write a leaf, with guards for NULL and NaN."""
        column, names = path_of(leaf.operand, "pyiceberg")
        if any("." in name for name in (column.name, *names)):
            raise UnsupportedOperation("a dot in the name of a column would be a path in pyiceberg")
        path, type_ = ".".join((column.name, *names)), type_of(leaf.operand)
        if type_ not in function_table.TYPES and not isinstance(type_, Decimal):
            raise UnsupportedOperation(f"Iceberg has no constants of the type {type_name(type_)}")
        nan = isinstance(type_, Float) and bool(leaf.on_nan)
        guards = ["NotNull", "NotNaN"] if isinstance(type_, Float) and not nan else ["NotNull"]
        terms: list[Any] = []
        keeps_nan = bool(leaf.others)  # by the guards, NaN among them
        if isinstance(leaf.others, tuple):
            test, constant = leaf.others
            keeps_nan = test in _NEGATIVE
            if isinstance(constant, Members):
                terms.append(self._in(test, path, constant))
            else:
                terms.append(
                    self._expression(_NAMES[test], path, self._constant(constant.value, type_))
                )
        if keeps_nan:
            known = [self._expression(name, path) for name in guards]
            terms = [self.junction([*known, *terms], all_of=True)]
        elif nan:
            terms.append(self._expression("IsNaN", path))
        alternatives = self.junction(terms, all_of=False)
        null = [self._expression("IsNull", path)] if leaf.on_null else []
        return self.junction([*null, alternatives], all_of=False)

    def _in(self, test: str, path: str, members: Members) -> Any:
        """Write a list, with zeros of floats apart, because a scan compares their bits."""
        array, signs = zeros_apart(members)
        if members.bitwise and len(signs) == 1:
            raise UnsupportedOperation(
                "a list that distinguishes -0.0 from 0.0 does so only in scans"
            )
        values = as_ticks(array, members.type).to_pylist()
        tests = [self._set(test, path, values, members.type)] if values else []
        if signs:
            tests.append(self._expression("EqualTo" if test == "IN" else "NotEqualTo", path, 0.0))
        return self.junction(tests, all_of=test != "IN")

    def _set(self, test: str, path: str, values: list[PhysicalValue], type_: LogicalType) -> Any:
        """Write a list; pyiceberg validates each literal thrice; a long one skips that."""
        if len(values) < LONG or type_ == Float(32) or is_recording():
            constants = [self._constant(value, type_) for value in values]
            return self._expression(_NAMES[test], path, constants)
        literals = _literals(self._constant(values[0], type_), values)
        few = self._expression(_NAMES[test], path, list(islice(literals, 2)))
        if len(literals) > 2:
            vars(few)["literals"] = literals
        return few

    def _constant(self, value: Any, type_: LogicalType) -> Any:
        """Write a constant that pyiceberg binds to the column's type unchanged."""
        if (kind := function_table.LITERALS_OF.get(type(type_))) is not None:
            return getattr(self._literals, kind)(value)
        if isinstance(type_, Float) and type_.bits == 32 and math.isinf(value):
            raise UnsupportedOperation("pyiceberg has no infinite float32")
        if isinstance(type_, Decimal) and -value.as_tuple().exponent != type_.scale:
            raise UnsupportedOperation(f"the constant {value!r} is not a valid {type_name(type_)}")
        return self._literals.literal(value)

    def _expression(self, name: str, *arguments: Any) -> Any:
        return getattr(self._expressions, name)(*arguments)


def _literals(first: Any, values: Sequence[PhysicalValue]) -> set[Any]:
    """Return literals with the class and fields of the first one, which pyiceberg made."""
    kind: Any = type(first)
    known = first.__pydantic_fields_set__
    was_on = gc.isenabled()
    gc.disable()  # it would take most of the time; no cycles are made
    try:
        literals = list(map(kind.__new__, repeat(kind, len(values))))
        for name, each in (("root", values), ("__pydantic_fields_set__", repeat(known))):
            deque(map(object.__setattr__, literals, repeat(name), each), maxlen=0)
        return set(literals)
    finally:
        if was_on:
            gc.enable()
