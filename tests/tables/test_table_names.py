"""A table is found again by its URI, whatever its name: by handles, splits, commands and Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.cli import app as cli
from rowsieve.demo.effort import measured
from tests.odd_names import ODD_NAMES, PAIRS
from tests.profiles import IS_DEEP

HANDFUL = ODD_NAMES if IS_DEEP else ("a%20b",)
"""What reaches other processes, which are slow to start."""


def make(uri: str | os.PathLike[str], number: int) -> rs.Table:
    """Make a table whose two rows say which one it is."""
    return rs.create_table(uri, pa.table({"id": [1, 2], "n": [number] * 2}), key=["id"])


def numbers(source: Any) -> list[int]:
    return [int(row["n"]) for row in pa.table(source).to_pylist()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd")


@pytest.fixture(scope="module")
def tables(folder: Path) -> dict[str, rs.Table]:
    """All odd names side by side in one folder."""
    return {name: make(folder / name, number) for number, name in enumerate(ODD_NAMES)}


def test_200_odd_names_side_by_side_open_by_path_and_by_uri(
    folder: Path, tables: dict[str, rs.Table]
) -> None:
    assert len({table.uri for table in tables.values()}) == len(ODD_NAMES) >= 200
    assert {path.name for path in folder.iterdir()} == set(ODD_NAMES)
    for number, (name, table) in enumerate(tables.items()):
        places = (table.uri, f"{folder}/{name}", folder / name)
        for place in places if IS_DEEP else places[number % 3 :][:1]:
            opened = rs.open_table(place)
            told = opened.detail()
            assert opened.uri == table.uri == told["uri"]
            assert told["uuid"] == table.handle.pinned.table.uuid
            assert numbers(opened.scan()) == [number] * 2


def test_splits_of_200_odd_names_read_their_own_table(tables: dict[str, rs.Table]) -> None:
    for number, table in enumerate(tables.values()):
        (split,) = table.scan("id = 2").plan().splits_to_bytes()
        assert numbers(rs.read_split(split)) == [number]


def test_commands_take_odd_names_by_path_and_by_uri(
    folder: Path, tables: dict[str, rs.Table]
) -> None:
    for number, (name, table) in [*enumerate(tables.items())][:: 1 if IS_DEEP else 5]:
        places = (table.uri, f"{folder}/{name}")
        for place in places if IS_DEEP else places[number % 2 :][:1]:
            arguments = ["query", "select n from t where id = 1", "--table", f"t={place}", "--json"]
            result = CliRunner().invoke(cli.app, arguments)
            assert (result.exit_code, result.stdout) == (0, f'{{"n":{number}}}\n'), result.output


def test_a_query_names_a_table_by_the_last_segment_of_its_decoded_uri(
    tables: dict[str, rs.Table],
) -> None:
    for name in ("a b", "a%20b", "a?b"):
        result = CliRunner().invoke(
            cli.app, ["query", f'select n from "{name}" where id = 1', tables[name].uri, "--json"]
        )
        assert result.stdout == f'{{"n":{ODD_NAMES.index(name)}}}\n', result.output


@pytest.mark.parametrize(("one", "two"), PAIRS)
@pytest.mark.parametrize("kind", ["local", "memory"])
def test_emptying_a_table_by_its_uri_leaves_its_neighbour(
    one: str, two: str, kind: str, tmp_path: Path
) -> None:
    def place(name: str) -> str | Path:
        return tmp_path / name if kind == "local" else f"memory:///{base}/{in_uri(name)}"

    base = uuid.uuid4().hex
    for emptied, kept in ((one, two), (two, one)):
        tables = [make(place(f"{name}-{emptied}"), i) for i, name in enumerate((emptied, kept))]
        assert rs.open_table(tables[0].uri).delete("TRUE").rows_deleted == 2
        assert rs.open_table(tables[0].uri).scan().count() == 0
        assert numbers(rs.open_table(tables[1].uri).scan()) == [1, 1]


def in_uri(name: str) -> str:
    """A name as it is written in a URI, by the letter: every byte encoded."""
    return "".join(f"%{byte:02X}" for byte in name.encode())


def test_200_odd_names_in_memory_are_found_again_by_uri_and_split() -> None:
    base = uuid.uuid4().hex
    made = {name: make(f"memory:///{base}/{in_uri(name)}", i) for i, name in enumerate(ODD_NAMES)}
    assert len({table.uri for table in made.values()}) == len(ODD_NAMES)
    for number, table in enumerate(made.values()):
        assert numbers(rs.open_table(table.uri).scan("id = 1")) == [number]
        (split,) = table.scan("id = 2").plan().splits_to_bytes()
        assert numbers(rs.read_split(split)) == [number]


def test_a_name_that_is_not_utf_8_is_a_name(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xe9 \x80%FF")
    table = make(path, 7)
    assert table.uri.endswith("/%FF%E9%20%80%25FF")
    assert numbers(rs.open_table(table.uri).scan()) == [7, 7]
    assert [os.fsencode(made.name) for made in tmp_path.iterdir()] == [b"\xff\xe9 \x80%FF"]


def test_a_symbolic_link_resolves_to_its_target(tmp_path: Path) -> None:
    made = make(tmp_path / "a b", 1)
    (tmp_path / "a%20b").symlink_to(tmp_path / "a b")
    assert rs.open_table(tmp_path / "a%20b").uri == made.uri


def test_files_of_an_odd_name_are_measured(tmp_path: Path) -> None:
    table = make(tmp_path / "a%20b", 1)
    with measured(table.uri) as effort:
        table.upsert(pa.table({"id": [3], "n": [1]}))
    assert effort.bytes_written > 0


def test_other_processes_find_tables_of_odd_names(tables: dict[str, rs.Table]) -> None:
    program = (
        "import json, sys, rowsieve as rs\n"
        "for line in sys.stdin:\n"
        "    uri, split = json.loads(line)\n"
        "    read = rs.read_split(bytes.fromhex(split)).read_all()\n"
        "    print(json.dumps([rs.open_table(uri).scan().count(), read['n'].to_pylist()]))\n"
    )
    asked = []
    for table in tables.values():
        (split,) = table.scan("id = 1").plan().splits_to_bytes()
        asked.append(json.dumps([table.uri, split.hex()]))
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="\n".join(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == [[2, [number]] for number in range(len(ODD_NAMES))]


@pytest.mark.parametrize("name", HANDFUL)
def test_the_command_of_a_shell_finds_odd_names(
    name: str, folder: Path, tables: dict[str, rs.Table]
) -> None:
    for place in (tables[name].uri, f"./{name}") if IS_DEEP else (f"./{name}",):
        done = subprocess.run(
            [sys.executable, "-m", "rowsieve", "inspect", "--json", "--", place],
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
        )
        assert json.loads(done.stdout)["uri"] == tables[name].uri
