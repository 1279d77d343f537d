"""Paths as data: the files are read as the command line reads them, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidData, InvalidInput, SchemaMismatch

SCHEMA = pa.schema([("id", pa.int64()), ("code", pa.string()), ("n", pa.decimal128(38, 0))])
MANY_DIGITS = 12345678901234567890123456789


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(tmp_path / "t", SCHEMA, ["id"])


def rows(table: rs.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.scan(order_by_key=True).to_arrow().to_pylist()]


def _write(folder: Path, kind: str) -> Path:
    path = folder / f"a.{kind}"
    data = pa.table({"id": [1], "code": ["007"], "n": [MANY_DIGITS]}, SCHEMA)
    if kind == "parquet":
        pq.write_table(data, path)
    elif kind in ("arrow", "feather"):
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
            writer.write_table(data)
    elif kind == "csv":
        path.write_text(f"id,code,n\n1,007,{MANY_DIGITS}\n")
    elif kind == "tsv":
        path.write_text(f"id\tcode\tn\n1\t007\t{MANY_DIGITS}\n")
    else:
        path.write_text(f'{{"id": 1, "code": "007", "n": "{MANY_DIGITS}"}}\n')
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "ndjson", "parquet", "arrow", "feather"])
@pytest.mark.parametrize("as_path", [Path, str])
def test_a_file_of_each_format_keeps_every_digit(
    table: rs.Table, tmp_path: Path, kind: str, as_path: Callable[[Path], Any]
) -> None:
    table.upsert(as_path(_write(tmp_path, kind)))
    assert rows(table) == [(1, "007", MANY_DIGITS)]


def test_every_method_that_takes_data_takes_paths(table: rs.Table, tmp_path: Path) -> None:
    csv, keys, feed = tmp_path / "a.csv", tmp_path / "k.csv", tmp_path / "f.jsonl"
    csv.write_text("id,code,n\n1,01,\n2,,5\n")
    keys.write_text("id\n2\n")
    change = {"op": "c", "before": None, "after": {"id": 9, "code": "x", "n": 3}}
    event = {**change, "source": {"table": "t"}}
    feed.write_text(json.dumps(event) + "\n")
    table.upsert(csv)
    table.delete(keys=keys)
    assert rows(table) == [(1, "01", None)]
    (tmp_path / "c.csv").write_text("op,id,code,n,seq\nd,1,,,1\ni,3,c,3,1\n")
    table.apply_changes(tmp_path / "c.csv", op="op", sequence="seq")
    assert rows(table) == [(3, "c", 3)]
    table.apply_events(str(feed), format="debezium")
    assert rows(table) == [(3, "c", 3), (9, "x", 3)]
    table.overwrite(str(csv))
    assert rows(table) == [(1, "01", None), (2, None, 5)]
    with table.transaction() as tx:
        tx.upsert([str(csv)], columns="given")
    log = rs.create_table(tmp_path / "log", str(csv))
    log.append(csv)
    assert (log.schema.field("code").type, log.count()) == (pa.string(), 4)


def test_a_glob_reads_its_files_in_order_of_their_names(table: rs.Table, tmp_path: Path) -> None:
    for name, code in (("b", "second"), ("a", "first")):
        (tmp_path / f"{name}.csv").write_text(f"id,code,n\n1,{code},1\n")
    table.upsert(str(tmp_path / "*.csv"), on_duplicate="last")
    assert rows(table) == [(1, "second", 1)]


def test_a_name_with_brackets_is_the_file_of_that_name(table: rs.Table, tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_text("id,code,n\n1,x,1\n")
    table.upsert(str(tmp_path / "a[1].csv"))
    assert rows(table) == [(1, "x", 1)]


def test_files_of_one_call_have_the_same_columns(table: rs.Table, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,code,n\n1,x,1\n")
    (tmp_path / "b.csv").write_text("id,code\n2,y\n")
    for paths in (["a.csv", "b.csv"], ["b.csv", "a.csv"]):
        with pytest.raises(SchemaMismatch, match=r"a.csv has the column 'n' and .*b.csv does not"):
            table.upsert([str(tmp_path / path) for path in paths], columns="given")
    assert table.version == 0


def test_null_in_one_of_several_files_is_kept(tmp_path: Path) -> None:
    names = ("id", "n")
    required = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in names])
    pq.write_table(pa.table({"id": [1], "n": [1]}, required), tmp_path / "a.parquet")
    optional = pa.schema([(name, pa.int64()) for name in names])
    pq.write_table(pa.table({"id": [2], "n": [None]}, optional), tmp_path / "b.parquet")
    for order in ("ab", "ba"):
        paths = [tmp_path / f"{name}.parquet" for name in order]
        created = rs.create_table(tmp_path / order, paths, ["id"])
        assert rows(created) == [(1, 1), (2, None)]


def test_a_file_uri_may_be_a_glob(table: rs.Table, tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "a.csv").write_text("id,code,n\n1,x,1\n")
    table.upsert(f"{folder.as_uri()}/*.csv")
    assert rows(table) == [(1, "x", 1)]


def test_inferred_types_of_several_files_are_never_mixed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,code\n1,7\n")
    (tmp_path / "b.csv").write_text("id,code\n2,007\n")
    with pytest.raises(SchemaMismatch, match=r"'code' is int64 in .*a.csv and string in .*b.csv"):
        rs.create_table(tmp_path / "t", str(tmp_path / "*.csv"), ["id"])
    assert not (tmp_path / "t").exists()


def test_a_name_that_a_json_row_lacks_never_becomes_null(table: rs.Table, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1, "code": "x", "n": 1}\n{"id": 2, "code": "y"}\n')
    for columns in ("all", "given"):
        with pytest.raises(SchemaMismatch, match="'n'"):
            table.upsert(path, columns=columns)


def test_digits_that_no_type_holds_are_refused_in_python_words(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,n\n1,12345678901234567890.5\n")
    with pytest.raises(InvalidData, match="create the table with a pyarrow schema") as raised:
        rs.create_table(tmp_path / "t", tmp_path / "a.csv")
    assert "--type" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param("absent.csv", "there is no file 'absent.csv'", id="absent"),
        pytest.param("no*.csv", "no file matches", id="no match"),
        pytest.param("http://b/a.csv", "neither a path nor in a store", id="no store"),
        pytest.param("s3://b*/a.csv", "wildcards in its path only", id="many buckets"),
        pytest.param("s3://b/", "names no file", id="a bucket"),
        pytest.param(".", "is a directory; name its files", id="a directory"),
        pytest.param("-", "there is no file '-'", id="not stdin"),
        pytest.param("", "there is no file ''", id="empty"),
        pytest.param("/dev/null", "its suffix must name its format", id="a device"),
        pytest.param([__file__], "its suffix must name its format; 'py'", id="another format"),
        pytest.param([__file__, __file__], "twice", id="twice"),
    ],
)
def test_paths_that_name_no_rows_are_refused(table: rs.Table, given: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        table.upsert(given)


@pytest.mark.parametrize(
    "uri",
    [
        "https://user:SECRET@b.example/a.csv",
        "https://b.example/a.csv?X-Amz-Signature=SECRET",
        "s3://b/a.csv?X-Amz-Signature=SECRET",
        "s3://user:SECRET@b/a*.csv",
        "s3://user:SECRET@b/a.csv",
    ],
)
def test_no_message_has_the_secrets_of_a_uri(table: rs.Table, uri: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        table.upsert(uri)
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("name", "number", "lost"),
    [
        ("v", 2**53, False),
        ("v", 2**53 + 1, True),
        ("v", -(2**53) - 1, True),
        ("v", 10**22, False),
        ("v", 10**22 + 1, True),
        ("w", 2**24, False),
        ("w", 2**24 + 1, True),
        ("w", "0.1234567890123456789", False),  # a fraction becomes the nearest float
        ("v", "1e23", False),
    ],
)
def test_a_whole_number_that_a_float_column_does_not_hold_is_refused(
    tmp_path: Path, suffix: str, name: str, number: Any, lost: bool
) -> None:
    rows = pa.table({"id": [1], "v": [0.5], "w": pa.array([0.5], pa.float32())})
    table = rs.create_table(tmp_path / "t", rows, key=["id"])
    values = {"v": 1, "w": 1} | {name: number}
    text = f"id,v,w\n2,{values['v']},{values['w']}\n"
    if suffix == "jsonl":
        text = f'{{"id": 2, "v": {values["v"]}, "w": {values["w"]}}}\n'
    (tmp_path / f"rows.{suffix}").write_text(text)
    if lost:
        with pytest.raises(InvalidData, match=f"column '{name}'.*: {number} is a whole number"):
            table.upsert(tmp_path / f"rows.{suffix}")
    else:
        table.upsert(tmp_path / f"rows.{suffix}")
    assert table.refresh() == (0 if lost else 1)


def test_files_of_several_formats_are_read_as_the_types_of_the_table(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", pa.table({"id": [1], "v": [1.5]}), key=["id"])
    rows = pa.table({"id": [7], "v": pa.array([1], pa.int64())})
    pq.write_table(rows, tmp_path / "p.parquet")
    (tmp_path / "p.csv").write_text("id,v\n8,2\n")
    table.upsert([tmp_path / "p.parquet", tmp_path / "p.csv"])
    assert table.scan().to_arrow()["v"].to_pylist() == [1.5, 1.0, 2.0]
    pq.write_table(rows.set_column(1, "v", [[2**53 + 1]]), tmp_path / "p.parquet")
    with pytest.raises(SchemaMismatch, match="does not fit float64 without loss"):
        table.upsert([tmp_path / "p.parquet", tmp_path / "p.csv"])


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("id,name", [], id="a header"),
        pytest.param('id,name\n1,"a"\n"2",', [(1, "a"), (2, None)], id="NULL after quotes"),
        pytest.param('id,name\n1,\n2,""', [(1, None), (2, "")], id="empty text"),
    ],
)
def test_the_last_line_of_csv_needs_no_end(
    tmp_path: Path, text: str, expected: list[tuple[int, str | None]], end: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text + end, newline="")
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    names = rs.create_table(tmp_path / "names", schema, key=["id"])
    names.upsert(str(path))
    assert rows(names) == expected
