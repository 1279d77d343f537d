"""Databases that are broken on purpose: their tests, and schedules of processes, notice.

Comments say by which seed.
"""

from __future__ import annotations

from tests.mutants.workshop import Mutant

ROOM = "objects/shared"
GROUP, LOG = f"{ROOM}/group_commit.py", f"{ROOM}/shared_log.py"
SEEDS = ("tests/simulation/test_catalogs.py",)
CASES = ("tests/database/test_database.py",)
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
        "is_whole = self._failed_task is None and bool(self._held)",
        "is_whole = bool(self._held)",
        FAULTS,
    ),
    Mutant(
        f"{ROOM}/section_store.py",
        "what a table let go stays in the shared log",
        "if numbers and max(numbers) >= self._log_with(-1).first:",
        "if False:",
        CASES,
    ),
)
