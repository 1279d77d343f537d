"""Arithmetic and rounding of unbounded numbers, exact whatever their size.

Numbers with up to 19 digits before the point and 18 after it are computed as decimals of 256 bits;
others, NaN and the infinities one by one. Results are PostgreSQL's: NaN with anything is NaN, and
`Infinity - Infinity` is NaN. A remainder by zero fails, as does a result with more digits than a
number has.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, as_mask, null_mask, without
from rowsieve.predicate.functions.numbers import decimals
from rowsieve.predicate.functions.numbers.decimal_rounding import rounded
from rowsieve.types.logical import Decimal
from rowsieve.types.numeric_bytes import encoded, exact_of, fit, parsed, to_text

_WHOLE, _SCALE = 19, 18
_NARROW: Final = pa.decimal256(_WHOLE + _SCALE, _SCALE)
_HALF: Final = "half_towards_infinity"
_EXACT: Final = decimal.Context(
    prec=300_000,
    Emax=decimal.MAX_EMAX,
    Emin=decimal.MIN_EMIN,
    rounding=decimal.ROUND_HALF_UP,
    traps=[],
)
_PYTHON_MODES: Final = {
    _HALF: decimal.ROUND_HALF_UP,
    "down": decimal.ROUND_FLOOR,
    "up": decimal.ROUND_CEILING,
}

_Number = decimal.Decimal
_OnDecimals = Callable[..., pa.Array]
_OnNumbers = Callable[..., _Number]


def combine(name: str, left: pa.Array, right: pa.Array) -> Computed:
    """Compute `left name right` for add, subtract, multiply or modulo."""
    failed = np.zeros(len(left), np.bool_)
    if name == "modulo":
        failed = as_mask(pc.equal(exact_of(right), encoded(0))) & ~null_mask(left)
        failed &= ~as_mask(pc.equal(exact_of(left), encoded("NaN")))
        right = without(right, failed)
    return _mapped((left, right), *_SUMS[name], failed)


def negated(values: pa.Array) -> pa.Array:
    """Change the sign; NaN stays NaN."""
    return _mapped((values,), pc.negate, _EXACT.minus).values


def magnitude(values: pa.Array) -> pa.Array:
    """Return the absolute values; NaN stays NaN."""
    return _mapped((values,), pc.abs, _EXACT.abs).values


def rounded_to(values: pa.Array, digits: int, mode: str) -> Computed:
    """Round to digits after the point, before it if negative, in a mode of `decimal_rounding`."""

    def one(number: _Number) -> _Number:
        if not number.is_finite() or -int(number.as_tuple().exponent) <= digits:
            return number
        return _quantized(number, digits, _PYTHON_MODES[mode])

    return _mapped((values,), lambda narrow: rounded(narrow, digits, mode), one)


def _quantized(number: _Number, digits: int, mode: str) -> _Number:
    context = _EXACT.copy()
    context.rounding = mode
    scaled = number.scaleb(digits, context).to_integral_value(mode, context)
    return scaled.scaleb(-digits, context)


def _remainder(left: _Number, right: _Number) -> _Number:
    """Return the remainder with the dividend's sign, without a quotient of all digits."""
    if not (left.is_finite() and right.is_finite()):
        return _EXACT.remainder(left, right)
    exponent = min(int(left.as_tuple().exponent), int(right.as_tuple().exponent), 0)
    a, b = (int(each.scaleb(-exponent, _EXACT)) for each in (left, right))
    rest = abs(a) % abs(b)
    return _Number(-rest if a < 0 else rest).scaleb(exponent, _EXACT)


def _narrow_remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    result = Decimal(38, _SCALE)
    return decimals.evaluate("modulo", left, right, result).values


_SUMS: Mapping[str, tuple[_OnDecimals, _OnNumbers]] = {
    "add": (pc.add, _EXACT.add),
    "subtract": (pc.subtract, _EXACT.subtract),
    "multiply": (pc.multiply, _EXACT.multiply),
    "modulo": (_narrow_remainder, _remainder),
}


def _mapped(
    arguments: Sequence[pa.Array],
    on_decimals: _OnDecimals,
    on_numbers: _OnNumbers,
    failed: Mask | None = None,
) -> Computed:
    """Compute rows of short numbers at once and the others one by one; failed rows are NULL."""
    nulls = np.logical_or.reduce([null_mask(values) for values in arguments])
    short = np.logical_and.reduce([fit(values, _WHOLE, _SCALE) for values in arguments]) & ~nulls
    texts = [to_text(values) for values in arguments]
    narrow = [without(text, ~short).cast(_NARROW) for text in texts]
    numerals = on_decimals(*narrow).cast(pa.string())
    if others := np.flatnonzero(~short & ~nulls).tolist():
        rows = zip(*(text.take(pa.array(others)).to_pylist() for text in texts), strict=True)
        singly = [str(on_numbers(*map(_Number, row))) for row in rows]
        numerals = pc.replace_with_mask(numerals, pa.array(~short & ~nulls), pa.array(singly))
    numbers, fine = parsed(numerals)
    lost = ~fine & ~nulls
    lost = lost if failed is None else lost | failed
    return Computed(without(numbers, lost), lost if lost.any() else None)
