"""Change data on the command line: event orders, rows with some of the columns, history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import rowsieve as rs
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


def written(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def rows(table: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in rs.open_table(table).to_arrow().to_pylist())


def test_columns_that_a_file_lacks_keep_their_values(tmp_path: Path) -> None:
    table, file = str(tmp_path / "t"), tmp_path / "f.csv"
    run("create", table, written(file, "id,page,hits", "1,a,10", "2,b,20"), "--key", "id")
    some = written(file, "id,hits", "1,5", "3,7")
    run("upsert", table, some, "--columns", "given", "--combine", "hits=sum")
    assert rows(table) == [(1, "a", 15), (2, "b", 20), (3, None, 7)]
    changes = written(file, "id,page,op,lsn", "1,c,u,1", "2,,d,2", "1,d,u,3")
    run("apply", table, changes, "--op", "op", "--sequence", "lsn", "--missing", "keep")
    assert rows(table) == [(1, "d", 15), (3, None, 7)]
    lists = tmp_path / "f.jsonl"
    given = written(lists, '{"id": 1, "page": "x", "hits": 0, "kept": ["hits"]}')
    run("upsert", table, given, "--unchanged", "kept")
    assert rows(table) == [(1, "x", 15), (3, None, 7)]
    some = written(lists, '{"id": 1, "page": "y"}', '{"id": 3, "hits": 1}')
    done = CliRunner().invoke(cli.app, ["upsert", table, some, "--columns", "given"])
    assert "absent is not NULL" in " ".join(done.output.split())
    assert rows(table) == [(1, "x", 15), (3, None, 7)]


def test_all_versions_are_kept_with_their_times(tmp_path: Path) -> None:
    table, file = str(tmp_path / "t"), tmp_path / "f.csv"
    created = written(file, "id,state,since,until", "0,x,0,1")
    run("create", table, created, "--key", "id", "--key", "since", "--schema-only")
    changes = written(file, "id,state,op,lsn", "1,open,c,10", "1,paid,u,30", "1,late,u,20")
    flags = ("--op", "op", "--sequence", "lsn", "--history", "since,until")
    run("apply", table, changes, *flags)
    assert rows(table) == [(1, "late", 20, 30), (1, "open", 10, 20), (1, "paid", 30, None)]


def test_options_of_changes_are_checked(tmp_path: Path) -> None:
    table, file = str(tmp_path / "t"), tmp_path / "f.csv"
    run("create", table, written(file, "id,op,lsn", "1,u,1"), "--key", "id")
    for flags, words in (
        (("--op", "op", "--history", "since"), "--history takes two columns"),
        (("--format", "maxwell", "--missing", "keep"), "--missing is not for events"),
        (("--op", "op", "--sequence", "lsn", "--missing", "some"), "Invalid value"),
    ):
        done = CliRunner().invoke(cli.app, ["apply", table, str(file), *flags])
        assert done.exit_code != 0
        assert words in " ".join(done.output.split()).replace("│ ", "")


def test_columns_are_added_where_others_keep_their_values(tmp_path: Path) -> None:
    table, file = str(tmp_path / "t"), tmp_path / "f.csv"
    run("create", table, written(file, "id,page", "1,a"), "--key", "id")
    some = written(file, "id,more", "1,7")
    flags = ("upsert", table, some, "--schema-mode", "merge")
    refused = CliRunner().invoke(cli.app, list(flags))
    assert "lacks column 'page'" in " ".join(refused.output.split())
    run(*flags, "--columns", "given")
    changes = written(file, "id,rest,op,lsn", "1,x,u,1")
    run(
        "apply",
        table,
        changes,
        "--op",
        "op",
        "--sequence",
        "lsn",
        "--schema-mode",
        "merge",
        "--missing",
        "keep",
    )
    assert rows(table) == [(1, "a", 7, "x")]
