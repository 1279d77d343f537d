"""Databases that are broken on purpose: their tests, and schedules of processes, notice.

Comments say by which seed.
"""

from __future__ import annotations

from tests.mutants.workshop import Mutant

ROOM = "objects/shared"
GROUP, LOG = f"{ROOM}/group_commit.py", f"{ROOM}/shared_log.py"
SEEDS = ("tests/simulation/test_catalogs.py",)
CASES = ("tests/database/test_database.py",)
MOVES = ("tests/database/test_moves.py",)
FAULTS = ("tests/database/test_group_commit.py",)

MUTANTS = (
    Mutant(  # seed 18
        LOG,
        "every entry of a database is ours",
        "if stored.commit_id != entry.commit_id:",
        "if False:",
        FAULTS + SEEDS,
    ),
    Mutant(  # seed 42
        GROUP,
        "the number of a section may be taken",
        "section.number < log.next_number",
        "section.number < log.next_number - 1",
        FAULTS,
    ),
    Mutant(
        GROUP,
        "a table loses a name that it has no more",
        "if former is not None and self._log.id_of(former, state) != section.table:",
        "if False:",
        SEEDS,
    ),
    Mutant(
        GROUP,
        "tables that were read may have changed",
        "            if log.next_number != number:\n                overtaken.add(table)\n",
        "",
        FAULTS,
    ),
    Mutant(
        f"{ROOM}/unneeded_entries.py",
        "entries that no page has go",
        "        and version not in needed\n",
        "",
        CASES,
    ),
    Mutant(
        f"{ROOM}/roots.py",
        "pages forget the tables that did not change",
        "    tables, names = dict(before.tables), dict(before.names)\n",
        "    tables, names = {}, dict(before.names)\n",
        CASES,
    ),
    Mutant(
        f"{ROOM}/joint.py",
        "a part that fails does not stop the others",
        "is_whole = self._failed_task is None and bool(self._waiting)",
        "is_whole = bool(self._waiting)",
        FAULTS,
    ),
    Mutant(
        f"{ROOM}/section_store.py",
        "what a table let go stays in the shared log",
        "if sections and max(sections) >= log.first:",
        "if False:",
        CASES,
    ),
    Mutant(
        f"{ROOM}/section_store.py",
        "a table that has left goes on before its entries are in its folder",
        "            self.complete()\n            self._inner.put_new(path, data)\n",
        "            self._inner.put_new(path, data)\n",
        MOVES,
    ),
    Mutant(
        f"{ROOM}/table_log.py",
        "entries from before a move are lost",
        "return self.has_left or number < self.starts_at",
        "return self.has_left",
        MOVES,
    ),
    Mutant(
        GROUP,
        "a table that has left takes more entries",
        "section.number < log.next_number or log.has_left",
        "section.number < log.next_number",
        MOVES,
    ),
    Mutant(
        "storage/log/log_head.py",
        "the former place of a table that moved is read and written",
        "        check_place(self._store, snapshot.table)\n",
        "        pass\n",
        MOVES,
    ),
    Mutant(
        "database/vacuuming.py",
        "a dropped table that moved in takes all files of its place with it",
        'store.list("") if table.place_uri is None else own_files(store)',
        'store.list("")',
        MOVES,
    ),
    Mutant(
        "transactions/proofs.py",
        "a rewrite of parts in which a transaction hides rows is no conflict",
        "if self._removed.intersection(entry.removed):",
        "if False:",
        ("tests/transactions/test_transactions.py",),
    ),
    Mutant(
        "providers/datafusion/catalog_tables.py",
        "a statement opens each table of a database at its newest version",
        "table = (open_table or self._first_opener())(name)",
        "table = self._catalog.open_table(name)",
        ("tests/catalog/test_shared_namespaces.py",),
    ),
)
