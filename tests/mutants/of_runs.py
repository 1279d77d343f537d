"""Promises of writers, differential tables and leases, broken: random runs of processes notice.

Found within `make test` by the seeds named.
"""

from __future__ import annotations

from tests.mutants.workshop import Mutant

SEEDS = ("tests/simulation/test_simulation.py",)
WRITERS = ("tests/simulation/test_writer_runs.py",)
UPDATES = ("tests/simulation/test_differential_runs.py",)

MUTANTS = (
    Mutant(  # seed 11
        "writer/wal_owner.py",
        "a writer is never fenced",
        "if there is None or (there.st_ino, there.st_dev) != (ours.st_ino, ours.st_dev):",
        "if False:",
        WRITERS,
    ),
    Mutant(  # seed 16
        "writer/flushing.py",
        "records of a log are replayed twice",
        "return 0 if token is None else token.sequence",
        "return 0",
        WRITERS,
    ),
    Mutant(  # seed 8
        "writer/wal.py",
        "files of a log go before their records are committed",
        "gone = [each for each in self._closed if each.last_sequence <= through]",
        "gone = self._closed",
        WRITERS,
    ),
    Mutant(  # seed 3
        "writer/logged.py",
        "what is acknowledged is in no memtable",
        "self._memtables.add(Entry(sequence, changes, form, rows, len(payload), version))",
        "pass",
        WRITERS,
    ),
    Mutant(  # seed 6
        "writer/logged.py",
        "replay lacks a record",
        "            if record.sequence > through:\n",
        "            if record.sequence > through + 1:\n",
        WRITERS,
    ),
    Mutant(  # seed 1
        "differential/appending.py",
        "a frontier that moved meanwhile is not seen",
        "        nonlocal request\n        _check_upper(head, lower, time_type)\n",
        "        nonlocal request\n",
        UPDATES,
    ),
    Mutant(
        "differential/advancing.py",
        "times are given up under a lease",
        "    if _held_at(handle, head, lease_files(handle.store), wanted) < wanted:\n",
        "    if False:\n",
        UPDATES,
    ),
    Mutant(
        "differential/subscriptions.py",
        "a subscription has a time twice",
        "            lower = upper\n",
        "            lower = upper - 1\n",
        UPDATES,
    ),
    Mutant(  # seed 40
        "retention/kept_versions.py",
        "leases keep nothing",
        "        leased = leases()\n",
        "        leased = None\n",
        SEEDS,
    ),
)
