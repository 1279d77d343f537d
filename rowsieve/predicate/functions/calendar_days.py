"""Calendar computations over many days, once per distinct day where the days are dense.

Bounds of a million parts fall on about ten thousand days, and a calendar computation costs ten
times as much as a lookup.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Days = npt.NDArray[np.int64]

_TABLE_FROM_DAYS = 1_000


def by_day(compute: Callable[[Days], Days], days: Days) -> Days:
    """Return `compute(days)`; its result must depend on each day alone."""
    if len(days) < _TABLE_FROM_DAYS:
        return compute(days)
    first, last = int(days.min()), int(days.max())
    if last - first >= len(days):
        return compute(days)
    return compute(np.arange(first, last + 1, dtype=np.int64))[days - first]


def months_of(days: Days) -> Days:
    """Return months since January 1970."""
    return by_day(_months, days)


def first_of_month(months: Days) -> Days:
    """Return the first day of each month; months count from January 1970."""
    return by_day(first_days, months)


def _months(days: Days) -> Days:
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def first_days(months: Days) -> Days:
    """Return the first day of each month, without the lookup of `first_of_month`."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
