"""Bitwise operations on integers in two's complement: and, or, xor and constant shifts.

`&`, `|` and `^` of signed integers do not depend on their width. A right shift keeps the sign; a
left shift is of 64 bits, and `Semantics` decides on bits that are shifted out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rowsieve.predicate.arrays import Computed, filled, null_mask, with_nulls
from rowsieve.predicate.functions.numbers.numeric import wider_int
from rowsieve.predicate.functions.row import (
    Argument,
    Direction,
    Function,
    NullRule,
    Range,
    Signature,
    never_fails,
)
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Int


def _resolve_pair(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2:
        return None
    left, right = (argument.type for argument in arguments)
    if not isinstance(left, Int) or not isinstance(right, Int) or left.signed != right.signed:
        return None
    common = wider_int(left, right)
    return Signature((common, common), common)


def _resolve_shift(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2 or not isinstance(arguments[0].type, Int):
        return None
    count, type_ = arguments[1].constant, arguments[0].type
    if not type_.signed or type(count) is not int or not 0 <= count < type_.bits:
        return None
    return Signature((type_, Int(64)), type_)


def _resolve_wide_shift(arguments: Sequence[Argument]) -> Signature | None:
    signature = _resolve_shift(arguments)
    return signature if signature and signature.result == Int(64) else None


def _evaluator(operation: Callable[[Any, Any], Any]) -> Callable[..., Computed]:
    def evaluate(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
        left, right = arguments
        nulls = null_mask(left) | null_mask(right)
        values = operation(filled(left), filled(right))
        return Computed(with_nulls(values, nulls, arrow_type(signature.result)))

    return evaluate


def _shift_right(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    values, counts = arguments
    nulls = null_mask(values) | null_mask(counts)
    numbers = filled(values)
    shifted = numbers >> filled(counts).astype(numbers.dtype)
    return Computed(with_nulls(shifted, nulls, values.type))


def _shift_left(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
    values, counts = arguments
    nulls = null_mask(values) | null_mask(counts)
    numbers, places = filled(values), filled(counts)
    shifted = numbers << places
    lost = ((shifted >> places != numbers) | (numbers < 0)) & ~nulls
    if semantics.shifts_wrap or not lost.any():
        return Computed(with_nulls(shifted, nulls, pa.int64()))
    return Computed(with_nulls(shifted, nulls | lost, pa.int64()), lost)


def _left_range(arguments: Sequence[AbstractValue], _: Signature, __: Semantics) -> Range:
    """Keep the order if no bit, not even a sign, is shifted out at an end; else unbounded."""
    value, count = arguments
    places = filled(count.lower)
    safe = ~(null_mask(value.lower) | null_mask(value.upper) | null_mask(count.lower))
    ends = []
    for end in (value.lower, value.upper):
        numbers = filled(end)
        shifted = numbers << places
        safe &= (shifted >> places == numbers) & (numbers >= 0)
        ends.append(shifted)
    lower, upper = (with_nulls(end, ~safe, pa.int64()) for end in ends)
    return Range(lower, upper, safe=safe)


def _and_range(arguments: Sequence[AbstractValue], signature: Signature, _: Semantics) -> Range:
    """Bound by 0 and the least side that is never negative; may be below 0 if both sides may be."""
    type_ = arrow_type(signature.result)
    bounded = [_never_negative(value) for value in arguments]
    greatest = np.iinfo(type_.to_pandas_dtype()).max
    uppers = [
        np.where(plain & ~null_mask(value.upper), filled(value.upper), greatest)
        for value, plain in zip(arguments, bounded, strict=True)
    ]
    either = bounded[0] | bounded[1]
    zero = np.zeros(len(either), dtype=type_.to_pandas_dtype())
    upper = np.minimum(*uppers)
    return Range(with_nulls(zero, ~either, type_), with_nulls(upper, ~either, type_))


def _or_range(
    arguments: Sequence[AbstractValue], signature: Signature, semantics: Semantics
) -> Range:
    """For sides that are never negative: at least each side, with no more bits than the larger."""
    bounds = _xor_range(arguments, signature, semantics)
    lower = np.maximum(*(filled(value.lower) for value in arguments))
    return Range(with_nulls(lower, null_mask(bounds.lower), bounds.lower.type), bounds.upper)


def _xor_range(arguments: Sequence[AbstractValue], signature: Signature, _: Semantics) -> Range:
    """For sides that are never negative: no more bits than the larger."""
    type_ = arrow_type(signature.result)
    both = _never_negative(arguments[0]) & _never_negative(arguments[1])
    known = both & ~(null_mask(arguments[0].upper) | null_mask(arguments[1].upper))
    largest = np.maximum(*(filled(value.upper) for value in arguments)).astype(np.uint64)
    for places in (1, 2, 4, 8, 16, 32):
        largest |= largest >> np.uint64(places)
    zero = np.zeros(len(both), dtype=type_.to_pandas_dtype())
    upper = np.where(known, largest, np.uint64(0)).astype(type_.to_pandas_dtype())
    return Range(with_nulls(zero, ~both, type_), with_nulls(upper, ~known, type_))


def _never_negative(value: AbstractValue) -> Any:
    return ~null_mask(value.lower) & (filled(value.lower) >= 0)


def _pair(usage: str, operation: Callable[[Any, Any], Any], bounds: Any) -> Function:
    return Function(
        usage,
        _resolve_pair,
        _evaluator(operation),
        can_fail=never_fails,
        nulls=NullRule.STRICT,
        bounds=bounds,
    )


ROWS = (
    _pair("bit_and(whole, whole)", np.bitwise_and, _and_range),
    _pair("bit_or(whole, whole)", np.bitwise_or, _or_range),
    _pair("bit_xor(whole, whole)", np.bitwise_xor, _xor_range),
    Function(
        "shift_right(whole, constant places below its bits)",
        _resolve_shift,
        _shift_right,
        direction=lambda _: (Direction.INCREASING, Direction.NONE),
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "shift_left(int64, constant places below 64)",
        _resolve_wide_shift,
        _shift_left,
        bounds=_left_range,
        nulls=NullRule.STRICT,
    ),
)
