"""Machines find the faults that are planted for them: five each day, all in the deep profile.

A seed goes stale when the draws of its machine change: `python -m tests.mutants.planted TEXT 0 300`
names another one.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.daily import today
from tests.mutants.planted import OF_THE_DAY, PLANTED, of_the_day, plant
from tests.mutants.workshop import REPOSITORY, Mutant
from tests.profiles import IS_DEEP


def test_the_machines_find_what_is_planted_today() -> None:
    """In a process of its own, which has one thread when it forks."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants.planted", *([] if IS_DEEP else ["today"])],
        cwd=REPOSITORY,
        env={**os.environ, "ROWSIEVE_DAY": str(today())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_fault_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Mutant] = []
    for day in range(1, 1 + -(-len(PLANTED) // OF_THE_DAY)):
        monkeypatch.setenv("ROWSIEVE_DAY", f"2026-01-{day:02}")
        seen += of_the_day()
    assert sorted(map(str, seen)) == sorted(map(str, PLANTED))


def test_a_fault_outside_of_functions_is_refused() -> None:
    constant = Mutant(
        "storage/log/conflicts.py",
        "a constant",
        "Resolution.CHECK,\n    (Kind.READING, Kind.READING)",
        "Resolution.REBASE,\n    (Kind.READING, Kind.READING)",
    )
    with pytest.raises(AssertionError, match="outside of functions"):
        plant(constant)
