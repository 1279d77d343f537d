"""Write a bound tree as a `polars.Expr`.

Where polars differs, the expression has a guard (NULL in lists, NaN that is unequal to itself,
integers that must not wrap around and are computed in 128 bits); if none is possible, the whole
condition is refused. Calls are written by the rows of `functions.polars`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.base import OperatorWriter, as_text_test
from rowsieve.bridges.constant_values import text_of
from rowsieve.bridges.extras import imported
from rowsieve.bridges.functions import TypedCall, polars
from rowsieve.bridges.functions.casts import CASTS, kinds_of
from rowsieve.bridges.polars_exprs import zones
from rowsieve.bridges.python_text import recorded
from rowsieve.bridges.sql.constructs.regexes import Flavour, from_re2
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.functions.registry import known_of, resolve
from rowsieve.predicate.like import parse_pattern
from rowsieve.predicate.literal_values import scalar
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import NanOrder, OnFailure, Semantics
from rowsieve.types.days import DAY_US, FIRST_DAY, LAST_DAY
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Numeric,
    String,
    Time,
    Timestamp,
    type_name,
)

_NULL_SAFE: Mapping[ir.ComparisonOp, Callable[[Any, Any], Any]] = {
    ir.ComparisonOp.DISTINCT: lambda a, b: a.ne_missing(b),
    ir.ComparisonOp.NOT_DISTINCT: lambda a, b: a.eq_missing(b),
}

_SUMS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}
_OF_FLOATS: Mapping[str, Callable[..., Any]] = {
    **_SUMS,
    "divide": operator.truediv,
    "negate": operator.neg,
}
_OF_WHOLE: Mapping[str, Callable[..., Any]] = {  # `truncdiv` truncates
    **_SUMS,
    "divide": lambda a, b: a.truncdiv(b),
    "modulo": lambda a, b: a - a.truncdiv(b) * b,
}
_ARITHMETIC = frozenset({*_OF_FLOATS, *_OF_WHOLE})
_TRIMS = ("trim", "ltrim", "rtrim")
_MOVES = ("add_interval", "shift", "shift_timestamp")


class PolarsWriter(OperatorWriter[Any]):
    """Writes bound trees with the given semantics."""

    engine = "polars"

    def __init__(self, semantics: Semantics) -> None:
        self.semantics = semantics
        self.polars: Any = recorded(imported("polars", "polars"), "pl", "import polars as pl")

    def column(self, node: ir.BoundColumn) -> Any:
        """Write a column; raise if its name would be a pattern."""
        if node.name == "*" or (node.name.startswith("^") and node.name.endswith("$")):
            raise UnsupportedOperation(f"the name {node.name!r} would be a pattern in polars")
        return self.polars.col(node.name)

    def field_access(self, node: ir.FieldAccess) -> Any:
        """Write a field of a struct; raise if its name would be a pattern."""
        if any(mark in node.name for mark in "*^"):
            raise UnsupportedOperation(f"the member {node.name!r} would be a pattern in polars")
        return self.operand(node.operand).struct.field(node.name)

    def case(self, node: ir.Case) -> Any:
        """Write `when`, `then`, `otherwise`."""
        otherwise = self.operand(node.otherwise)
        for when, then in reversed(node.branches):
            otherwise = self.choose(self.predicate(when), self.operand(then), otherwise)
        return otherwise

    def constant(self, literal: ir.Literal) -> Any:
        """Write a constant of its type."""
        assert literal.type is not None
        value, type_ = literal.value, literal.type
        if isinstance(type_, Numeric):
            raise UnsupportedOperation("a constant of type numeric")
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
            series = self.polars.Series(pa.array([scalar(literal)], arrow_type(type_)))
            return self.polars.lit(series.item(), dtype=series.dtype)
        return self.polars.lit(value, dtype=self.dtype(type_))

    def dtype(self, type_: LogicalType) -> Any:
        """Return polars' type for values of the type."""
        return self.polars.Series(pa.array([], arrow_type(type_))).dtype

    def truth(self, *, value: bool | None) -> Any:
        """Write TRUE, FALSE or NULL."""
        return self.polars.lit(value, dtype=self.polars.Boolean)

    def choose(self, when: Any, then: Any, otherwise: Any) -> Any:
        """Write CASE WHEN … THEN … ELSE … END."""
        return self.polars.when(when).then(then).otherwise(otherwise)

    def comparison(self, op: ir.ComparisonOp, left: ir.Operand, right: ir.Operand) -> Any:
        """Write a comparison, with NaN ordered by the semantics."""
        sides = self.operand(left), self.operand(right)
        comparison = (_NULL_SAFE[op] if op.is_null_safe else op.python)(*sides)
        if not isinstance(type_of(left), Float) or self.semantics.nan is not NanOrder.IEEE:
            return comparison
        if op.is_null_safe:
            raise UnsupportedOperation(
                "IS [NOT] DISTINCT FROM between floats: eq_missing of polars takes NaN for equal "
                "to NaN; write = or <> with a test for NULL"
            )
        nan = sides[0].is_nan() | sides[1].is_nan()
        unequal = self.truth(value=op is ir.ComparisonOp.NE)
        known = self.choose(nan, unequal, comparison)
        missing = sides[0].is_null() | sides[1].is_null()
        return self.choose(missing, self.truth(value=None), known)

    def in_list(self, node: ir.InList) -> Any:
        """Write `is_in` with a Series, and a guard for NULL in it."""
        operand, members = self.operand(node.operand), node.values.array
        known = members.drop_null()
        if pa.types.is_floating(members.type):
            if self.semantics.compares_bits(len(members)) and pc.any(pc.equal(known, 0.0)).as_py():
                raise UnsupportedOperation("polars' is_in finds zeros of both signs")
            if self.semantics.nan is NanOrder.IEEE:
                known = known.filter(pc.invert(pc.is_nan(known)))
        type_ = node.values.type or type_of(node.operand)
        membership = operand.is_in(self.polars.Series(known.cast(arrow_type(type_))).implode())
        if not members.null_count:
            return membership
        return self.choose(membership, self.truth(value=True), self.truth(value=None))

    def like(self, node: ir.Like) -> Any:
        """Write a text function, which can be read back, or a regular expression."""
        text = self.operand(node.operand)
        match as_text_test(node):
            case "=", value:
                return text == self.polars.lit(value)
            case "contains", value:
                return text.str.contains(value, literal=True)
            case name, value:
                return getattr(text.str, name)(value)
        body = parse_pattern(node.pattern, node.escape).regex
        body = body.removeprefix("(?s)^").removesuffix("$")
        for space in " \t\n\r\v\f":  # Python escapes them in a way that Rust does not know
            body = body.replace(f"\\{space}", f"\\x{ord(space):02x}")
        flags = "si" if node.ignore_case else "s"
        return text.str.contains(rf"(?{flags})\A{body}\z")

    def cast(self, node: ir.Cast) -> Any:
        """Write a cast between types for which polars agrees."""
        source, target = type_of(node.operand), node.type
        operand = self.operand(node.operand)
        if source == target:
            return operand
        if kinds_of(source, target) not in CASTS["polars"]:
            raise UnsupportedOperation(
                f"a cast of {type_name(source)} to {type_name(target)} may give other values in "
                "polars"
            )
        zoned = isinstance(source, Timestamp) or isinstance(target, Timestamp)
        if zoned and self.semantics.time_zone != "UTC":
            raise UnsupportedOperation(
                "polars casts times in UTC only, and the session has another time zone"
            )
        may_fail = node.try_ or self.semantics.failed_cast is OnFailure.NULL
        return operand.cast(self.dtype(target), strict=not may_fail)

    # Calls

    def call(self, node: ir.Call) -> Any:
        """Write a function call; `UnsupportedOperation` with the reason if impossible."""
        name, arguments = node.function, node.arguments
        types = [type_of(argument) for argument in arguments]
        if name in _ARITHMETIC:
            return self._arithmetic(name, arguments, types)
        if name in _MOVES:
            return self._moved(node, types[0])
        if name in ("local_time", "instant", "try_instant"):
            return zones.written(node, self.operand(arguments[1]))
        call = self._known(node, types)
        result = resolve(name, known_of(arguments, types))[1].result
        return call if result in (types[0], Bool()) else call.cast(self.dtype(result))

    def _known(self, node: ir.Call, types: Sequence[LogicalType]) -> Any:
        name, arguments = node.function, node.arguments
        if name == "nullif":
            return self._nullif(arguments, types)
        if name == "regex_matches":
            return self._matched(arguments)
        if name in _TRIMS and len(arguments) == 1:
            arguments, types = (*arguments, ir.Literal(" ", String())), (*types, String())
        if name == "length" and not isinstance(types[0], String):
            name = "list_length"
        call = TypedCall(ir.Call(name, arguments), types, types[0])
        rows = polars.BY_FUNCTION.get(name)
        if rows is None:
            raise UnsupportedOperation(f"the function {name!r} has no counterpart in polars")
        fitting = [
            row
            for row in rows
            if call.field in (row.first or (call.field,)) and row.case.holds(call)
        ]
        if not fitting:
            texts = " or ".join(dict.fromkeys(row.text for row in rows))
            raise UnsupportedOperation(f"{name} means the same there only for {texts}")
        for row in fitting:
            if row.rule is None or row.rule.holds(self.semantics):
                return self._method(row, arguments)
        raise UnsupportedOperation(fitting[0].rule.reason if fitting[0].rule else "")

    def _method(self, row: polars.Method, arguments: Sequence[ir.Operand]) -> Any:
        """Write a call by its row."""
        others = arguments[1:] if row.first else arguments
        written: list[Any] = [
            item.value
            if row.plain and place and isinstance(item, ir.Literal)
            else self.operand(item)
            for place, item in enumerate(others)
        ]
        if row.from_zero:
            written[1] -= 1
        if row.first and (
            word := row.first[TypedCall(ir.Call(row.function, tuple(arguments))).field]
        ):
            written.append(word)
        if row.of_module:
            return getattr(self.polars, row.name)(*written, **row.keywords)
        return operator.attrgetter(row.name)(written[0])(*written[1:], **row.keywords)

    def _nullif(self, arguments: Sequence[ir.Operand], types: Sequence[LogicalType]) -> Any:
        if types[0] != types[1] or isinstance(types[0], Float):
            raise UnsupportedOperation("polars has nullif of one type only, and not of floats")
        left, right = map(self.operand, arguments)
        return self.choose(left == right, self.constant(ir.Literal(None, types[0])), left)

    def _matched(self, arguments: Sequence[ir.Operand]) -> Any:
        """Write a regular expression in Rust's syntax."""
        pattern = text_of(arguments[1])
        if len(arguments) > 2 or pattern is None:
            raise UnsupportedOperation("a regular expression that is not one constant")
        try:
            rust = from_re2(pattern, Flavour.RUST)
        except ValueError as error:
            raise UnsupportedOperation(f"a regular expression: {error}") from error
        return self.operand(arguments[0]).str.contains(rust)

    def _moved(self, node: ir.Call, source: LogicalType) -> Any:
        parts = [item.value for item in node.arguments[1:] if isinstance(item, ir.Literal)]
        known = len(parts) == 3 and all(type(part) is int and abs(part) < 2**53 for part in parts)
        keeps = node.function != "add_interval" and not (isinstance(source, Date) and parts[-1])
        if not known or not (keeps or isinstance(source, Timestamp)):
            raise UnsupportedOperation("only a constant interval can be added in polars")
        time = self.operand(node.arguments[0])
        for part, unit in zip(parts, ("mo", "d", "us"), strict=True):
            if part:
                time = time.dt.offset_by(f"{part!r}{unit}")
        return time

    def _arithmetic(
        self, name: str, arguments: Sequence[ir.Operand], types: Sequence[LogicalType]
    ) -> Any:
        type_ = types[0]
        if any(other != type_ for other in types) or not isinstance(type_, Int | Float):
            shown = ", ".join(map(type_name, types))
            raise UnsupportedOperation(f"{name} of {shown} may give other values in polars")
        values = [self.operand(item) for item in arguments]
        semantics = self.semantics
        if isinstance(type_, Float):
            if semantics.float_division_by_zero is not OnFailure.IEEE:
                raise UnsupportedOperation("float division by zero and overflow differ in polars")
            if name == "modulo":
                raise UnsupportedOperation(
                    "% of floats, of which polars takes the sign from the divisor; cast both sides "
                    "to integers"
                )
            return _OF_FLOATS[name](*values)
        if name in ("divide", "modulo"):
            divisor = arguments[1].value if isinstance(arguments[1], ir.Literal) else 0
            fails = semantics.integer_division_by_zero is not OnFailure.NULL
            if fails and not divisor:
                raise UnsupportedOperation("division by zero is NULL in polars")
        if name == "negate":  # which Int128 does not have
            values, name = [self.constant(ir.Literal(0, type_)), *values], "subtract"
        overflow = semantics.integer_overflow
        if name == "divide":
            overflow = semantics.quotient_overflow
        if overflow is OnFailure.WRAP:
            return _OF_WHOLE[name](*values)
        if name == "multiply" and not type_.signed and type_.bits == 64:
            raise UnsupportedOperation("products of uint64 have more than 128 bits")
        exact = _OF_WHOLE[name](*(value.cast(self.polars.Int128) for value in values))
        strict = overflow is OnFailure.ERROR
        return exact.cast(self.dtype(type_), strict=strict)
