"""The commands that give disk space back."""

from __future__ import annotations

from pathlib import Path

import rowsieve
from tests.cli.test_cli import run, run_json
from tests.retention.small_histories import expected, paths, rows_of, with_history


def test_expire_and_vacuum_delete_what_a_dry_run_prints(tmp_path: Path) -> None:
    table = with_history(tmp_path / "t", versions=6)
    table.compact()
    before = paths(table.handle.store)
    shown = run_json("expire", tmp_path / "t", "--retain-last", 3, "--dry-run", "--files")
    assert (shown["dry_run"], shown["versions"], shown["oldest_version"]) == (True, 4, 4)
    assert paths(table.handle.store) == before
    done = run_json("expire", tmp_path / "t", "--retain-last", 3, "--files")
    assert set(done["sizes"]) == set(shown["sizes"]) == before - paths(table.handle.store)
    text = run("vacuum", tmp_path / "t", "--retain-last", 1, "--files", "--grace", 0)
    assert "expired and deleted: 2 versions" in text
    assert "6 data" in text
    assert all(path in text for path in before - paths(table.handle.store) - set(done["sizes"]))
    assert rows_of(rowsieve.open_table(tmp_path / "t")) == expected(5)
    assert "0 versions, 0 files, 0 B" in run("vacuum", tmp_path / "t", "--retain-last", 1)


def test_a_time_and_a_lease_keep_versions(tmp_path: Path) -> None:
    table = with_history(tmp_path / "t", versions=4)
    moment = table.history()[1].timestamp.isoformat()
    with table.lease(version=1):
        text = run("expire", tmp_path / "t", "--older-than", moment)
        assert "oldest version: 1\na lease protects version 1 and later ones" in text
    assert run_json("expire", tmp_path / "t", "--older-than", moment)["oldest_version"] == 2
    assert run_json("expire", tmp_path / "t")["versions"] == 0


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    with_history(tmp_path / "t", versions=2)
    assert "retain-last" in run("vacuum", tmp_path / "t", "--retain-last", 0, code=2)
    future = "2999-01-01T00:00:00+00:00"
    assert "in the future" in run("expire", tmp_path / "t", "--older-than", future, code=3)
    assert "TableNotFound" in run("vacuum", tmp_path / "none", code=3)
