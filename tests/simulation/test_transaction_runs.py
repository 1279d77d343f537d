"""Random schedules and histories of transactions beside other writers, under faults.

Each version has the rows that a serial execution has, and each transaction counted the rows that
were there right before its commit.
"""

from __future__ import annotations

import os

import pytest

from tests.daily import today
from tests.profiles import IS_DEEP
from tests.simulation import transaction_calls
from tests.simulation.histories import run_history
from tests.simulation.seeds import run_seed

FAMILIES = (
    ("transactions",),
    ("transactions", "write"),
    ("transactions", "write", "upkeep"),
    ("transactions", "write", "retention"),
)
SEEDS, HISTORIES = (4_000, 1_000) if IS_DEEP else (16, 6)
ONE = os.environ.get("ROWSIEVE_TRANSACTIONS")
assert transaction_calls  # imported for its operation


def check(seed: int) -> None:
    run = run_seed(seed, calls=3, families=FAMILIES[seed % len(FAMILIES)])
    assert run.problems == [], f"seed {seed} ({run.shape})"


def check_history(seed: int) -> None:
    history = run_history(seed, transacts=0.7)
    assert history.problems == [], f"history {seed}"


@pytest.mark.skipif(ONE is not None, reason="ROWSIEVE_TRANSACTIONS names one seed")
@pytest.mark.parametrize("first", range(0, SEEDS, 8))
def test_no_transaction_has_a_wrong_row(first: int) -> None:
    for seed in range(first, first + 8):
        check(seed)


@pytest.mark.skipif(ONE is not None, reason="ROWSIEVE_TRANSACTIONS names one seed")
def test_no_transaction_of_the_day_has_a_wrong_row() -> None:
    first = today().toordinal() * 4
    for seed in range(first, first + 4):
        check(seed)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_histories_of_transactions_are_strictly_serializable(seed: int) -> None:
    check_history(seed)


@pytest.mark.skipif(ONE is None, reason="ROWSIEVE_TRANSACTIONS names no seed")
def test_the_seed_that_the_environment_names() -> None:
    check(int(ONE or 0))
