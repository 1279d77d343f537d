"""Float functions that all engines compute to the same bits: roots, signs, angles.

Only float64 is accepted: engines compute float32 in different widths. `exponentials` has those that
libraries approximate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, filled, null_mask, repeated, with_nulls, without
from rowsieve.predicate.functions.row import (
    Argument,
    Direction,
    Function,
    NullRule,
    Range,
    Resolver,
    Signature,
    never_fails,
)
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Bool, Float, Int, LogicalType

_PER_RADIAN = 180.0 / math.pi
_PER_DEGREE = math.pi / 180.0


def _resolve(result: LogicalType, *kinds: type) -> Resolver:
    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        argument_type = arguments[0].type if len(arguments) == 1 else None
        if argument_type is None or not isinstance(argument_type, kinds):
            return None
        if (
            isinstance(argument_type, Float)
            and argument_type.bits == 32
            and not isinstance(result, Bool)
        ):
            return None
        taken = argument_type if isinstance(result, Bool) else Float(64)
        return Signature((taken,), result)

    return resolve


def _times(factor: float) -> Callable[..., Computed]:
    def evaluate(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
        with np.errstate(over="ignore"):
            product = filled(arguments[0]) * factor
        return Computed(with_nulls(product, null_mask(arguments[0]), pa.float64()))

    return evaluate


def _sqrt(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
    numbers, nulls = filled(arguments[0]), null_mask(arguments[0])
    negative = (numbers < 0) & ~nulls
    roots = np.sqrt(np.where(negative, 0.0, numbers))
    if semantics.negative_roots_fail and negative.any():
        return Computed(with_nulls(roots, nulls | negative, pa.float64()), negative)
    return Computed(with_nulls(np.where(negative, np.nan, roots), nulls, pa.float64()))


def _sqrt_range(arguments: Sequence[AbstractValue], _: Signature, __: Semantics) -> Range:
    """From the root of the lower bound, or 0, to the root of the upper bound."""
    (value,) = arguments
    low, high = filled(value.lower), filled(value.upper)
    safe = ~null_mask(value.lower) & (low >= 0)
    lower = np.sqrt(np.where(safe, low, 0.0))
    nothing = null_mask(value.upper) | (high < 0)
    upper = np.sqrt(np.where(nothing, 0.0, high))
    everywhere = np.zeros(len(lower), dtype=np.bool_)
    return Range(
        with_nulls(lower, everywhere, pa.float64()),
        with_nulls(upper, nothing, pa.float64()),
        nan=~safe,
        safe=safe,
    )


def _truncate(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    return Computed(pc.trunc(arguments[0]))


def _resolve_double(arguments: Sequence[Argument]) -> Signature | None:
    taken = Float(64)
    alone = len(arguments) == 1 and arguments[0].type == taken
    return Signature((taken,), taken) if alone else None


def _sign(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
    numbers, nulls = filled(arguments[0]), null_mask(arguments[0])
    of_nan = np.nan if semantics.nan_has_sign else 0.0  # with its sign bit clear
    signs = np.where(np.isnan(numbers), of_nan, np.sign(numbers))
    return Computed(with_nulls(signs, nulls, pa.float64()))


def _sign_range(arguments: Sequence[AbstractValue], _: Signature, __: Semantics) -> Range:
    """Bound by the signs of both bounds; monotone, but NaN may give 0."""
    (value,) = arguments
    lower = pc.fill_null(pc.sign(value.lower), -1.0)
    upper = pc.fill_null(pc.sign(value.upper), 1.0)
    zero = pa.scalar(0.0)
    nan = pa.array(value.nan)
    return Range(
        pc.if_else(nan, pc.min_element_wise(lower, zero), lower),
        pc.if_else(nan, pc.max_element_wise(upper, zero), upper),
    )


def _is_nan(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    return Computed(pc.is_nan(arguments[0]))


def _nan_range(arguments: Sequence[AbstractValue], _: Signature, __: Semantics) -> Range:
    (value,) = arguments
    no = repeated(pa.scalar(False), len(value.present))  # noqa: FBT003
    return Range(no, without(no, value.nan))


def _row(usage: str, evaluate: Any, **claims: Any) -> Function:
    return Function(
        usage,
        claims.pop("resolve", _resolve(Float(64), Int, Float)),
        evaluate,
        nulls=NullRule.STRICT,
        **claims,
    )


_RISING = {"direction": lambda _: (Direction.INCREASING,), "can_fail": never_fails}

ROWS = (
    _row("sqrt(float64)", _sqrt, bounds=_sqrt_range),
    _row("trunc(float64)", _truncate, resolve=_resolve_double, **_RISING),
    _row("degrees(float64)", _times(_PER_RADIAN), **_RISING),
    _row("radians(float64)", _times(_PER_DEGREE), **_RISING),
    _row(
        "sign(float64)",
        _sign,
        bounds=_sign_range,
        can_fail=never_fails,
    ),
    _row(
        "is_nan(float)",
        _is_nan,
        resolve=_resolve(Bool(), Float),
        bounds=_nan_range,
        can_fail=never_fails,
    ),
)
