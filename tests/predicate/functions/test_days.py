"""The calendar of many days is the same whether days lie close together or apart."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from rowsieve.predicate.functions.calendar_days import Days, by_day, first_of_month, months_of

EPOCH = datetime.date(1970, 1, 1)


@pytest.mark.parametrize("span", [400, 5_000, 600_000])
def test_months_and_first_days_are_those_of_the_calendar(span: int) -> None:
    days = np.random.default_rng(span).integers(-span, span, 4_000)
    for day, month, first in zip(
        days.tolist(),
        months_of(days).tolist(),
        first_of_month(months_of(days)).tolist(),
        strict=True,
    ):
        date = EPOCH + datetime.timedelta(days=day)
        assert month == (date.year - 1970) * 12 + date.month - 1
        assert EPOCH + datetime.timedelta(days=first) == date.replace(day=1)


def test_days_close_together_are_computed_once() -> None:
    asked: list[int] = []

    def double(days: Days) -> Days:
        asked.append(len(days))
        return days * 2

    days = np.repeat(np.arange(100, 200), 50)
    assert by_day(double, days).tolist() == (days * 2).tolist()
    assert asked == [100]
    assert by_day(double, np.array([], dtype=np.int64)).tolist() == []
