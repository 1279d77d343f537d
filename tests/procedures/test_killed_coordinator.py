"""The process that calls a procedure dies: one commit or none, and a second call ends the work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from tests.profiles import IS_DEEP

CALL = """
CALL system.rewrite_data_files(table => 'db.t', options => map(
    'rewrite-all', 'true', 'max-file-group-size-bytes', '1',
    'partial-progress.enabled', '{staged}'))
"""
CHILD = """
import os, sys
import rowsieve as rs
from rowsieve.objects.local import LocalStore
from rowsieve.procedures.engine import LocalEngine

uri, statement, moment = sys.argv[1:]

class Dying(LocalEngine):
    def run(self, job):
        for number, report in enumerate(super().run(job)):
            if moment == "working":
                os._exit(9)
            yield report
        if moment == "worked":
            os._exit(9)

put = LocalStore.put_new
entries = 0

def put_new(self, path, data):
    global entries
    is_entry = path.startswith("_rowsieve/log/") and path.endswith(".json")
    if is_entry and moment == "publishing":
        os._exit(9)
    put(self, path, data)
    entries += is_entry
    if is_entry and moment == f"published {entries}":
        os._exit(9)

LocalStore.put_new = put_new
rs.Catalog(uri).call(statement, engine=Dying(1))
"""
MOMENTS = ["working", "worked", "publishing", "published 1"]


def rows(table: rs.Table) -> list[int]:
    found: list[int] = table.scan(order_by_key=True).to_arrow().column("id").to_pylist()
    return found


@pytest.mark.parametrize(
    ("moment", "staged", "commits"),
    [
        *((moment, False, int(moment.startswith("published"))) for moment in MOMENTS),
        ("published 2", True, 2),
    ],
)
@pytest.mark.parametrize("round_", range(5 if IS_DEEP else 1))
def test_killed_call_commits_once_or_not_at_all(
    tmp_path: Path, moment: str, staged: bool, commits: int, round_: int
) -> None:
    del round_
    catalog = rs.Catalog(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), ["id"])
    for start in range(0, 40, 10):
        table.upsert(pa.table({"id": range(start, start + 10)}))
    before, version = rows(table), table.version
    statement = CALL.format(staged=str(staged).lower())
    arguments = [sys.executable, "-c", CHILD, str(tmp_path / "lake"), statement, moment]
    assert subprocess.run(arguments, check=False).returncode == 9
    assert table.refresh() == version + commits
    assert rows(table) == before
    again = catalog.call(statement.replace("'rewrite-all', 'true'", "'min-input-files', '1'"))
    assert table.refresh() == again.column("version")[0].as_py()
    assert rows(table) == before
    files = set(table.files().column("path").to_pylist())
    table.remove_orphans(grace_s=0)  # a dead lease may keep some; what is live stays
    assert rows(table) == before
    assert all((tmp_path / "lake/db/t" / path).exists() for path in files)
