"""Random schedules over the tables of one database: every version shows all of a commit, or none.

`ROWSIEVE_DATABASE=17` runs seed 17 alone and prints its trace.
"""

from __future__ import annotations

import os

import pytest

from tests.daily import today
from tests.profiles import IS_DEEP
from tests.simulation.database_histories import run_history
from tests.simulation.database_runs import run_seed

SEEDS = range(2_000) if IS_DEEP else range(4)
HISTORIES = 1_000 if IS_DEEP else 2
TOGETHER, OF_THE_DAY = 20, 2
ONE = os.environ.get("ROWSIEVE_DATABASE")


@pytest.mark.skipif(ONE is not None, reason="ROWSIEVE_DATABASE names one seed")
@pytest.mark.parametrize("first", range(0, len(SEEDS), TOGETHER))
def test_each_version_has_all_tables_of_a_commit(first: int) -> None:  # invariants 40 and 41
    for seed in SEEDS[first : first + TOGETHER]:
        check(seed)


@pytest.mark.skipif(ONE is not None, reason="ROWSIEVE_DATABASE names one seed")
def test_seeds_of_the_day() -> None:
    start = today().toordinal() * OF_THE_DAY
    for seed in range(start, start + OF_THE_DAY):
        check(seed)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_histories_over_two_tables_are_strictly_serializable(seed: int) -> None:
    check_history(seed)


@pytest.mark.skipif(IS_DEEP, reason="make test runs the history of the day")
def test_the_history_of_the_day_is_strictly_serializable() -> None:
    check_history(today().toordinal())


@pytest.mark.skipif(ONE is None, reason="ROWSIEVE_DATABASE names no seed")
def test_one_seed() -> None:
    check(int(ONE or 0))


def check(seed: int) -> None:
    run = run_seed(seed)
    trace = "\n".join(run.trace) if ONE else f"ROWSIEVE_DATABASE={seed} prints the trace"
    assert not run.problems, f"seed {seed}: {run.shape}\n{run.problems}\n{trace}"


def check_history(seed: int) -> None:
    history = run_history(seed)
    assert history.problems == [], f"history {seed}: {history.transactions}"
