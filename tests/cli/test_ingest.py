"""`rowsieve ingest`: lines of JSON through a writer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.cli.app import app
from rowsieve.input_files import files

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("at", pa.timestamp("us", "UTC"))])


def invoke(*arguments: object, stdin: bytes = b"") -> Any:
    return CliRunner().invoke(app, ["ingest", *map(str, arguments)], input=stdin)


def line(number: int) -> bytes:
    return b'{"id": %d, "at": "2026-11-29T00:00:%02dZ"}\n' % (number, number % 60)


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(tmp_path / "t", SCHEMA, key=["id"])


@pytest.mark.parametrize("has_log", [True, False])
def test_lines_are_upserted_as_they_come(
    table: rs.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_log: bool
) -> None:
    monkeypatch.setattr(files, "_CHUNK_BYTES", 100)
    log = ("--wal-dir", tmp_path / "wal") if has_log else ()
    text = b"".join(map(line, range(50))) + b"\n" + line(7).rstrip()
    done = invoke(tmp_path / "t", *log, "--json", stdin=text)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["lines"] == 52
    found = rs.open_table(table.uri).scan(order_by_key=True).to_arrow()
    assert found["id"].to_pylist() == list(range(50))
    assert found["at"].cast(pa.int64()).to_pylist()[1] == 1_795_910_401_000_000


def test_a_table_without_a_key_takes_a_file(tmp_path: Path) -> None:
    rs.create_table(tmp_path / "log", SCHEMA)
    (tmp_path / "events.jsonl").write_bytes(line(1) + line(1) + b'{"id": 2}\n')
    done = invoke(tmp_path / "log", tmp_path / "events.jsonl", "--wal-dir", tmp_path / "wal")
    assert "3 lines" in done.stdout
    assert rs.open_table(tmp_path / "log").count() == 3


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        pytest.param(b'{"id": "x", "at": null}', "line 3", id="type"),
        pytest.param(b'{"id": 1', "line 3", id="syntax"),
        pytest.param(b"null", "line 3", id="null"),
    ],
)
def test_a_bad_line_keeps_those_before_it(
    table: rs.Table, tmp_path: Path, bad: bytes, message: str
) -> None:
    text = line(1) + line(2) + bad + b"\n" + line(4)
    done = invoke(tmp_path / "t", "--wal-dir", tmp_path / "wal", stdin=text)
    assert done.exit_code == 3
    assert message in done.stderr
    found = rs.open_table(table.uri).scan(order_by_key=True).to_arrow()["id"].to_pylist()
    assert found == [1, 2]


def test_no_lines_commit_nothing(table: rs.Table, tmp_path: Path) -> None:
    done = invoke(tmp_path / "t", stdin=b"\n\n")
    assert (done.exit_code, done.stdout) == (0, "version 0: 0 lines\n")


def test_a_refused_row_has_its_line_and_later_ones_that_are_written(table: rs.Table) -> None:
    done = invoke(table.uri, stdin=line(0) + line(1) + b'{"id": 2}\n' + line(3))
    shown = " ".join(done.output.split())
    assert done.exit_code == 3
    assert "SchemaMismatch: line 3: the data lacks column 'at'" in shown
    taken = 1 if "Already written: line 4" in shown else 0  # it may have been sent already
    assert rs.open_table(table.uri).count() == 2 + taken
