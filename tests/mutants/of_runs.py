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
    Mutant(  # seed 0
        "writer/wal_owner.py",
        "a writer is never fenced",
        "if there is None or (there.st_ino, there.st_dev) != (ours.st_ino, ours.st_dev):",
        "if False:",
        WRITERS,
    ),
    Mutant(  # seed 2
        "changes/event_order/too_late.py",
        "a truncate has no effect on what comes later",
        "    if place is None:",
        "    if True:",
        ORDERS,
    ),
    Mutant(  # seed 7
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
        "self._memtables.add(MemtableEntry(sequence, changes, form, rows, len(payload), version))",
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
    Mutant(  # seed 12
        "differential/appending.py",
        "a frontier that moved meanwhile is not seen",
        "        nonlocal request\n        _check_upper(head, lower, time_type)\n",
        "        nonlocal request\n",
        UPDATES,
    ),
    Mutant(  # seed 23
        "differential/appending.py",
        "an append takes `since` back",
        "        since = frontiers_of(head.table).since\n"
        "        return replace(request, info=with_frontiers(head.table, Frontiers(since, upper)))",
        "        since = frontiers_of(base.table).since\n"
        "        return replace(request, info=with_frontiers(base.table, Frontiers(since, upper)))",
        UPDATES,
    ),
    Mutant(  # seed 0
        "differential/advancing.py",
        "`since` passes times that leases hold",
        "        return max(since, _held_at(handle, head, living, wanted))",
        "        return max(since, wanted)",
        UPDATES,
    ),
    Mutant(  # seed 22
        "differential/subscriptions.py",
        "an item has merged times",
        "            if may_have_merged(version.table, lower, time_type):\n",
        "            if False:\n",
        UPDATES,
    ),
    Mutant(  # seed 8
        "writer/logged.py",
        "a memtable goes before its commit",
        "rows = self._memtables.drop(through, commit.version)",
        "rows = self._memtables.drop(through + 1, commit.version)",
        WRITERS,
    ),
    Mutant(  # seed 8
        "compaction/rewrite_passes.py",
        "slices lose their tombstones",
        "                    writer.write_deletes(deleted[number])\n        yield writer",
        "                    pass\n        yield writer",
        SEEDS,
    ),
    Mutant(  # seed 9
        "differential/subscriptions.py",
        "a subscription has a time twice",
        "            lower = upper\n",
        "            lower = upper - 1\n",
        UPDATES,
    ),
    Mutant(  # seed 136
        "retention/leases.py",
        "retention ignores what publications hold",
        "        if published and (hold := _HOLD.fullmatch(path)) is not None:\n",
        "        if False and (hold := _HOLD.fullmatch(path)) is not None:\n",
        SEEDS,
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
