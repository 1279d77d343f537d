"""Operands in polars: the types of columns, of constants without a type, and of functions' calls.

Soundness: a constant takes the type of the other operand if polars keeps its value; any other
mixture of types is refused. Functions are read by the rows of `functions.polars`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rowsieve.bridges.base import TreeReader
from rowsieve.bridges.constant_values import text_of, value_of
from rowsieve.bridges.functions import TypedCall, polars
from rowsieve.bridges.polars_exprs import function_table
from rowsieve.bridges.sql.constructs.regexes import Flavour, to_re2
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.literal_values import int_range
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import (
    Binary,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Struct,
    Timestamp,
    Uuid,
    type_name,
)

_STEP = re.compile(r"(-?)((?:\d+(?:y|q|mo|w|d|h|m|s|ms|us))+)")
_STEPS = re.compile(r"(\d+)(y|q|mo|w|d|h|ms|us|m|s)")
_NULL = ir.Literal(None)
_SPECIAL = frozenset(r"\.+*?()|[]{}^$")  # of regular expressions in Rust
_PARTS: tuple[Mapping[str, int], ...] = (  # months, days, microseconds
    {"y": 12, "q": 3, "mo": 1},
    {"w": 7, "d": 1},
    {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1},
)


class Operands(TreeReader[Any]):
    """Types operands over the columns of one schema."""

    def expect(
        self, what: str, operands: Sequence[ir.Operand], *kinds: type[LogicalType]
    ) -> LogicalType:
        """Return the first operand's type; raise unless each is NULL or of one of the kinds."""
        for operand in operands:
            type_ = self.type_of(operand)
            bare_null = isinstance(operand, ir.Literal) and operand.value is None
            if not isinstance(type_, kinds) and not bare_null:
                wanted = " or ".join(kind.__name__.lower() for kind in kinds)
                type_text = "a plain number" if type_ is None else type_name(type_)
                raise UnsupportedOperation(
                    f"{what} is read for {wanted} only, not for {type_text}; cast it"
                )
        return self.type_of(operands[0]) or String()

    def met(self, left: ir.Operand, right: ir.Operand) -> tuple[ir.Operand, ir.Operand]:
        """Return both sides of a comparison, a constant with its value in polars."""
        left, right = as_value(left), as_value(right)
        first, second = self.type_of(left), self.type_of(right)
        if first is None and second is None and (left, right) != (_NULL, _NULL):
            raise UnsupportedOperation(
                "a comparison of constants without a type; write true or false"
            )
        if first is None:
            return (left if second is None else self._beside(left, second)), right
        if second is None:
            return left, self._beside(right, first)
        kinds = {type(first), type(second)}
        alike = kinds in ({Int}, {Decimal}, {Float}) or kinds <= {Binary, Uuid}
        if first != second and not alike:
            raise UnsupportedOperation(
                f"a comparison of {type_name(first)} with {type_name(second)}: cast one to the "
                "type of the other"
            )
        return left, right

    def aligned(self, what: str, operands: Sequence[ir.Operand]) -> list[ir.Operand]:
        """Return the operands in one type: that of the typed ones, which constants take."""
        types = {type_ for operand in operands if (type_ := self.type_of(operand)) is not None}
        if len(types) != 1:
            shown = ", ".join(sorted(map(type_name, types))) or "plain constants"
            raise UnsupportedOperation(f"{what} of {shown}: cast all to one type")
        (type_,) = types
        return [self._typed(what, operand, type_) for operand in operands]

    def arithmetic(self, operator: str, left: ir.Operand, right: ir.Operand) -> ir.Operand:
        """Return arithmetic of numbers, or + of text."""
        name = function_table.ARITHMETIC[operator]
        types = [type_ for side in (left, right) if (type_ := self.type_of(side)) is not None]
        if operator == "Plus" and types and all(isinstance(type_, String) for type_ in types):
            return ir.Call("concat_strict", (left, right))
        if operator == "TrueDivide" and types and all(isinstance(type_, Int) for type_ in types):
            _check_signs((left, right), types)
            left, right = self._as_float(left), self._as_float(right)
        if types and all(isinstance(t, Int) and t.bits >= 32 for t in types):
            if isinstance(left, ir.Literal) and isinstance(left.value, float) and left.type is None:
                right = self._as_float(right)
            elif isinstance(right, ir.Literal) and isinstance(right.value, float):
                left = self._as_float(left) if right.type is None else left
        left, right = self.aligned(operator, (left, right))
        type_ = self.expect(operator, (left, right), Int, Float)
        if isinstance(type_, Float):
            if operator in ("TruncDivide", "FloorDivide", "Modulus"):
                raise UnsupportedOperation(f"{operator} of floats has no counterpart in Rowsieve")
        elif operator in ("FloorDivide", "Modulus"):
            return self._floored(operator, left, right, type_)
        return ir.Call(name, (left, right))

    def _floored(
        self, operator: str, left: ir.Operand, right: ir.Operand, type_: LogicalType
    ) -> ir.Operand:
        """Return division that rounds down, written with division that truncates."""
        whole, rest = ir.Call("divide", (left, right)), ir.Call("modulo", (left, right))
        if isinstance(type_, Int) and not type_.signed:
            return whole if operator == "FloorDivide" else rest
        if not (isinstance(right, ir.Literal) and isinstance(right.value, int) and right.value > 0):
            raise UnsupportedOperation(
                f"{operator} of signed numbers is read for a constant divisor above 0 only; divide "
                "by such a constant, or cast both sides to floats"
            )
        below = ir.Comparison(ir.ComparisonOp.LT, rest, ir.Literal(0, type_))
        if operator == "Modulus":
            return ir.Case(((below, ir.Call("add", (rest, right))),), rest)
        return ir.Case(((below, ir.Call("subtract", (whole, ir.Literal(1, type_)))),), whole)

    def _typed(self, what: str, operand: ir.Operand, type_: LogicalType) -> ir.Operand:
        if not isinstance(operand, ir.Literal) or operand.type is not None:
            return operand
        if operand.value is None:
            return ir.Literal(None, type_)
        value = operand.value
        if isinstance(type_, Int) and isinstance(value, int):
            low, high = int_range(type_)
            if low <= value <= high:
                return ir.Literal(value, type_)
        elif isinstance(type_, Float) and isinstance(value, int | float):
            return as_float(value, type_)
        raise UnsupportedOperation(f"{what} of a {type_name(type_)} and {value!r}: cast one side")

    def _beside(self, operand: ir.Operand, type_: LogicalType) -> ir.Operand:
        """Return a constant without a type, as compared with a value of the type."""
        value = value_of(operand)
        if isinstance(value, bool) or value is None:
            return operand
        if isinstance(type_, Float) and isinstance(value, int | float):
            return as_float(value, type_)
        if isinstance(type_, Int) and isinstance(value, int | float):
            return operand if isinstance(value, int) else ir.Literal(value, Float(64))
        raise UnsupportedOperation(
            f"a comparison of {type_name(type_)} with {value!r}; give a constant of that type"
        )

    def _as_float(self, operand: ir.Operand) -> ir.Operand:
        if isinstance(operand, ir.Literal) and operand.type is None and operand.value is not None:
            assert isinstance(operand.value, int | float)
            return as_float(operand.value, Float(64))
        return ir.Cast(operand, Float(64))


def as_value(operand: ir.Operand) -> ir.Operand:
    """Return a call without the cast to polars' type of its result: the value is the same."""
    match operand:
        case ir.Cast(operand=ir.Call(function=name) as call, type=type_):
            word = TypedCall(call).field
            for row in polars.BY_FUNCTION.get(name, ()):
                if row.result == type_ and word in (row.first or (word,)):
                    return call
    return operand


def as_float(value: float, type_: Float) -> ir.Literal:
    """Return a bare number as polars' float."""
    if isinstance(value, int) and abs(value) > 2 ** (24 if type_.bits == 32 else 53):
        raise UnsupportedOperation(f"the integer {value} compared with a float; write a float")
    number = float(value)
    if type_.bits == 32:
        number = pa.scalar(number, pa.float64()).cast(pa.float32()).as_py()
        if math.isinf(number) and not math.isinf(value):
            raise UnsupportedOperation(f"the number {value!r} is beyond float32")
    return ir.Literal(number, type_)


def read_call(
    operands: Operands, node: str, arguments: Sequence[ir.Operand], options: Any
) -> ir.Operand:
    """Read the call; `UnsupportedOperation` with the reason if impossible."""
    rows = polars.BY_NODE.get(node, ())
    for row in rows:
        if row.has_options(options) and (call := _call(operands, row, arguments)) is not None:
            return call if row.result is None else ir.Cast(call, row.result)
    if (read := _OWN.get(node)) is not None:
        return read(operands, arguments, options)
    texts = " or ".join(dict.fromkeys(row.text for row in rows))
    raise UnsupportedOperation(f"{rows[0].name} is read for {texts} only")


def _check_signs(sides: Sequence[ir.Operand], types: Sequence[LogicalType]) -> None:
    """Raise for a quotient that polars computes from int64, where large numbers are NULL."""
    negative = any(
        isinstance(side, ir.Literal) and isinstance(side.value, int) and side.value < 0
        for side in sides
    )
    if negative and Int(64, signed=False) in types:
        raise UnsupportedOperation(
            "TrueDivide of uint64 and a negative constant: polars makes NULL of numbers from 2^63; "
            "cast the column to Float64"
        )


def _call(
    operands: Operands, row: polars.Method, arguments: Sequence[ir.Operand]
) -> ir.Operand | None:
    """Return the call of a row; None if the row's condition does not hold."""
    items = list(arguments)
    if row.aligned:
        items = operands.aligned(row.name, items)
    words = {theirs: ours for ours, theirs in row.first.items()}
    if words and (first := words.get("") or words.get(text_of(items.pop()) or "")) is None:
        return None
    if row.from_zero:
        items = _from_one(items)
    if words:
        items.insert(0, ir.Literal(first, String()))
    call = ir.Call(row.function, tuple(items))
    own_types = [operands.type_of(item) for item in items]
    known = next((type_ for type_ in own_types if type_ is not None), String())
    known = String() if row.name.startswith("str.") else known
    plain = Int(64) if row.plain else known
    types = [type_ or (plain if place else known) for place, type_ in enumerate(own_types)]
    shared = row.rule is None or row.rule.holds(Semantics.POLARS)
    return call if shared and row.case.holds(TypedCall(call, types, types[0])) else None


def _from_one(arguments: Sequence[ir.Operand]) -> list[ir.Operand]:
    """Return arguments with constant indices counted from 1, and without a count that is NULL."""
    subject, *rest = arguments
    if len(rest) == 2 and isinstance(rest[1], ir.Literal) and rest[1].value is None:
        rest.pop()
    for place, item in enumerate(rest):
        if isinstance(item, ir.Literal) and type(item.value) is int:
            rest[place] = ir.Literal(item.value + (place == 0), Int(64))
    return [subject, *rest]


def _plain_pattern(operands: Operands, arguments: Sequence[ir.Operand], options: Any) -> ir.Operand:
    """Read `str.contains` of a regular expression: plain text, with anchors, or shared with RE2."""
    text, pattern = arguments[0], text_of(arguments[1])
    operands.expect("str.contains", (text,), String)
    if options["literal"] or pattern is None:
        raise UnsupportedOperation("contains of a pattern that is not a constant")
    body = pattern.removeprefix("^")
    begins = body != pattern
    whole = body.removesuffix("$")
    ends, part = whole != body, ir.Literal(whole, String())
    if any(sign in _SPECIAL for sign in whole):
        try:
            shared = to_re2(pattern, Flavour.RUST)
        except ValueError as error:
            raise UnsupportedOperation(
                f"contains of a regular expression, which holds {error}; give literal=True"
            ) from error
        return ir.Call("regex_matches", (text, ir.Literal(shared, String())))
    if begins and ends:
        return ir.Condition(ir.Comparison(ir.ComparisonOp.EQ, text, part))
    name = "starts_with" if begins else "ends_with" if ends else "contains"
    return ir.Call(name, (text, part))


def _offset(operands: Operands, arguments: Sequence[ir.Operand], _: Any) -> ir.Operand:
    """Read `dt.offset_by` with a constant text."""
    moment, text = arguments[0], text_of(arguments[1]) or ""
    type_ = operands.expect("dt.offset_by", (moment,), Timestamp, Date)
    match = _STEP.fullmatch(text)
    if match is None:
        raise UnsupportedOperation(f"dt.offset_by of {text!r}")
    steps = [(int(number), unit) for number, unit in _STEPS.findall(match[2])]
    sums = [sum(number * sizes.get(unit, 0) for number, unit in steps) for sizes in _PARTS]
    if sums[-1] and isinstance(type_, Date):
        raise UnsupportedOperation("dt.offset_by of a date by parts of a day")
    parts = (ir.Literal(-number if match[1] else number, Int(64)) for number in sums)
    return ir.Call("shift_timestamp" if sums[-1] else "shift", (moment, *parts))


def _date(operands: Operands, arguments: Sequence[ir.Operand], _: Any) -> ir.Operand:
    """Read `dt.date`."""
    operands.expect("dt.date", arguments, Timestamp)
    return ir.Cast(arguments[0], Date())


def _field(operands: Operands, arguments: Sequence[ir.Operand], options: Any) -> ir.Operand:
    """Read `struct.field`."""
    operands.expect("struct.field", arguments, Struct)
    return ir.FieldAccess(arguments[0], options)


_OWN: Mapping[str, Callable[[Operands, Sequence[ir.Operand], Any], ir.Operand]] = {
    "StringExpr.Contains": _plain_pattern,
    "TemporalExpr.OffsetBy": _offset,
    "TemporalExpr.Date": _date,
    "StructExpr.FieldByName": _field,
}
