"""Runs seeds and prints what is wrong: `python -m tests.simulation FIRST LAST [SECONDS]`.

Seeds FIRST to LAST - 1, until so many seconds of CPU are spent.
"""

from __future__ import annotations

import logging
import sys
import time

from tests.simulation.seeds import run_seed

SHOWN = 3


def main(first: int, last: int, seconds: float = float("inf")) -> int:
    """Run the seeds; return how many of them are wrong."""
    logging.disable(logging.CRITICAL)
    wrong, calls, seed = 0, 0, first
    while seed < last and time.process_time() < seconds:
        run = run_seed(seed)
        calls += run.calls
        if run.problems:
            wrong += 1
            _show(f"seed {seed}: {run.shape}", *(f"    {each}" for each in run.problems[:SHOWN]))
        seed += 1
    spent = f"{time.process_time():.0f} s of CPU"
    _show(f"seeds {first} to {seed - 1}: {wrong} wrong, {calls} calls, {spent}")
    return wrong


def _show(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:]]
    sys.exit(min(main(*numbers), 1))
