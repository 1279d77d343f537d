"""The machines that find planted faults: each runs a seed, and returns what is wrong.

A machine joins by a row of `MACHINES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final

from tests.simulation import (
    catalogs,
    database_histories,
    database_runs,
    differential_runs,
    order_runs,
    ref_runs,
    seeds,
    test_interleavings,
    test_simulation,
    test_transaction_runs,
    writer_runs,
)
from tests.simulation.interleavings import schedules
from tests.ternary_logic.pairs import Report, check_table
from tests.ternary_logic.readers import ALONE
from tests.ternary_logic.test_pairs import CONDITIONS

Problems = Sequence[object]


_RUNS: Final[Mapping[str, Callable[[int], seeds.Run]]] = {
    "": seeds.run_seed,
    "streams": test_simulation.run_streams,
    "publications": test_simulation.run_publications,
}


def _seed(name: str) -> Problems:
    kind, _, number = name.rpartition(" ")
    return _RUNS[kind](int(number)).problems


def _pair(name: str) -> Problems:
    (calls,) = [each for each in test_interleavings.SOME if str(each) == name]
    found = islice(schedules(calls, preemptions=1), test_interleavings.MOST)
    return [problem for each in found for problem in each.problems]


def _transactions(seed: int) -> Problems:
    families = test_transaction_runs.FAMILIES
    return seeds.run_seed(seed, calls=3, families=families[seed % len(families)]).problems


def _catalog(name: str) -> Problems:
    kind, seed = name.split()
    return catalogs.run_catalog(int(seed), kind).problems


def _database(name: str) -> Problems:
    kind, _, seed = name.rpartition(" ")
    if kind == "history":
        return database_histories.run_history(int(seed)).problems
    return database_runs.run_seed(int(seed)).problems


def _updates(seed: int) -> Problems:
    runs = (differential_runs.run_seed(seed, alters=alters) for alters in (False, True))
    return [problem for run in runs for problem in run.problems]


def _readers(name: str) -> Problems:
    seed, _, condition = name.partition("/")
    report = Report()
    numbers = [int(condition)] if condition else range(CONDITIONS)
    check_table(int(seed), numbers, ALONE, report)
    return report.findings


MACHINES: Final[Mapping[str, Callable[[str], Problems]]] = {
    "tests/simulation/test_simulation.py": _seed,
    "tests/simulation/test_ref_runs.py": lambda seed: ref_runs.run_seed(int(seed)).problems,
    "tests/simulation/test_order_runs.py": lambda seed: order_runs.run_seed(int(seed)).problems,
    "tests/simulation/test_writer_runs.py": lambda seed: writer_runs.run_seed(int(seed)).problems,
    "tests/simulation/test_transaction_runs.py": lambda seed: _transactions(int(seed)),
    "tests/simulation/test_differential_runs.py": lambda seed: _updates(int(seed)),
    "tests/simulation/test_catalogs.py": _catalog,
    "tests/simulation/test_database_runs.py": _database,
    "tests/simulation/test_interleavings.py": _pair,
    "tests/ternary_logic/test_pairs.py": _readers,
}
"""By the file of their tests."""
