"""`rowsieve apply --format`: events of change data capture tools from files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import rowsieve
from rowsieve import Table
from rowsieve.cli import app
from rowsieve.envelopes.bad_events import BAD_EVENTS
from tests.cli.test_cli import run, run_json
from tests.envelopes.events import AFTER_STREAM, CRATES, STREAM, crate, event, rows, texts


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return rowsieve.create_table(tmp_path / "crates", CRATES, key=["id"])


def lines(path: Path, *events: object) -> Path:
    path.write_text("\n".join(json.dumps(each) for each in events))
    return path


@pytest.mark.parametrize("name", ["events.jsonl", "events.json", "events.log", "events"])
def test_lines_of_json_are_applied(table: Table, tmp_path: Path, name: str) -> None:
    path = lines(tmp_path / name, *STREAM, {"ts_ms": 5})
    printed = run("apply", table.uri, path, "--format", "debezium")
    assert rows(table) == AFTER_STREAM
    assert "5 changes; not applied: 1 heartbeats" in printed


def test_rows_of_a_parquet_file_are_applied(table: Table, tmp_path: Path) -> None:
    pq.write_table(pa.table({"value": texts(*STREAM, None)}), tmp_path / "events.parquet")
    commit = run_json("apply", table.uri, tmp_path / "events.parquet", "--format", "debezium")
    assert rows(table) == AFTER_STREAM
    assert (commit["version"], commit["changes"], commit["skipped"]) == (1, 5, {"tombstones": 1})


def test_a_csv_file_of_dms_is_applied(table: Table, tmp_path: Path) -> None:
    (tmp_path / "LOAD1.csv").write_text("Op,id,label,grams\nI,1,plums,900\nI,2,,5\n")
    run("apply", table.uri, tmp_path / "LOAD1.csv", "--format", "dms-files")
    assert rows(table) == [crate(1, "plums", 900), crate(2, None, 5)]


def test_stdin_has_lines_of_events(table: Table) -> None:
    text = "\n".join(map(json.dumps, STREAM)).encode()
    arguments = ["apply", table.uri, "-", "--format", "debezium"]
    assert CliRunner().invoke(app.app, arguments, input=text).exit_code == 0
    assert rows(table) == AFTER_STREAM


def test_bad_events_go_to_a_table(table: Table, tmp_path: Path) -> None:
    path = lines(tmp_path / "events.jsonl", *STREAM, {"op": "x"})
    assert "event 5, counted from 0" in run(
        "apply", table.uri, path, "--format", "debezium", code=3
    )
    letters = rowsieve.create_table(tmp_path / "letters", BAD_EVENTS)
    printed = run("apply", table.uri, path, "--format", "debezium", "--bad", letters.uri)
    assert "1 bad events" in printed
    assert (letters.count(), rows(table)) == (1, AFTER_STREAM)


def test_columns_come_from_the_events(table: Table, tmp_path: Path) -> None:
    wide = event("c", None, {**crate(1, "plums", 900), "origin": "Tozeur"}, 1)
    command = ("apply", table.uri, lines(tmp_path / "events.jsonl", wide), "--format", "debezium")
    refused = run(*command, code=3)
    assert "--schema-mode merge" in refused
    assert "--bad TABLE" in refused
    run(*command, "--schema-mode", "merge")
    assert rows(table) == [{**crate(1, "plums", 900), "origin": "Tozeur"}]


def test_units_and_the_source_are_options(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))])
    table = rowsieve.create_table(tmp_path / "t", schema, key=["id"])
    path = lines(tmp_path / "events.jsonl", event("c", None, {"id": 1, "at": 5_000}))
    for options in (["--times", "ms"], ["--times", "at=ms", "--source", "store.crates"]):
        run("apply", table.uri, path, "--format", "debezium", *options)
    assert table.scan().to_arrow().column("at").cast(pa.int64()).to_pylist() == [5_000_000]
    wrong = ["--times", "ms", "--source", "lids"]
    run("apply", table.uri, path, "--format", "debezium", *wrong, code=3)
    run("apply", table.uri, path, code=2)
