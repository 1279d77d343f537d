"""Faults that are planted for machines: each is found by the run that its mutant names.

`python -m tests.mutants.planted [TEXT]` plants those whose names have the text, one at a time, and
says which are found. `TEXT FIRST LAST` tries seeds, and names the first that finds each.

Each fault has a fork of a process that has not imported the package, so that the broken module is
the only one that there is. A fault joins by its `seed`.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import time
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from tempfile import TemporaryFile
from types import CodeType, ModuleType
from typing import IO, Final

import psutil

from tests.mutants import of_machines, of_runs, of_simulation
from tests.mutants.workshop import REPOSITORY, Mutant, ends_never, source_of

PLANTED: Final = tuple(
    each for each in (*of_machines.MUTANTS, *of_runs.MUTANTS, *of_simulation.MUTANTS) if each.seed
)
CPU_LIMIT_S: Final = 60.0
FOUND, UNSEEN = 0, 1
LARGE: Final = ("hypothesis", "pyarrow.dataset", "pytest", "polars", "duckdb", "datafusion")


class BrokenModule(SourceFileLoader):
    """Loads the module of a mutant from its broken source, whatever is cached."""

    def __init__(self, planted: Mutant) -> None:
        name = "rowsieve." + planted.module.removesuffix(".py").replace("/", ".")
        super().__init__(name, str(REPOSITORY / "rowsieve" / planted.module))
        self._source = planted.applied(source_of(planted.module))

    def get_code(self, fullname: str) -> CodeType:
        """Compile the broken source."""
        return compile(self._source, self.path, "exec", dont_inherit=True)


class Finder(MetaPathFinder):
    """Finds one module, which the loader has."""

    def __init__(self, loader: SourceFileLoader) -> None:
        self._loader = loader

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find this module only."""
        if fullname != self._loader.name:
            return None
        return spec_from_file_location(fullname, self._loader.path, loader=self._loader)


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
        assert seeds_begun, f"{planted} cannot be imported"
        return seeds_begun[-1]


def _run_and_exit(planted: Mutant, seeds: Sequence[str], begun: IO[str]) -> None:
    status = FOUND  # also by an error
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        sys.meta_path.insert(0, Finder(BrokenModule(planted)))
        machines = importlib.import_module("tests.mutants.machines")
        (machine,) = planted.tests
        for seed in seeds:
            begun.write(f"{seed}\n")
            begun.flush()
            if machines.MACHINES[machine](seed):
                break
        else:
            status = UNSEEN
    finally:
        begun.flush()
        os._exit(status)


def main(text: str = "", *numbers: str) -> int:
    """Plant the faults whose names have a text; return how many are not found."""
    logging.disable(logging.CRITICAL)
    for name in LARGE:
        importlib.import_module(name)
    assert "rowsieve" not in sys.modules
    chosen = [each for each in PLANTED if text in str(each)]
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
