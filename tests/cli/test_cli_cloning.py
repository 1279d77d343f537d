"""The command that copies a version of a table."""

from __future__ import annotations

from pathlib import Path

import rowsieve as rs
from tests.cli.test_cli import run, run_json
from tests.retention.small_histories import expected, rows_of, with_history


def test_a_version_is_copied_into_a_table_of_its_own(tmp_path: Path) -> None:
    table = with_history(tmp_path / "t", versions=4)
    text = run("clone", tmp_path / "t", tmp_path / "newest")
    assert text.startswith("copied version 3: ")
    assert rows_of(rs.open_table(tmp_path / "newest")) == expected(3)
    moment = table.history()[2].timestamp.isoformat()
    for name, option in (("numbered", ("--version", 1)), ("timed", ("--as-of", moment))):
        done = run_json("clone", tmp_path / "t", tmp_path / name, *option)
        copy = rs.open_table(tmp_path / name)
        assert done == {"version": 1, "parts": copy.files().num_rows, "rows": copy.count()}
        assert rows_of(copy) == expected(1)
    table.tag("quarter", version=1)
    run("clone", tmp_path / "t", tmp_path / "tagged", "--version", "quarter")
    assert rows_of(rs.open_table(tmp_path / "tagged")) == expected(1)
    assert "TableExists" in run("clone", tmp_path / "t", tmp_path / "timed", code=3)
    assert "TableNotFound" in run("clone", tmp_path / "none", tmp_path / "new", code=3)


def test_commands_take_a_tag_where_they_take_a_version(tmp_path: Path) -> None:
    table = with_history(tmp_path / "t", versions=4)
    table.tag("quarter", version=1)
    table.vacuum(retain_last=1)
    assert run("head", table.uri, "--version", 1, code=3).startswith("rowsieve: SnapshotExpired")
    for command in ("head", "show", "inspect", "explain", "verify"):
        run(command, table.uri, "--version", "quarter")
    counted = ("query", "SELECT count(*) AS n FROM t", table.uri)
    assert run_json(*counted, "--version", "quarter") == {"n": len(expected(1))}
    run("restore", table.uri, "quarter")
    assert rows_of(rs.open_table(table.uri)) == expected(1)
    assert "none" in run("restore", table.uri, "none", code=3)
    assert "a version is from 0" in run("restore", table.uri, "9" * 20, code=2)
