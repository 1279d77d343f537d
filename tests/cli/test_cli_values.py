"""The command line: what values look like, in and out, and how a command that is stopped ends."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.cli import app as cli
from rowsieve.cli.printing.text_table import text_table, vertical_lines
from rowsieve.types.cell_text import cell
from tests.cli.test_cli import run, run_json, text_file
from tests.faults.interrupts import interrupting

ODD = [None, "NULL", "", " a ", "it's", "'q'", "a|b", "a\nb\x1b[2J", "ä" * 200]


def invoke(*arguments: object, stdin: bytes = b"") -> Any:
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments], input=stdin)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A table whose texts are easily taken for something else."""
    rs.create_table(tmp_path / "odd", {"id": range(len(ODD)), "s": ODD}, key=["id"])
    return tmp_path / "odd"


# Values in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "NULL"),
        ("NULL", "'NULL'"),
        ("null", "'null'"),
        ("", "''"),
        (" a", "' a'"),
        ("'", "''''"),
        ("it's", "it's"),
        ("a\nb\x1b", "a\\nb\\x1b"),
        (True, "true"),
        (2**63, "9223372036854775808"),
        (Decimal("1.10"), "1.10"),
        (b"\x00a", "\\x0061"),
        ([None, "NULL"], '[null,"NULL"]'),
        ("x" * 500, "x" * 500),
    ],
)
def test_a_value_is_shown_whole_and_unambiguously(value: Any, shown: str) -> None:
    assert cell(value) == shown


def test_columns_leave_from_the_middle_where_a_terminal_is_narrow() -> None:
    names, row = [f"c{i}" for i in range(9)], ["x" * 10] * 9
    lines, shown = text_table(names, [row], 60)
    assert shown == 4
    assert lines[0].split() == ["c0", "c1", "...", "c7", "c8"]
    assert max(map(len, lines)) <= 60
    assert text_table(names, [row], None)[1] == 9
    assert text_table(["one"], [["x" * 100]], 20)[0][2] == "x" * 19 + "…"


def test_values_are_shortened_before_columns_are_left_out() -> None:
    row = [2**62, "x" * 50, "日本" * 20]
    for width, cut in ((110, 40), (85, 30), (65, 20)):
        lines, shown = text_table(["id", "a", "b"], [row], width)
        number, text, wide = lines[2].split()
        assert (shown, number, len(text)) == (3, str(2**62), cut)
        assert cut - 1 <= cell_len(wide) <= cut
    lines = list(vertical_lines(["id", "b"], [["7", "日本" * 20]], 40))
    assert [cell_len(line) for line in lines[1:]] == [5, 39]
    assert cell_len(next(reversed(list(vertical_lines(["n" * 50], [["x" * 50]], 40))))) == 62


def test_wide_letters_and_numbers_are_aligned() -> None:
    lines, _ = text_table(["n", "s"], [[1, "日本"], [100, "a"]], None)
    assert lines[2:] == ["  1  日本", "100  a"]


def test_query_shows_no_control_character(odd: Path) -> None:
    found = run("query", "SELECT * FROM odd ORDER BY id", odd)
    assert "\x1b" not in found
    assert "ä" * 200 in found
    assert len(found.splitlines()) == len(ODD) + 3


# Other formats


def test_query_writes_csv_that_is_read_back(odd: Path, tmp_path: Path) -> None:
    text = run("query", "SELECT * FROM odd ORDER BY id", odd, "--output", "csv")
    (tmp_path / "back.csv").write_text(text)
    run("create", tmp_path / "back", tmp_path / "back.csv", "--key", "id")
    assert rs.open_table(tmp_path / "back").head(99)["s"].to_pylist() == ODD


def test_query_writes_parquet_that_is_read_back(odd: Path) -> None:
    done = invoke("query", "SELECT * FROM odd ORDER BY id", odd, "--output", "parquet")
    assert pq.read_table(io.BytesIO(done.stdout_bytes))["s"].to_pylist() == ODD


def test_query_writes_json_and_markdown(odd: Path) -> None:
    sql = "SELECT * FROM odd WHERE id IN (0, 1, 6, 7) ORDER BY id"
    lines = run("query", sql, odd, "--output", "json").splitlines()
    assert [json.loads(line)["s"] for line in lines] == [None, "NULL", "a|b", "a\nb\x1b[2J"]
    assert run("query", sql, odd, "--output", "markdown").splitlines() == [
        "| id | s |",
        "|---|---|",
        "| 0 | NULL |",
        "| 1 | 'NULL' |",
        "| 6 | a\\|b |",
        "| 7 | a\\nb\\x1b[2J |",
    ]


def test_nested_and_binary_values_are_text_in_csv(tmp_path: Path) -> None:
    rows = {"l": [[1, None], None], "b": [b"\xff", None], "d": [Decimal("1.50"), None]}
    rs.create_table(tmp_path / "t", rows)
    text = run("query", "SELECT * FROM t", tmp_path / "t", "--output", "csv")
    assert text.splitlines() == ['"l","b","d"', '"[1,null]","\\xff",1.50', ",,"]


def test_a_limit_holds_in_every_format(odd: Path) -> None:
    for output in ("csv", "json", "markdown"):
        found = run("query", "SELECT id FROM odd", odd, "--output", output, "--limit", 2)
        assert len(found.splitlines()) == {"csv": 3, "json": 2, "markdown": 4}[output]


# Values from files


def test_rows_come_from_stdin(tmp_path: Path) -> None:
    table = tmp_path / "t"
    csv = b"id,s\n1,a\n"
    done = invoke("create", table, "-", "--format", "csv", "--key", "id", stdin=csv)
    assert done.exit_code == 0, done.output
    done = invoke("upsert", table, "-", "--format", "jsonl", stdin=b'{"id": 2, "s": "b"}\n')
    assert done.exit_code == 0, done.output
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": [3], "s": ["c"]}), sink)
    assert invoke("upsert", table, "-", "--format", "parquet", stdin=sink.getvalue()).exit_code == 0
    assert rs.open_table(table).head()["s"].to_pylist() == ["a", "b", "c"]
    assert "--format" in invoke("upsert", table, "-", stdin=csv).stderr


def test_delimiters_and_newlines_in_values_are_read(tmp_path: Path) -> None:
    run("create", tmp_path / "a", text_file(tmp_path, "a.tsv", ["id\ts", '1\t"x\ny"']))
    run(
        "create",
        tmp_path / "b",
        text_file(tmp_path, "b.csv", ["id;s", "1;x,y"]),
        "--delimiter",
        ";",
    )
    assert rs.open_table(tmp_path / "a").head()["s"].to_pylist() == ["x\ny"]
    assert rs.open_table(tmp_path / "b").head()["s"].to_pylist() == ["x,y"]
    wrong = ("--delimiter", ";;")
    assert "one ASCII character" in run(
        "create", tmp_path / "c", tmp_path / "b.csv", *wrong, code=3
    )


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", b"id,s\n1,caf\xe9\n"),
        ("a.csv", "id,s\n1,a\n".encode("utf-16")),
        ("a.jsonl", b'{"id": 1, "s": "caf\xe9"}\n'),
        ("a.jsonl", '{"id": 1}\n'.encode("utf-16")),
    ],
)
def test_text_that_is_not_utf8_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    assert "is not UTF-8" in run("create", tmp_path / "t", tmp_path / name, code=3)


@pytest.mark.parametrize("data", [b"id,s\n1,a\n2,caf\xe9\n", b"id,caf\xe9\n1,a\n"])
def test_bytes_that_are_not_utf8_have_their_line(tmp_path: Path, data: bytes) -> None:
    rs.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("s", pa.string())]), key=["id"])
    (tmp_path / "a.csv").write_bytes(data)
    line = 1 + data[: data.index(b"\xe9")].count(b"\n")
    for command in (("create", tmp_path / "new"), ("upsert", tmp_path / "t")):
        message = run(*command, tmp_path / "a.csv", code=3)
        assert f"is not UTF-8: line {line} has the byte 0xe9" in message
        assert "iconv -f LATIN1 -t UTF-8" in message


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-16LE", "UTF-16BE"])
def test_the_advice_for_utf16_names_it(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_bytes("id,s\n1,a\n".encode(encoding))
    advice = f"iconv -f {encoding} -t UTF-8"
    assert advice in run("create", tmp_path / "t", tmp_path / "a.csv", code=3)


def test_a_query_that_cannot_be_planned_names_the_tables(tmp_path: Path) -> None:
    run("create", tmp_path / "trips", text_file(tmp_path, "a.csv", ["id", "1"]))
    said = run("query", "SELECT * FROM t", tmp_path / "trips", code=3)
    assert "the tables of the query are trips" in said


@pytest.mark.parametrize("digits", ["12345678901234567890", "9007199254740993"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_whole_number_never_becomes_a_float(tmp_path: Path, digits: str, suffix: str) -> None:
    lines = {
        "csv": ["n", digits, "1.5"],
        "jsonl": [f'{{"n": {digits}}}', '{"n": 1.5}'],
    }
    path = text_file(tmp_path, f"a.{suffix}", lines[suffix])
    message = run("create", tmp_path / "t", path, code=3)
    assert f"column 'n'{', row 0' if suffix == 'csv' else ''}: {digits} has more digits" in message
    nested = text_file(tmp_path, "b.jsonl", [f'{{"n": {{"m": [{digits}, 0.5]}}}}'])
    assert digits in run("create", tmp_path / "t", nested, code=3)


def test_types_are_given_by_name(tmp_path: Path) -> None:
    path = text_file(tmp_path, "a.csv", ["n,code,d", "12345678901234567890,007,1.5"])
    types = ("--type", "n=uint64", "--type", "code=text", "--type", "d=numeric(9,2)")
    run("create", tmp_path / "t", path, *types)
    found = rs.open_table(tmp_path / "t").head()
    assert found.to_pylist() == [{"n": 12345678901234567890, "code": "007", "d": Decimal("1.50")}]
    assert "'x'" in run("create", tmp_path / "u", path, *types, "--type", "x=text", code=3)
    assert "InvalidInput" in run("create", tmp_path / "u", path, "--type", "n=nonsense", code=3)
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    run("create", tmp_path / "v", tmp_path / "a.parquet", "--type", "n=int16")
    assert rs.open_table(tmp_path / "v").schema.field("n").type == pa.int16()


def test_devices_are_rejected_as_input_and_pipes_accepted(tmp_path: Path) -> None:
    run("create", tmp_path / "t", text_file(tmp_path, "a.csv", ["id", "1"]), "--key", "id")
    assert "neither a regular file nor a pipe" in run(
        "upsert", tmp_path / "t", "/dev/zero", "--format", "csv", code=3
    )
    os.mkfifo(tmp_path / "pipe.csv")
    writer = subprocess.Popen(["/bin/sh", "-c", 'printf "id\n7\n" > "$0"', tmp_path / "pipe.csv"])
    run("upsert", tmp_path / "t", tmp_path / "pipe.csv")
    assert writer.wait() == 0
    assert rs.open_table(tmp_path / "t").head()["id"].to_pylist() == [1, 7]


# Commands


def test_update_overwrite_and_restore(tmp_path: Path) -> None:
    table, rows = tmp_path / "t", ["id,v", "1,10", "2,20"]
    run("create", table, text_file(tmp_path, "a.csv", rows), "--key", "id")
    assert run_json("update", table, "id = 1", "--set", "v=v + 5")["operation"] == "update"
    other = text_file(tmp_path, "b.csv", ["id,v", "3,30"])
    run("overwrite", table, other, "id > 1")
    assert sorted(rs.open_table(table).to_arrow()["v"].to_pylist()) == [15, 30]
    run("overwrite", table, other, "TRUE")
    assert rs.open_table(table).to_arrow()["v"].to_pylist() == [30]
    assert run_json("restore", table, 1)["operation"] == "restore"
    assert rs.open_table(table).to_arrow()["v"].to_pylist() == [15, 20]
    assert "VersionNotFound" in run("restore", table, 99, code=3)
    created = rs.open_table(table).history()[-1].timestamp.isoformat()
    assert run_json("restore", table, "--as-of", created)["metadata"] == {"restored": "0"}
    assert "either a version or --as-of" in run("restore", table, code=2)
    assert "either a version or --as-of" in run("restore", table, 1, "--as-of", created, code=2)


def test_a_command_that_changes_nothing_reports_it(tmp_path: Path) -> None:
    run("create", tmp_path / "t", text_file(tmp_path, "a.csv", ["id", "1"]), "--key", "id")
    empty = text_file(tmp_path, "b.csv", ["id"])
    assert run("upsert", tmp_path / "t", empty) == "nothing to upsert: still at version 0\n"
    assert run_json("delete", tmp_path / "t", "id = 9")["committed"] is False


def test_every_command_has_short_help() -> None:
    assert "Usage" in run("-h")
    assert "--output" in run("query", "-h")
    assert "--install-completion" in run("--help")


# Stopping


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("rowsieve.table.Table.upsert", "nothing was committed"),
        ("rowsieve.cli.bundles.print_commit", "version 1 exists: this command committed it"),
    ],
)
def test_ctrl_c_reports_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, said: str
) -> None:
    path = text_file(tmp_path, "a.csv", ["id", "1"])
    run("create", tmp_path / "t", path, "--key", "id")

    monkeypatch.setattr(step, interrupting(print))
    done = invoke("upsert", tmp_path / "t", path)
    assert (done.exit_code, done.stderr) == (130, f"rowsieve: interrupted: {said}\n")


def test_ctrl_c_of_a_read_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowsieve.cli.bundles.open_at", interrupting(print))
    done = invoke("inspect", tmp_path / "t")
    assert (done.exit_code, done.stderr) == (130, "rowsieve: interrupted: nothing was changed\n")


def rowsieve(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rowsieve", *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_real_signal_while_it_waits_ends_with_its_code(
    number: signal.Signals, tmp_path: Path
) -> None:
    run("create", tmp_path / "t", text_file(tmp_path, "a.csv", ["id", "1"]), "--key", "id")
    running = rowsieve("upsert", tmp_path / "t", "-", "--format", "csv", stdin=subprocess.PIPE)
    assert running.stdin is not None
    running.stdin.write(b"id\n" + b"1\n" * 100_000)  # more than a pipe holds: it reads by now
    running.stdin.flush()
    running.send_signal(number)
    _, said = running.communicate()
    assert running.returncode == 128 + number
    assert said.startswith(b"rowsieve: interrupted: nothing was committed")
    assert b"Traceback" not in said


def test_a_full_disk_behind_the_answer_is_an_error(tmp_path: Path) -> None:
    run("create", tmp_path / "t", text_file(tmp_path, "a.csv", ["id", "1"]), "--key", "id")
    with Path("/dev/full").open("wb") as full:
        running = rowsieve("upsert", tmp_path / "t", tmp_path / "a.csv", stdout=full)
        _, said = running.communicate()
    assert running.returncode == 1
    assert b"the answer could not be written" in said
    assert b"version 1 exists: this command committed it" in said
    assert b"Traceback" not in said


@pytest.mark.parametrize("command", ["upsert t a.csv", "inspect t", "--version", "upsert --help"])
def test_a_closed_stdout_is_an_error_and_no_other_file(command: str, tmp_path: Path) -> None:
    run("create", tmp_path / "t", text_file(tmp_path, "a.csv", ["id", "1"]), "--key", "id")
    script = f"exec {sys.executable} -m rowsieve {command} >&-"
    ended = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"rowsieve: the answer could not be written: [Errno 9]")
    assert b"Traceback" not in ended.stderr
    assert (b"version 1 exists" in ended.stderr) is command.startswith("upsert t")
    assert rs.open_table(tmp_path / "t").count() == 1


def test_closed_stdin_and_stderr_change_no_answer(tmp_path: Path) -> None:
    rs.create_table(tmp_path / "t", {"id": [7]})
    script = f"exec {sys.executable} -m rowsieve query 'SELECT id FROM t' t --json <&- 2>&-"
    ended = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, b'{"id":7}\n')


def test_a_closed_pipe_is_not_reported_as_an_error(tmp_path: Path) -> None:
    rs.create_table(tmp_path / "t", {"id": range(50_000)})
    sql = "SELECT * FROM t"
    running = rowsieve("query", sql, tmp_path / "t", "--json", stdout=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline()
    running.stdout.close()
    with running:
        assert running.stderr is not None
        assert (running.stderr.read(), running.wait()) == (b"", 141)
