"""`ln`, `exp` and `power` of float64, as the math library of the process computes them.

DuckDB, DataFusion, PostgreSQL and Arrow call the same functions of the C library, which therefore
give the same bits. Java has a library of its own, so Spark and Trino have other last digits.
`Semantics.float_domain` says what happens outside of the domain.

Soundness: such a library errs by less than one unit in the last place, but nobody proves that its
functions are monotone. So bounds are widened by some units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, filled, null_mask, with_nulls
from rowsieve.predicate.functions.row import (
    Argument,
    Function,
    NullRule,
    Range,
    Signature,
)
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.semantics import FloatDomain, Semantics
from rowsieve.types.logical import Decimal, Float, Int

Numbers = npt.NDArray[np.float64]
_REAL = Float(64)
_UNITS = 4  # in the last place, by which bounds are widened
_NEAR_ZERO, _HUGE = 1e-300, 1e300  # results between these are neither overflows nor underflows
_MIN_EXPONENT, _MAX_EXPONENT = -690.0, 690.0  # of e, likewise


def _resolve_one(arguments: Sequence[Argument]) -> Signature | None:
    alone = len(arguments) == 1 and _is_taken(arguments[0])
    return Signature((_REAL,), _REAL) if alone else None


def _resolve_two(arguments: Sequence[Argument]) -> Signature | None:
    """Two floats or whole numbers, or a float and a decimal: decimals alone have own powers."""
    if len(arguments) != 2:
        return None
    decimals = [argument for argument in arguments if isinstance(argument.type, Decimal)]
    others = [argument for argument in arguments if not isinstance(argument.type, Decimal)]
    if not all(map(_is_taken, others)):
        return None
    if decimals and not any(argument.type == _REAL for argument in others):
        return None
    return Signature((_REAL, _REAL), _REAL)


def _is_taken(argument: Argument) -> bool:
    return isinstance(argument.type, Int) or argument.type == _REAL


def _computed(values: Any, nulls: Mask, failed: Mask) -> Computed:
    failed = failed & ~nulls
    array = with_nulls(values, nulls | failed, pa.float64())
    return Computed(array, failed if failed.any() else None)


def _ln(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
    numbers, nulls = filled(arguments[0]), null_mask(arguments[0])
    values = filled(pc.ln(pa.array(np.where(nulls, 1.0, numbers))))
    fails = semantics.float_domain is FloatDomain.ERROR
    return _computed(values, nulls, (numbers <= 0) & fails)


def _ln_range(arguments: Sequence[AbstractValue], _: Signature, __: Semantics) -> Range:
    (value,) = arguments
    low, high = filled(value.lower), filled(value.upper)
    safe = ~null_mask(value.lower) & (low > 0)
    nothing = null_mask(value.upper) | (high <= 0)
    lower = _down(filled(pc.ln(pa.array(np.where(safe, low, 1.0)))))
    upper = _up(filled(pc.ln(pa.array(np.where(nothing, 1.0, high)))))
    return _range(lower, ~safe, upper, nothing, safe)


def _exp(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
    numbers, nulls = filled(arguments[0]), null_mask(arguments[0])
    values = filled(pc.exp(pa.array(np.where(nulls, 0.0, numbers))))
    if semantics.float_domain is not FloatDomain.ERROR:
        return _computed(values, nulls, np.zeros(len(nulls), np.bool_))
    return _computed(values, nulls, np.isfinite(numbers) & (np.isinf(values) | (values == 0)))


def _exp_range(arguments: Sequence[AbstractValue], _: Signature, __: Semantics) -> Range:
    (value,) = arguments
    low, high = filled(value.lower), filled(value.upper)
    no_low, no_high = null_mask(value.lower), null_mask(value.upper)
    safe = ~no_low & ~no_high & (low > _MIN_EXPONENT) & (high < _MAX_EXPONENT)
    least, greatest = (
        filled(pc.exp(pa.array(np.where(no, 0.0, end))))
        for no, end in ((no_low, low), (no_high, high))
    )
    lower = np.where(no_low, 0.0, np.maximum(_down(least), 0.0))
    upper = _up(greatest)
    never = np.zeros(len(safe), np.bool_)
    return _range(lower, never, upper, no_high, safe, nan=never)


def _power(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
    nulls = null_mask(arguments[0]) | null_mask(arguments[1])
    base = np.where(nulls, 1.0, filled(arguments[0]))
    exponent = np.where(nulls, 1.0, filled(arguments[1]))
    values = filled(pc.power(pa.array(base), pa.array(exponent)))
    return _computed(values, nulls, _failed(base, exponent, values, semantics.float_domain))


def _failed(base: Numbers, exponent: Numbers, values: Numbers, domain: FloatDomain) -> Mask:
    """Where a power fails: as PostgreSQL's dpow, as DataFusion's, or nowhere."""
    if domain is FloatDomain.IEEE:
        return np.zeros(len(base), np.bool_)
    failed: Mask = (base == 0) & (exponent < 0)
    if domain is FloatDomain.ZERO_POWER_ERROR:
        return failed
    failed |= (base < 0) & (np.floor(exponent) != exponent) & ~np.isnan(exponent)
    finite = np.isfinite(base) & np.isfinite(exponent)
    failed |= finite & (np.isinf(values) | ((values == 0) & (base != 0)))
    return failed


def _power_range(arguments: Sequence[AbstractValue], _: Signature, __: Semantics) -> Range | None:
    """Of a base from 1e-300 on: monotone in each argument, so the extremes lie at the corners."""
    base, exponent = arguments
    ends = [base.lower, base.upper, exponent.lower, exponent.upper]
    missing = np.logical_or.reduce([null_mask(end) for end in ends])
    low, high, least, greatest = (np.where(missing, 1.0, filled(end)) for end in ends)
    missing = missing | ~(low >= _NEAR_ZERO)
    pairs = [(pa.array(b), pa.array(e)) for b in (low, high) for e in (least, greatest)]
    corners = np.array([filled(pc.power(*pair)) for pair in pairs])
    missing |= np.isnan(corners).any(axis=0)
    lower, upper = corners.min(axis=0), corners.max(axis=0)
    safe = ~missing & (lower > _NEAR_ZERO) & (upper < _HUGE)
    lower = np.maximum(_down(np.where(missing, 1.0, lower)), 0.0)
    return _range(lower, missing, _up(np.where(missing, 1.0, upper)), missing, safe, nan=missing)


def _range(
    lower: Numbers, no_lower: Mask, upper: Numbers, no_upper: Mask, safe: Mask,
    nan: Mask | None = None,
) -> Range:  # fmt: skip
    return Range(
        with_nulls(lower, no_lower, pa.float64()),
        with_nulls(upper, no_upper, pa.float64()),
        nan=~safe if nan is None else nan,
        safe=safe,
    )


def _down(values: Numbers) -> Numbers:
    for _ in range(_UNITS):
        values = np.nextafter(values, -np.inf)
    return values


def _up(values: Numbers) -> Numbers:
    for _ in range(_UNITS):
        values = np.nextafter(values, np.inf)
    return values


ROWS = (
    Function("ln(float64)", _resolve_one, _ln, nulls=NullRule.STRICT, bounds=_ln_range),
    Function("exp(float64)", _resolve_one, _exp, nulls=NullRule.STRICT, bounds=_exp_range),
    Function(
        "power(float64, float64)",
        _resolve_two,
        _power,
        nulls=NullRule.STRICT,
        bounds=_power_range,
    ),
)
