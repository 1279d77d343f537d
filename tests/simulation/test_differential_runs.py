"""A differential table under schedules and faults is a multiset by time, as far as `since` allows.

Invariant 33. `ROWSIEVE_UPDATES=17` runs seed 17 alone.
"""

from __future__ import annotations

import os

import pytest

from tests.daily import today
from tests.profiles import IS_DEEP
from tests.simulation.differential_runs import run_seed

SEEDS = 2_000 if IS_DEEP else 24
TOGETHER, OF_THE_DAY = 8, 4
ONE = os.environ.get("ROWSIEVE_UPDATES")


def check(first: int, count: int, *, alters: bool = False) -> None:
    for seed in range(first, first + count):
        run = run_seed(seed, alters=alters)
        assert run.problems == [], f"ROWSIEVE_UPDATES={seed} ({run.shape}, alters {alters})"


@pytest.mark.skipif(ONE is not None, reason="ROWSIEVE_UPDATES names one seed")
@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_each_time_has_the_sums_of_its_updates(first: int) -> None:
    check(first, TOGETHER)


@pytest.mark.skipif(IS_DEEP or ONE is not None, reason="make test runs the seeds of the day")
def test_each_time_has_the_sums_of_its_updates_on_this_day() -> None:
    check(today().toordinal() * OF_THE_DAY, OF_THE_DAY)


@pytest.mark.skipif(ONE is not None, reason="ROWSIEVE_UPDATES names one seed")
@pytest.mark.parametrize("first", range(0, max(SEEDS // 4, TOGETHER), TOGETHER))
def test_each_time_has_the_sums_of_its_updates_beside_changes_of_the_columns(first: int) -> None:
    check(first, TOGETHER, alters=True)


@pytest.mark.skipif(ONE is None, reason="ROWSIEVE_UPDATES names no seed")
@pytest.mark.parametrize("alters", [False, True])
def test_the_seed_that_the_environment_names(alters: bool) -> None:
    check(int(ONE or 0), 1, alters=alters)
