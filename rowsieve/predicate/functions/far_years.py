"""Dates and local times outside the years 1 to 9999 as text, in the form of each engine.

Soundness: a text is the engine's own, or the value fails; it is never NULL. Far texts do not sort
as their times do (`+10000` sorts before `9999`), so no bound may be taken from them.
Source: DuckDB 2.0, PostgreSQL 18, DataFusion 55 and Spark 4.3, see
`tests/bridges/sql/test_far_years.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.functions.days import Days, first_of_month, months_of
from rowsieve.predicate.semantics import FarYears
from rowsieve.types.days import DAY_US, FIRST_DAY, LAST_DAY

_ANY = (-(2**63), 2**63 - 1)
_DAYS_OF: dict[FarYears, tuple[int, int]] = {  # the first and the last with a text
    FarYears.FAIL: (FIRST_DAY, LAST_DAY),
    FarYears.SIGNED: _ANY,
    FarYears.SIGNED_SHORT: (-96_465_292, 95_026_236),  # -262143-01-01 to 262142-12-31
    FarYears.BC_BRACKETS: _ANY,
    FarYears.BC_SUFFIX: (-2_440_588, 2_145_042_905),  # 4714-11-24 BC to 5874897-12-31
}
_TIMES_OF: dict[FarYears, tuple[int, int]] = {  # the first and the last with a clock
    FarYears.SIGNED: (-106_751_990, 106_751_990),  # of 64 bits, in every zone
    FarYears.BC_SUFFIX: (-2_440_587, 106_762_938),  # 4714-11-25 BC to 294276-12-30, likewise
}
_INFINITE_DAY = 2**31 - 1
_INFINITE_US = 2**63 - 1
_FIRST_MIDNIGHT = -106_751_991 * DAY_US


@dataclass(frozen=True, slots=True)
class DateFields:
    """A day as its year, with 0 before 1, its month and its day of the month."""

    year: Days
    month: Days
    day: Days


def near(days: Days) -> Mask:
    """Which days lie in the years 1 to 9999."""
    return (days >= FIRST_DAY) & (days <= LAST_DAY)


def lacks_text(days: Days, years: FarYears) -> Mask:
    """Which days have no text in the engine, as they are outside of its calendar."""
    first, last = _DAYS_OF[years]
    return (days < first) | (days > last)


def lacks_time(micros: Days, years: FarYears) -> Mask:
    """Which times have none: DuckDB fails where 64 bits do not hold the start of the day."""
    early = (micros < _FIRST_MIDNIGHT) & ~infinite_times(micros, years)
    return (years is FarYears.BC_BRACKETS) & early


def lacks_clock(days: Days, years: FarYears) -> Mask:
    """Which days do not become a time there, as a format makes of them first."""
    first, last = _TIMES_OF.get(years, _ANY)
    return (days < first) | (days > last)


def infinite_days(days: Days, years: FarYears) -> Mask:
    """Which days are infinity to the engine."""
    infinite: Mask = (years is FarYears.BC_BRACKETS) & (np.abs(days) == _INFINITE_DAY)
    return infinite


def infinite_times(micros: Days, years: FarYears) -> Mask:
    """Which times are infinity to the engine."""
    ends: Mask = (micros == _INFINITE_US) | (micros == -_INFINITE_US)
    return ends & (years is FarYears.BC_BRACKETS)


def infinity(values: Days) -> pa.Array:
    """`infinity` or `-infinity`, by the sign."""
    return pc.if_else(pa.array(values > 0), "infinity", "-infinity")


def fields_of(days: Days) -> DateFields:
    """The fields of the days in the proleptic Gregorian calendar."""
    months = months_of(days)
    return DateFields(months // 12 + 1970, months % 12 + 1, days - first_of_month(months) + 1)


def far_dates(days: Days, rest: pa.Array, years: FarYears) -> pa.Array:
    """`YYYY-MM-DD` and the rest of the text, with the sign or the era of the year."""
    fields = fields_of(days)
    year = fields.year
    tail = [digits(part, 2) for part in (fields.month, fields.day)]
    if years in (FarYears.SIGNED, FarYears.SIGNED_SHORT):
        date = pc.binary_join_element_wise(signed(year), *tail, "-")
        return pc.binary_join_element_wise(date, rest, "")
    before = pa.array(year < 1)
    shown = np.where(year < 1, 1 - year, year)
    date = pc.binary_join_element_wise(digits(shown), *tail, "-")
    if years is FarYears.BC_BRACKETS:
        return pc.binary_join_element_wise(date, pc.if_else(before, " (BC)", ""), rest, "")
    return pc.binary_join_element_wise(date, rest, pc.if_else(before, " BC", ""), "")


def year_field(year: Days, years: FarYears) -> pa.Array:
    """The year as a field of a format: where the era is left out, engines write other numbers."""
    match years:
        case FarYears.BC_BRACKETS:
            bare = pa.array(year).cast(pa.string())
            return pc.if_else(pa.array(year < 0), bare, digits(np.abs(year)))
        case FarYears.BC_SUFFIX:
            return digits(np.where(year < 1, 1 - year, year))
        case _:
            return signed(year)


def digits(numbers: Days, width: int = 4) -> pa.Array:
    """Whole numbers that are not negative, with so many digits at least."""
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def signed(year: Days) -> pa.Array:
    """`+10000`, `0000`, `-0044`."""
    sign = np.where(year > 9999, "+", np.where(year < 0, "-", "")).tolist()
    return pc.binary_join_element_wise(pa.array(sign, pa.string()), digits(np.abs(year)), "")
