"""The command line creates tables with an event order, and says how many changes were late."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from rowsieve.cli import app as cli


def run(*arguments: str) -> str:
    done = CliRunner().invoke(cli.app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.output


def test_late_changes_are_counted(tmp_path: Path) -> None:
    table, changes = str(tmp_path / "t"), tmp_path / "changes.csv"
    changes.write_text("id,lsn,op\n1,20,u\n2,20,d\n")
    rows = tmp_path / "rows.csv"
    rows.write_text("id,lsn\n2,1\n")
    run("create", table, str(rows), "--key", "id", "--sequence", "lsn")
    run("apply", table, str(changes), "--op", "op")
    changes.write_text("id,lsn,op\n1,10,u\n2,10,u\n3,10,u\n")
    assert "1 rows written, 0 deleted, 2 late" in run("apply", table, str(changes), "--op", "op")
    assert "sequence" in run("inspect", table)
    changes.write_text("id,lsn,op\n1,10,u\n")
    output = run("apply", table, str(changes), "--op", "op", "--sequence", "lsn")
    assert "nothing to apply: still at version 2, 1 late" in output
