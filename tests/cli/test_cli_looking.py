"""Commands that look at a table, and what a narrow terminal shows of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.cli.own_words import in_own_words
from rowsieve.cli.printing.text_table import text_table, vertical_lines
from tests.cli.test_cli import run, run_json, run_rows

LONG = "x" * 100


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    catalog = rs.Catalog(folder)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.table({"id": [1, 2], "s": ["a", LONG]}), ["id"])
    table.upsert(pa.table({"id": [2, 3], "s": ["b", None]}))
    return folder


def test_head_and_show_print_rows(lake: Path) -> None:
    table = lake / "db" / "t"
    assert [row["id"] for row in run_rows("head", table, "-n", 2)] == [1, 2]
    assert run_rows("show", table, "id > 1", "--column", "s") == [{"s": "b"}, {"s": None}]
    assert run_rows("head", table, "--version", 0)[1]["s"] == LONG
    assert LONG in run("head", table, "--version", 0, "--output", "csv")
    lines = run("show", table, "id = 2", "--vertical").splitlines()
    assert lines == ["── row 1 ──", "id  2", "s   b", "1 row"]


def test_du_counts_bytes_of_a_table_and_of_a_catalog(lake: Path) -> None:
    one = run_json("du", lake / "db" / "t")
    assert one["rows"] == 4  # with the row that a newer one hides
    assert 0 < one["live_bytes"] < one["disk_bytes"]
    assert run_json("--catalog", lake, "du") == [{**one, "table": "db.t"}]
    assert run("--catalog", lake, "du").splitlines()[2].split()[0] == "db.t"


def test_diff_and_profile_print_their_facts(lake: Path) -> None:
    table = lake / "db" / "t"
    found = run_json("diff", table, 0)
    assert (found["inserted"], found["updated"], found["deleted"]) == (1, 1, 0)
    assert run("diff", table, 0, 1).startswith("versions 0 to 1: 1 inserted, 1 updated, 0 deleted")
    assert run_json("profile", table, "--exact")["columns"][0]["upper"] == "3"
    assert run("profile", table).splitlines()[1].split()[:3] == ["name", "type", "nulls"]


def test_diff_shows_null_and_no_value_unlike_their_texts(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2], "a": pa.array([None, "x"], pa.string()), "b": ["NULL", ""]})
    table = rs.create_table(tmp_path / "t", data, key=["id"])
    table.upsert([{"id": 1, "a": "NULL", "b": None}, {"id": 3, "a": "", "b": " y"}])
    table.delete("id = 2")
    shown = [" ".join(line.split()) for line in run("diff", tmp_path / "t", 0).splitlines()]
    assert "1 updated a NULL 'NULL'" in shown
    assert "1 updated b 'NULL' NULL" in shown
    assert "3 inserted all a='', b=' y'" in shown
    assert "2 deleted all a=x, b=''" in shown
    samples = run_json("diff", tmp_path / "t", 0)["samples"]
    assert [each["before"] for each in samples if each["kind"] == "inserted"] == [""]


def test_a_width_shortens_values_and_chooses_columns_by_worth() -> None:
    names = ["id", "a", "b", "_change_type"]
    lines, shown = text_table(names, [(1, LONG, LONG, "insert")], 35, ["_change_type"])
    assert shown == 2
    assert lines[0].split() == ["id", "...", "_change_type"]
    whole, every = text_table(names, [(1, LONG, LONG, "insert")], None, ["_change_type"])
    assert (every, LONG in whole[2]) == (4, True)
    cut, _ = text_table(["s"], [(LONG,)], 40)
    assert cut[2] == "x" * 39 + "…"
    assert list(vertical_lines(["s", "n"], [(LONG, 1)], 60))[1:] == [f"s  {'x' * 56}…", "n  1"]


@pytest.mark.parametrize(
    "words",
    [
        ("sql", "SELECT 1"),
        ("query", "SELECT 1"),
        ("tables",),
        ("du",),
        ("call", "SHOW PROCEDURES"),
        ("head", "db.t"),
    ],
)
def test_a_catalog_that_does_not_exist_is_an_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    message = run("--catalog", tmp_path / "none", *words, code=3)
    assert "nothing is there" in message
    assert not (tmp_path / "none").exists()


def test_a_statement_may_make_a_catalog(tmp_path: Path) -> None:
    run("--catalog", tmp_path / "new", "sql", "CREATE SCHEMA db")
    assert run("--catalog", tmp_path / "new", "namespaces").splitlines() == ["db"]


def test_messages_name_options_and_commands(lake: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("id,s\n1,a\n1,b\n")
    message = run("upsert", lake / "db" / "t", rows, code=3)
    assert "--on-duplicate last" in message
    assert "on_duplicate" not in message
    assert "rowsieve create makes one" in run("head", tmp_path / "none", code=3)
    assert "rowsieve history lists them" in run("head", lake / "db" / "t", "--version", 9, code=3)
    text = "where=x and version=3; pass on_bad='collect'; t.create_table() or drop_tables"
    expected = "where=x and --version 3; pass --on-bad collect; rowsieve create or drop_tables"
    assert in_own_words(text, ["version", "on_bad"]) == expected
    path = "there is no table at /data/create_table/version=3/t or s3://b/t.drop_table/version=3"
    assert in_own_words(path, ["version"]) == path


def test_errors_of_call_have_the_words_of_the_statement(lake: Path) -> None:
    error = run("--catalog", lake, "call", "CALL system.fast_forward(table => 'db.t')", code=3)
    assert "CALL fast_forward needs the argument" in error


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("there are add_files, fast_forward, publish", None),
        ("no column 'fast_forward' in (k, a)", None),
        ("cannot read the filter at offset 0, 'version=3': it", None),
        ("""the table's filter "version = 'x' OR version='y'" is""", None),
        ("drop them with it by cascade=True", "drop them with it by --cascade"),
        ("use if_exists='ignore' for", "use --if-not-exists for"),
        ("give if_absent='ignore'", "give --if-exists"),
    ],
)
def test_messages_keep_quoted_text_and_names_in_lists(message: str, expected: str | None) -> None:
    options = ["version", "cascade", "if_not_exists", "if_exists"]
    assert in_own_words(message, options) == (expected or message)


def test_a_column_that_is_too_wide_leaves_its_place_to_narrow_ones() -> None:
    names = ["id", "a", "b", "c", "d"]
    row = (10**19, "x" * 38, "y" * 38, 1.5, 10**19)
    lines, shown = text_table(names, [row], 60)
    assert shown == 3
    assert lines[0].split() == ["id", "...", "c", "d"]
    assert all(len(line) <= 60 for line in lines)
    gaps, shown = text_table(names, [(1, "x" * 38, 2, "y" * 38, 3)], 30)
    assert gaps[0].split() == ["id", "...", "b", "...", "d"]
    assert shown == 3
    assert len(gaps[1]) == max(map(len, gaps))
    assert len(text_table(names, [(1, "x" * 38, 2, "y" * 38, 3)], 14)[0][1]) <= 14


def test_metrics_are_those_of_prometheus(lake: Path) -> None:
    table = lake / "db" / "t"
    assert run("metrics", table, "--prometheus") == run("metrics", table)
    run("metrics", table, "--prometheus", "--json", code=2)


def test_branches_and_tags_are_printed_in_every_format(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    rs.create_table(uri, pa.table({"id": [1]}), ["id"]).tag("first", version=0)
    (row,) = run_rows("refs", uri)
    assert (row["name"], row["kind"], row["version"]) == ("first", "tag", 0)
    assert run("refs", uri, "--output", "csv").splitlines()[1].startswith('"first","tag",0')


@pytest.mark.parametrize("command", ["head", "show", "refs"])
def test_two_formats_at_once_are_wrong_usage(lake: Path, command: str) -> None:
    said = run(command, lake / "db" / "t", "--json", "--output", "csv", code=2)
    assert "--json and --output csv exclude" in " ".join(said.split())
