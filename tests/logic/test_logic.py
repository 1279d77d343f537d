"""Files of SQL logic tests give over our tables what they give over memory.

`ROWSIEVE_LOGIC_TESTS` names files of other projects (`.slt`, `.test`), such as those of DataFusion
and of SQLite's sqllogictest: a folder, an archive or the https address of one. They run in the deep
profile, each in a process of its own, which a crash of the engine ends alone. To run them alone and
to add up what they show: `python -m tests.logic.runs SOURCE`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import profiles
from tests.logic import archives
from tests.logic.runs import directory_of, run_apart
from tests.logic.script import run_ours

FILES = Path(__file__).parent / "files"
SOURCE = os.environ.get("ROWSIEVE_LOGIC_TESTS") if profiles.IS_DEEP else None


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the other project's files: the one that is named, or an unpacked copy."""
    assert SOURCE
    if not archives.is_archive(SOURCE):
        return Path(SOURCE)
    folder = tmp_path_factory.mktemp("logic")
    archives.unpack(archives.fetched(SOURCE, tmp_path_factory.mktemp("archive")), folder)
    return folder


@pytest.mark.parametrize("merges", [True, False], ids=["merged", "appended"])
@pytest.mark.parametrize("path", sorted(FILES.glob("*.slt")), ids=lambda path: path.stem)
def test_a_file_holds_over_our_tables(path: Path, merges: bool) -> None:
    outcome = run_ours(path, merges=merges)
    assert outcome.wrong == []
    assert outcome.compared >= 15
    assert outcome.tables


@pytest.mark.skipif(not SOURCE, reason="needs the deep profile and ROWSIEVE_LOGIC_TESTS")
def test_files_of_another_project_give_what_memory_gives(
    foreign: Path, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    paths = archives.test_files(foreign)
    assert paths, f"{SOURCE} holds no files of logic tests"
    for path in paths:
        with subtests.test(str(path.relative_to(foreign))):
            cwd = directory_of(path, foreign) if archives.is_archive(str(SOURCE)) else tmp_path
            outcome = run_apart(path, cwd)
            assert outcome.get("crashed") is None
            assert outcome["wrong"] + outcome["raised"] == []
