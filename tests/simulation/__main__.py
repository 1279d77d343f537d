"""Runs seeds of the simulation: `python -m tests.simulation FIRST LAST [SECONDS]`."""

from __future__ import annotations

from tests.simulation.commands import main
from tests.simulation.seeds import run_seed

if __name__ == "__main__":
    main(lambda seed: [run_seed(seed)])
