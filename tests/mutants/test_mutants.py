"""Whatever is broken in a kernel, a fast test of that kernel notices.

`make test-deep` breaks everything on the lists, `make test` two, for each costs a process.
"""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from tests.mutants import (
    of_alternatives,
    of_audits,
    of_column_order,
    of_constraints,
    of_databases,
    of_encodings,
    of_envelopes,
    of_event_order,
    of_evolution,
    of_history,
    of_kernels,
    of_machines,
    of_names,
    of_pages,
    of_partial_rows,
    of_reads,
    of_resolved,
    of_retention,
    of_rowsets,
    of_runs,
    of_shredding,
    of_simulation,
    of_traps,
    of_zones,
)
from tests.mutants import (
    workshop as shop,
)
from tests.mutants.workshop import REPOSITORY, Mutant, Workshop, source_of

DEEP = os.environ.get("ROWSIEVE_TESTS") == "deep"
SUITES = {
    **of_rowsets.SUITES,
    **of_audits.SUITES,
    **of_kernels.SUITES,
    **of_partial_rows.SUITES,
    **of_reads.SUITES,
    **of_pages.SUITES,
    **of_resolved.SUITES,
    **of_retention.SUITES,
    **of_zones.SUITES,
    **of_alternatives.SUITES,
    **of_envelopes.SUITES,
    **of_column_order.SUITES,
    **of_event_order.SUITES,
    **of_evolution.SUITES,
    **of_history.SUITES,
    **of_shredding.SUITES,
    **of_names.SUITES,
    **of_constraints.SUITES,
    **of_encodings.SUITES,
}
MUTANTS = (
    *of_rowsets.MUTANTS,
    *of_audits.MUTANTS,
    *of_kernels.MUTANTS,
    *of_reads.MUTANTS,
    *of_traps.MUTANTS,
    *of_pages.MUTANTS,
    *of_partial_rows.MUTANTS,
    *of_resolved.MUTANTS,
    *of_retention.MUTANTS,
    *of_zones.MUTANTS,
    *of_alternatives.MUTANTS,
    *of_envelopes.MUTANTS,
    *of_column_order.MUTANTS,
    *of_event_order.MUTANTS,
    *of_evolution.MUTANTS,
    *of_databases.MUTANTS,
    *of_history.MUTANTS,
    *of_shredding.MUTANTS,
    *of_simulation.MUTANTS,
    *of_machines.MUTANTS,
    *of_runs.MUTANTS,
    *of_names.MUTANTS,
    *of_constraints.MUTANTS,
    *of_encodings.MUTANTS,
)
QUICK = (
    "the sides of a difference are swapped",
    "the watermark is the largest last key",
)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("mutants"), SUITES)


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_the_text_that_a_mutant_replaces_exists(mutant: Mutant) -> None:
    compile(mutant.applied(source_of(mutant.module)), mutant.module, "exec")
    assert all((REPOSITORY / test).exists() for test in mutant.tests or SUITES[mutant.module])


def test_a_mutant_that_breaks_nothing_is_refused() -> None:
    for old in ("no such text", "return"):
        with pytest.raises(AssertionError, match="no longer breaks what it was made for"):
            Mutant("executor/merging/merge.py", "stale", old, "").applied(
                source_of("executor/merging/merge.py")
            )


@pytest.mark.parametrize(
    ("program", "never"),
    [
        pytest.param("1 / 0", False, id="it fails"),
        pytest.param("while True: pass", True, id="it computes"),
        pytest.param("import threading; threading.Event().wait()", True, id="it waits"),
    ],
)
def test_a_mutant_that_never_ends_is_noticed_by_its_cpu_time(
    program: str, never: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shop, "CPU_LIMIT_S", 1)
    monkeypatch.setattr(shop, "LOOK_S", 0.3)
    monkeypatch.setattr(shop, "QUIET_LOOKS", 5)
    with psutil.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL) as running:
        try:
            assert shop.ends_never(running) == never
        finally:
            if running.poll() is None:
                running.kill()


def test_the_copy_is_tested_not_the_package(workshop: Workshop) -> None:
    """A mutant that cannot be imported is no mutant, and where nothing is broken tests pass."""
    gone = Mutant("executor/merging/merge.py", "gone", "from __future__", "import nothing_such  # ")
    with pytest.raises(AssertionError, match="nothing_such"):
        workshop.survives(gone)
    assert workshop.passes(("tests/executor/test_repeated_key.py",))


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if DEEP or m.what in QUICK], ids=str)
def test_no_mutant_survives(workshop: Workshop, mutant: Mutant) -> None:
    assert not workshop.survives(mutant)
