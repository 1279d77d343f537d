"""A few processes on one database; `python -m tests.database.many_processes` runs many more."""

from __future__ import annotations

from pathlib import Path

from tests.database.many_processes import run
from tests.profiles import IS_DEEP


def test_processes_change_tables_of_a_database_at_the_same_time(tmp_path: Path) -> None:
    processes, commits, tables = (8, 100, 20) if IS_DEEP else (2, 12, 3)
    for _ in range(2):
        total, _ = run(tmp_path, processes, commits, tables)
    assert total >= 2 * processes * commits
