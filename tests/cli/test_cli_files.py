"""The command line: files that break off or are large, and names that are given twice."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

import rowsieve as rs
from rowsieve.cli.csv_quotes import open_quote
from tests.cli.test_cli import run, run_rows, text_file
from tests.profiles import IS_DEEP, few


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param('id,s\n1,"a\n2,b\n3,c\n', 2, id="swallows the rows after it"),
        pytest.param('id,s\n1,a\n2,"b', 3, id="ends in the last field"),
        pytest.param('id,s\n1,"a\nb"\n2,"c""\n3,d\n', 4, id="a doubled quote does not close"),
        pytest.param('"id,s\n1,a\n', 1, id="in the names"),
        pytest.param('\ufeff"id,s\n1,a\n', 1, id="after a byte order mark"),
        pytest.param('id,s\r\n1,a\r\n2,"b\r\n', 3, id="lines of Windows"),
    ],
)
def test_csv_with_an_open_quote_is_refused(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    message = run("create", tmp_path / "t", path, code=3)
    assert f"InvalidData: {path}: the quote that opens in line {line} is not closed" in message
    assert not (tmp_path / "t").exists()


def test_quotes_within_a_field_open_nothing(tmp_path: Path) -> None:
    lines = ['\ufeff"id",s', '1,5" disk', '2,"""x"', '3,"a""b', 'c,"', '4,""']
    run("create", tmp_path / "t", text_file(tmp_path, "a.csv", lines), "--key", "id")
    table = rs.open_table(str(tmp_path / "t"))
    found = table.scan(order_by_key=True).to_arrow().column("s").to_pylist()
    assert found == ['5" disk', '"x', 'a"b\nc,', ""]


@pytest.mark.parametrize("delimiter", [",", "|", "\\", "]", "^", "-"])
def test_a_quote_is_open_where_pyarrow_takes_no_row_after_it(delimiter: str) -> None:
    source = random.Random(delimiter)
    compared, wanted = 0, 2_000 if IS_DEEP else few(2_000)
    while compared < wanted:
        letters = source.choices(["a", '"', "\n", "\r", delimiter], k=source.randrange(1, 14))
        text = "".join(letters).encode()
        if (swallowed := _swallows(text, delimiter)) is not None:
            assert (open_quote(text, delimiter) is not None) == swallowed, text
            compared += 1


def _swallows(text: bytes, delimiter: str) -> bool | None:
    """Whether a row put after the text is read as a part of its last field; None if unreadable."""
    end = b"" if text.endswith((b"\n", b"\r")) else b"\n"
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(text + end + f"Q{delimiter}Q\n".encode()),
            read_options=pyarrow.csv.ReadOptions(column_names=["a", "b"], use_threads=False),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        )
    except pa.ArrowInvalid:
        return None
    return [str(column[-1]) for column in table.columns] != ["Q", "Q"]


@pytest.mark.parametrize("delimiter", ["", '"', "\n", "\r", ";;", "ä"])
def test_a_delimiter_is_one_character_that_separates(tmp_path: Path, delimiter: str) -> None:
    path = text_file(tmp_path, "a.csv", ["id;s", "1;a"])
    message = run("create", tmp_path / "t", path, "--delimiter", delimiter, code=3)
    assert "InvalidInput: --delimiter is one ASCII character" in message


def test_a_field_of_csv_may_be_longer_than_a_block(tmp_path: Path) -> None:
    path = text_file(tmp_path, "a.csv", ["id,s", "1," + "x" * (3 << 20), "2,b"])
    run("create", tmp_path / "t", path, "--key", "id")
    assert rs.open_table(str(tmp_path / "t")).count("length(s) = 3145728") == 1


def test_two_tables_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder, rows in (("a", 1), ("b", 2)):
        rs.create_table(tmp_path / folder / "t", {"id": range(rows)}, key=["id"])
    a, b = tmp_path / "a" / "t", tmp_path / "b" / "t"
    sql = "SELECT count(*) AS n FROM t"
    for tables in ((a, b), (a, "--table", f"t={b}"), ("--table", f"t={a}", "--table", f"t={b}")):
        assert "twice" in run("query", sql, *tables, code=2)
    both = "SELECT count(*) AS n FROM t JOIN u USING (id)"
    assert run_rows("query", both, a, "--table", f"u={b}") == [{"n": 1}]


def test_a_name_is_assigned_once(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", {"id": [1], "n": [0]}, key=["id"])
    for again in ("n=2", "n = 2"):
        message = run("update", table.uri, "TRUE", "--set", "n=1", "--set", again, code=2)
        assert "--set names 'n' twice" in message
    assert table.refresh() == 0
    run("update", table.uri, "TRUE", "--set", "n = n + 7")
    assert table.scan("n = 7").count() == 1
