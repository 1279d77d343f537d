"""`--html` and `--analyze` of commands, and `rowsieve ui` as a process."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.cli.app import app

RUNNER = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = rs.create_table(tmp_path / "trips", pa.table({"id": [1, 2, 3]}), key=["id"])
    table.upsert(pa.table({"id": [3, 4]}))
    return tmp_path / "trips"


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (["explain", "{}", "id < 3"], "What a read of"),
        (["explain", "{}", "id < 3", "--analyze"], "What a read of"),
        (["history", "{}"], "Versions of"),
        (["inspect", "{}"], "file:///"),
        (
            ["translate", "id < 3", "--from", "spark", "--to", "duckdb", "--table", "{}"],
            "Translation",
        ),
    ],
)
def test_html_is_written_beside_the_answer(folder: Path, arguments: list[str], title: str) -> None:
    target = folder.parent / "picture.html"
    asked = [each.format(folder) for each in arguments]
    plain = RUNNER.invoke(app, asked)
    drawn = RUNNER.invoke(app, [*asked, "--html", str(target)])
    assert (plain.exit_code, drawn.exit_code) == (0, 0)
    if "--analyze" not in asked:
        assert drawn.stdout == plain.stdout
    root = ET.fromstring(target.read_text("utf-8").partition("\n")[2])
    assert (root.findtext("head/title") or "").startswith(title)


def test_an_analysis_counts_the_rows(folder: Path) -> None:
    answer = RUNNER.invoke(app, ["explain", str(folder), "id < 3", "--analyze"])
    assert "2 returned" in answer.stdout


def test_a_page_that_cannot_be_written_is_an_error(folder: Path) -> None:
    answer = RUNNER.invoke(app, ["history", str(folder), "--html", str(folder / "no" / "x.html")])
    assert answer.exit_code == 3


def test_ui_serves_until_it_is_ended(folder: Path) -> None:
    command = [sys.executable, "-m", "rowsieve", "ui", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[0]
        with urllib.request.urlopen(address) as response:
            assert "Health of" in response.read().decode()
        process.terminate()
        assert process.wait(120) != 0


def test_ui_refuses_other_addresses_and_missing_tables(folder: Path) -> None:
    refused = RUNNER.invoke(app, ["ui", str(folder), "--host", "0.0.0.0"])
    assert (refused.exit_code, "--remote" in refused.stderr) == (3, True)
    assert RUNNER.invoke(app, ["ui", str(folder / "no")]).exit_code == 3
    assert RUNNER.invoke(app, ["ui"]).exit_code == 2
