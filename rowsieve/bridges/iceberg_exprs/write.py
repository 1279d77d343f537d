"""Write a bound tree as pyiceberg's expressions, which keep the rows on which it is TRUE.

pyiceberg's scan and its evaluator differ for NULL; a written expression keeps the same rows in both
(`leaves`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rowsieve.bridges.extras import imported
from rowsieve.bridges.iceberg_exprs import function_table
from rowsieve.bridges.iceberg_exprs.columns import check_known, dotted
from rowsieve.bridges.iceberg_exprs.long_lists import LONG, literal_set, with_literals
from rowsieve.bridges.leaves import KeptRows, Leaf, Members, zeros_apart
from rowsieve.bridges.python_text import is_recording, recorded
from rowsieve.bridges.ticks import as_ticks
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import PhysicalValue
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    LogicalType,
    Time,
    Timestamp,
    Uuid,
    type_name,
)

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

_NAMES = {op.value: name for name, op in function_table.COMPARISONS.items()} | {
    "IN": "In",
    "NOT IN": "NotIn",
    "STARTS WITH": "StartsWith",
    "NOT STARTS WITH": "NotStartsWith",
}
_NEGATIVE = ("<>", "NOT IN", "NOT STARTS WITH")


class Writer(KeptRows["BooleanExpression"]):
    """Writes bound trees with the given semantics."""

    def __init__(self, semantics: Semantics) -> None:
        super().__init__(semantics)
        self._expressions: Any = recorded(imported("pyiceberg.expressions", "iceberg"))
        self._literals: Any = recorded(imported("pyiceberg.expressions.literals", "iceberg"))

    def always(self, *, value: bool) -> BooleanExpression:
        """Write AlwaysTrue or AlwaysFalse."""
        return self._made("AlwaysTrue" if value else "AlwaysFalse")

    def junction(self, terms: Sequence[BooleanExpression], *, all_of: bool) -> BooleanExpression:
        """Write And or Or; pyiceberg balances them."""
        if not terms:
            return self.always(value=all_of)
        return terms[0] if len(terms) == 1 else self._made("And" if all_of else "Or", *terms)

    def leaf(self, leaf: Leaf) -> BooleanExpression:
        """Write a leaf, with guards for NULL and NaN."""
        path, type_ = dotted(leaf.operand), type_of(leaf.operand)
        check_known(type_)
        floats = isinstance(type_, Float)
        if not isinstance(leaf.others, tuple):
            made = self._all_or_none(path, leaf, floats=floats)
        else:
            test, constant = leaf.others
            if isinstance(constant, Members):
                made = self._in(test, path, constant)
            else:
                made = self._made(_NAMES[test], path, self._constant(constant.value, type_))
            if test in _NEGATIVE:
                guards = ["NotNull", "NotNaN"] if floats and not leaf.on_nan else ["NotNull"]
                known = [self._made(guard, path) for guard in guards]
                made = self.junction([*known, made], all_of=True)
            elif floats and leaf.on_nan:
                made = self.junction([made, self._made("IsNaN", path)], all_of=False)
        return (
            self.junction([self._made("IsNull", path), made], all_of=False)
            if leaf.on_null
            else made
        )

    def _all_or_none(self, path: str, leaf: Leaf, *, floats: bool) -> BooleanExpression:
        if leaf.others:
            known = ["NotNull", "NotNaN"] if floats and not leaf.on_nan else ["NotNull"]
            return self.junction([self._made(name, path) for name in known], all_of=True)
        return self._made("IsNaN", path) if floats and leaf.on_nan else self.always(value=False)

    def _in(self, test: str, path: str, members: Members) -> BooleanExpression:
        """Write a list, with zeros of floats apart, because a scan compares their bits."""
        array, signs = zeros_apart(members)
        if members.bitwise and len(signs) == 1:
            raise UnsupportedOperation(
                "a list that distinguishes -0.0 from 0.0 does so only in scans"
            )
        values = as_ticks(array, members.type).to_pylist()
        made = [self._set(test, path, values, members.type)] if values else []
        if signs:
            made.append(self._made("EqualTo" if test == "IN" else "NotEqualTo", path, 0.0))
        return self.junction(made, all_of=test != "IN")

    def _set(
        self, test: str, path: str, values: list[PhysicalValue], type_: LogicalType
    ) -> BooleanExpression:
        if len(values) < LONG or type_ == Float(32) or is_recording():
            constants = [self._constant(value, type_) for value in values]
            return self._made(_NAMES[test], path, constants)
        literals = literal_set(self._constant(values[0], type_), values)
        few = self._made(_NAMES[test], path, list(islice(literals, 2)))
        return few if len(literals) <= 2 else with_literals(few, literals)

    def _constant(self, value: PhysicalValue, type_: LogicalType) -> Any:
        """Write a constant that pyiceberg binds to the column's type unchanged."""
        match type_:
            case Date():
                return self._literals.DateLiteral(value)
            case Time():
                return self._literals.TimeLiteral(value)
            case Timestamp():
                return self._literals.TimestampLiteral(value)
            case Uuid():
                return self._literals.UUIDLiteral(value)
            case Float(bits=32) if isinstance(value, float) and math.isinf(value):
                raise UnsupportedOperation("pyiceberg has no infinite float32")
            case Decimal(scale=scale):
                exponent = getattr(value, "as_tuple", lambda: None)()
                if exponent is None or -exponent.exponent != scale:
                    raise UnsupportedOperation(
                        f"the constant {value!r} is not a valid {type_name(type_)}"
                    )
        return self._literals.literal(value)

    def _made(self, name: str, *arguments: Any) -> BooleanExpression:
        expression: BooleanExpression = getattr(self._expressions, name)(*arguments)
        return expression
