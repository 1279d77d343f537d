"""Calendar functions: bins, the last day of a month, days between dates, dates from fields.

`date_bin` counts from its origin in steps of one length, or in months from the first of a month. It
rejects other origins, which engines treat differently. The difference of two times is that of
`epoch_us`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rowsieve.predicate.arrays import Computed, Mask, filled, null_mask, with_nulls
from rowsieve.predicate.functions.calendar_days import Days, first_of_month, months_of
from rowsieve.predicate.functions.row import (
    Argument,
    AtInfinity,
    Direction,
    Function,
    NullRule,
    Range,
    Signature,
    TimeUse,
    never_fails,
    times_at,
)
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Date, Int, Timestamp

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_MIN_DAY, _MAX_DAY = -(2**31), 2**31 - 1
_FARTHEST_YEAR = 5_879_000  # all dates of 32 bits are nearer to 1970
_UP, _DOWN, _NONE = Direction.INCREASING, Direction.DECREASING, Direction.NONE


def _resolve_bin(arguments: Sequence[Argument]) -> Signature | None:
    """Resolve `date_bin(months, microseconds, timestamp, origin)`; only the time may vary."""
    if len(arguments) != 4 or not isinstance(arguments[2].type, Timestamp):
        return None
    months, micros, origin = (arguments[place].constant for place in (0, 1, 3))
    if type(months) is not int or type(micros) is not int or type(origin) is not int:
        return None
    if not isinstance(arguments[3].type, Timestamp):
        return None
    if not ((months == 0 and 0 < micros < 2**62) or (0 < months < 2**31 and micros == 0)):
        return None
    if months and (origin % _DAY or not _starts_month(origin // _DAY)):
        return None
    type_ = arguments[2].type
    return Signature((Int(64), Int(64), type_, type_), type_, "months" if months else "")


def _starts_month(day: int) -> bool:
    days = np.array([day], dtype=np.int64)
    return bool(first_of_month(months_of(days))[0] == day)


def _bin(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    """Return the start of the bin of each time; the least time if the bin starts before it."""
    numbers: list[Days] = [filled(argument).astype(np.int64) for argument in arguments]
    months, micros, values, origin = numbers
    nulls = null_mask(arguments[2])
    if signature.option == "months":
        value_months, first = months_of(values // _DAY), months_of(origin // _DAY)
        start = np.asarray(
            first_of_month(value_months - (value_months - first) % months) * _DAY, np.int64
        )
    else:
        start = np.asarray(values - (values % micros - origin % micros) % micros, np.int64)
    start[start > values] = np.iinfo(np.int64).min
    return Computed(with_nulls(start, nulls, arguments[2].type))


def _resolve_last_day(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 1 or not isinstance(arguments[0].type, Date | Timestamp):
        return None
    return Signature((arguments[0].type,), Date())


def _last_day(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    """Return the last day of each month; the greatest date within the last month."""
    last = first_of_month(months_of(_days(arguments[0], signature, 0)) + 1) - 1
    return Computed(with_nulls(np.minimum(last, _MAX_DAY), null_mask(arguments[0]), pa.date32()))


def _days(values: pa.Array, signature: Signature, place: int) -> Days:
    numbers = filled(values).astype(np.int64)
    return numbers if isinstance(signature.arguments[place], Date) else numbers // _DAY


def _resolve_days_between(arguments: Sequence[Argument]) -> Signature | None:
    types = [argument.type for argument in arguments]
    if len(types) != 2:
        return None
    later, earlier = (type_ or Date() for type_ in types)
    if not isinstance(later, Date | Timestamp) or not isinstance(earlier, Date | Timestamp):
        return None
    return Signature((later, earlier), Int(64))


def _days_between(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    nulls = null_mask(arguments[0]) | null_mask(arguments[1])
    sides = [_days(values, signature, place) for place, values in enumerate(arguments)]
    return Computed(with_nulls(sides[0] - sides[1], nulls, pa.int64()))


def _resolve_epoch(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 1 or not isinstance(arguments[0].type, Timestamp):
        return None
    return Signature((arguments[0].type,), Int(64))


def _epoch_us(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    return Computed(arguments[0].view(pa.int64()))


def _epoch_seconds(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    seconds = filled(arguments[0]).astype(np.int64) // _SECOND
    return Computed(with_nulls(seconds, null_mask(arguments[0]), pa.int64()))


def _resolve_seconds(arguments: Sequence[Argument]) -> Signature | None:
    argument_type = arguments[0].type if len(arguments) == 1 else None
    return Signature((Int(64),), Timestamp(utc=True)) if isinstance(argument_type, Int) else None


def _from_seconds(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
    seconds, nulls = filled(arguments[0]), null_mask(arguments[0])
    failed = ((seconds > 2**63 // _SECOND - 1) | (seconds < -(2**63) // _SECOND + 1)) & ~nulls
    good = np.where(failed, 0, seconds)
    if (start := semantics.float_seconds_from) is None:
        micros = good * _SECOND
    else:
        since = np.rint((good - start).astype(np.float64) * _SECOND)
        failed |= np.abs(since + float(start * _SECOND)) >= 2.0**63
        micros = np.where(failed, 0.0, since).astype(np.int64) + start * _SECOND
    array = with_nulls(micros, nulls | failed, pa.timestamp("us", "UTC"))
    return Computed(array, failed if failed.any() else None)


def _resolve_made(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 3 or not all(
        argument.type is None or isinstance(argument.type, Int) for argument in arguments
    ):
        return None
    return Signature((Int(64),) * 3, Date())


def _made_date(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    nulls = np.logical_or.reduce([null_mask(argument) for argument in arguments])
    year, month, day = (filled(argument) for argument in arguments)
    good = _is_near(year) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    months = np.where(good, (year - 1970) * 12 + month - 1, 0)
    days = first_of_month(months) + np.where(good, day - 1, 0)
    good &= (days < first_of_month(months + 1)) & (days >= _MIN_DAY) & (days <= _MAX_DAY)
    failed = ~good & ~nulls
    array = with_nulls(np.where(good, days, 0), nulls | failed, pa.date32())
    return Computed(array, failed if failed.any() else None)


def _is_near(year: Days) -> Mask:
    """Whether a year is in reach; the least integer has no absolute value."""
    return (year > -_FARTHEST_YEAR) & (year < _FARTHEST_YEAR)


def _made_range(arguments: Sequence[AbstractValue], _: Signature, __: Semantics) -> Range:
    """Bound by the least and the greatest year, month and day; every month has 28 days."""
    unbounded = np.logical_or.reduce(
        [null_mask(end) for value in arguments for end in (value.lower, value.upper)]
    )
    ends, safe = [], ~unbounded
    for name in ("lower", "upper"):
        year, month, day = (filled(getattr(value, name)) for value in arguments)
        safe &= _is_near(year) & (month >= 1) & (month <= 12)
        safe &= (day >= 1) & (day <= 28)
        year = np.clip(year, -_FARTHEST_YEAR, _FARTHEST_YEAR)
        months = (year - 1970) * 12 + np.clip(month, 1, 12) - 1
        length = first_of_month(months + 1) - first_of_month(months)
        ends.append(first_of_month(months) + np.minimum(np.clip(day, 1, 31), length) - 1)
    lost = unbounded | (ends[0] < _MIN_DAY) | (ends[1] > _MAX_DAY) | (ends[1] < ends[0])
    lower, upper = (with_nulls(np.where(lost, 0, end), lost, pa.date32()) for end in ends)
    return Range(lower, upper, safe=safe & ~lost)


def _row(usage: str, resolve: Any, evaluate: Any, *ways: Direction, **claims: Any) -> Function:
    return Function(
        usage,
        resolve,
        evaluate,
        direction=lambda _: ways,
        nulls=NullRule.STRICT,
        **claims,
    )


ROWS = (
    _row(
        "date_bin(months, microseconds, timestamp, origin), of which only the time may vary",
        _resolve_bin,
        _bin,
        *(_NONE, _NONE, _UP, _NONE),
        can_fail=never_fails,
        times=times_at(TimeUse.BIN, 2),
        at_infinity=AtInfinity.SAME,
    ),
    _row(
        "last_day(date or timestamp)",
        _resolve_last_day,
        _last_day,
        _UP,
        can_fail=never_fails,
        times=times_at(TimeUse.FIELDS, 0),
        at_infinity=AtInfinity.NULL,
    ),
    _row(
        "days_between(later, earlier)",
        _resolve_days_between,
        _days_between,
        *(_UP, _DOWN),
        can_fail=never_fails,
        times=times_at(TimeUse.FIELDS, 0, 1),
        at_infinity=AtInfinity.FAILS,
    ),
    _row(
        "epoch_us(timestamp)",
        _resolve_epoch,
        _epoch_us,
        _UP,
        at_infinity=AtInfinity.FAILS,
        can_fail=never_fails,
    ),
    _row(
        "epoch_seconds(timestamp), the whole seconds before it",
        _resolve_epoch,
        _epoch_seconds,
        _UP,
        can_fail=never_fails,
        times=times_at(TimeUse.SECONDS, 0),
        at_infinity=AtInfinity.FAILS,
    ),
    _row("timestamp_seconds(whole)", _resolve_seconds, _from_seconds, _UP),
    _row(
        "make_date(year, month, day)",
        _resolve_made,
        _made_date,
        *(_NONE, _NONE, _NONE),
        bounds=_made_range,
    ),
)
