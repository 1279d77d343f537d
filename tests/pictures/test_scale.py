"""Axes over values of any type: places keep the order, labels stay within the axis."""

from __future__ import annotations

import math
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rowsieve.pictures.scale import axis_of
from rowsieve.types.shown_values import ValueText

SCALES: list[list[Any]] = [
    [1, 2, 10],
    [0.5, 1e300, 1e308],
    [-(2**70), 0, 2**70],
    [Decimal("1.5"), Decimal(3), Decimal("1e20")],
    [date(1970, 1, 1), date(2020, 2, 29), date(9999, 12, 31)],
    [datetime(2020, 1, 1), datetime(2020, 1, 1, 0, 0, 1), datetime(2020, 1, 2)],
    [datetime(1, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)],
    [time(0), time(12, 30), time(23, 59, 59)],
    [timedelta(-1), timedelta(0), timedelta(5)],
    ["a", "b", "b\x00", "ü"],
    [b"", b"\x00", b"\xff"],
    [False, True],
    [uuid.UUID(int=1), uuid.UUID(int=2)],
]


@pytest.mark.parametrize("values", SCALES, ids=lambda values: type(values[0]).__name__)
def test_places_keep_the_order(values: list[Any]) -> None:
    axis = axis_of([None, *reversed(values)])
    places = [axis.place(value) for value in values]
    assert places == sorted(places)
    assert places[0] < places[-1]
    assert all(0 <= place <= 1 for place in places)
    assert axis.ticks
    assert all(0 <= share <= 1 and label for share, label in axis.ticks)


@pytest.mark.parametrize(
    "values",
    [[], [None], [5], ["x"], [math.nan], [math.inf, -math.inf], [1, "a"], [10**400, 1], [{}, []]],
    ids=str,
)
def test_odd_values_have_places_too(values: list[Any]) -> None:
    axis = axis_of(values)
    assert all(0 <= axis.place(value) <= 1 for value in values if value is not None)


def test_infinities_and_nan_stand_at_the_ends() -> None:
    axis = axis_of([0.0, 10.0, math.inf, -math.inf, math.nan])
    assert [axis.place(value) for value in (-math.inf, 5.0, math.inf, math.nan)] == [0, 0.5, 1, 1]


def test_an_axis_of_text_says_that_it_is_not_to_scale() -> None:
    assert axis_of(["a", "z"]).note == "in order, not to scale"
    assert axis_of([ValueText("292277-01-01"), datetime(2020, 1, 1)]).note
    assert axis_of([1, 2]).note == ""
