"""Histories of lists are strictly serializable, and the check finds what is not."""

from __future__ import annotations

import os

import pytest

from tests.daily import today
from tests.profiles import IS_DEEP
from tests.simulation.histories import run_history
from tests.simulation.list_append import Transaction, anomalies

HISTORIES = 2_000 if IS_DEEP else 2
TOGETHER = 2
ONE = os.environ.get("ROWSIEVE_HISTORY")


def last(**lists: list[int]) -> Transaction:
    """The last read, of keys x and y as 1 and 2."""
    return Transaction("last", 90, 91, read={1: lists["x"], 2: lists.get("y", [])})


def append(name: str, element: int, *keys: int, at: int = 0, until: int | None = 80) -> Transaction:
    return Transaction(name, at, until, element, keys)


@pytest.mark.parametrize(
    ("history", "found"),
    [
        pytest.param([append("a", 1, 1), append("b", 2, 1), last(x=[1, 2])], "", id="serial"),
        pytest.param([append("a", 1, 1), append("b", 2, 1), last(x=[2])], "is lost", id="lost"),
        pytest.param([append("a", 1, 1, 2), last(x=[1], y=[])], "is in", id="half a transaction"),
        pytest.param([append("a", 1, 1), last(x=[1, 1])], "is in", id="twice"),
        pytest.param(
            [Transaction("a", 0, None, 1, (1,), is_refused=True), last(x=[1])],
            "refused", id="refused and there",
        ),
        pytest.param(
            [append("a", 1, 1, until=10), append("b", 2, 1, at=20), last(x=[2, 1])],
            "cycle", id="against real time",
        ),
        pytest.param(
            [append("a", 1, 1, until=10), Transaction("r", 20, 30, read={1: []}), last(x=[1])],
            "cycle", id="stale read",
        ),
        pytest.param(
            [append("a", 1, 1, 2), append("b", 2, 1, 2), last(x=[1, 2], y=[2, 1])],
            "cycle", id="two orders",
        ),
        pytest.param(
            [
                append("a", 1, 1), append("b", 2, 2),
                Transaction("r", 0, 80, read={1: [1], 2: []}),
                Transaction("s", 0, 80, read={1: [], 2: [2]}), last(x=[1], y=[2]),
            ],
            "cycle", id="a long fork",
        ),
        pytest.param(
            [append("a", 1, 1), Transaction("r", 0, 80, read={1: [2]}), last(x=[1])],
            "which ended as", id="read of what never was",
        ),
    ],
)  # fmt: skip
def test_the_check_finds_each_anomaly(history: list[Transaction], found: str) -> None:
    problems = anomalies(history)
    assert any(found in problem for problem in problems) if found else problems == []


def test_a_history_is_the_same_each_time() -> None:
    history = run_history(1)
    assert history == run_history(1)
    assert len(history.transactions) > 4


@pytest.mark.parametrize("first", range(0, HISTORIES, TOGETHER))
def test_histories_are_strictly_serializable(first: int) -> None:
    check(first)


@pytest.mark.skipif(IS_DEEP, reason="make test runs the histories of the day")
def test_histories_of_the_day_are_strictly_serializable() -> None:
    check(today().toordinal() * TOGETHER)


def check(first: int) -> None:
    """Run histories, or the one of the environment, and fail with how to repeat what is wrong."""
    for seed in [int(ONE)] if ONE else range(first, first + TOGETHER):
        history = run_history(seed)
        assert not history.problems, (f"ROWSIEVE_HISTORY={seed}", history)
