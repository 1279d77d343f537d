"""The prompt and the scripts of `rowsieve sql`."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.cli import app as cli
from rowsieve.cli.prompting import prompt
from rowsieve.cli.prompting.prompt import has_tokens, split_statements


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    catalog = rs.Catalog(tmp_path / "lake")
    catalog.create_namespace("db")
    catalog.create_table("db.t", pa.table({"id": [1, 2], "name": ["a", "b"]}), ["id"])
    return tmp_path / "lake"


def test_statements_end_where_a_semicolon_is_no_text() -> None:
    text = "SELECT ';' ; -- a; b\nSELECT \"x;y\" /* ; */ FROM t;\n SELECT 3"
    statements, rest = split_statements(text)
    assert statements == ["SELECT ';'", '-- a; b\nSELECT "x;y" /* ; */ FROM t']
    assert rest.strip() == "SELECT 3"
    assert split_statements("SELECT 'open;\n") == ([], "SELECT 'open;\n")
    assert split_statements(" ;; ")[0] == []
    assert not has_tokens(" -- nothing\n ; ")


def test_a_script_ends_with_its_first_error(lake: Path) -> None:
    script = "SELECT count(*) AS n FROM db.t;\nDELETE FROM db.t WHERE id = 1;\nSELECT zz FROM db.t;"
    run = CliRunner().invoke(
        cli.app, ["--catalog", str(lake), "sql", "--json"], input=f"{script} DELETE FROM db.t"
    )
    assert run.exit_code == 3
    assert run.stdout.splitlines()[0] == '{"n":2}'
    assert rs.Catalog(lake).open_table("db.t").count() == 1


def test_a_script_may_begin_with_a_byte_order_mark(lake: Path) -> None:
    script = b"\xef\xbb\xbfSELECT count(*) AS n FROM db.t;"
    run = CliRunner().invoke(cli.app, ["--catalog", str(lake), "sql", "--json"], input=script)
    assert (run.exit_code, run.stdout) == (0, '{"n":2}\n')


class Typed:
    """Lines that somebody types; an exception is raised in place of a line."""

    def __init__(self, *lines: str | type[BaseException]) -> None:
        self._lines: Iterator[str | type[BaseException]] = iter(lines)
        self.prompts: list[str] = []

    def __call__(self, shown: str = "") -> str:
        self.prompts.append(shown.strip())
        line = next(self._lines, EOFError)
        if not isinstance(line, str):
            raise line
        return line


def test_a_prompt_takes_lines_until_a_semicolon_and_goes_on_after_errors(
    lake: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    typed = Typed(
        "SELECT id",
        "FROM db.t WHERE id = 2;",
        "SELECT zz FROM db.t;",
        "SELECT half",
        KeyboardInterrupt,
        "\\x",
        "SELECT name FROM db.t WHERE id = 1;",
        "\\d db.t",
        "\\unknown",
        "\\q",
        "SELECT 'not reached';",
    )
    monkeypatch.setattr(builtins, "input", typed)
    monkeypatch.setattr(prompt, "is_terminal", lambda: True)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    run = CliRunner().invoke(cli.app, ["--catalog", str(lake), "sql"])
    assert run.exit_code == 0, run.output
    assert [line.strip() for line in run.stdout.splitlines()[1:]] == [
        "id",
        "──",
        "2",
        "1 row",
        "",
        "── row 1 ──",
        "name  a",
        "1 row",
        "id  int64 NOT NULL",
        "name  string",
    ]
    assert "zz" in run.stderr
    assert "unknown command \\unknown" in run.stderr
    assert typed.prompts[:4] == ["rowsieve>", "...>", "rowsieve>", "rowsieve>"]


def test_a_prompt_completes_words_tables_and_their_columns(lake: Path) -> None:
    catalog = rs.Catalog(lake)
    talk = prompt.Prompt(catalog, lambda text, vertical: None, lambda: None)
    assert talk._candidates("db", "SELECT * FROM db") == ["db.t", "db."]
    assert talk._candidates("na", "SELECT na FROM db.t") == ["name"]
    assert talk._candidates("sel", "sel") == ["SELECT"]
