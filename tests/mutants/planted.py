"""Faults that are planted for machines: each is found by the run that its mutant names.

`python -m tests.mutants.planted [TEXT]` plants those whose names have the text, one at a time, and
says which are found; `today` those that have their turn on this day. `TEXT FIRST LAST` tries seeds,
and names the first that finds each.

Each fault has a fork of a process that has imported the machines, in which the functions of its
module get the broken code. So a fault must be inside a function. A fault joins by its `seed`.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import time
from collections.abc import Sequence
from tempfile import TemporaryFile
from types import CodeType
from typing import IO, Final

import psutil

from tests.daily import today
from tests.mutants import of_machines, of_runs, of_simulation
from tests.mutants.forked import break_functions
from tests.mutants.machines import MACHINES
from tests.mutants.workshop import REPOSITORY, Mutant, ends_never, source_of

PLANTED: Final = tuple(
    each for each in (*of_machines.MUTANTS, *of_runs.MUTANTS, *of_simulation.MUTANTS) if each.seed
)
CPU_LIMIT_S: Final = 60.0
FOUND, UNSEEN = 0, 1
OF_THE_DAY: Final = 5


def plant(fault: Mutant) -> None:
    """Break the functions of a module in this process; fails if a fault is outside of them."""
    whole = source_of(fault.module)
    broken = fault.applied(whole)
    assert _outside(whole) == _outside(broken), f"{fault} is outside of functions"
    importlib.import_module("rowsieve." + fault.module.removesuffix(".py").replace("/", "."))
    break_functions(REPOSITORY / "rowsieve" / fault.module, broken)


def _outside(source: str) -> object:
    """What an import of a module executes."""
    code = compile(source, "", "exec")
    constants = [each for each in code.co_consts if not isinstance(each, CodeType)]
    return code.co_code, code.co_names, constants


def first_that_finds(planted: Mutant, seeds: Sequence[str]) -> str | None:
    """The first seed whose run finds a planted fault; one that fails or never ends finds it."""
    with TemporaryFile("w+") as begun:
        if not (child := os.fork()):
            _run_and_exit(planted, seeds, begun)
        running = psutil.Process(child)
        if ends_never(running, cpu_limit_s=CPU_LIMIT_S * len(seeds)):
            running.kill()
        if running.wait() == UNSEEN:
            return None
        begun.seek(0)
        seeds_begun = begun.read().split("\n")[:-1]
        assert seeds_begun, f"{planted} cannot be planted"
        return seeds_begun[-1]


def _run_and_exit(planted: Mutant, seeds: Sequence[str], begun: IO[str]) -> None:
    status = FOUND  # also by an error
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        plant(planted)
        (machine,) = planted.tests
        for seed in seeds:
            begun.write(f"{seed}\n")
            begun.flush()
            if MACHINES[machine](seed):
                break
        else:
            status = UNSEEN
    finally:
        begun.flush()
        os._exit(status)


def of_the_day() -> Sequence[Mutant]:
    """The faults that have their turn today: each has it once in so many days."""
    days = -(-len(PLANTED) // OF_THE_DAY)
    return PLANTED[today().toordinal() % days :: days]


def main(text: str = "", *numbers: str) -> int:
    """Plant the faults whose names have a text; return how many are not found."""
    logging.disable(logging.CRITICAL)
    chosen = of_the_day() if text == "today" else [each for each in PLANTED if text in str(each)]
    tried = range(*map(int, numbers)) if numbers else ()
    unseen = 0
    for planted in chosen:
        began = time.monotonic()
        seed = first_that_finds(planted, _seeds(planted, tried))
        unseen += seed is None
        word = "NOT FOUND" if seed is None else f"found by {seed}"
        _show(f"{word} in {time.monotonic() - began:.1f} s: {planted}")
    _show(f"{len(chosen)} faults, {unseen} not found")
    return unseen


def _seeds(planted: Mutant, numbers: Sequence[int]) -> list[str]:
    """The seed that the fault names, or these numbers, for the same kind of runs."""
    if not numbers:
        return [planted.seed]
    kind, space, _ = planted.seed.rpartition(" ")  # such as "database 30"
    return [f"{kind}{space}{number}" for number in numbers]


def _show(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 1))
