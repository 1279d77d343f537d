"""Add an interval of months, days and microseconds to dates and timestamps.

The three parts are separate arguments, added in this order: the months, limiting the day to the
last one of the new month (31 January plus a month is 28 or 29 February), then the days, then the
microseconds. The arithmetic ignores daylight saving. Without months the result is monotone in the
date. With months it is monotone in whole days only: 30 January 23:00 comes after 31 January 01:00
once both are 29 February, so bounds are taken of whole days (trap T11).

`add_interval` converts a date to a timestamp; `shift` keeps a date if no microseconds are added;
`shift_timestamp` does not accept dates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.predicate.arrays import Computed, Mask, filled, null_mask, with_nulls, without
from rowsieve.predicate.functions.calendar_days import Days, by_day, first_of_month, months_of
from rowsieve.predicate.functions.row import (
    Argument,
    AtInfinity,
    Direction,
    Function,
    NullRule,
    Range,
    Signature,
    TimeUse,
    times_at,
)
from rowsieve.predicate.interpretation.abstract import AbstractValue, is_point
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, Int, LogicalType, Timestamp

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_FARTHEST_MONTHS = 12 * 400_000  # longer than the range of timestamps
_FARTHEST_DAYS = 2 * _INT64_MAX // DAY_US
_DATE_DAYS = 2**31
_WHOLE = (Int(64), Int(64), Int(64))


def _is_whole(argument: Argument) -> bool:
    return argument.type is None or isinstance(argument.type, Int)


def _resolve(arguments: Sequence[Argument], *, keeps_dates: bool | None) -> Signature | None:
    if len(arguments) != 4 or not all(_is_whole(part) for part in arguments[1:]):
        return None
    source = arguments[0].type
    if not isinstance(source, Date | Timestamp):
        return None
    if keeps_dates is None and not isinstance(source, Timestamp):
        return None
    months, _, micros = arguments[1:]
    result: LogicalType = source
    if isinstance(source, Date) and not (keeps_dates and micros.constant == 0):
        result = Timestamp()
    first = result if isinstance(result, Timestamp) else source
    shifts_months = not (months.is_constant and months.constant == 0)
    return Signature((first, *_WHOLE), result, "months" if shifts_months else "")


def _evaluate(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    return move(arguments, signature)


def move(arguments: Sequence[pa.Array], signature: Signature) -> Computed:
    """Add months, days and microseconds to dates or times."""
    values = arguments[0]
    nulls = np.logical_or.reduce([null_mask(part) for part in arguments])
    start = filled(values).astype(np.int64, copy=False)
    months, days, micros = (_single(filled(part)) for part in arguments[1:])
    if isinstance(signature.result, Date):
        return _moved_dates(start, months, days, nulls)
    day, clock = start // DAY_US, start % DAY_US
    day, lost = _plus_months(day, months)
    day, too_far = _plus_days(day, days)
    whole = day
    if micros.any():
        whole = whole + micros // DAY_US
        clock = clock + micros % DAY_US
        whole, clock = whole + clock // DAY_US, clock % DAY_US
    least, most = _INT64_MIN // DAY_US, _INT64_MAX // DAY_US
    outside = (whole < least) | (whole > most)
    safe = np.where(outside, 0, whole)
    outside |= (safe == most) & (clock > _INT64_MAX % DAY_US)
    outside |= (safe == least) & (clock < _INT64_MIN % DAY_US)
    with np.errstate(over="ignore"):
        total = safe * DAY_US + clock
    failed = (lost | too_far | outside) & ~nulls
    array = with_nulls(total, nulls | failed, arrow_type(signature.result))
    return Computed(array, failed if failed.any() else None)


def _moved_dates(
    start: npt.NDArray[np.int64],
    months: npt.NDArray[Any],
    days: npt.NDArray[Any],
    nulls: Mask,
) -> Computed:
    day, lost = _plus_months(start, months)
    day, too_far = _plus_days(day, days)
    failed = (lost | too_far | (day < -_DATE_DAYS) | (day >= _DATE_DAYS)) & ~nulls
    array = with_nulls(np.where(failed, 0, day), nulls | failed, pa.date32())
    return Computed(array, failed if failed.any() else None)


def _plus_months(
    day: npt.NDArray[np.int64], months: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], Mask]:
    """Add months to days, and return the mask of overflows."""
    if not months.any():
        return day, np.zeros(len(day), dtype=np.bool_)
    lost: Mask = (months > _FARTHEST_MONTHS) | (months < -_FARTHEST_MONTHS)
    shift = np.where(lost, 0, months).astype(np.int64)
    if len(shift) == 1:
        return by_day(lambda each: _shifted(each, shift), day), lost
    return _shifted(day, shift), lost


def _shifted(day: Days, months: Days) -> Days:
    """Return the same day of a later month, or its last day."""
    month = months_of(day)
    in_month = day - first_of_month(month)
    first = first_of_month(month + months)
    length = first_of_month(month + months + 1) - first
    return np.where(months == 0, day, first + np.minimum(in_month, length - 1))


def _single(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return one number where all are equal; it is broadcast."""
    same = len(numbers) > 1 and bool((numbers == numbers[0]).all())
    return numbers[:1] if same else numbers


def _plus_days(
    day: npt.NDArray[np.int64], days: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], Mask]:
    too_far: Mask = (days > _FARTHEST_DAYS) | (days < -_FARTHEST_DAYS)
    return day + np.where(too_far, 0, days), too_far


def _direction(signature: Signature) -> tuple[Direction, ...]:
    """Leave months to `bounds`; without months, the interval itself may vary."""
    if signature.option == "months" and not isinstance(signature.result, Date):
        return (Direction.NONE,) * 4
    months = Direction.NONE if signature.option == "months" else Direction.INCREASING
    return (Direction.INCREASING, months, Direction.INCREASING, Direction.INCREASING)


def _bounds(
    arguments: Sequence[AbstractValue], signature: Signature, semantics: Semantics
) -> Range | None:
    """For a constant number of months: from the start of the first day to the end of the last."""
    value, *parts = arguments
    fixed = np.logical_and.reduce([is_point(part) for part in parts])
    if signature.option != "months" or isinstance(signature.result, Date) or not fixed.all():
        return None
    type_ = arrow_type(signature.result)
    shift = [part.lower for part in parts]
    first = filled(value.lower) // DAY_US
    last = filled(value.upper) // DAY_US
    ends = []
    for day, bound, clock in ((first, value.lower, 0), (last, value.upper, DAY_US - 1)):
        outside = (day <= _INT64_MIN // DAY_US) | (day >= _INT64_MAX // DAY_US)
        micros = np.where(outside, 0, day) * DAY_US + clock
        end = with_nulls(micros, null_mask(bound) | outside, type_)
        computed = _evaluate([end, *shift], signature, semantics)
        ends.append(without(computed.values, computed.failed))
    safe = ~(null_mask(ends[0]) | null_mask(ends[1]))
    return Range(ends[0], ends[1], safe=safe)


def _row(usage: str, *, keeps_dates: bool | None) -> Function:
    return Function(
        usage,
        lambda arguments: _resolve(arguments, keeps_dates=keeps_dates),
        _evaluate,
        direction=_direction,
        nulls=NullRule.STRICT,
        bounds=_bounds,
        times=times_at(TimeUse.MOVED, 0),
        at_infinity=AtInfinity.SAME,
    )


ROWS = (
    _row(
        "add_interval(date or timestamp, months, days, microseconds)",
        keeps_dates=False,
    ),
    _row(
        "shift(date or timestamp, months, days, microseconds)",
        keeps_dates=True,
    ),
    _row(
        "shift_timestamp(timestamp, months, days, microseconds)",
        keeps_dates=None,
    ),
)
