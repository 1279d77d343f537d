"""Bounds of `abs`, `/` and `%`, which are not monotone on all values.

A quotient has its extremes at the four corners if the divisor's range excludes zero, since it is
monotone in each side there. Infinity is not a corner: infinity / infinity is NaN.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Mask, as_mask, null_mask, repeated, without
from rowsieve.predicate.functions.row import BoundsRule, Evaluator, Range, Signature
from rowsieve.predicate.interpretation.abstract import AbstractValue, known
from rowsieve.predicate.ir import ComparisonOp
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Decimal, Float, Int

_GE, _GT, _LE, _LT = ComparisonOp.GE, ComparisonOp.GT, ComparisonOp.LE, ComparisonOp.LT


def abs_range(evaluate: Evaluator) -> BoundsRule:
    """Return zero to the farther end, or from the nearer end if the range excludes zero."""

    def bounds(
        arguments: Sequence[AbstractValue], signature: Signature, semantics: Semantics
    ) -> Range:
        (value,) = arguments
        low, high = (_at(evaluate, (end,), signature, semantics) for end in _both(value))
        zero = _zero(value)
        above = pa.array(known(_GE, value.lower, zero))
        below = pa.array(known(_LE, value.upper, zero))
        nearest = pc.if_else(above, low, pc.if_else(below, high, zero.cast(low.type)))
        either = pc.max_element_wise(low, high, skip_nulls=False)
        farthest = pc.if_else(above, high, pc.if_else(below, low, either))
        return Range(nearest, farthest, value.nan, ~(null_mask(low) | null_mask(high)))

    return bounds


def quotient_range(evaluate: Evaluator) -> BoundsRule:
    """Return the hull of the corners."""

    def bounds(
        arguments: Sequence[AbstractValue], signature: Signature, semantics: Semantics
    ) -> Range | None:
        left, right = arguments
        apart = _apart_from_zero(right)
        if not apart.any():
            return None
        corners = [
            _at(evaluate, (a, without(b, ~apart)), signature, semantics)
            for a in map(_finite, _both(left))
            for b in map(_finite, _both(right))
        ]
        safe = ~np.logical_or.reduce([null_mask(corner) for corner in corners])
        lower = pc.min_element_wise(*corners, skip_nulls=False)
        upper = pc.max_element_wise(*corners, skip_nulls=False)
        nan = ~safe if isinstance(signature.result, Float) else None
        return Range(lower, upper, nan, safe)

    return bounds


def remainder_range(evaluate: Evaluator) -> BoundsRule:
    """Bound by zero, the dividend and the divisor; keeps the order within one quotient."""

    def bounds(
        arguments: Sequence[AbstractValue], signature: Signature, semantics: Semantics
    ) -> Range | None:
        left, right = arguments
        if isinstance(signature.result, Float):
            return None
        apart = _apart_from_zero(right)
        type_ = arrow_type(signature.result)
        zero = pa.scalar(0, type_) if isinstance(signature.result, Int) else _decimal_zero(type_)
        reach = _reach(right, signature)
        low = pc.min_element_wise(_fitting(left.lower, type_), zero, skip_nulls=False)
        high = pc.max_element_wise(_fitting(left.upper, type_), zero, skip_nulls=False)
        if not (isinstance(signature.result, Int) and not signature.result.signed):
            low = pc.max_element_wise(low, pc.negate(reach))
        else:
            low = pc.fill_null(low, zero)
        high = pc.min_element_wise(high, reach)
        above, below = known(_GE, left.lower, _zero(left)), known(_LE, left.upper, _zero(left))
        low = pc.if_else(pa.array(above), zero, low)
        high = pc.if_else(pa.array(below), zero, high)
        ends = [
            _at(evaluate, (end, without(right.lower, ~apart)), signature, semantics)
            for end in _both(left)
        ]
        ordered = pa.array(_one_quotient(left, right, ends, type_) & (above | below) & apart)
        low, high = pc.if_else(ordered, ends[0], low), pc.if_else(ordered, ends[1], high)
        safe = apart
        if semantics.remainders_overflow and isinstance(signature.result, Int):
            safe = apart & ~_may_overflow(left, right, signature.result)
        return Range(without(low, ~apart), without(high, ~apart), safe=safe)

    return bounds


def _may_overflow(left: AbstractValue, right: AbstractValue, type_: Int) -> Mask:
    """Where the dividend may be the least integer and the divisor -1."""
    if not type_.signed:
        return np.zeros(len(left.present), dtype=np.bool_)
    least, minus_one = (
        repeated(pa.scalar(value, arrow_type(type_)), len(left.present))
        for value in (-(2 ** (type_.bits - 1)), -1)
    )
    never = known(_GT, left.lower, least)
    never |= known(_GT, right.lower, minus_one) | known(_LT, right.upper, minus_one)
    return ~never


def _at(
    evaluate: Evaluator,
    arguments: tuple[pa.Array, ...],
    signature: Signature,
    semantics: Semantics,
) -> pa.Array:
    """Evaluate at an end; NULL where there is none."""
    computed = evaluate(arguments, signature, semantics)
    return without(computed.values, computed.failed)


def _both(value: AbstractValue) -> tuple[pa.Array, pa.Array]:
    return value.lower, value.upper


def _finite(end: pa.Array) -> pa.Array:
    if not pa.types.is_floating(end.type):
        return end
    return without(end, as_mask(pc.is_inf(end)))


def _zero(value: AbstractValue) -> pa.Array:
    type_ = arrow_type(value.type)
    zero = _decimal_zero(type_) if isinstance(value.type, Decimal) else pa.scalar(0, type_)
    return repeated(zero, len(value.present))


def _decimal_zero(type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(decimal.Decimal(0), type_)


def _apart_from_zero(value: AbstractValue) -> Mask:
    """Where the range certainly excludes zero."""
    zero = _zero(value)
    return known(_GT, value.lower, zero) | (known(_LT, value.upper, zero) & ~value.nan)


def _fitting(end: pa.Array, type_: pa.DataType) -> pa.Array:
    """Cast the bound to the result type; NULL where it does not fit."""
    if end.type == type_ or not pa.types.is_decimal(type_):
        return end
    limit = decimal.Decimal(10) ** (type_.precision - type_.scale)
    roomy = end.cast(pa.decimal256(76, end.type.scale))
    bound = pa.scalar(limit, pa.decimal256(76, 0)).cast(roomy.type)
    outside = as_mask(pc.greater_equal(pc.abs(roomy), bound))
    return without(roomy, outside).cast(type_)


def _reach(divisor: AbstractValue, signature: Signature) -> pa.Array:
    """Return the greatest possible distance of a remainder from zero; NULL if unknown."""
    ends = []
    for end in _both(divisor):
        plain = end
        if isinstance(signature.result, Int) and signature.result.signed:
            least = pa.scalar(np.iinfo(end.type.to_pandas_dtype()).min, end.type)
            plain = without(end, as_mask(pc.equal(end, least)))
        ends.append(plain if pa.types.is_unsigned_integer(end.type) else pc.abs(plain))
    farther = pc.max_element_wise(*ends, skip_nulls=False)
    if isinstance(signature.result, Int):
        one = pa.scalar(1, farther.type)
        return pc.subtract(pc.max_element_wise(farther, one, skip_nulls=False), one)
    return _fitting(farther, arrow_type(signature.result))


def _one_quotient(
    left: AbstractValue, right: AbstractValue, ends: list[pa.Array], type_: pa.DataType
) -> Mask:
    """Where the dividend stays within one multiple of a constant divisor: `%` is monotone there."""
    if pa.types.is_decimal(type_):
        return np.zeros(len(left.present), dtype=np.bool_)
    constant = known(ComparisonOp.EQ, right.lower, right.upper)
    usable = constant & ~null_mask(ends[0]) & ~null_mask(ends[1])
    low, high = (pc.fill_null(without(end, ~usable), 0).to_numpy() for end in _both(left))
    rests = [pc.fill_null(without(end, ~usable), 0).to_numpy() for end in ends]
    same: Mask = (low - rests[0]) == (high - rests[1])
    return usable & same
