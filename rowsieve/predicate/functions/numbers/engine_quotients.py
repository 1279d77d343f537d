"""Quotients of decimals with the digits that PostgreSQL and DataFusion keep.

`rounded_quotient`: PostgreSQL's numeric division. It keeps 16 digits from the first group of four
digits on, and never less than the places of a side; the last one is rounded half away from zero. A
decimal has the places of its type, an unbounded number those that it needs.

`truncated_quotient`: DataFusion's. It keeps 4 places more than the dividend and drops the others;
a dividend that has more than 127 bits with all these places is an overflow.

Division by zero fails, but NaN by zero is NaN in PostgreSQL. Source: `select_div_scale` in
PostgreSQL's numeric.c; arrow-rs, `decimal_op` in arrow-arith's numeric.rs.
"""

from __future__ import annotations

import decimal
import fractions
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, as_mask, null_mask, without
from rowsieve.predicate.functions.numbers import decimals
from rowsieve.predicate.functions.numbers.decimal_rounding import rounded
from rowsieve.predicate.functions.numbers.numeric_ranges import quotient_range
from rowsieve.predicate.functions.row import Argument, Function, NullRule, Signature
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Decimal, Int, LogicalType, Numeric
from rowsieve.types.numeric_bytes import fit, from_numbers, parsed, to_text

_MAX: Final = 38
_WIDE: Final = 76
_LAST_128: Final = 2**127 - 1
_MORE_PLACES: Final = 4
_GROUP: Final = 4  # decimal digits of one digit in PostgreSQL
_MIN_DIGITS: Final = 16
_MAX_PLACES: Final = 1_000
_SHORT: Final = (19, 18)  # digits before and after the point of numbers that decimals hold
_EXACT: Final = decimal.Context(
    prec=300_000,
    Emax=decimal.MAX_EMAX,
    Emin=decimal.MIN_EMIN,
    rounding=decimal.ROUND_HALF_UP,
    traps=[],
)

Ints = npt.NDArray[np.int64]


def _decimal(type_: LogicalType | None) -> Decimal | None:
    if isinstance(type_, Int):
        return decimals.int_as_decimal(type_)
    return type_ if isinstance(type_, Decimal) else None


def _resolve_truncated(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2:
        return None
    left, right = (_decimal(argument.type) for argument in arguments)
    if left is None or right is None:
        return None
    scale = min(left.scale + _MORE_PLACES, _MAX)
    if not _fits(left, right, scale):
        return None
    digits = min(left.precision + scale - left.scale + right.scale, _MAX)
    return Signature((left, right), Decimal(digits, scale))


def _fits(left: Decimal, right: Decimal, scale: int) -> bool:
    """Whether a quotient with more than `scale` places is computed within 76 digits."""
    places = max(left.scale, scale)
    return left.precision - left.scale + places + right.precision + 1 <= _WIDE


def _truncated(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    left, right = arguments
    type_ = signature.result
    assert isinstance(type_, Decimal)
    nulls = null_mask(left) | null_mask(right)
    quotient = rounded(decimals.quotient(left, right, type_.scale), type_.scale, "towards_zero")
    narrow = without(decimals.narrowed(quotient, type_), _overflows(left, right, type_))
    failed = null_mask(narrow) & ~nulls
    return Computed(narrow, failed if failed.any() else None)


def _overflows(left: pa.Array, right: pa.Array, result: Decimal) -> Mask:
    """Where the dividend with all places has more than 127 bits."""
    moved = result.scale - left.type.scale + right.type.scale
    if left.type.precision + moved <= _MAX:
        return np.zeros(len(left), np.bool_)
    most = decimal.Decimal(_LAST_128 // 10**moved).scaleb(-left.type.scale, _EXACT)
    wide = pa.decimal256(_WIDE, left.type.scale)
    return as_mask(pc.greater(pc.abs(left.cast(wide)), pa.scalar(most, wide)))


def _resolve_rounded(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2:
        return None
    left, right = (_decimal_or_numeric(argument.type) for argument in arguments)
    if left is None or right is None:
        return None
    types = (left, right)
    return Signature((Numeric(), Numeric()) if Numeric() in types else types, Numeric())


def _decimal_or_numeric(type_: LogicalType | None) -> Decimal | Numeric | None:
    return type_ if isinstance(type_, Numeric) else _decimal(type_)


def _rounded(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    nulls = null_mask(arguments[0]) | null_mask(arguments[1])
    rows = pa.array(np.flatnonzero(~nulls))
    sides = [
        _Side.of(values.take(rows), type_)
        for values, type_ in zip(arguments, signature.arguments, strict=True)
    ]
    quotients, lost = parsed(_divided(*sides))
    places = np.where(nulls, 0, np.cumsum(~nulls) - 1)
    if not len(rows):
        return Computed(parsed(pa.nulls(len(nulls), pa.string()))[0])
    failed = np.zeros(len(nulls), np.bool_)
    failed[~nulls] = ~lost | null_mask(quotients)
    numbers = without(quotients.take(pa.array(places)), nulls | failed)
    return Computed(numbers, failed if failed.any() else None)


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of some quotients: its text with all digits, and the places that count.

    `decimals`: the numbers where they are `short`.
    """

    texts: pa.Array
    places: Ints
    decimals: pa.Array
    short: Mask

    @staticmethod
    def of(values: pa.Array, type_: LogicalType) -> _Side:
        """Return the side of these values, which are not NULL."""
        if isinstance(type_, Decimal):
            places = np.full(len(values), type_.scale, np.int64)
            every = np.ones(len(values), np.bool_)
            return _Side(to_text(from_numbers(values)), places, values, every)
        texts, short = to_text(values), fit(values, *_SHORT)
        fraction = pc.extract_regex(texts, r"\.(?P<digits>[0-9]+)$").field(0)
        sizes = pc.fill_null(pc.binary_length(fraction), 0)
        whole, scale = _SHORT
        return _Side(
            texts,
            np.asarray(sizes.to_numpy(zero_copy_only=False), np.int64),
            without(texts, ~short).cast(pa.decimal128(whole + scale, scale)),
            short,
        )


def _divided(left: _Side, right: _Side) -> pa.Array:
    """Return the quotients as texts; NULL where there is none."""
    short = left.short & right.short & ~_zeros(right)
    rows = np.flatnonzero(short)
    least = np.maximum(left.places, right.places)
    digits = np.full(len(short), -1, np.int64)
    digits[rows] = _quotient_digits(
        left.texts.take(pa.array(rows)), right.texts.take(pa.array(rows)), least[rows]
    )
    pieces: list[pa.Array] = []
    order: list[npt.NDArray[np.intp]] = []
    for places in np.unique(digits).tolist():
        where = np.flatnonzero(digits == places)
        at = pa.array(where)
        a, b = left.decimals.take(at), right.decimals.take(at)
        if places >= 0 and _fits(_type(a), _type(b), places):
            quotient = decimals.quotient(a, b, places)
            pieces.append(rounded(quotient, places, "half_towards_infinity").cast(pa.string()))
        else:
            numbers = zip(
                left.texts.take(at).to_pylist(),
                right.texts.take(at).to_pylist(),
                least[where].tolist(),
                strict=True,
            )
            pieces.append(
                pa.array(
                    [_one(decimal.Decimal(x), decimal.Decimal(y), n) for x, y, n in numbers],
                    pa.string(),
                )
            )
        order.append(where)
    if not pieces:
        return pa.nulls(0, pa.string())
    return pa.concat_arrays(pieces).take(pa.array(np.argsort(np.concatenate(order))))


def _type(values: pa.Array) -> Decimal:
    return Decimal(values.type.precision, values.type.scale)


def _zeros(side: _Side) -> Mask:
    return as_mask(pc.equal(side.texts, "0"))


def _quotient_digits(left: pa.Array, right: pa.Array, least: Ints) -> Ints:
    """Return the places that each quotient of finite numbers keeps."""
    if not len(left):
        return least
    weight, first = _leading_group(left)
    divisor_weight, divisor_first = _leading_group(right)
    groups = weight - divisor_weight - (first <= divisor_first)
    digits: Ints = np.clip(_MIN_DIGITS - _GROUP * groups, least, _MAX_PLACES)
    return digits


def _leading_group(texts: pa.Array) -> tuple[Ints, Ints]:
    """Return the position of the first group of digits that is not 0, 0 for units, and its value.

    Both are 0 for the number 0.
    """
    parts = pc.extract_regex(texts, r"(?P<whole>[0-9]+)\.?(?P<fraction>[0-9]*)$")
    whole, fraction = parts.field(0), parts.field(1)
    before, after = (
        _GROUP * -(-(pc.max(pc.binary_length(part)).as_py() or 0) // _GROUP)
        for part in (whole, fraction)
    )
    padded = pc.binary_join_element_wise(
        pc.utf8_lpad(whole, before, "0"), pc.utf8_rpad(fraction, after, "0"), ""
    )
    text = "".join(padded.to_pylist()).encode()
    digits = (np.frombuffer(text, np.uint8) - ord("0")).reshape(len(texts), -1, _GROUP)
    groups = digits @ np.array([1000, 100, 10, 1], np.int64)
    place = np.argmax(groups != 0, axis=1)
    first: Ints = groups[np.arange(len(texts)), place]
    weight: Ints = np.where(first != 0, before // _GROUP - 1 - place, 0)
    return weight, first


def _one(left: decimal.Decimal, right: decimal.Decimal, least: int) -> str | None:
    """Return the quotient of two numbers of any size as text; None for division by zero."""
    if left.is_nan() or right.is_nan():
        return "NaN"
    if not right:
        return None
    if not right.is_finite():
        return "0" if left.is_finite() else "NaN"
    if not left.is_finite():
        return "Infinity" if (left < 0) == (right < 0) else "-Infinity"
    (weight, first), (divisor_weight, divisor_first) = map(_leading_group_of, (left, right))
    groups = weight - divisor_weight - (first <= divisor_first)
    places = min(max(_MIN_DIGITS - _GROUP * groups, least), _MAX_PLACES)
    top, bottom = (fractions.Fraction(side) for side in (left, right))
    scaled = abs(top / bottom) * 10**places
    units = int(scaled + fractions.Fraction(1, 2))
    return str(
        decimal.Decimal(-units if (left < 0) != (right < 0) else units).scaleb(-places, _EXACT)
    )


def _leading_group_of(number: decimal.Decimal) -> tuple[int, int]:
    if not number:
        return 0, 0
    weight = number.adjusted() // _GROUP
    return weight, int(abs(number).scaleb(-_GROUP * weight, _EXACT))


ROWS = (
    Function(
        "rounded_quotient(decimal, decimal)",
        _resolve_rounded,
        _rounded,
        nulls=NullRule.STRICT,
    ),
    Function(
        "truncated_quotient(decimal, decimal)",
        _resolve_truncated,
        _truncated,
        bounds=quotient_range(_truncated),
        nulls=NullRule.STRICT,
    ),
)
