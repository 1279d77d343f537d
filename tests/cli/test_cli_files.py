"""The command line: files that break off or are large, and names that are given twice."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

import rowsieve as rs
from rowsieve.input_files.csv_files import open_quote
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


NESTED = [{"id": 1, "v": "a", "p": {"x": 1, "y": 2}}, {"id": 2, "v": "b", "p": {"x": 3, "y": 4}}]


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        pytest.param(['{"id": 1, "p": null}'], "lacks column 'v'", id="no row has it"),
        pytest.param(
            ['{"id": 2, "v": null, "p": null}', '{"id": 1, "p": null}'],
            "row 1, counted from 0, lacks the column 'v'",
            id="one row has it",
        ),
        pytest.param(['{"id": 1, "v": "c", "p": {"x": 5}}'], "lacks member 'y'", id="no field"),
        pytest.param(
            ['{"id": 1, "v": "c", "p": {"x": 5}}', '{"id": 2, "v": "c", "p": {"x": 5, "y": 6}}'],
            "lacks the field 'p.y'",
            id="one value has it",
        ),
    ],
)
def test_json_without_a_column_does_not_make_it_null(
    tmp_path: Path, suffix: str, rows: list[str], message: str
) -> None:
    table = rs.create_table(str(tmp_path / "t"), NESTED, key=["id"])
    lines = rows if suffix == "jsonl" else ["[" + ",\n".join(rows) + "]"]
    path = text_file(tmp_path, f"a.{suffix}", lines)
    assert message in run("upsert", tmp_path / "t", path, code=3)
    assert message in run("overwrite", tmp_path / "t", path, "TRUE", code=3)
    changes = [f'{row[:-1]}, "op": "u", "seq": {n}}}' for n, row in enumerate(rows)]
    path = text_file(tmp_path, "b.jsonl", changes)
    assert message in run("apply", tmp_path / "t", path, "--op", "op", "--sequence", "seq", code=3)
    assert table.refresh() == 0


def test_json_of_deleted_rows_has_only_their_keys(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), NESTED, key=["id"])
    lines = [
        '{"id": 1, "op": "d", "seq": 1}',
        '{"id": 2, "v": null, "p": {"x": null, "y": 1}, "op": "u", "seq": 2}',
    ]
    path = text_file(tmp_path, "a.jsonl", lines)
    run("apply", tmp_path / "t", path, "--op", "op", "--sequence", "seq")
    table.refresh()
    assert table.to_arrow().to_pylist() == [{"id": 2, "v": None, "p": {"x": None, "y": 1}}]


def test_json_appends_the_default_of_what_no_row_has(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int64())]))
    table.add_column("n", "int64", default=5)
    run("upsert", tmp_path / "t", text_file(tmp_path, "a.jsonl", ['{"id": 1}']))
    lines = ['{"id": 2}', '{"id": 3, "n": null}']
    said = run("upsert", tmp_path / "t", text_file(tmp_path, "b.jsonl", lines), code=3)
    assert "row 0, counted from 0, lacks the column 'n'" in said
    table.refresh()
    assert table.to_arrow().to_pylist() == [{"id": 1, "n": 5}]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('[{"id": 1, "s": "a\\nb"},\n {"id": 2,\r\n "s": "[{"}]\n', id="array"),
        pytest.param('{"id": 1, "s": "a\\nb"}\n\n{"id": 2, "s": "[{"}\n', id="lines"),
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_json_may_be_an_array(tmp_path: Path, text: str, mark: str) -> None:
    (tmp_path / "a.json").write_bytes((mark + text).encode())
    run("create", tmp_path / "t", tmp_path / "a.json", "--key", "id")
    found = rs.open_table(str(tmp_path / "t")).to_arrow().to_pylist()
    assert found == [{"id": 1, "s": "a\nb"}, {"id": 2, "s": "[{"}]
    one = tmp_path / "b.json"
    one.write_text('{\n  "id": 3,\n  "s": "c"\n}\n')
    run("upsert", tmp_path / "t", one)
    assert rs.open_table(str(tmp_path / "t")).count() == 3


def test_an_empty_array_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"id": 1}]')
    run("create", tmp_path / "t", tmp_path / "a.json", "--key", "id")
    (tmp_path / "none.json").write_text("\ufeff [ ]\n")
    run("upsert", tmp_path / "t", tmp_path / "none.json")
    assert rs.open_table(str(tmp_path / "t")).version == 0
    run("create", tmp_path / "u", tmp_path / "none.json")
    assert rs.open_table(str(tmp_path / "u")).count() == 0


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("null", 0),
        ('null\n{"id": 1}', 0),
        ("[null]", 0),
        ('[{"id": 1}, null]', 1),
        ('{"id": 1}\n \nnull', 1),
        ('{"id": 1}null{"id": 2}', 1),
        ('{"id":\nnull}\n{"id": 1} null', 2),
    ],
)
def test_json_of_null_is_no_row(tmp_path: Path, suffix: str, text: str, row: int) -> None:
    """Its reader ends the process at a first document that is null."""
    (tmp_path / f"a.{suffix}").write_text(text)
    said = run("create", tmp_path / "new", tmp_path / f"a.{suffix}", code=3)
    assert f"row {row}, counted from 0, is null" in said
    table = rs.create_table(str(tmp_path / "t"), pa.schema([("id", pa.int64())]))
    assert f"row {row}," in run("upsert", tmp_path / "t", tmp_path / f"a.{suffix}", code=3)
    assert table.refresh() == 0


def test_json_has_null_inside_of_its_rows(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "n": {"x": 1}}\n{"id": 2, "n": {"x":\t null}}\n')
    run("create", tmp_path / "t", tmp_path / "a.jsonl")
    assert rs.open_table(str(tmp_path / "t")).to_arrow()["n"].to_pylist() == [{"x": 1}, {"x": None}]


INFERRED = [
    (["01234"], "string"),
    (["7", "007"], "string"),
    (["-01"], "string"),
    (["00"], "string"),
    (["+5"], "string"),
    (["-0"], "string"),
    (["0x10"], "string"),
    (["1.5", "007"], "string"),
    (["01.5"], "string"),
    (["true", "1"], "string"),
    (["t", "f"], "string"),
    (["0", "-7", "9223372036854775807"], "int64"),
    (["1.50", "-2", "0.5", "1e5", "nan", "-inf", ".5"], "double"),
    (["0.1234567890123456", "1234567890123456.8", "1152921504606846976", "0.5"], "double"),
    (["true", "FALSE"], "bool"),
    (["2026-01-02"], "date32[day]"),
]


@pytest.mark.parametrize(("values", "type_"), INFERRED)
def test_inference_keeps_every_character(tmp_path: Path, values: list[str], type_: str) -> None:
    run(
        "create", tmp_path / "t", text_file(tmp_path, "a.csv", ["n,v", *(f"1,{v}" for v in values)])
    )
    table = rs.open_table(str(tmp_path / "t"))
    assert str(table.schema.field("v").type) == type_
    assert str(table.schema.field("n").type) == "int64"
    if type_ == "string":
        assert table.to_arrow()["v"].to_pylist() == values


ROUNDED = ["9999999999999999999", "0.1234567890123456789", "1234567890123456.789", "1e400"]


@pytest.mark.parametrize("number", ROUNDED)
def test_numbers_that_a_double_rounds_are_refused(tmp_path: Path, number: str) -> None:
    said = run("create", tmp_path / "t", text_file(tmp_path, "a.csv", ["v", "1.5", number]), code=3)
    assert f"column 'v', row 1: {number} has more digits" in said
    if number != "1e400":  # JSON of pyarrow has no such number
        for line in (f'{{"v": {number}}}', f'{{"v": [{{"n": [1.5, {number}]}}]}}'):
            path = text_file(tmp_path, "a.jsonl", [line])
            assert f"{number} has more digits" in run("create", tmp_path / "t", path, code=3)
    assert not (tmp_path / "t").exists()


def test_a_boolean_column_takes_the_letters_of_postgresql(tmp_path: Path) -> None:
    columns = pa.schema([("id", pa.int64()), ("b", pa.bool_())])
    rs.create_table(str(tmp_path / "t"), columns, key=["id"])
    lines = ["id,b,op,seq", "1,t,i,1", "2,f,i,2", "3,T,i,3", "4,,i,4", "5,true,i,5", "6,0,i,6"]
    path = text_file(tmp_path, "a.csv", lines)
    run("apply", tmp_path / "t", path, "--op", "op", "--sequence", "seq")
    found = rs.open_table(str(tmp_path / "t")).to_arrow()["b"].to_pylist()
    assert found == [True, False, True, None, True, False]
    run("create", tmp_path / "u", text_file(tmp_path, "b.csv", ["b,s", "t,t"]), "--type", "b=bool")
    assert rs.open_table(str(tmp_path / "u")).to_arrow().to_pylist() == [{"b": True, "s": "t"}]


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    for line, rows in (("k,v,v", "1,2,3"), ("k,v,v", "1,02,x")):
        path = text_file(tmp_path, "a.csv", [line, rows])
        assert "'v' more than once" in run("create", tmp_path / "t", path, code=3)
    run("create", tmp_path / "t", text_file(tmp_path, "b.csv", ["k,v", "1,2"]), "--key", "k")
    said = run("update", tmp_path / "t", "TRUE", "--set", "v=1", "--set", "V=2", code=3)
    assert "two values for one column: v, V" in said
