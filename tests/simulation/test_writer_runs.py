"""Writers over one log: whatever dies, what was acknowledged is in the table, once.

Invariants 18, 19 and 43. `ROWSIEVE_WRITERS=17` runs seed 17 alone.
"""

from __future__ import annotations

import os

import pytest

from tests.daily import today
from tests.profiles import IS_DEEP
from tests.simulation.writer_runs import run_seed

SEEDS = 2_000 if IS_DEEP else 24
TOGETHER, OF_THE_DAY = 8, 4
ONE = os.environ.get("ROWSIEVE_WRITERS")


def check(first: int, count: int) -> None:
    for seed in range(first, first + count):
        run = run_seed(seed)
        assert run.problems == [], f"ROWSIEVE_WRITERS={seed} ({run.shape})"


def test_a_seed_has_one_trace() -> None:
    traces = [run_seed(2).trace for _ in range(2)]
    assert traces[0] == traces[1]
    assert any("pwrite log/segment-" in line for line in traces[0])


@pytest.mark.skipif(ONE is not None, reason="ROWSIEVE_WRITERS names one seed")
@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_what_writers_acknowledged_is_there_once(first: int) -> None:
    check(first, TOGETHER)


@pytest.mark.skipif(IS_DEEP or ONE is not None, reason="make test runs the seeds of the day")
def test_what_writers_acknowledged_on_this_day_is_there_once() -> None:
    check(today().toordinal() * OF_THE_DAY, OF_THE_DAY)


@pytest.mark.skipif(ONE is None, reason="ROWSIEVE_WRITERS names no seed")
def test_the_seed_that_the_environment_names() -> None:
    check(int(ONE or 0), 1)
