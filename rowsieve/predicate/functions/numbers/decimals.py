"""Decimal arithmetic, exact in 256 bits; a result with more digits than its type fails.

Result types are those of SQL engines with 38 digits: sums keep the larger scale and gain a digit,
products add scales, and quotients keep at least 6 digits after the point and round half away from
zero. Calls whose intermediate results do not fit are rejected when they are resolved.
"""

from __future__ import annotations

import decimal

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, as_mask, null_mask, without
from rowsieve.predicate.functions.numbers.decimal_rounding import rounded
from rowsieve.predicate.functions.row import Signature
from rowsieve.types.logical import Decimal, Int, LogicalType

_MAX = 38
_WIDE = 76
_INT_DIGITS = {(8, True): 3, (16, True): 5, (32, True): 10, (64, True): 19}
_UINT_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def int_as_decimal(type_: Int) -> Decimal:
    """Return the decimal type that holds every value of the integer type."""
    digits = _INT_DIGITS[type_.bits, True] if type_.signed else _UINT_DIGITS[type_.bits]
    return Decimal(digits, 0)


def resolve(name: str, left: LogicalType, right: LogicalType) -> Signature | None:
    """Return the types of `left name right`; None if 76 digits cannot hold intermediate results."""
    a = int_as_decimal(left) if isinstance(left, Int) else left
    b = int_as_decimal(right) if isinstance(right, Int) else right
    assert isinstance(a, Decimal)
    assert isinstance(b, Decimal)
    result = _result(name, a, b)
    return None if result is None else Signature((a, b), result)


def _result(name: str, a: Decimal, b: Decimal) -> Decimal | None:
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    match name:
        case "add" | "subtract":
            return Decimal(min(_MAX, whole + scale + 1), scale) if whole + scale < _WIDE else None
        case "multiply":
            digits = a.precision + b.precision + 1
            scale = a.scale + b.scale
            return Decimal(min(_MAX, digits), scale) if digits <= _WIDE and scale <= _MAX else None
        case "divide":
            whole = a.precision - a.scale + b.scale
            scale = min(max(6, a.scale + b.precision + 1), max(_MAX - whole, 6))
            if a.precision - a.scale + max(a.scale, scale) + b.precision + 1 > _WIDE:
                return None
            return Decimal(min(_MAX, whole + scale), scale)
        case "modulo":
            digits = a.precision - a.scale + b.precision - b.scale + 2 * scale
            whole = min(a.precision - a.scale, b.precision - b.scale)
            return Decimal(max(1, whole + scale), scale) if digits <= _WIDE - 2 else None
        case _:
            return None


def evaluate(name: str, left: pa.Array, right: pa.Array, result: Decimal) -> Computed:
    """Compute `left name right`; division by zero and overflow fail."""
    nulls = null_mask(left) | null_mask(right)
    match name:
        case "add" | "subtract" | "multiply":
            kernel = {"add": pc.add, "subtract": pc.subtract, "multiply": pc.multiply}[name]
            wide = kernel(_wide(left), _wide(right))
        case "modulo":
            wide = _remainder(left, right, result.scale)
        case _:
            wide = quotient(left, right, result.scale)
    narrow = narrowed(wide, result)
    failed = null_mask(narrow) & ~nulls
    return Computed(narrow, failed if failed.any() else None)


def to_whole(values: pa.Array, result: Decimal, mode: str) -> Computed:
    """Round to integers in Arrow's mode `down` or `up`."""
    whole = narrowed(rounded(values, 0, mode), result)
    failed = null_mask(whole) & ~null_mask(values)
    return Computed(whole, failed if failed.any() else None)


def narrowed(wide: pa.Array, type_: Decimal) -> pa.Array:
    """Convert to the type, rounded half away from zero; NULL where a value does not fit."""
    source = wide.type
    if source.scale > type_.scale:
        wide = rounded(wide, type_.scale, "half_towards_infinity")
    whole = type_.precision - type_.scale
    if whole + wide.type.scale >= _WIDE:  # no value of 76 digits is too large
        return wide.cast(pa.decimal128(type_.precision, type_.scale))
    limit = decimal.Decimal(10) ** whole
    bound = pa.scalar(limit, pa.decimal256(_WIDE, 0)).cast(pa.decimal256(_WIDE, wide.type.scale))
    too_large = as_mask(pc.greater_equal(pc.abs(wide.cast(bound.type)), bound))
    return without(wide, too_large).cast(pa.decimal128(type_.precision, type_.scale))


def _wide(values: pa.Array) -> pa.Array:
    return values.cast(pa.decimal256(values.type.precision, values.type.scale))


def _remainder(left: pa.Array, right: pa.Array, scale: int) -> pa.Array:
    """Return the remainder of truncating division, with the dividend's sign; NULL if by zero.

    Computes on integers, the numbers times 10^scale: their quotient has more digits after its point
    than the divisor has digits, so it is never rounded up to the next integer.
    """
    zero = as_mask(pc.equal(right, pa.scalar(decimal.Decimal(0), right.type)))
    a, b = _points(left, scale), _points(without(right, zero), scale)
    whole = rounded(pc.divide(a, b), 0, "towards_zero")
    digits = pa.decimal256(a.type.precision, 0)
    rest = pc.subtract(a, pc.multiply(whole.cast(digits), b)).cast(pa.decimal256(_WIDE, 0))
    return rest.view(pa.decimal256(_WIDE, scale))


def _points(values: pa.Array, scale: int) -> pa.Array:
    digits = values.type.precision - values.type.scale + scale
    return values.cast(pa.decimal256(digits, scale)).view(pa.decimal256(digits, 0))


def quotient(left: pa.Array, right: pa.Array, scale: int) -> pa.Array:
    """Return the quotient truncated after more than `scale` digits, enough to round half away.

    NULL where the divisor is zero.
    """
    zero = as_mask(pc.equal(right, pa.scalar(decimal.Decimal(0), right.type)))
    type_ = left.type
    wide_scale = max(type_.scale, scale)
    digits = type_.precision - type_.scale + wide_scale
    numerator = left.cast(pa.decimal256(digits, wide_scale))
    return pc.divide(numerator, _wide(without(right, zero)))
