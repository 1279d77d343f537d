"""`round`, `floor` and `ceil`: all are monotone.

Decimals and integers round half away from zero; floats as `Semantics` says, to at most 15 digits
after the point. A float32 is not rounded to digits: engines compute it in different widths.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, as_mask, filled, null_mask, with_nulls, without
from rowsieve.predicate.functions.casting.text_casts import shortest_as_decimal
from rowsieve.predicate.functions.numbers import decimals, unbounded_sums
from rowsieve.predicate.functions.numbers.decimal_rounding import rounded as rounded_decimals
from rowsieve.predicate.functions.row import (
    Argument,
    BoundsRule,
    Direction,
    Evaluator,
    Function,
    NullRule,
    Range,
    Signature,
)
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.literal_values import int_range
from rowsieve.predicate.semantics import DigitRounding, Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Decimal, Float, Int, LogicalType, Numeric

_NUMBER = Int | Float | Decimal | Numeric
_MAX_DIGITS = 38
_HALF = "half_towards_infinity"
_MAX_FLOAT_DIGITS = 15


def _resolve_whole(arguments: Sequence[Argument]) -> Signature | None:
    """Keep the type of integers and floats; a decimal loses its scale and may gain a digit."""
    if len(arguments) != 1 or not isinstance(arguments[0].type, _NUMBER):
        return None
    return Signature((arguments[0].type,), _rounded_type(arguments[0].type, 0))


def _rounded_type(type_: LogicalType, digits: int) -> LogicalType:
    if not isinstance(type_, Decimal):
        return type_
    scale = min(max(digits, 0), type_.scale)
    return Decimal(min(_MAX_DIGITS, type_.precision - type_.scale + scale + 1), scale)


def _resolve_round(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) == 1:
        return _resolve_whole(arguments)
    if len(arguments) != 2 or not isinstance(arguments[0].type, _NUMBER):
        return None
    type_, digits = arguments[0].type, arguments[1].constant
    if not isinstance(digits, int) or isinstance(digits, bool) or abs(digits) > _MAX_DIGITS:
        return None
    if isinstance(type_, Float) and (type_.bits == 32 or not 0 <= digits <= _MAX_FLOAT_DIGITS):
        return None
    return Signature((type_, Int(32)), _rounded_type(type_, digits), str(digits))


def _to_whole(mode: str) -> Evaluator:
    def evaluate(
        arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics
    ) -> Computed:
        (values,) = arguments
        match signature.result:
            case Int():
                return Computed(values)
            case Decimal():
                return decimals.to_whole(values, signature.result, mode)
            case Numeric():
                return unbounded_sums.rounded_to(values, 0, mode)
        whole = (pc.floor if mode == "down" else pc.ceil)(values)
        if not semantics.floors_are_longs:
            return Computed(whole)
        nulls, numbers = null_mask(values), filled(whole)
        numbers = np.where(np.isnan(numbers), 0.0, numbers) + 0.0  # a bigint has no -0.0
        beyond = ~((numbers >= -(2.0**63)) & (numbers < 2.0**63)) & ~nulls
        longs = with_nulls(numbers.astype(filled(whole).dtype), nulls | beyond, values.type)
        return Computed(longs, beyond if beyond.any() else None)

    return evaluate


def _whole_range(evaluate: Evaluator) -> BoundsRule:
    """Keep the order, infinity included; may fail beyond 64 bits only if `Semantics` says so.

    In that case NaN becomes 0, so the bounds include 0.
    """

    def bounds(
        arguments: Sequence[AbstractValue], signature: Signature, semantics: Semantics
    ) -> Range:
        (value,) = arguments
        ends = [evaluate([end], signature, semantics) for end in (value.lower, value.upper)]
        lower, upper = (without(end.values, end.failed) for end in ends)
        safe = ~(null_mask(lower) | null_mask(upper))
        if isinstance(value.type, Float) and not semantics.floors_are_longs:
            safe = np.ones(len(safe), dtype=np.bool_)
        if isinstance(value.type, Float) and semantics.floors_are_longs:
            nan, zero = pa.array(value.nan), pa.scalar(0, lower.type)
            lower = pc.if_else(nan, _unless_null(pc.min_element_wise, lower, zero), lower)
            upper = pc.if_else(nan, _unless_null(pc.max_element_wise, upper, zero), upper)
        return Range(lower, upper, safe=safe)

    return bounds


def _unless_null(extreme: Callable[..., Any], bound: pa.Array, zero: pa.Scalar) -> pa.Array:
    """Return the extreme of bound and zero; NULL where the bound is NULL."""
    return extreme(bound, zero, skip_nulls=False)


def _round(arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics) -> Computed:
    values, digits = arguments[0], int(signature.option or 0)
    match signature.result:
        case Float() if digits:
            return Computed(_rounded_digits(values, digits, semantics.digit_rounding))
        case Float():
            return Computed(_rounded_floats(values, to_even=semantics.rounds_half_to_even))
        case Decimal():
            return _rounded_decimals(values, digits, signature.result)
        case Numeric():
            return unbounded_sums.rounded_to(values, digits, _HALF)
        case Int() if digits < 0:
            return _rounded_integers(values, digits, signature.result)
        case _:
            return Computed(values)


def _rounded_floats(values: pa.Array, *, to_even: bool) -> pa.Array:
    numbers = filled(values)
    if to_even:
        rounded = np.rint(numbers)
    else:
        whole = np.trunc(numbers)
        with np.errstate(invalid="ignore"):
            carried = np.abs(numbers - whole) >= 0.5
        rounded = np.where(carried, whole + np.copysign(1, numbers), whole)
    return with_nulls(rounded.astype(numbers.dtype), null_mask(values), values.type)


def _rounded_digits(values: pa.Array, digits: int, rule: DigitRounding) -> pa.Array:
    if rule not in (DigitRounding.SCALED, DigitRounding.SCALED_FINITE):
        return _rounded_texts(values, digits)
    factor = 10.0**digits
    numbers = filled(values)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = numbers * factor
    whole = filled(_rounded_floats(pa.array(scaled), to_even=False))
    rounded = whole / factor
    if rule is DigitRounding.SCALED_FINITE:
        rounded = np.where(np.isfinite(rounded), rounded, numbers)
    return with_nulls(rounded, null_mask(values), values.type)


def _rounded_texts(values: pa.Array, digits: int) -> pa.Array:
    """Round the shortest decimal text half away from zero; floats from 2^53 on are integers."""
    numbers = filled(values)
    small = np.abs(numbers) < 10.0 ** -(digits + 1)
    usable = (np.abs(numbers) < 2.0**53) & ~small & ~null_mask(values)
    exact = shortest_as_decimal(pa.array(np.where(usable, numbers, 0.0)))
    texts = rounded_decimals(exact, digits, _HALF).cast(pa.string())
    rounded = np.where(usable, filled(texts.cast(pa.float64())), np.where(small, 0.0, numbers))
    return with_nulls(rounded, null_mask(values), values.type)


def _rounded_decimals(values: pa.Array, digits: int, result: Decimal) -> Computed:
    roomy = values.cast(pa.decimal256(76, values.type.scale))
    if digits < values.type.scale:
        roomy = rounded_decimals(roomy, digits, _HALF)
    narrow = decimals.narrowed(roomy, result)
    failed = null_mask(narrow) & ~null_mask(values)
    return Computed(narrow, failed if failed.any() else None)


def _rounded_integers(values: pa.Array, digits: int, type_: Int) -> Computed:
    wide = values.cast(pa.decimal256(20, 0)).cast(pa.decimal256(76, 0))
    whole = rounded_decimals(wide, digits, _HALF)
    low, high = (pa.scalar(decimal.Decimal(end), whole.type) for end in int_range(type_))
    outside = as_mask(pc.or_(pc.less(whole, low), pc.greater(whole, high)))
    failed = outside & ~null_mask(values)
    array = without(whole, outside).cast(arrow_type(type_))
    return Computed(array, failed if failed.any() else None)


def _carries(signature: Signature) -> bool:
    """Whether a result may need more digits than its type has."""
    source, result = signature.arguments[0], signature.result
    if isinstance(source, Decimal) and isinstance(result, Decimal):
        whole = source.precision - source.scale
        return result.precision - result.scale <= whole and source.scale + whole >= _MAX_DIGITS
    if isinstance(source, Numeric):
        return True  # 9.5 with all digits that a number may have before its point
    return isinstance(source, Int) and signature.option.startswith("-")


def _may_fail(signature: Signature) -> bool:
    return isinstance(signature.result, Float) or _carries(signature)


def _increasing(signature: Signature) -> tuple[Direction, ...]:
    return (Direction.INCREASING,) * len(signature.arguments)


def _row_of(name: str, mode: str) -> Function:
    evaluate = _to_whole(mode)
    return Function(
        f"{name}(number)",
        _resolve_whole,
        evaluate,
        bounds=_whole_range(evaluate),
        can_fail=_may_fail,
        nulls=NullRule.STRICT,
    )


ROWS = (
    _row_of("floor", "down"),
    _row_of("ceil", "up"),
    Function(
        "round(number [, constant digits])",
        _resolve_round,
        _round,
        direction=_increasing,
        can_fail=_carries,
        nulls=NullRule.STRICT,
    ),
)
