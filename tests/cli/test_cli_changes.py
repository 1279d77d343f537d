"""The command `changes`: its formats, and following a table."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rowsieve as rs
from tests.cli.test_cli import run, run_rows
from tests.small_tables import KV, kv


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    table = rs.create_table(tmp_path / "t", KV, key=["k"])
    table.upsert(kv((1, 10)))
    table.upsert(kv((1, 11), (2, 20)))
    return tmp_path / "t"


def test_changes_are_printed_as_text_and_as_json(uri: Path) -> None:
    text = run("changes", uri, "--from", 2)
    assert "update_postimage" in text
    assert text.splitlines()[-1] == "3 rows"
    rows = run_rows("changes", uri, "--from", 1, "--to", 2, "--where", "k = 1", "--column", "v")
    assert [(row["_change_type"], row["v"]) for row in rows] == [
        ("insert", 10),
        ("update_preimage", 10),
        ("update_postimage", 11),
    ]
    assert "_commit_timestamp" in run("changes", uri, "--from", 1, "--output", "csv")


def test_net_changes_are_printed(uri: Path) -> None:
    rows = run_rows("changes", uri, "--from", 1, "--net", "--where", "k = 1", "--column", "v")
    assert [(row["_change_type"], row["v"]) for row in rows] == [("insert", 11)]
    assert "--net" in run("changes", uri, "--from", 1, "--net", "--follow", "--json", code=2)


def test_wrong_ranges_are_refused(uri: Path) -> None:
    assert "newest version is 2" in run("changes", uri, "--from", 7, code=3)
    assert "--follow" in run("changes", uri, "--from", 1, "--follow", code=2)
    assert "--follow" in run("changes", uri, "--from", 1, "--follow", "--to", 2, "--json", code=2)


def test_a_follower_prints_new_commits_until_it_is_interrupted(uri: Path) -> None:
    command = [sys.executable, "-m", "rowsieve", "changes", str(uri), "--from", "2", "--follow"]
    with subprocess.Popen(
        [*command, "--json", "--poll-s", "0.05"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = [json.loads(process.stdout.readline())["_change_type"] for _ in range(3)]
        rs.open_table(uri).delete("k = 2")
        row = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.wait(120)
    assert first == ["update_preimage", "update_postimage", "insert"]
    assert (row["k"], row["_change_type"], row["_commit_version"]) == (2, "delete", 3)
    assert process.returncode == 130
