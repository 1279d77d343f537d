"""Casts of floats to decimals: by shortest text or by a power of ten, as `Semantics` says.

Both round half away from zero and keep the order of the floats. Overflow, NaN and infinity fail,
unless `Semantics` gives NULL for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, filled, null_mask, with_nulls, without
from rowsieve.predicate.functions.numbers.decimals import narrowed
from rowsieve.predicate.semantics import DigitRounding, Semantics
from rowsieve.types.logical import Decimal, LogicalType

_WIDE = 76
_FINE_SCALE = 70  # the 17 digits of numbers below 1 are within it
_COARSE_SCALE = 38
_MANTISSA_BITS = 53


def to_decimal(
    values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Cast floats to a decimal type."""
    assert isinstance(target, Decimal)
    match semantics.digit_rounding:
        case DigitRounding.SCALED:
            narrow = _scaled(filled(values).astype(np.float64), _multiplied_up(target), target)
        case DigitRounding.SCALED_FINITE:
            factor = float(10**target.scale)
            narrow = _scaled(filled(values).astype(np.float64), factor, target)
        case DigitRounding.WIDE_DECIMAL:
            narrow = _from_shortest_text(values.cast(pa.float64()), target)
        case DigitRounding.SHORT_DECIMAL:
            narrow = _from_shortest_text(shortened(values), target)
        case _:
            narrow = _from_shortest_text(values, target)
    nulls = null_mask(values)
    failed = null_mask(narrow) & ~nulls
    if semantics.lenient_float_casts:
        failed &= np.isfinite(filled(values))
    return Computed(without(narrow, nulls), failed if failed.any() else None)


def _from_shortest_text(values: pa.Array, target: Decimal) -> pa.Array:
    """Return the decimal nearest to the shortest text; NULL where it does not fit."""
    numbers = filled(values)
    size = np.abs(numbers)
    with np.errstate(invalid="ignore"):
        fits = np.isfinite(numbers) & (size <= 10.0 ** (target.precision - target.scale))
    small, tiny = fits & (size < 1), size < 10.0 ** -(target.scale + 1)
    parts = []
    for chosen, scale in ((small, _FINE_SCALE), (fits & ~small, _COARSE_SCALE)):
        normal = np.where(tiny & chosen, numbers.dtype.type(0), numbers)
        texts = with_nulls(normal, ~chosen, values.type).cast(pa.string())
        parts.append(narrowed(texts.cast(pa.decimal256(_WIDE, scale)), target))
    return pc.coalesce(*parts)


def shortened(values: pa.Array) -> pa.Array:
    """Round floats to 15 digits, or 6 for float32, which bounds their shortest text."""
    texts, which = _short_texts(values)
    return with_nulls(texts.astype(np.float64)[which], null_mask(values), pa.float64())


def short_texts(values: pa.Array) -> pa.Array:
    """Write floats with 15 digits, or 6 for float32: a float near 0 has fewer of its own."""
    texts, which = _short_texts(values)
    return without(pa.array(texts).take(pa.array(which)), null_mask(values))


def _short_texts(values: pa.Array) -> tuple[npt.NDArray[np.str_], npt.NDArray[np.intp]]:
    """The distinct texts, and the place of each value among them."""
    pattern = "%.6g" if pa.types.is_float32(values.type) else "%.15g"
    distinct, which = np.unique(filled(values).astype(np.float64), return_inverse=True)
    return np.char.mod(pattern, distinct), which.reshape(-1)


def _multiplied_up(target: Decimal) -> float:
    """Compute ten to the scale by repeated squaring, rounding each step: inexact above 10^22."""
    power, factor, left = 10.0, 1.0, target.scale
    while left:
        factor = factor * power if left & 1 else factor
        power, left = power * power, left >> 1
    return factor


def _scaled(numbers: npt.NDArray[np.float64], factor: float, target: Decimal) -> pa.Array:
    """Multiply by the factor and round to an integer; NULL where it has too many digits."""
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = numbers * factor
        whole = np.trunc(scaled)
        whole += np.where(np.abs(scaled - whole) >= 0.5, np.copysign(1.0, scaled), 0.0)
        fits = np.abs(whole) < float(10**target.precision)
    points = _exact(np.where(fits, whole, 0.0))
    digits = points.type.precision
    placed = points.view(pa.decimal256(digits, target.scale))
    return without(placed, ~fits).cast(pa.decimal128(target.precision, target.scale))


def _exact(whole: npt.NDArray[np.float64]) -> pa.Array:
    """Convert integral floats below 10^38 exactly: a mantissa times a power of two."""
    excess = np.maximum(np.frexp(whole)[1] - _MANTISSA_BITS, 0)
    mantissas = np.ldexp(whole, -excess).astype(np.int64)
    powers, which = np.unique(excess, return_inverse=True)
    factors: list[Any] = [2 ** int(power) for power in powers]
    table = pa.array([str(factor) for factor in factors], pa.string()).cast(pa.decimal256(38, 0))
    wide = pa.array(mantissas).cast(pa.decimal256(20, 0))
    product = pc.multiply(wide, table.take(pa.array(which.reshape(-1))))
    return product.cast(pa.decimal256(_WIDE, 0))
