"""Files of SQL logic tests give over our tables what they give over memory.

`ROWSIEVE_LOGIC_TESTS` names a folder of files of other projects (`.slt`, `.test`), such as
`datafusion/sqllogictest/test_files` of DataFusion or `test` of SQLite's sqllogictest; they run in
the deep profile, each in a process of its own, which a crash of the engine ends alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import profiles
from tests.logic.script import run_ours

FILES = Path(__file__).parent / "files"
FOLDER = os.environ.get("ROWSIEVE_LOGIC_TESTS") if profiles.IS_DEEP else None
TIMEOUT_S = 1800


FOREIGN = [
    path
    for path in (sorted(Path(FOLDER).rglob("*")) if FOLDER else ())
    if path.suffix in (".slt", ".test")
]


@pytest.mark.parametrize("merges", [True, False], ids=["merged", "appended"])
@pytest.mark.parametrize("path", sorted(FILES.glob("*.slt")), ids=lambda path: path.stem)
def test_a_file_holds_over_our_tables(path: Path, merges: bool) -> None:
    outcome = run_ours(path, merges=merges)
    assert outcome.wrong == []
    assert outcome.compared >= 15
    assert outcome.tables


@pytest.mark.skipif(not FOLDER, reason="needs the deep profile and ROWSIEVE_LOGIC_TESTS")
@pytest.mark.parametrize("path", FOREIGN, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_file_of_another_project_gives_what_memory_gives(path: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.logic.script", str(path.resolve())],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert json.loads(ran.stdout)["wrong"] == []
