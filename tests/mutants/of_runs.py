"""Promises of writers, differential tables and leases, broken: random runs of processes notice.

Found within `make test` by the tests named, in the run of the seed that is named last.
"""

from __future__ import annotations

from tests.mutants.workshop import Mutant

SEEDS = ("tests/simulation/test_simulation.py",)
WRITERS = ("tests/simulation/test_writer_runs.py",)
UPDATES = ("tests/simulation/test_differential_runs.py",)
ORDERS = ("tests/simulation/test_order_runs.py",)
CATALOGS = ("tests/simulation/test_catalogs.py",)
INLINE = ("tests/simulation/test_inline_changes.py",)
TRANSACTIONS = ("tests/simulation/test_transaction_runs.py",)
DATABASES = ("tests/simulation/test_database_runs.py",)

MUTANTS = (
    Mutant(
        "writer/wal_owner.py",
        "a writer is never fenced",
        "if there is None or (there.st_ino, there.st_dev) != (ours.st_ino, ours.st_dev):",
        "if False:",
        WRITERS,
        "0",
    ),
    Mutant(
        "changes/event_order/too_late.py",
        "a truncate has no effect on what comes later",
        "    if place is None:",
        "    if True:",
        ORDERS,
        "2",
    ),
    Mutant(
        "writer/flushing.py",
        "records of a log are replayed twice",
        "return 0 if token is None else token.sequence",
        "return 0",
        WRITERS,
        "7",
    ),
    Mutant(
        "writer/wal.py",
        "files of a log go before their records are committed",
        "gone = [each for each in self._closed if each.last_sequence <= through]",
        "gone = self._closed",
        WRITERS,
        "8",
    ),
    Mutant(
        "writer/logged.py",
        "what is acknowledged is in no memtable",
        "self._memtables.add(MemtableEntry(sequence, changes, form, rows, len(payload), version))",
        "pass",
        WRITERS,
        "3",
    ),
    Mutant(
        "writer/logged.py",
        "replay lacks a record",
        "            if record.sequence > through:\n",
        "            if record.sequence > through + 1:\n",
        WRITERS,
        "6",
    ),
    Mutant(
        "differential/appending.py",
        "a frontier that moved meanwhile is not seen",
        "        nonlocal request\n        _check_upper(head, lower, time_type)\n",
        "        nonlocal request\n",
        UPDATES,
        "12",
    ),
    Mutant(
        "differential/appending.py",
        "an append takes `since` back",
        "        since = frontiers_of(head.table).since\n"
        "        return replace(request, info=with_frontiers(head.table, Frontiers(since, upper)))",
        "        since = frontiers_of(base.table).since\n"
        "        return replace(request, info=with_frontiers(base.table, Frontiers(since, upper)))",
        UPDATES,
        "23",
    ),
    Mutant(
        "differential/advancing.py",
        "`since` passes times that leases hold",
        "        return max(since, _held_at(handle, head, living, wanted))",
        "        return max(since, wanted)",
        UPDATES,
        "4",
    ),
    Mutant(
        "differential/subscriptions.py",
        "an item has merged times",
        "            if may_have_merged(version.table, lower, time_type):\n",
        "            if False:\n",
        UPDATES,
        "22",
    ),
    Mutant(
        "writer/logged.py",
        "a memtable goes before its commit",
        "rows = self._memtables.drop(through, commit.version)",
        "rows = self._memtables.drop(through + 1, commit.version)",
        WRITERS,
        "8",
    ),
    Mutant(
        "compaction/rewrite_passes.py",
        "slices lose their tombstones",
        "                    writer.write_deletes(deleted[number])\n        yield writer",
        "                    pass\n        yield writer",
        SEEDS,
        "8",
    ),
    Mutant(
        "differential/subscriptions.py",
        "a subscription has a time twice",
        "            lower = upper\n",
        "            lower = upper - 1\n",
        UPDATES,
        "9",
    ),
    Mutant(
        "retention/leases.py",
        "retention ignores what publications hold",
        "        if published and (hold := _HOLD.fullmatch(path)) is not None:\n",
        "        if False and (hold := _HOLD.fullmatch(path)) is not None:\n",
        SEEDS,
        "136",
    ),
    Mutant(
        "retention/kept_versions.py",
        "leases keep nothing",
        "        leased = leases()\n",
        "        leased = None\n",
        SEEDS,
        "108",
    ),
    Mutant(
        "transactions/proofs.py",
        "what a transaction has read is not proved again",
        "self._reads = tuple(reads) if isolation is Isolation.SERIALIZABLE else ()",
        "self._reads = ()",
        TRANSACTIONS,
        "0",
    ),
    Mutant(
        "storage/log/moves.py",
        "a table takes commits at its former place",
        "if MOVED not in info.properties or (mark := mark_of(info.properties)) is None:",
        "if True or (mark := mark_of(info.properties)) is None:",
        CATALOGS,
        "database 30",
    ),
    Mutant(
        "objects/shared/section_store.py",
        "an entry stays behind when a table moves out",
        "for number in range(log.first, log.next_number):",
        "for number in range(log.first, log.next_number - 1):",
        CATALOGS,
        "database 10",
    ),
    Mutant(  # beyond the seeds of `make test`
        "objects/shared/group_commit.py",
        "a number that is taken in a shared log is given again",
        "if section.number < log.next_number or log.has_left:",
        "if log.has_left:",
        CATALOGS,
        "database 109",
    ),
    Mutant(
        "changes/event_order/late_changes.py",
        "an event does not see newer ones that were committed meanwhile",
        "        if not len(above):\n            return False\n",
        "        return False\n",
        ORDERS,
        "0",
    ),
    Mutant(
        "changes/operations.py",
        "an overwrite keeps the floor of late events",
        "if head.table.late_floor == floor and properties is head.table.properties:",
        "if True:",
        ORDERS,
        "20",
    ),
    Mutant(
        "changes/column_order/resolving_columns.py",
        "each value of a row is as new as the row",
        "ranks = self.orders.ranks_of(field_id, rows, self.entries)",
        "ranks = rows",
        ORDERS,
        "7",
    ),
    Mutant(
        "publication/publish_version.py",
        "what is published is not held",
        "    if moves and snapshot.version not in holds:",
        "    if False:",
        SEEDS,
        "136",
    ),
    Mutant(
        "storage/log/log_reader.py",
        "an old version is the one that was read last",
        "return next((s for s in known if s and (s.version, s.table.uuid) == wanted), None)",
        "return next((s for s in known if s and s.table.uuid == table_uuid), None)",
        SEEDS,
        "1",
    ),
    Mutant(
        "storage/log/inline_parts.py",
        "rows that stand in an entry are older than it",
        "return parts if version is None else parts.with_commit_ts(version)",
        "return parts if version is None else parts.with_commit_ts(max(version - 2, 0))",
        INLINE,
        "3",
    ),
    Mutant(
        "transactions/proofs.py",
        "blind writes do not meet what a transaction has read",
        "self._kinds = kinds | {Kind.READING} if self._reads else kinds",
        "self._kinds = kinds",
        TRANSACTIONS,
        "22",
    ),
    Mutant(
        "objects/shared/joint.py",
        "an entry lacks one of its tables",
        "version = self._group.commit(list(self._waiting.values()), list(self._next.items()))",
        "version = self._group.commit([*self._waiting.values()][:1], list(self._next.items()))",
        DATABASES,
        "1",
    ),
    Mutant(
        "database/transactions.py",
        "a table that was only read is not proved",
        "self._joint = joint = JointCommit(self.shared.group, proofs)",
        "self._joint = joint = JointCommit(self.shared.group, {})",
        DATABASES,
        "history 1",
    ),
    Mutant(
        "objects/shared/joint.py",
        "a table that was overtaken is committed without a new proof",
        "                self._prove(error.tables & self._read.keys())\n",
        "                self._next.clear()\n",
        DATABASES,
        "history 1",
    ),
    Mutant(
        "database/database.py",
        "a reader of two tables takes two versions",
        "            return self._opened_at(name, state)\n\n        return opened",
        "            return self.open_table(name)\n\n        return opened",
        DATABASES,
        "history 1",
    ),
)
