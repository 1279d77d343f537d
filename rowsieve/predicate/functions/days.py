"""What a calendar says of many days: computed once per day where the days lie close together.

Bounds of a million parts fall on some ten thousand days, and a calendar costs ten times what
looking up does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Days = npt.NDArray[np.int64]

_FEW = 1_000


def by_day(compute: Callable[[Days], Days], days: Days) -> Days:
    """`compute(days)`, which must depend on each day alone."""
    if len(days) < _FEW:
        return compute(days)
    first, last = int(days.min()), int(days.max())
    if last - first >= len(days):
        return compute(days)
    return compute(np.arange(first, last + 1, dtype=np.int64))[days - first]


def months_of(days: Days) -> Days:
    """Months since January 1970."""
    return by_day(_months, days)


def first_of_month(months: Days) -> Days:
    """The day that each month begins with, counted from January 1970."""
    return by_day(_first_days, months)


def _months(days: Days) -> Days:
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _first_days(months: Days) -> Days:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
