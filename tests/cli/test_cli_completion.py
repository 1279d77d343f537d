"""Values that the shell completes: names of tables, columns, properties, dialects and bridges."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.bridges.languages import BRIDGES
from rowsieve.bridges.sql.dialects import DIALECTS
from rowsieve.cli import app as cli
from rowsieve.cli import completing
from rowsieve.properties import PROPERTIES


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    catalog = rs.Catalog(folder)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.table({"id": [1], "name": ["a"]}), ["id"])
    with table.alter() as alteration:
        alteration.sql("ADD COLUMN note text")
    table.tag("release-1")
    table.branch("dev")
    return folder


def completed(words: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", words)
    monkeypatch.setenv("_ROWSIEVE_COMPLETE", "complete_zsh")
    run = CliRunner().invoke(cli.app, [], env=dict(os.environ), prog_name="rowsieve")
    return re.findall(r'"([^"]+)"', run.stdout)


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        pytest.param("rowsieve --catalog {lake} head d", ["db.t"], id="a table by name"),
        pytest.param("rowsieve --catalog {lake} drop d", ["db.t"], id="a name"),
        pytest.param("rowsieve head {lake}/d", ["{lake}/db/"], id="a folder"),
        pytest.param("rowsieve head {lake}/db/", ["{lake}/db/t"], id="a table by folder"),
        pytest.param("rowsieve show {lake}/db/t --column n", ["name", "note"], id="columns"),
        pytest.param(
            "rowsieve --catalog {lake} update db.t TRUE --set na", ["name="], id="assignments"
        ),
        pytest.param("rowsieve drop-ref {lake}/db/t ", ["dev", "release-1"], id="refs"),
        pytest.param("rowsieve --catalog {lake} fast-forward db.t d", ["dev"], id="a branch"),
        pytest.param("rowsieve --ref rel", [], id="a ref before its table"),
        pytest.param("rowsieve set t audit_p", ["audit_percent="], id="a property"),
        pytest.param("rowsieve unset t audit_p", ["audit_percent"], id="a property's name"),
        pytest.param("rowsieve show t --dialect s", ["spark"], id="a dialect"),
        pytest.param("rowsieve translate x --to delta", ["delta_dnf"], id="a bridge"),
        pytest.param("rowsieve head s3://bucket/t", [], id="not a folder"),
        pytest.param("rowsieve show {lake}/none --column n", [], id="no table"),
    ],
)
def test_values_are_completed(
    lake: Path, monkeypatch: pytest.MonkeyPatch, words: str, completions: list[str]
) -> None:
    found = completed(words.replace("{lake}", str(lake)), monkeypatch)
    assert found == [each.replace("{lake}", str(lake)) for each in completions]


def test_a_line_is_completed_without_pydantic_and_rich(lake: Path) -> None:
    shell = {"_ROWSIEVE_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": f"rowsieve head {lake}/"}
    program = (
        "import atexit, sys; from rowsieve.cli import main; sys.argv = ['rowsieve']\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **shell},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f'"{lake}/db/"' in done.stdout
    assert not {"pydantic", "rich.text", "pyarrow"} & set(done.stderr.split())


def test_a_command_runs_after_its_line_was_completed(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    completed(f"rowsieve head {lake}/db/t --rows 1 --column n", monkeypatch)
    monkeypatch.undo()
    run = CliRunner().invoke(cli.app, ["head", str(lake / "db" / "t"), "--rows", "1", "--json"])
    assert run.output == '{"id":1,"name":"a","note":null}\n'


def test_the_names_are_all() -> None:
    assert set(completing.DIALECTS) == set(DIALECTS)
    assert set(completing.BRIDGES) == {bridge.name for bridge in BRIDGES}
    assert set(completing.properties("")) == set(PROPERTIES)


def test_a_ref_is_completed_where_the_table_follows(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bash tells the whole line, also what stands after the cursor."""
    monkeypatch.setenv("COMP_WORDS", f"rowsieve --ref rel head {lake}/db/t")
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("_ROWSIEVE_COMPLETE", "complete_bash")
    run = CliRunner().invoke(cli.app, [], env=dict(os.environ), prog_name="rowsieve")
    assert run.stdout.split() == ["release-1"]
