"""`python -m benchmarks.suite`: run the suite, each group of cases in its own process."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.isolate import in_own_process, write_result
from benchmarks.report import print_cases, print_machine, wide_console
from benchmarks.result import RESULTS, Case, Machine, save
from benchmarks.suite.cases import BY_NAME, CASES


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the groups asked for, print the medians, save them as JSON."""
    options = _options(arguments)
    if options.write is not None:
        with tempfile.TemporaryDirectory(prefix="rowsieve-suite-") as folder:
            found = CASES[options.only[0]](BY_NAME[options.sizes], Path(folder))
        write_result(found, options.write)
        return
    console = wide_console()
    machine = Machine.here()
    print_machine(machine, console)
    cases: list[Case] = []
    for name in options.only or CASES:
        with console.status(f"measuring {name}"):
            wanted = ["--only", name, "--sizes", options.sizes]
            cases += in_own_process("benchmarks.suite", wanted, list[Case])
    print_cases(cases, console)
    path = save("suite", BY_NAME[options.sizes], machine, cases, options.results)
    console.print(f"Saved as {path}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suite", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=[], help="these groups")
    parser.add_argument("--sizes", choices=list(BY_NAME), default="small")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the JSON goes")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
