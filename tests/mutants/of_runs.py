"""Promises of writers, differential tables and leases, broken: random runs of processes notice.

Found within `make test` by the seeds named.
"""

from __future__ import annotations

from tests.mutants.workshop import Mutant

SEEDS = ("tests/simulation/test_simulation.py",)
WRITERS = ("tests/simulation/test_writer_runs.py",)
UPDATES = ("tests/simulation/test_differential_runs.py",)
ORDERS = ("tests/simulation/test_order_runs.py",)
CATALOGS = ("tests/simulation/test_catalogs.py",)
TRANSACTIONS = ("tests/simulation/test_transaction_runs.py",)

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
    Mutant(  # seed 0
        "changes/event_order/late_changes.py",
        "late events replace newer ones",
        "        late = overtaken if late is None else late | overtaken\n",
        "        pass\n",
        ORDERS,
    ),
    Mutant(  # seed 0
        "transactions/proofs.py",
        "what a transaction has read is not proved again",
        "self._reads = tuple(reads) if isolation is Isolation.SERIALIZABLE else ()",
        "self._reads = ()",
        TRANSACTIONS,
    ),
    Mutant(  # seed 30 of databases
        "storage/log/moves.py",
        "a table takes commits at its former place",
        "if MOVED not in info.properties or (mark := mark_of(info.properties)) is None:",
        "if True or (mark := mark_of(info.properties)) is None:",
        CATALOGS,
    ),
    Mutant(  # seed 10 of databases
        "objects/shared/section_store.py",
        "an entry stays behind when a table moves out",
        "for number in range(log.first, log.next_number):",
        "for number in range(log.first, log.next_number - 1):",
        CATALOGS,
    ),
)
