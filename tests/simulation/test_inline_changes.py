"""Schedules of tables whose small changes live in the log: the same seeds, other objects."""

from __future__ import annotations

from dataclasses import replace

import pytest

import rowsieve
from rowsieve.config import current
from tests.daily import today
from tests.simulation.seeds import run_seed


@pytest.mark.usefixtures("former_config")
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_no_schedule_loses_a_small_change(first: int) -> None:
    check(first, 10)


@pytest.mark.usefixtures("former_config")
def test_no_schedule_of_the_day_loses_a_small_change() -> None:
    check(today().toordinal() * 4, 4)


def check(first: int, count: int) -> None:
    rowsieve.configure(replace(current(), inline_bytes=16_384))
    for seed in range(first, first + count):
        run = run_seed(seed)
        assert run.problems == [], f"seed {seed} with inline_bytes: {run.shape}"
