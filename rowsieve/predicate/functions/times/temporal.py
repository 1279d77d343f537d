"""Date and time functions: truncation and fields; proleptic Gregorian, UTC, no leap seconds.

Truncation is monotone for every unit. Years, counts of years and the epoch are monotone; other
fields are monotone within their enclosing unit. `whole_second` has no fraction.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
    never_fails,
    times_at,
)
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Date, Decimal, Int, LogicalType, String, Time, Timestamp

Micros = npt.NDArray[np.int64]

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_FIXED = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3_600 * _SECOND,
    "day": _DAY,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_ERAS = {"decade": 120, "century": 1_200, "millennium": 12_000}
CLOCK_UNITS = frozenset(_FIXED) - {"day"}
TRUNC_UNITS = frozenset({*_FIXED, *_MONTHS, "week", "decade", "century", "millennium"})
_CLOCK_FIELDS = frozenset(
    {"hour", "minute", "second", "whole_second", "millisecond", "microsecond"}
)
_RISING_FIELDS = frozenset({"year", "isoyear", "decade", "century", "millennium"})
_DATE_FIELDS = _RISING_FIELDS | {"quarter", "month", "week", "day", "dow", "isodow", "doy"}
_YEARS_BEFORE_EPOCH = 1970


def unit_name(text: object) -> str | None:
    """Return the lower-case, singular name of a unit; None for a value that is not text."""
    if not isinstance(text, str):
        return None
    folded = text.strip().lower()
    return folded.removesuffix("s")


def _resolve_trunc(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2 or not arguments[0].is_constant:
        return None
    unit = unit_name(arguments[0].constant)
    type_ = arguments[1].type
    if unit not in TRUNC_UNITS or not isinstance(type_, Date | Timestamp):
        return None
    target = Timestamp() if isinstance(type_, Date) else type_
    return Signature((String(), target), target, unit)


def _resolve_extract(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2 or not arguments[0].is_constant:
        return None
    field = unit_name(arguments[0].constant)
    type_ = arguments[1].type
    result = None if field is None or type_ is None else _field_type(field, type_)
    if field is None or type_ is None or result is None:
        return None
    return Signature((String(), type_), result, field)


def _field_type(field: str, type_: LogicalType) -> LogicalType | None:
    known = (isinstance(type_, Date | Timestamp) and field in _DATE_FIELDS) or (
        isinstance(type_, Time | Timestamp) and field in _CLOCK_FIELDS
    )
    if field == "epoch" and isinstance(type_, Date | Time | Timestamp):
        return Decimal(22, 6)
    if not known:
        return None
    return Decimal(8, 6) if field == "second" else Int(64)


def _date_trunc(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    values = arguments[1]
    nulls = null_mask(values)
    micros = filled(values).astype(np.int64, copy=False)
    truncated = truncate(signature.option, micros)
    return Computed(with_nulls(truncated, nulls, values.type))


def truncate(unit: str, micros: Micros) -> Micros:
    """Return the start of the unit of each time; the least time if it starts before that."""
    starts = _unit_starts(unit, micros)
    return np.where(starts > micros, np.iinfo(np.int64).min, starts)


def next_unit(unit: str, start: int) -> int:
    """Return the start of the next unit."""
    if unit in _FIXED:
        return start + _FIXED[unit]
    if unit == "week":
        return start + 7 * _DAY
    month = int(months_of(np.array([start // _DAY]))[0]) + (_MONTHS | _ERAS)[unit]
    return int(first_of_month(np.array([month]))[0]) * _DAY


def year_start(year: int) -> int:
    """Return the days from 1970 to 1 January of a year."""
    return int(first_of_month(np.array([(year - _YEARS_BEFORE_EPOCH) * 12]))[0])


def _unit_starts(unit: str, micros: Micros) -> Micros:
    """Return the start of the unit of each time; wraps within a unit of the least time."""
    with np.errstate(over="ignore"):
        if unit in _FIXED:
            return micros - micros % _FIXED[unit]
        days = micros // _DAY
        if unit == "week":
            return np.asarray((days - (days + 3) % 7) * _DAY)
        months = months_of(days)
        if unit in _MONTHS:
            first = months - months % _MONTHS[unit]
        else:
            years = months // 12 + _YEARS_BEFORE_EPOCH
            first = (_era_start(unit, years) - _YEARS_BEFORE_EPOCH) * 12
        return np.asarray(first_of_month(first) * _DAY)


def _era_start(unit: str, years: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the first year of the decade (…0), or of the century or millennium (…1)."""
    if unit == "decade":
        return np.asarray(years - years % 10)
    size = 100 if unit == "century" else 1000
    return np.asarray(years - (years - 1) % size)


def _extract(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    values = arguments[1]
    nulls = null_mask(values)
    numbers = filled(values).astype(np.int64, copy=False)
    field = signature.option
    days = clock = numbers
    if isinstance(signature.arguments[1], Date):
        clock = np.zeros_like(numbers)
    elif field in _DATE_FIELDS:
        days = numbers // _DAY
    else:
        clock = numbers % _DAY
    if field in ("second", "epoch"):
        scaled = clock % (60 * _SECOND) if field == "second" else numbers
        if field == "epoch" and isinstance(signature.arguments[1], Date):
            return Computed(as_decimal(numbers * 86_400, nulls, 0).cast(pa.decimal128(22, 6)))
        precision = 8 if field == "second" else 22
        return Computed(as_decimal(scaled, nulls, 6).cast(pa.decimal128(precision, 6)))
    if field in _DATE_FIELDS:
        parts = by_day(lambda each: _date_field(field, each), days)
    else:
        parts = _clock_field(field, clock)
    return Computed(with_nulls(parts, nulls, pa.int64()))


def as_decimal(unscaled: npt.NDArray[np.int64], nulls: Mask, scale: int) -> pa.Array:
    """Convert integers in units of 10^-scale to decimals by reinterpreting 128 bits."""
    words = np.empty((len(unscaled), 2), dtype=np.int64)
    words[:, 0] = unscaled
    words[:, 1] = unscaled >> 63
    buffers = [None, pa.py_buffer(words.tobytes())]
    return without(pa.Array.from_buffers(pa.decimal128(38, scale), len(unscaled), buffers), nulls)


def _date_field(field: str, days: Days) -> Days:
    months = months_of(days)
    match field:
        case "year":
            return months // 12 + _YEARS_BEFORE_EPOCH
        case "isoyear":
            return months_of(days - (days + 3) % 7 + 3) // 12 + _YEARS_BEFORE_EPOCH
        case "decade":
            return (months // 12 + _YEARS_BEFORE_EPOCH) // 10
        case "century" | "millennium":
            return _counted_years(field, months // 12 + _YEARS_BEFORE_EPOCH)
        case "quarter":
            return months % 12 // 3 + 1
        case "month":
            return months % 12 + 1
        case "day":
            return days - first_of_month(months) + 1
        case "doy":
            return days - first_of_month(months - months % 12) + 1
        case "dow":
            return (days + 4) % 7
        case "isodow":
            return (days + 3) % 7 + 1
        case _:
            thursday = days - (days + 3) % 7 + 3
            new_year = first_of_month(months_of(thursday) // 12 * 12)
            return (thursday - new_year) // 7 + 1


def _clock_field(field: str, clock: Days) -> Days:
    match field:
        case "hour":
            return clock // (3_600 * _SECOND)
        case "minute":
            return clock // (60 * _SECOND) % 60
        case "whole_second":
            return clock % (60 * _SECOND) // _SECOND
        case "millisecond":
            return clock % (60 * _SECOND) // 1_000
        case _:
            return clock % (60 * _SECOND)


def _counted_years(field: str, years: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the century or millennium of each year: the first begins in year 1; there is no 0."""
    size = 100 if field == "century" else 1000
    return np.where(years > 0, (years - 1) // size + 1, -(-years // size + 1))


def _extract_direction(signature: Signature) -> tuple[Direction, ...]:
    monotone = signature.option == "epoch" or signature.option in _RISING_FIELDS
    return (Direction.NONE, Direction.INCREASING if monotone else Direction.NONE)


# The least and the greatest value of each field, and the unit within which it is monotone.
_SPANS: Mapping[str, tuple[int, int, str]] = {
    "quarter": (1, 4, "year"),
    "month": (1, 12, "year"),
    "week": (1, 53, "isoyear"),
    "day": (1, 31, "month"),
    "doy": (1, 366, "year"),
    "dow": (0, 6, "sunday"),
    "isodow": (1, 7, "week"),
    "hour": (0, 23, "day"),
    "minute": (0, 59, "hour"),
    "second": (0, 60 * _SECOND - 1, "minute"),
    "whole_second": (0, 59, "minute"),
    "millisecond": (0, 59_999, "minute"),
    "microsecond": (0, 60 * _SECOND - 1, "minute"),
}


def _extract_range(
    arguments: Sequence[AbstractValue], signature: Signature, semantics: Semantics
) -> Range | None:
    """Bound a field: monotone within its enclosing unit, otherwise by its range."""
    if signature.option not in _SPANS:
        return None
    value = arguments[1]
    least, greatest, unit = _SPANS[signature.option]
    ends = [
        _extract([arguments[0].lower, end], signature, semantics).values
        for end in (value.lower, value.upper)
    ]
    type_ = ends[0].type
    units = [_unit_number(unit, end, signature.arguments[1]) for end in (value.lower, value.upper)]
    within = (units[0] == units[1]) & ~null_mask(value.lower) & ~null_mask(value.upper)
    lower, upper = (
        pc.if_else(pa.array(within), end, _field_end(outer, type_))
        for end, outer in zip(ends, (least, greatest), strict=True)
    )
    return Range(lower, upper)


def _field_end(value: int, type_: pa.DataType) -> pa.Scalar:
    if pa.types.is_decimal(type_):
        return pa.scalar(decimal.Decimal(value).scaleb(-6), type_)
    return pa.scalar(value, type_)


def _unit_number(unit: str, end: pa.Array, type_: LogicalType) -> Days:
    """Return a number that identifies the unit of each bound; undefined for NULL."""
    numbers = filled(end).astype(np.int64, copy=False)
    if unit in ("hour", "minute"):
        return numbers // _FIXED[unit]
    days = numbers if isinstance(type_, Date) else numbers // _DAY
    match unit:
        case "day":
            return days
        case "sunday":
            return (days + 4) // 7
        case "week":
            return (days + 3) // 7
        case "isoyear":
            return by_day(lambda each: _date_field("isoyear", each), days)
        case _:
            months = months_of(days)
            return months // 12 if unit == "year" else months


ROWS = (
    Function(
        "date_trunc('unit', timestamp)",
        _resolve_trunc,
        _date_trunc,
        direction=lambda _: (Direction.NONE, Direction.INCREASING),
        can_fail=never_fails,
        nulls=NullRule.STRICT,
        times=times_at(TimeUse.START, 1),
        at_infinity=AtInfinity.SAME,
    ),
    Function(
        "extract('field', date or timestamp)",
        _resolve_extract,
        _extract,
        direction=_extract_direction,
        bounds=_extract_range,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
        times=times_at(TimeUse.FIELDS, 1),
        at_infinity=AtInfinity.NULL,
    ),
)
