"""Format dates and local times outside the years 1 to 9999 by the rules of each engine.

Soundness: the result is exactly the engine's text, or the value fails; no result is NULL. These
texts do not sort as their times do (`+10000` sorts before `9999`), so they have no bounds.

Source: DuckDB 2.0, PostgreSQL 18, DataFusion 55 and Spark 4.3, see
`tests/bridges/sql/test_far_years.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.functions.calendar_days import Days, first_of_month, months_of
from rowsieve.predicate.semantics import FarYears
from rowsieve.types.days import DAY_US, FIRST_DAY, LAST_DAY

_ANY = (-(2**63), 2**63 - 1)
_DAYS_OF: dict[FarYears, tuple[int, int]] = {  # the first and the last day with a text
    FarYears.FAIL: (FIRST_DAY, LAST_DAY),
    FarYears.SIGNED: _ANY,
    FarYears.SIGNED_SHORT: (-96_465_292, 95_026_236),  # -262143-01-01 to 262142-12-31
    FarYears.BC_BRACKETS: _ANY,
    FarYears.BC_SUFFIX: (-2_440_588, 2_145_042_905),  # 4714-11-24 BC to 5874897-12-31
}
_TIMES_OF: dict[FarYears, tuple[int, int]] = {  # the first and the last day with a time
    FarYears.SIGNED: (-106_751_990, 106_751_990),  # 64 bits, in every zone
    FarYears.BC_SUFFIX: (-2_440_587, 106_762_938),  # 4714-11-25 BC to 294276-12-30, in every zone
}
MAX_DAY = 2**31 - 1  # these and their negatives are infinite for DuckDB
MAX_TIME = 2**63 - 1
_FIRST_MIDNIGHT = -106_751_991 * DAY_US


@dataclass(frozen=True, slots=True)
class DateFields:
    """A day as year, month and day of the month; the year before 1 is 0."""

    year: Days
    month: Days
    day: Days


def near(days: Days) -> Mask:
    """Return the mask of days in the years 1 to 9999."""
    return (days >= FIRST_DAY) & (days <= LAST_DAY)


def lacks_text(days: Days, years: FarYears) -> Mask:
    """Return the mask of days outside the engine's calendar, which have no text."""
    first, last = _DAYS_OF[years]
    return (days < first) | (days > last)


def lacks_time(micros: Days, years: FarYears) -> Mask:
    """Return the mask of times without text: DuckDB fails if the start of the day overflows."""
    early = (micros < _FIRST_MIDNIGHT) & ~infinite_times(micros, years)
    return (years is FarYears.BC_BRACKETS) & early


def lacks_clock(days: Days, years: FarYears) -> Mask:
    """Return the mask of days that cannot become a timestamp there, as formatting requires."""
    first, last = _TIMES_OF.get(years, _ANY)
    return (days < first) | (days > last)


def infinite_days(days: Days, years: FarYears) -> Mask:
    """Return the mask of days that the engine treats as infinity."""
    infinite: Mask = (years is FarYears.BC_BRACKETS) & (np.abs(days) == MAX_DAY)
    return infinite


def infinite_times(micros: Days, years: FarYears) -> Mask:
    """Return the mask of times that the engine treats as infinity."""
    ends: Mask = (micros == MAX_TIME) | (micros == -MAX_TIME)
    return ends & (years is FarYears.BC_BRACKETS)


def infinity(values: Days) -> pa.Array:
    """Return `infinity` or `-infinity`, by the sign."""
    return pc.if_else(pa.array(values > 0), "infinity", "-infinity")


def fields_of(days: Days) -> DateFields:
    """Return the fields of the days in the proleptic Gregorian calendar."""
    months = months_of(days)
    return DateFields(months // 12 + 1970, months % 12 + 1, days - first_of_month(months) + 1)


def far_dates(days: Days, rest: pa.Array, years: FarYears) -> pa.Array:
    """Format `YYYY-MM-DD` with the year's sign or era, followed by the rest of the text."""
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
    """Format the year as a field: engines that omit the era write other numbers."""
    match years:
        case FarYears.BC_BRACKETS:
            bare = pa.array(year).cast(pa.string())
            return pc.if_else(pa.array(year < 0), bare, digits(np.abs(year)))
        case FarYears.BC_SUFFIX:
            return digits(np.where(year < 1, 1 - year, year))
        case _:
            return signed(year)


def digits(numbers: Days, width: int = 4) -> pa.Array:
    """Format non-negative integers with at least `width` digits."""
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def signed(year: Days) -> pa.Array:
    """Format years as `+10000`, `0000`, `-0044`."""
    sign = np.where(year > 9999, "+", np.where(year < 0, "-", "")).tolist()
    return pc.binary_join_element_wise(pa.array(sign, pa.string()), digits(np.abs(year)), "")
