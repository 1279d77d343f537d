"""`round`, `floor` and `ceil`: numbers to fewer digits; all of them keep the order.

Decimals and whole numbers round half away from zero; a float to whole numbers as `Semantics` says.
Digits may be asked for exact numbers only: engines disagree on what a float has after its point.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, as_mask, filled, null_mask, with_nulls, without
from rowsieve.predicate.functions import decimals
from rowsieve.predicate.functions.row import (
    Argument,
    Direction,
    Function,
    NullRule,
    Signature,
    spelt_alike,
)
from rowsieve.predicate.literals import int_range
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Decimal, Float, Int, LogicalType

_MOST_DIGITS = 38


def _resolve_whole(arguments: Sequence[Argument]) -> Signature | None:
    """Whole numbers and floats stay what they are; a decimal loses its scale and may carry."""
    if len(arguments) != 1 or not isinstance(arguments[0].type, Int | Float | Decimal):
        return None
    return Signature((arguments[0].type,), _rounded_type(arguments[0].type, 0))


def _rounded_type(type_: LogicalType, digits: int) -> LogicalType:
    if not isinstance(type_, Decimal):
        return type_
    scale = min(max(digits, 0), type_.scale)
    return Decimal(min(_MOST_DIGITS, type_.precision - type_.scale + scale + 1), scale)


def _resolve_round(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) == 1:
        return _resolve_whole(arguments)
    if len(arguments) != 2 or not isinstance(arguments[0].type, Int | Decimal):
        return None
    digits = arguments[1].constant
    if not isinstance(digits, int) or isinstance(digits, bool) or abs(digits) > _MOST_DIGITS:
        return None
    type_ = arguments[0].type
    return Signature((type_, Int(32)), _rounded_type(type_, digits), str(digits))


def _to_whole(mode: str) -> Callable[[Sequence[pa.Array], Signature, Semantics], Computed]:
    def evaluate(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
        (values,) = arguments
        match signature.result:
            case Int():
                return Computed(values)
            case Decimal():
                return decimals.to_whole(values, signature.result, mode)
            case _:
                return Computed((pc.floor if mode == "down" else pc.ceil)(values))

    return evaluate


def _round(arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics) -> Computed:
    values, digits = arguments[0], int(signature.option or 0)
    match signature.result:
        case Float():
            return Computed(_rounded_floats(values, to_even=semantics.rounds_half_to_even))
        case Decimal():
            return _rounded_decimals(values, digits, signature.result)
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


def _rounded_decimals(values: pa.Array, digits: int, result: Decimal) -> Computed:
    roomy = values.cast(pa.decimal256(76, values.type.scale))
    if digits < values.type.scale:
        roomy = pc.round(roomy, ndigits=digits, round_mode="half_towards_infinity")
    narrow = decimals.narrowed(roomy, result)
    failed = null_mask(narrow) & ~null_mask(values)
    return Computed(narrow, failed if failed.any() else None)


def _rounded_integers(values: pa.Array, digits: int, type_: Int) -> Computed:
    wide = values.cast(pa.decimal256(20, 0)).cast(pa.decimal256(76, 0))
    rounded = pc.round(wide, ndigits=digits, round_mode="half_towards_infinity")
    low, high = (pa.scalar(decimal.Decimal(end), rounded.type) for end in int_range(type_))
    outside = as_mask(pc.or_(pc.less(rounded, low), pc.greater(rounded, high)))
    failed = outside & ~null_mask(values)
    array = without(rounded, outside).cast(arrow_type(type_))
    return Computed(array, failed if failed.any() else None)


def _carries(signature: Signature) -> bool:
    """Whether a result may need more digits than its type has."""
    source, result = signature.arguments[0], signature.result
    if isinstance(source, Decimal) and isinstance(result, Decimal):
        whole = source.precision - source.scale
        return result.precision - result.scale <= whole and source.scale + whole >= _MOST_DIGITS
    return isinstance(source, Int) and signature.option.startswith("-")


def _increasing(signature: Signature) -> tuple[Direction, ...]:
    return (Direction.INCREASING,) * len(signature.arguments)


def _row(name: str, usage: str, resolve: Any, evaluate: Any, spelling: Any) -> Function:
    return Function(
        name,
        usage,
        resolve,
        evaluate,
        direction=_increasing,
        can_fail=_carries,
        nulls=NullRule.STRICT,
        spelling=spelling,
    )


ROWS = (
    _row("floor", "floor(number)", _resolve_whole, _to_whole("down"), spelt_alike("floor")),
    _row("ceil", "ceil(number)", _resolve_whole, _to_whole("up"), spelt_alike("ceil")),
    _row(
        "round", "round(number [, constant digits])", _resolve_round, _round, spelt_alike("round")
    ),
)
