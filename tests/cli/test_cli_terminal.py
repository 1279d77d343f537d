"""The command line in a terminal: the prompt of `sql`, and completion in bash and zsh."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from tests.cli.terminal import Terminal


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    catalog = rs.Catalog(tmp_path / "lake")
    catalog.create_namespace("db")
    catalog.create_table("db.places", pa.table({"id": [1], "name": ["a"]}), ["id"])
    return tmp_path / "lake"


def prompt(lake: Path, state: Path) -> Terminal:
    command = [sys.executable, "-m", "rowsieve", "--catalog", str(lake), "sql"]
    return Terminal(command, {**os.environ, "XDG_STATE_HOME": str(state)})


def test_a_prompt_completes_a_new_column_and_ends_by_sigterm(lake: Path, tmp_path: Path) -> None:
    with prompt(lake, tmp_path) as terminal:
        terminal.shows("rowsieve> ")
        terminal.type("sel\t name FROM db.pl\t;\r")
        assert "SELECT name FROM db.places;" in terminal.shows("1 row\r\n")
        terminal.type("ALTER TABLE db.places ADD COLUMN longitude float8;\r")
        terminal.shows("1 row\r\n")
        terminal.type("SELECT id FROM db.places WHERE lon\t IS NULL;\r")
        assert "WHERE longitude IS NULL" in terminal.shows("1 row\r\n")
        terminal.shows("rowsieve> ")  # before it, Ctrl-C would meet the last statement
        terminal.type("SELECT 'half")
        terminal.shows("half")
        terminal.shows_after(lambda: terminal.type("\x03"), "rowsieve> ")
        terminal.type("help\r")
        terminal.shows("Ctrl-D")
        terminal.shows("rowsieve> ")
        terminal.shows_after(lambda: os.kill(terminal.pid, signal.SIGTERM), "interrupted")
        assert terminal.exit_code() == 143
    lines = (tmp_path / "rowsieve" / "history").read_text().splitlines()
    assert [line for line in lines if "SELECT" in line] == [
        "SELECT name FROM db.places;",
        "SELECT id FROM db.places WHERE longitude IS NULL;",
    ]


def test_prompts_at_the_same_time_share_the_history(lake: Path, tmp_path: Path) -> None:
    with prompt(lake, tmp_path) as first, prompt(lake, tmp_path) as second:
        for number, terminal in enumerate((first, second)):
            terminal.shows("rowsieve> ")
            terminal.type(f"\\x{number}\r")
            terminal.shows("unknown command")
        first.type("\x04")
        assert first.exit_code() == 0
        os.kill(second.pid, signal.SIGHUP)  # the window was closed
        assert second.exit_code() == -signal.SIGHUP
    assert (tmp_path / "rowsieve" / "history").read_text().split() == ["\\x0", "\\x1"]


def test_a_prompt_without_a_catalog_says_so(tmp_path: Path) -> None:
    with prompt(tmp_path / "none", tmp_path) as terminal:
        assert "no catalog at" in terminal.shows("rowsieve> ")
        terminal.type("\\d\r")
        assert "NotFound: no catalog at" in terminal.shows("rowsieve> ")
    rs.create_table(tmp_path / "t", {"id": [1]}, key=["id"])
    with prompt(tmp_path / "t", tmp_path) as terminal:
        assert "it is a table" in terminal.shows("namespace")
        assert terminal.exit_code() == 3


SHELLS = ("bash", "zsh")


@pytest.mark.parametrize(
    "shell",
    [
        pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"no {name}"))
        for name in SHELLS
    ],
)
def test_an_installed_completion_gives_names_at_the_first_tab_and_values_after_equals(
    shell: str, lake: Path, tmp_path: Path
) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    with Terminal([shell, "-c", "rowsieve --install-completion; true"], env) as terminal:
        terminal.shows("installed")
        assert terminal.exit_code() == 0
    with Terminal([shell, "-i"], env) as terminal:
        terminal.type("PS1='rea''dy> '\r")
        terminal.shows("ready> ")
        # The first Tab of a session, a table, and a value behind `=`.
        terminal.type(f"rowsieve upd\t{lake}/db/pl\tTRUE --set na\t\"'b'\" --js\t\r")
        terminal.shows('"rows_written":1')
    assert rs.open_table(lake / "db" / "places").to_arrow().to_pylist() == [{"id": 1, "name": "b"}]
