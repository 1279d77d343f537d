"""Invert functions: rewrite `f(x) op constant` as a condition on x with the same outcome.

Three kinds of functions can be inverted. An injective function: by its inverse. A monotonic one: by
the points at which it reaches and passes the constant. One that may fail: only for `=`, and
together with a term that fails on the same rows. None means that there is no inverse.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate import ir
from rowsieve.predicate.arrays import as_mask, null_mask, without
from rowsieve.predicate.binding.coerce import compare_with_number, unmatched
from rowsieve.predicate.functions.calendar_days import first_of_month, months_of
from rowsieve.predicate.functions.casting.casts import cast, cast_rule
from rowsieve.predicate.functions.registry import find, known_of, resolve
from rowsieve.predicate.functions.row import AtInfinity
from rowsieve.predicate.functions.times.temporal import next_unit, truncate, unit_name, year_start
from rowsieve.predicate.literal_values import from_scalar, int_range, scalar
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import OnFailure, Semantics
from rowsieve.types.days import DAY_US, NANOS_OF_MICRO
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Int,
    LogicalType,
    Nanos,
    String,
    Time,
    Timestamp,
    Uuid,
)

_EQ, _NE = ir.ComparisonOp.EQ, ir.ComparisonOp.NE
_LT, _LE, _GT, _GE = ir.ComparisonOp.LT, ir.ComparisonOp.LE, ir.ComparisonOp.GT, ir.ComparisonOp.GE
_POINTS = (_EQ, _NE, ir.ComparisonOp.DISTINCT, ir.ComparisonOp.NOT_DISTINCT)
_FARTHEST_YEAR = 290_000
_FARTHEST_DAY = 100_000_000
_FARTHEST_MONTHS = 12 * 1000
_FARTHEST_US = 9_150_000_000_000_000_000  # more than a millennium before the last timestamp
_SPELT_ONE_WAY = (Int, Decimal, Uuid, Time, Bool)  # each value has one text and vice versa


def inverted_comparison(
    op: ir.ComparisonOp,
    operand: ir.Operand,
    type_: LogicalType,
    constant: ir.Literal,
    semantics: Semantics,
) -> ir.Predicate | None:
    """Rewrite `operand op constant` without the outermost function of the operand."""
    if constant.value is None:
        return None
    if isinstance(operand, ir.Cast):
        return _cast(op, operand, constant)
    if isinstance(operand, ir.Call) and (rule := INVERSES.get(operand.function)) is not None:
        at_infinity = find(operand.function).at_infinity
        if semantics.has_infinite_times and at_infinity not in (None, AtInfinity.SAME):
            return None  # infinite times are in no range of years or of seconds
        if any(isinstance(type_of(argument), Nanos) for argument in operand.arguments):
            return None  # the rules count in microseconds
        return rule(_Question(op, operand, type_, constant, semantics))
    return None


def inverted_list(node: ir.InList, type_: LogicalType) -> ir.InList | None:
    """Rewrite `CAST(x AS text) IN (…)` as `x IN` the values of the texts."""
    operand = node.operand
    if not isinstance(operand, ir.Cast) or not isinstance(type_, String):
        return None
    source = type_of(operand.operand)
    if not isinstance(source, _SPELT_ONE_WAY):
        return None
    values = _values_of_texts(node.values.array, source)
    invertible = values.filter(pa.array(~null_mask(values) | null_mask(node.values.array)))
    return ir.InList(operand.operand, ir.ValueSet(invertible, source))


@dataclass(frozen=True, slots=True)
class _Question:
    """`call op constant`; the call has the type `type`."""

    op: ir.ComparisonOp
    call: ir.Call
    type: LogicalType
    constant: ir.Literal
    semantics: Semantics

    def argument(self, place: int) -> ir.Literal | None:
        """Return an argument that is a non-NULL constant."""
        argument = self.call.arguments[place]
        return argument if isinstance(argument, ir.Literal) and argument.value is not None else None


InverseRule: TypeAlias = Callable[[_Question], ir.Predicate | None]


def _cast(op: ir.ComparisonOp, node: ir.Cast, constant: ir.Literal) -> ir.Predicate | None:
    source, inner = type_of(node.operand), node.operand
    match source, node.type:
        case (Int(), Int() | Decimal()) | (Decimal(), Decimal()):
            if _keeps_numbers(source, node.type):
                return compare_with_number(op, inner, source, _number(constant))
        case (Timestamp(), Date()):
            assert isinstance(constant.value, int)
            if abs(constant.value) > _FARTHEST_DAY:
                return None  # engines may have infinite days
            first = constant.value * DAY_US
            return _between_steps(op, inner, source, first, first + DAY_US)
        case (Nanos(), Date()):
            assert isinstance(constant.value, int)
            day = DAY_US * NANOS_OF_MICRO
            return _between_steps(
                op, inner, source, constant.value * day, (constant.value + 1) * day
            )
        case (Timestamp(), Timestamp()):
            return ir.Comparison(op, inner, ir.Literal(constant.value, source))
        case (Uuid(), _) if isinstance(constant.value, bytes) and len(constant.value) == 16:
            return ir.Comparison(op, inner, ir.Literal(constant.value, source))
        case (_, String()) if op in _POINTS and isinstance(source, _SPELT_ONE_WAY):
            value = _values_of_texts(pa.repeat(scalar(constant), 1), source)[0]
            if not value.is_valid:
                return unmatched(op, inner)
            return ir.Comparison(op, inner, from_scalar(value, source))
    return None


def _keeps_numbers(source: LogicalType, target: LogicalType) -> bool:
    """Whether the cast preserves every number."""
    rule = cast_rule(source, target)
    assert rule is not None
    scales = [type_.scale if isinstance(type_, Decimal) else 0 for type_ in (source, target)]
    return not rule.can_fail and scales[1] >= scales[0]


def _values_of_texts(texts: pa.Array, source: LogicalType) -> pa.Array:
    """Return the value whose canonical text is each text; NULL if there is none."""
    read = cast(texts, String(), source, Semantics.SQL).values
    written = cast(read, source, String(), Semantics.SQL).values
    return without(read, ~as_mask(pc.equal(written, texts)))


def _between_steps(
    op: ir.ComparisonOp, operand: ir.Operand, type_: LogicalType, reached: int, passed: int
) -> ir.Predicate | None:
    """Invert a monotonic function: it equals the constant from `reached` to below `passed`.

    If the two are equal, no argument gives the constant.
    """

    def at(op: ir.ComparisonOp, place: int) -> ir.Predicate:
        return compare_with_number(op, operand, type_, Fraction(place))

    match op:
        case ir.ComparisonOp.LT:
            return at(_LT, reached)
        case ir.ComparisonOp.LE:
            return at(_LT, passed)
        case ir.ComparisonOp.GT:
            return at(_GE, passed)
        case ir.ComparisonOp.GE:
            return at(_GE, reached)
        case ir.ComparisonOp.EQ | ir.ComparisonOp.NE if reached == passed:
            return unmatched(op, operand)
        case ir.ComparisonOp.EQ:
            return ir.And((at(_GE, reached), at(_LT, passed)))
        case ir.ComparisonOp.NE:
            return ir.Or((at(_LT, reached), at(_GE, passed)))
        case _:
            return None


def _truncation(question: _Question) -> ir.Predicate | None:
    unit, moment = question.argument(0), question.constant.value
    if unit is None or not isinstance(moment, int) or abs(moment) > _FARTHEST_US:
        return None
    name = unit_name(unit.value)
    assert name is not None
    start = int(truncate(name, np.array([moment]))[0])
    following = next_unit(name, start)
    reached = moment if start == moment else following
    return _between_steps(
        question.op, question.call.arguments[1], question.type, reached, following
    )


def _bin(question: _Question) -> ir.Predicate | None:
    """Invert `date_bin`: a bin is reached at its start and passed at the start of the next bin."""
    parts, moment = [question.argument(place) for place in (0, 1, 3)], question.constant.value
    if None in parts or not isinstance(moment, int) or abs(moment) > _FARTHEST_US:
        return None
    arguments = [scalar(part) for part in parts if part is not None]
    months, micros = (argument.as_py() for argument in arguments[:2])
    if months > _FARTHEST_MONTHS or micros > 2**50:
        return None
    arrays = [pa.repeat(argument, 1) for argument in arguments]
    types = [type_of(argument) for argument in question.call.arguments]
    row, signature = resolve("date_bin", known_of(question.call.arguments, types))

    def start(time: int) -> int:
        times = pa.array([time]).view(arrays[2].type)
        computed = row.evaluate([*arrays[:2], times, arrays[2]], signature, question.semantics)
        return int(computed.values.view(pa.int64())[0].as_py())

    first = start(moment)
    following = start(first + micros + months * 31 * DAY_US)
    reached = moment if first == moment else following
    return _between_steps(
        question.op, question.call.arguments[2], question.type, reached, following
    )


def _month_end(question: _Question) -> ir.Predicate | None:
    """Invert `last_day`: reached on the first of the month, passed on the first of the next."""
    operand, last = question.call.arguments[0], question.constant.value
    source = type_of(operand)
    if not isinstance(last, int) or abs(last) > _FARTHEST_DAY:
        return None
    month = months_of(np.array([last]))
    first, following = (int(first_of_month(month + step)[0]) for step in (0, 1))
    size = 1 if isinstance(source, Date) else DAY_US
    passed = following if last == following - 1 else first
    return _between_steps(question.op, operand, source, first * size, passed * size)


def _instant(question: _Question) -> ir.Predicate | None:
    """Invert `epoch_us(x)`, which is the stored value itself."""
    operand = question.call.arguments[0]
    return compare_with_number(question.op, operand, type_of(operand), _number(question.constant))


def _field(question: _Question) -> ir.Predicate | None:
    """Invert the year, by the years that reach and pass it, and the seconds since 1970."""
    part, operand = question.argument(0), question.call.arguments[1]
    source = type_of(operand)
    is_date = isinstance(source, Date)
    field = unit_name(part.value) if part is not None else None
    if field == "epoch" and not isinstance(source, Time):
        number = _number(question.constant)
        factor = Fraction(1, 86_400) if is_date else Fraction(1_000_000)
        return compare_with_number(question.op, operand, source, number * factor)
    year = question.constant.value
    if field != "year" or not isinstance(year, int) or abs(year) > _FARTHEST_YEAR:
        return None
    size = 1 if is_date else DAY_US
    first, following = year_start(year) * size, year_start(year + 1) * size
    return _between_steps(question.op, operand, source, first, following)


def _prefix(question: _Question) -> ir.Predicate | None:
    """Invert `substr(s, 1, n)` and `left(s, n)`."""
    text, count = question.constant.value, question.argument(-1)
    arguments = question.call.arguments
    if question.op not in (_EQ, _NE) or not isinstance(text, str) or count is None:
        return None
    start = question.argument(1) if len(arguments) == 3 else ir.Literal(1)
    whole = question.call.function == "substr" and len(arguments) == 2
    if start is None or start.value != 1 or whole:
        return None
    assert isinstance(count.value, int)
    if count.value < 0:
        return None
    if len(text) > count.value:
        return unmatched(question.op, arguments[0])
    if len(text) < count.value:
        return ir.Comparison(question.op, arguments[0], question.constant)
    begins = ir.BooleanOperand(ir.Call("starts_with", (arguments[0], question.constant)))
    return begins if question.op is _EQ else ir.Not(begins)


def _sum(question: _Question) -> ir.Predicate | None:
    return _linear(question, Fraction(1), 1)


def _difference(question: _Question) -> ir.Predicate | None:
    return _linear(question, Fraction(1), -1)


def _product(question: _Question) -> ir.Predicate | None:
    left, right = question.argument(0), question.argument(1)
    constant = left or right
    if constant is None or not isinstance(question.type, Int | Decimal) or not constant.value:
        return None
    operand = question.call.arguments[1 if left is not None else 0]
    return _solved(question, operand, _number(constant), Fraction(0))


def _opposite(question: _Question) -> ir.Predicate | None:
    if not isinstance(question.type, Int | Decimal):
        return None
    return _solved(question, question.call.arguments[0], Fraction(-1), Fraction(0))


def _linear(question: _Question, slope: Fraction, sign: int) -> ir.Predicate | None:
    """Invert `x + c`, `c + x`, `x - c` and `c - x`."""
    if not isinstance(question.type, Int | Decimal):
        return None
    left, right = question.argument(0), question.argument(1)
    if right is not None:
        return _solved(question, question.call.arguments[0], slope, sign * _number(right))
    if left is not None:
        return _solved(question, question.call.arguments[1], sign * slope, _number(left))
    return None


def _solved(
    question: _Question, operand: ir.Operand, slope: Fraction, offset: Fraction
) -> ir.Predicate | None:
    """Solve `slope * x + offset op constant` with exact numbers."""
    op, source = question.op, type_of(operand)
    number = (_number(question.constant) - offset) / slope
    plain = compare_with_number(op if slope > 0 else op.mirrored, operand, source, number)
    if isinstance(question.type, Decimal):
        return plain if _has_room(question) else None
    assert isinstance(question.type, Int)
    low, high = int_range(question.type)
    first, last = sorted((Fraction(low) - offset, Fraction(high) - offset))
    ends = sorted((first / slope, last / slope))
    least, most = math.ceil(ends[0]), math.floor(ends[1])
    source_low, source_high = _reach(operand, question.type)
    if least <= source_low and most >= source_high:
        return plain
    overflow = question.semantics.integer_overflow
    if overflow is OnFailure.WRAP and abs(slope) == 1 and op in _POINTS:
        bits = question.type.bits
        wrapped = (int(number) - low) % (1 << bits) + low
        return compare_with_number(op, operand, source, Fraction(wrapped))
    of_column = operand.operand if isinstance(operand, ir.Cast) else operand
    if (
        overflow is not OnFailure.ERROR
        or op is not _EQ
        or not isinstance(of_column, ir.BoundColumn)
    ):
        return None  # the failing term repeats the whole call, so chains would multiply
    beyond = [
        compare_with_number(side, operand, source, Fraction(end))
        for side, end, is_inside in (
            (_LT, least, least > source_low),
            (_GT, most, most < source_high),
        )
        if is_inside
    ]
    outside = beyond[0] if len(beyond) == 1 else ir.Or(tuple(beyond))
    return ir.Or((plain, ir.And((outside, ir.Comparison(op, question.call, question.constant)))))


def _reach(operand: ir.Operand, type_: Int) -> tuple[int, int]:
    """Return the least and the greatest integer that the operand may be."""
    inner = type_of(operand.operand) if isinstance(operand, ir.Cast) else type_of(operand)
    return int_range(inner) if isinstance(inner, Int) else int_range(type_)


def _has_room(question: _Question) -> bool:
    """Whether the type of a decimal result holds every result without rounding."""
    types = [type_of(argument) for argument in question.call.arguments]
    _, signature = resolve(question.call.function, known_of(question.call.arguments, types))
    sides = [side for side in signature.arguments if isinstance(side, Decimal)]
    assert isinstance(question.type, Decimal)
    whole = question.type.precision - question.type.scale
    digits = [side.precision - side.scale for side in sides]
    if question.call.function == "multiply":
        return whole >= sum(digits)
    return whole > max(digits) or question.call.function == "negate"


def _number(constant: ir.Literal) -> Fraction:
    value = constant.value
    assert isinstance(value, int | decimal.Decimal)
    return Fraction(value)


INVERSES: Mapping[str, InverseRule] = {
    "add": _sum,
    "subtract": _difference,
    "multiply": _product,
    "negate": _opposite,
    "date_trunc": _truncation,
    "date_bin": _bin,
    "epoch_us": _instant,
    "last_day": _month_end,
    "extract": _field,
    "substr": _prefix,
    "left": _prefix,
}
