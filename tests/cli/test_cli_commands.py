"""The list of commands: each row names a function, and its summary stands whole in the help."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from rowsieve.cli import app as cli
from rowsieve.cli.command_list import COMMANDS, load

NARROW = 80


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_options_and_help(name: str) -> None:
    command = load(name)
    assert command.name == name
    assert command.help


def test_help_has_each_summary_on_one_line() -> None:
    text = CliRunner().invoke(cli.app, ["--help"], env={"COLUMNS": str(NARROW)}).output
    rows = {f"{name} {listed.summary}" for name, listed in COMMANDS.items()}
    assert rows <= {" ".join(line.split()) for line in text.splitlines()}
    assert max(map(len, text.splitlines())) <= NARROW


def test_a_misspelt_command_is_suggested() -> None:
    result = CliRunner().invoke(cli.app, ["upsrt"])
    assert result.exit_code == 2
    assert "Did you mean 'upsert'" in result.output


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("rowsieve fast", {"fast-forward"}),
        ("rowsieve drop", {"drop", "drop-ref", "drop-namespace"}),
        ("rowsieve vacuum --dry", {"--dry-run"}),
        ("rowsieve query --st", {"--storage-option"}),
    ],
)
def test_the_shell_completes(words: str, completions: set[str]) -> None:
    shell = {
        "_ROWSIEVE_COMPLETE": "complete_zsh",
        "_TYPER_COMPLETE_ARGS": words,
    }
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.argv = ['rowsieve']; from rowsieve.cli import main; main()",
        ],
        env={**os.environ, **shell},
        capture_output=True,
        text=True,
        check=False,
    )
    assert {name for name in completions if f'"{name}"' in done.stdout} == completions
