"""Write a bound tree as a `polars.Expr`.

Where polars differs, the expression has a guard (NULL in lists, NaN that is unequal to itself,
integers that must not wrap around); if none is possible, the whole condition is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.base import OPERATORS, OperatorWriter, part_of_text
from rowsieve.bridges.extras import imported
from rowsieve.bridges.functions.casts import CASTS, kinds_of
from rowsieve.bridges.python_text import recorded
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.like import parse_pattern
from rowsieve.predicate.literal_values import scalar
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import NanOrder, OnFailure, Semantics
from rowsieve.types.days import DAY_US, FIRST_DAY, LAST_DAY
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    LogicalType,
    Time,
    Timestamp,
    is_nested,
    type_name,
)

if TYPE_CHECKING:
    from polars import Expr

_COMPARE: Mapping[ir.ComparisonOp, Callable[[Any, Any], Any]] = {
    **OPERATORS,
    ir.ComparisonOp.DISTINCT: lambda a, b: a.ne_missing(b),
    ir.ComparisonOp.NOT_DISTINCT: lambda a, b: a.eq_missing(b),
}


class Writer(OperatorWriter["Expr"]):
    """Writes bound trees with the given semantics."""

    engine = "polars"

    def __init__(self, semantics: Semantics) -> None:
        self.semantics = semantics
        self.polars: Any = recorded(imported("polars", "polars"), "pl", "import polars as pl")

    def column(self, node: ir.BoundColumn) -> Expr:
        """Write a column; raise if its name would be a pattern."""
        if node.name == "*" or (node.name.startswith("^") and node.name.endswith("$")):
            raise UnsupportedOperation(f"the name {node.name!r} would be a pattern in polars")
        return self._made(self.polars.col(node.name))

    def member(self, node: ir.FieldAccess) -> Expr:
        """Write a field of a struct; raise if its name would be a pattern."""
        if any(mark in node.name for mark in "*^"):
            raise UnsupportedOperation(f"the member {node.name!r} would be a pattern in polars")
        return self._made(self.operand(node.operand).struct.field(node.name))

    def case(self, node: ir.Case) -> Expr:
        """Write `when`, `then`, `otherwise`."""
        made = self.operand(node.otherwise)
        for when, then in reversed(node.branches):
            made = self.choose(self.predicate(when), self.operand(then), made)
        return made

    def constant(self, literal: ir.Literal) -> Expr:
        """Write a constant of its type."""
        assert literal.type is not None
        value, type_ = literal.value, literal.type
        if isinstance(type_, Float) and isinstance(value, float) and math.isnan(value):
            value = math.nan
        days = value if isinstance(type_, Date) else None
        if isinstance(type_, Timestamp) and isinstance(value, int):
            days = value // DAY_US
        if isinstance(days, int) and not FIRST_DAY <= days <= LAST_DAY:
            raise UnsupportedOperation(
                "a day beyond polars' calendar in Python, which has the years 1 to 9999"
            )
        if value is not None and isinstance(type_, Date | Time | Timestamp | Decimal):
            made = self.polars.Series(pa.array([scalar(literal)], arrow_type(type_)))
            return self._made(self.polars.lit(made.item(), dtype=made.dtype))
        return self._made(self.polars.lit(value, dtype=self.dtype(type_)))

    def dtype(self, type_: LogicalType) -> Any:
        """Return polars' type for values of the type."""
        return self.polars.Series(pa.array([], arrow_type(type_))).dtype

    def truth(self, *, value: bool | None) -> Expr:
        """Write TRUE, FALSE or NULL."""
        return self._made(self.polars.lit(value, dtype=self.polars.Boolean))

    def choose(self, when: Expr, then: Expr, otherwise: Expr) -> Expr:
        """Write CASE WHEN … THEN … ELSE … END."""
        return self._made(self.polars.when(when).then(then).otherwise(otherwise))

    def comparison(self, op: ir.ComparisonOp, left: ir.Operand, right: ir.Operand) -> Expr:
        """Write a comparison, with NaN ordered by the semantics."""
        types = type_of(left), type_of(right)
        if any(is_nested(type_) for type_ in types):
            raise UnsupportedOperation("lists, structs and maps are not compared")
        sides = self.operand(left), self.operand(right)
        made: Expr = _COMPARE[op](*sides)
        if not isinstance(types[0], Float) or self.semantics.nan is not NanOrder.IEEE:
            return made
        if op in (ir.ComparisonOp.DISTINCT, ir.ComparisonOp.NOT_DISTINCT):
            raise UnsupportedOperation("NaN is equal to itself in eq_missing")
        nan = sides[0].is_nan() | sides[1].is_nan()
        unequal = self.truth(value=op is ir.ComparisonOp.NE)
        known = self.choose(nan, unequal, made)
        missing = sides[0].is_null() | sides[1].is_null()
        return self.choose(missing, self.truth(value=None), known)

    def in_list(self, node: ir.InList) -> Expr:
        """Write `is_in` with a Series, and a guard for NULL in it."""
        operand, members = self.operand(node.operand), node.values.array
        known = members.drop_null()
        if pa.types.is_floating(members.type):
            if self.semantics.compares_bits(len(members)) and _has_zero(known):
                raise UnsupportedOperation("polars' is_in finds zeros of both signs")
            if self.semantics.nan is NanOrder.IEEE:
                known = known.filter(pc.invert(pc.is_nan(known)))
        type_ = node.values.type or type_of(node.operand)
        found = operand.is_in(self.polars.Series(known.cast(arrow_type(type_))).implode())
        if not members.null_count:
            return found
        return self.choose(found, self.truth(value=True), self.truth(value=None))

    def like(self, node: ir.Like) -> Expr:
        """Write a text function, which can be read back, or a regular expression."""
        text: Any = self.operand(node.operand)
        match part_of_text(node):
            case "=", value:
                return self._made(text == self.polars.lit(value))
            case "contains", value:
                return self._made(text.str.contains(value, literal=True))
            case name, value:
                return self._made(getattr(text.str, name)(value))
        body = parse_pattern(node.pattern, node.escape).regex
        body = body.removeprefix("(?s)^").removesuffix("$")
        for space in " \t\n\r\v\f":  # Python escapes them in a way that Rust does not know
            body = body.replace(f"\\{space}", f"\\x{ord(space):02x}")
        flags = "si" if node.ignore_case else "s"
        return self._made(text.str.contains(rf"(?{flags})\A{body}\z"))

    def cast(self, node: ir.Cast) -> Expr:
        """Write a cast between types for which polars agrees."""
        source, target = type_of(node.operand), node.type
        operand = self.operand(node.operand)
        if source == target:
            return operand
        if kinds_of(source, target) not in CASTS["polars"]:
            raise UnsupportedOperation(
                f"a cast of {type_name(source)} to {type_name(target)} may give other values there"
            )
        zoned = isinstance(source, Timestamp) or isinstance(target, Timestamp)
        if zoned and self.semantics.time_zone != "UTC":
            raise UnsupportedOperation("a time zone other than UTC")
        may_fail = node.try_ or self.semantics.failed_cast is OnFailure.NULL
        return self._made(operand.cast(self.dtype(target), strict=not may_fail))

    def _made(self, made: Any) -> Expr:
        expression: Expr = made
        return expression


def _has_zero(members: pa.Array) -> bool:
    return bool(pc.any(pc.equal(members, 0.0)).as_py())
