"""Casts between timestamps with nanoseconds and dates, other timestamps and text.

A cast to microseconds rounds as the semantics say; a date is the day of the time, whatever its
fraction. Both are monotone. Microseconds outside the years 1677 to 2262 have no nanoseconds.

Under the rules of DuckDB the greatest value and its negative are infinite. A cast of these, and of
the value below them, to microseconds or text fails: infinite times have rules of their own.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, filled, null_mask, with_nulls, without
from rowsieve.predicate.semantics import Nanoseconds, Semantics, TimestampText
from rowsieve.types.days import DAY_US, NANOS_OF_MICRO
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import LogicalType

Numbers = npt.NDArray[np.int64]

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
_HALF: Final = NANOS_OF_MICRO // 2
_DAY_NS: Final = DAY_US * NANOS_OF_MICRO
_FARTHEST_DAY: Final = INT64_MAX // _DAY_NS + 2  # beyond the last day with nanoseconds


def split(nanos: Numbers) -> tuple[Numbers, Numbers]:
    """Return whole microseconds, rounded down, and the nanoseconds after each."""
    micros, rest = np.divmod(nanos, NANOS_OF_MICRO)
    return micros, rest


def joined(micros: Numbers, rest: Numbers) -> tuple[Numbers, Mask]:
    """Return the nanoseconds, and the mask of those beyond 64 bits; `rest` is 0 to 999."""
    (least, after_least), (most, after_most) = divmod(INT64_MIN, 1_000), divmod(INT64_MAX, 1_000)
    outside: Mask = (micros < least) | (micros > most)
    outside |= (micros == least) & (rest < after_least)
    outside |= (micros == most) & (rest > after_most)
    with np.errstate(over="ignore"):  # the least microsecond wraps twice
        return np.where(outside, 0, micros) * NANOS_OF_MICRO + np.where(outside, 0, rest), outside


def to_timestamp(
    values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
) -> Computed:
    """Round to microseconds; fails for infinite times."""
    nanos, nulls = filled(values), null_mask(values)
    micros, rest = split(nanos)
    up = (rest > _HALF) | ((rest == _HALF) & (nanos >= 0))
    if semantics.nanoseconds is Nanoseconds.KEPT_FLOOR:
        up = np.zeros(len(nanos), np.bool_)
    failed = _infinite(nanos, semantics) & ~nulls
    array = with_nulls(micros + up, nulls | failed, arrow_type(target))
    return Computed(array, failed if failed.any() else None)


def to_date(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Return the day of each time."""
    days = filled(values) // _DAY_NS
    return Computed(with_nulls(days, null_mask(values), arrow_type(target)))


def to_text(values: pa.Array, _: LogicalType, __: LogicalType, semantics: Semantics) -> Computed:
    """Format `YYYY-MM-DD HH:MM:SS[.f…]`, with as many digits as the style of the semantics has."""
    text = values.cast(pa.timestamp("ns")).cast(pa.string())
    if semantics.timestamp_text is TimestampText.RFC_3339:
        short = pc.replace_substring_regex(text, r"\.?(?:000){1,3}$", "")
        return Computed(pc.replace_substring(short, " ", "T"))
    short = pc.replace_substring_regex(text, r"\.?0*$", "")
    failed = _infinite(filled(values), semantics) & ~null_mask(values)
    return Computed(without(short, failed), failed if failed.any() else None)


def from_timestamp(
    values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics
) -> Computed:
    """Multiply; fails outside the years 1677 to 2262."""
    return _checked(filled(values), null_mask(values), target)


def from_date(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Return the start of each day; fails outside the years 1677 to 2262."""
    days = np.clip(filled(values).astype(np.int64), -_FARTHEST_DAY, _FARTHEST_DAY)
    return _checked(days * DAY_US, null_mask(values), target)


def renamed(values: pa.Array, _: LogicalType, target: LogicalType, __: Semantics) -> Computed:
    """Keep the numbers: the local time of UTC."""
    return Computed(values.view(pa.int64()).view(arrow_type(target)))


def _checked(micros: Numbers, nulls: Mask, target: LogicalType) -> Computed:
    nanos, outside = joined(micros, np.zeros_like(micros))
    failed = outside & ~nulls
    array = with_nulls(nanos, nulls | failed, arrow_type(target))
    return Computed(array, failed if failed.any() else None)


def _infinite(nanos: Numbers, semantics: Semantics) -> Mask:
    """Return the mask of times that the engine treats as infinite, and of those beyond them."""
    infinite: Mask = (nanos == INT64_MAX) | (nanos <= -INT64_MAX)
    return infinite & (semantics.nanoseconds is Nanoseconds.ROUNDED)
