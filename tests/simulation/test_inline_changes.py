"""Schedules of tables whose small changes live in the log: the same seeds, other objects."""

from __future__ import annotations

from dataclasses import replace

import pytest

import rowsieve
from rowsieve.config import current
from tests.simulation.seeds import run_seed


@pytest.mark.usefixtures("former_config")
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_no_schedule_loses_a_small_change(first: int) -> None:
    rowsieve.configure(replace(current(), inline_bytes=16_384))
    for seed in range(first, first + 10):
        run = run_seed(seed)
        assert run.problems == [], f"seed {seed} with inline_bytes: {run.shape}"
