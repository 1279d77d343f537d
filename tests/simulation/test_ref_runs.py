"""Random schedules over branches and tags: every ref has the rows that the oracle has for it.

`ROWSIEVE_REFS=17` runs seed 17 alone and prints its trace.
"""

from __future__ import annotations

import os

import pytest

from tests.daily import today
from tests.profiles import IS_DEEP
from tests.simulation.ref_runs import run_seed

SEEDS = range(2_000) if IS_DEEP else (21, 30, 124)  # these notice the faults in `mutants/`
TOGETHER, OF_THE_DAY = 20, 2
ONE = os.environ.get("ROWSIEVE_REFS")


@pytest.mark.skipif(ONE is not None, reason="ROWSIEVE_REFS names one seed")
@pytest.mark.parametrize("first", range(0, len(SEEDS), TOGETHER))
def test_no_branch_and_no_tag_loses_a_row(first: int) -> None:  # invariant 42
    for seed in SEEDS[first : first + TOGETHER]:
        check(seed)


@pytest.mark.skipif(ONE is not None, reason="ROWSIEVE_REFS names one seed")
def test_seeds_of_the_day() -> None:
    start = today().toordinal() * OF_THE_DAY
    for seed in range(start, start + OF_THE_DAY):
        check(seed)


@pytest.mark.skipif(ONE is None, reason="ROWSIEVE_REFS names no seed")
def test_one_seed() -> None:
    check(int(ONE or 0))


def check(seed: int) -> None:
    run = run_seed(seed)
    trace = "\n".join(run.trace) if ONE else f"ROWSIEVE_REFS={seed} prints the trace"
    assert not run.problems, f"seed {seed}: {run.shape}\n{run.problems}\n{trace}"
