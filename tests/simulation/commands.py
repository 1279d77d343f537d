"""Runs the seeds of a machine, and prints those that are wrong.

python -m tests.simulation.MACHINE FIRST LAST [SECONDS]

Seeds FIRST to LAST - 1, until so many seconds of CPU are spent; the sum is also printed if the
command is stopped.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Callable, Iterable
from typing import Final

from tests.simulation.seeds import Run

SHOWN: Final = 3
"""The problems of a run that are printed."""


def main(runs_of: Callable[[int], Iterable[Run]]) -> None:
    """Run the seeds that the arguments name; exit with 1 if a run is wrong."""
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    first, last, *limit = [int(each) for each in sys.argv[1:]]
    sys.exit(min(run_seeds(runs_of, first, last, *limit), 1))


def run_seeds(
    runs_of: Callable[[int], Iterable[Run]], first: int, last: int, seconds: float = float("inf")
) -> int:
    """Print the wrong runs of some seeds, then the sum; return how many are wrong."""
    wrong, calls, seed = 0, 0, first
    try:
        while seed < last and time.process_time() < seconds:
            for run in runs_of(seed):
                calls += run.calls
                if run.problems:
                    wrong += 1
                    _show(f"seed {seed}: {run.shape}")
                    _show(*(f"    {each}" for each in run.problems[:SHOWN]))
            seed += 1
    finally:
        spent = f"{time.process_time():.0f} s of CPU"
        _show(f"seeds {first} to {seed - 1}: {wrong} wrong, {calls} calls, {spent}")
    return wrong


def _show(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
