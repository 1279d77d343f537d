"""`age(later, earlier)`: the months, days and microseconds between two times, as PostgreSQL counts.

Whole months come first, then days, then the rest; a day that is lacking is borrowed from the month
of the earlier time. `age_us` is the length of that interval, with months of 30 days, by which SQL
compares. It is not monotone in either time: from 15 January to 14 February 23:00 it is longer than
to 15 February. Soundness: its bounds are those of the days between the times, 360/366 to 1 of them
and a margin of eight days.

Source: `timestamp_age` of PostgreSQL, compared with it and with DuckDB by
`tests/predicate/functions/test_ages.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rowsieve.predicate.arrays import Computed, filled, null_mask, with_nulls
from rowsieve.predicate.functions.calendar_days import first_of_month, months_of
from rowsieve.predicate.functions.row import (
    Argument,
    AtInfinity,
    Function,
    NullRule,
    Range,
    Signature,
    TimeUse,
    never_fails,
    times_at,
)
from rowsieve.predicate.functions.times.interval_length import LENGTH_TYPE
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import arrow_type
from rowsieve.types.interval_bytes import of_parts, total_us
from rowsieve.types.logical import Interval, LogicalType, Timestamp

_SHORTEST_SHARE: Final = 0.98  # below 360/366: twelve months count as 360 days
_MARGIN_DAYS: Final = 8
_FARTHEST_DAYS: Final = 2**63 // DAY_US - 2 * _MARGIN_DAYS


def _resolve(arguments: Sequence[Argument], result: LogicalType) -> Signature | None:
    if len(arguments) != 2:
        return None
    types = [argument.type for argument in arguments if argument.type is not None]
    times = [each for each in types if isinstance(each, Timestamp)]
    if len(times) < len(types) or len({each.utc for each in times}) != 1:
        return None
    return Signature((times[0], times[0]), result)


def _age(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    """Subtract field by field, as on a calendar, the earlier time from the later one."""
    left, right = (filled(each).astype(np.int64, copy=False) for each in arguments)
    nulls = null_mask(arguments[0]) | null_mask(arguments[1])
    sign = np.where(left < right, -1, 1)
    later, earlier = np.maximum(left, right), np.minimum(left, right)
    (month, day, clock), (first_month, first_day, first_clock) = map(_fields, (later, earlier))
    clock, day, month = clock - first_clock, day - first_day, month - first_month
    day, clock = day - (clock < 0), clock + DAY_US * (clock < 0)
    lent = first_of_month(first_month + 1) - first_of_month(first_month)
    month, day = month - (day < 0), day + lent * (day < 0)
    like = with_nulls(later, nulls, pa.int64())
    return Computed(of_parts(sign * month, sign * day, sign * clock, like))


def _fields(times: Any) -> tuple[Any, Any, Any]:
    """Months since 1970, the day in the month from 0, and microseconds in the day."""
    days = times // DAY_US
    months = months_of(days)
    return months, days - first_of_month(months), times % DAY_US


def _age_us(arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics) -> Computed:
    return Computed(total_us(_age(arguments, signature, semantics).values))


def _bounds(arguments: Sequence[AbstractValue], _: Signature, __: Semantics) -> Range:
    later, earlier = arguments
    shortest = _days_between(later.lower, earlier.upper)
    longest = _days_between(later.upper, earlier.lower)
    lower, upper = shortest.copy(), longest.copy()
    lower[shortest > 0] *= _SHORTEST_SHARE
    upper[longest < 0] *= _SHORTEST_SHARE
    safe = np.ones(len(lower), dtype=np.bool_)
    return Range(_length(lower - _MARGIN_DAYS), _length(upper + _MARGIN_DAYS), safe=safe)


def _days_between(later: pa.Array, earlier: pa.Array) -> Any:
    """Whole days, rounded in either direction; NaN if a bound is unknown."""
    days = [filled(each).astype(np.int64) // DAY_US for each in (later, earlier)]
    unknown = null_mask(later) | null_mask(earlier)
    return np.where(unknown, np.nan, (days[0] - days[1]).astype(np.float64))


def _length(days: Any) -> pa.Array:
    lost = ~(np.abs(days) < _FARTHEST_DAYS)
    whole = np.where(lost, 0, days).astype(np.int64) * DAY_US
    return with_nulls(whole, lost, pa.int64()).cast(arrow_type(LENGTH_TYPE))


def _row(name: str, result: LogicalType, evaluate: Any, bounds: Any = None) -> Function:
    return Function(
        f"{name}(later, earlier), of two timestamps",
        lambda arguments: _resolve(arguments, result),
        evaluate,
        bounds=bounds,
        nulls=NullRule.STRICT,
        can_fail=never_fails,
        times=times_at(TimeUse.FIELDS, 0, 1),
        at_infinity=AtInfinity.FAILS,
    )


ROWS = (_row("age", Interval(), _age), _row("age_us", LENGTH_TYPE, _age_us, _bounds))
