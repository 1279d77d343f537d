"""JSON lines are read into columns, and types inferred of them, as CSV with the same values is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidData
from rowsieve.input_files.files import Input, read_batches, read_messages, read_rows

LOCAL, INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")
DAY, CLOCK = "2026-01-31", "10:00:00"
MOMENT = f"{DAY}T{CLOCK}"


def _written(folder: Path, kind: str, *values: Any) -> Path:
    path = folder / f"rows.{kind}"
    if kind == "csv":
        texts = [
            "" if value is None else (str(value).lower() if isinstance(value, bool) else value)
            for value in values
        ]
        path.write_text("id,c\n" + "".join(f"{row},{text}\n" for row, text in enumerate(texts)))
        return path
    rows = [json.dumps({"id": row, "c": value}) for row, value in enumerate(values)]
    path.write_text(f"[{','.join(rows)}]" if kind == "json" else "\n".join(rows))
    return path


def _column(type_: pa.DataType, path: Path) -> list[Any]:
    schema = pa.schema([("id", pa.int64()), ("c", type_)])
    table = read_rows(Input(path), schema)
    assert table.schema.field("c").type == type_
    column: list[Any] = table["c"].to_pylist()
    return column


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        pytest.param(LOCAL, [MOMENT, None, f"{DAY} 10:00:00.123456", DAY], id="local times"),
        pytest.param(INSTANT, [f"{MOMENT}+02:00", f"{MOMENT}Z"], id="instants"),
        pytest.param(pa.date32(), [DAY, None, "1500-12-31"], id="dates"),
        pytest.param(pa.time64("us"), [CLOCK, "10:00:00.123456", None], id="times"),
        pytest.param(pa.bool_(), ["t", "f", "true", "TRUE", None], id="texts of booleans"),
        pytest.param(pa.bool_(), [True, False, None], id="booleans"),
    ],
)
def test_json_has_the_values_of_csv(tmp_path: Path, type_: pa.DataType, values: list[Any]) -> None:

    expected = _column(type_, _written(tmp_path, "csv", *values))
    assert [value is None for value in expected] == [value is None for value in values]
    for kind in ("jsonl", "json"):
        assert _column(type_, _written(tmp_path, kind, *values)) == expected


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json"])
@pytest.mark.parametrize(
    ("type_", "values"),
    [
        pytest.param(LOCAL, ["9999-12-31T23:59:59.999", MOMENT, None], id="a last moment"),
        pytest.param(LOCAL, [f"{MOMENT}.5", "0001-01-01T00:00:00"], id="a first moment"),
        pytest.param(INSTANT, [f"{MOMENT}.5Z", "9999-12-31T23:59:59+00:00"], id="instants"),
        pytest.param(pa.string(), [f"{MOMENT}.5Z", "9999-12-31T23:59:59"], id="both"),
        pytest.param(pa.string(), [f"{MOMENT}.5", "9999-02-30T00:00:00"], id="no such day"),
        pytest.param(pa.string(), [f"{MOMENT}.1234567", "9999-12-31T00:00:00"], id="nanoseconds"),
    ],
)
def test_fractions_beside_years_beyond_nanoseconds_are_moments(
    tmp_path: Path, kind: str, type_: pa.DataType, values: list[Any]
) -> None:
    inferred = read_rows(Input(_written(tmp_path, kind, *values)), None)["c"]
    assert inferred.type == type_
    given = read_rows(
        Input(_written(tmp_path, kind, *values)), pa.schema([("id", pa.int64()), ("c", type_)])
    )["c"]
    assert inferred.equals(given)


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        pytest.param(LOCAL, f"{MOMENT}+02:00", "no zone offset", id="an instant as a local time"),
        pytest.param(LOCAL, f"{MOMENT}Z", "no zone offset", id="an instant of UTC"),
        pytest.param(INSTANT, MOMENT, "a zone offset", id="a local time as an instant"),
        pytest.param(INSTANT, DAY, "a zone offset", id="a date as an instant"),
        pytest.param(LOCAL, f"{MOMENT}.123456789", "6 digits", id="nanoseconds"),
        pytest.param(pa.date32(), MOMENT, "such as 20", id="a time as a date"),
        pytest.param(pa.time64("us"), f"{CLOCK}Z", "such as 10", id="a time with an offset"),
        pytest.param(pa.time64("us"), "", "such as 10", id="empty text"),
        pytest.param(pa.bool_(), "yes", "true, false, t or f", id="another text as a boolean"),
    ],
)
def test_text_of_another_kind_is_refused_with_column_and_value(
    tmp_path: Path, type_: pa.DataType, value: str, message: str
) -> None:
    if value:  # an empty field of CSV is NULL
        with pytest.raises(InvalidData, match="conversion error"):
            _column(type_, _written(tmp_path, "csv", None, value))
    for kind in ("jsonl", "json"):
        with pytest.raises(InvalidData) as raised:
            _column(type_, _written(tmp_path, kind, None, value))
        assert f"column 'c': {value!r} is not" in str(raised.value)
        assert message in str(raised.value)


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        (pa.string(), 7, "7 is a number; the column's type string is read from text in quotes"),
        (pa.int64(), "5", '"5" is text; the column\'s type int64 is read from whole numbers'),
        (pa.int64(), 1.5, "1.5 is a number; the column's type int64 is read from whole numbers"),
        (pa.float64(), True, "true is a boolean; the column's type double is read from numbers"),
        (pa.date32(), 20454, "20454 is a number; the column's type date32[day] is read from text"),
        (pa.time64("us"), 5, "5 is a number; the column's type time64[us] is read from text"),
        (LOCAL, 5, "5 is a number; the column's type timestamp[us] is read from text"),
        (pa.bool_(), 1, "1 is a number; the column's type bool is read from true and false"),
        (pa.list_(pa.string()), ["x", 7], "7 is a number; the column's type list"),
        (pa.struct([("a", pa.int64())]), {"a": "5"}, '"5" is text; the column\'s type struct'),
        (pa.struct([("a", pa.int64())]), [1], "[1] is an array; the column's type struct"),
    ],
)
def test_a_value_of_another_json_type_is_refused_with_its_own_name(
    tmp_path: Path, type_: pa.DataType, value: Any, message: str
) -> None:
    with pytest.raises(InvalidData) as raised:
        _column(type_, _written(tmp_path, "jsonl", None, value))
    assert f"column 'c', row 1: {message}" in str(raised.value)


def test_a_column_of_booleans_and_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match=r"column 'c', row 1: \"t\" is text; .* true and false"):
        _column(pa.bool_(), _written(tmp_path, "jsonl", *[True, "t"]))


def test_texts_inside_lists_and_structs_are_converted_too(tmp_path: Path) -> None:
    type_ = pa.list_(pa.struct([("at", INSTANT), ("day", pa.date32()), ("n", pa.int64())]))
    row = {"at": f"{MOMENT}+02:00", "day": DAY, "n": 1}
    values = [[row, None, {**row, "at": None}], None, []]
    column = _column(type_, _written(tmp_path, "jsonl", *values))
    flat = [item and (str(item["at"]), str(item["day"]), item["n"]) for item in column[0]]
    assert flat == [(f"{DAY} 08:00:00+00:00", DAY, 1), None, ("None", DAY, 1)]
    assert column[1:] == [None, []]
    with pytest.raises(InvalidData, match=r"column 'c': '2026-01-31T10:00:00' is not .*zone"):
        _column(type_, _written(tmp_path, "jsonl", [{**row, "at": MOMENT}]))


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        pytest.param([f"{MOMENT}+02:00", None, f"{MOMENT}Z"], INSTANT, id="instants"),
        pytest.param([f"{MOMENT}.5Z", f"{MOMENT}Z"], INSTANT, id="instants with fractions"),
        pytest.param([MOMENT, f"{DAY} 11:00:00", DAY], LOCAL, id="local times"),
        pytest.param([f"{MOMENT}.123456"], LOCAL, id="local times with fractions"),
        pytest.param([DAY, None], pa.date32(), id="dates"),
        pytest.param([f"{MOMENT}+02:00", MOMENT], pa.string(), id="instants and local times"),
        pytest.param([f"{MOMENT}Z", DAY], pa.string(), id="instants and dates"),
        pytest.param([MOMENT, "soon"], pa.string(), id="local times and other text"),
        pytest.param(["2026", "x"], pa.string(), id="other text"),
    ],
)
def test_inferred_types_are_those_of_csv(
    tmp_path: Path, values: list[Any], type_: pa.DataType
) -> None:
    tables = {
        kind: rs.create_table(tmp_path / kind, _written(tmp_path, kind, *values))
        for kind in ("csv", "jsonl", "json")
    }
    assert {table.schema.field("c").type for table in tables.values()} == {type_}
    stored = [table.to_arrow()["c"].to_pylist() for table in tables.values()]
    assert stored[1] == stored[0]
    assert stored[2] == stored[0]


def test_inferred_text_that_a_type_does_not_keep_stays_text(tmp_path: Path) -> None:
    values = [f"{MOMENT}.123456789", f"{MOMENT}.1"]
    table = rs.create_table(tmp_path / "t", _written(tmp_path, "jsonl", *values))
    assert table.to_arrow()["c"].to_pylist() == values
    texts = [["2026"], ["0015"], [""]]
    table = rs.create_table(tmp_path / "u", _written(tmp_path, "jsonl", *texts))
    assert table.to_arrow()["c"].to_pylist() == texts


def test_types_inside_inferred_structs_are_inferred_as_well(tmp_path: Path) -> None:
    values = [{"at": f"{MOMENT}+02:00", "n": [DAY, None]}, None, {"at": None, "n": None}, {}]
    table = rs.create_table(tmp_path / "t", _written(tmp_path, "jsonl", *values))
    assert table.schema.field("c").type.field("at").type == INSTANT
    column = table.to_arrow()["c"].to_pylist()
    assert str(column[0]["at"]) == f"{DAY} 08:00:00+00:00"
    assert [value and value["at"] for value in column[1:]] == [None, None, None]
    assert [str(day) for day in column[0]["n"]] == [DAY, "None"]


def test_a_table_takes_json_as_its_own_types(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("c", LOCAL)])
    table = rs.create_table(tmp_path / "t", schema, key=["id"])
    with pytest.raises(InvalidData, match=r"column 'c': '.*\+02:00' is not a local time"):
        table.upsert(_written(tmp_path, "jsonl", f"{MOMENT}+02:00"))
    table.upsert(_written(tmp_path, "jsonl", MOMENT))
    assert [str(each) for each in table.to_arrow()["c"].to_pylist()] == [f"{DAY} {CLOCK}"]


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
@pytest.mark.parametrize(
    ("text", "row", "shown"),
    [
        ("[1]", 0, "1"),
        ("[[]]", 0, r"\[\]"),
        ('[{"id": 1}, "a"]', 1, '"a"'),
        ('{"id": null}\n[2]', 1, r"\[2\]"),
        ("true", 0, "true"),
    ],
)
def test_a_row_is_an_object(tmp_path: Path, suffix: str, text: str, row: int, shown: str) -> None:
    file = tmp_path / f"rows.{suffix}"
    file.write_text(text)
    table = rs.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]))
    message = f"row {row}, counted from 0, is {shown}, and a row is an object"
    with pytest.raises(InvalidData, match=message):
        table.append(file)
    with pytest.raises(InvalidData, match=message):
        rs.create_table(tmp_path / "u", file)
    assert table.version == 0


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
@pytest.mark.parametrize("text", ["[]", " [ ]\n", "", "\n"])
def test_a_file_without_rows_has_none(tmp_path: Path, text: str, suffix: str) -> None:
    file = tmp_path / f"rows.{suffix}"
    file.write_text(text)
    table = rs.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]))
    assert table.append(file).version == 0
    assert rs.create_table(tmp_path / "u", file).scan().count() == 0


DEEP = ("[" * 30_000 + "]" * 30_000, '{"a":' * 30_000 + "1" + "}" * 30_000)


@pytest.mark.parametrize("deep", DEEP)
@pytest.mark.parametrize(
    "text",
    [
        '{"id": 1, "c": %s}',
        '{"id": 1, "c": null}\n{"id": 2, "c": %s}',  # pyarrow alone would end the process
        '{"id": 1, "c": "]]]\\"]]]"}\n{"id": 2, "c": %s}',
        '{"id": 1, "other": %s}',
        "[%s]",
        '"\n{"id": 1, "c": %s}',  # a string that does not end
        '{"id": 1, "c": "\n{"id": 2, "c": %s}',
        "]" * 40_000 + '\n{"id": 1, "c": %s}',
    ],
)
def test_documents_that_are_nested_too_deep_are_refused(
    tmp_path: Path, text: str, deep: str
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(text % deep)
    table = rs.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("c", pa.string())]))
    with pytest.raises(InvalidData, match="nested deeper than 500 levels"):
        table.append(file)
    with pytest.raises(InvalidData, match="nested deeper than 500 levels"):
        rs.create_table(tmp_path / "u", file)
    assert table.version == 0


def test_brackets_in_texts_nest_nothing(tmp_path: Path) -> None:
    texts = ["[" * 2_000, '"' + "{" * 2_000, "\\" + "[" * 2_000, "\\\\" * 3 + '"[' * 1_000]
    table = rs.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("c", pa.string())]))
    table.append(_written(tmp_path, "jsonl", *texts))
    assert table.to_arrow()["c"].to_pylist() == texts


def test_a_line_may_be_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    values = ["x", "y" * 1_000_000, "z", "", "w" * 300_000]
    file.write_text("".join(json.dumps({"c": value}) + "\n" for value in values) + '{"c": "end"}')
    batches = list(read_batches(file, read_rows))
    assert pa.concat_tables([rows for _, rows in batches])["c"].to_pylist() == [*values, "end"]
    assert batches[-1][0] == 6
    assert [line for line, _ in batches] == sorted({line for line, _ in batches})
    file.write_text(file.read_text()[:-2])
    with pytest.raises(InvalidData, match="line 6"):
        list(read_batches(file, read_rows))


def test_a_compressed_file_is_read_or_refused_by_its_name(tmp_path: Path) -> None:
    text = "".join(json.dumps({"c": number}) + "\n" for number in range(5_000)).encode()
    whole = gzip.compress(text)
    file = tmp_path / "rows.jsonl.gz"
    file.write_bytes(whole + gzip.compress(b'{"c": 5000}'))
    read = pa.concat_tables([rows for _, rows in read_batches(file, read_rows)])
    assert read["c"].to_pylist() == list(range(5_001))
    assert read_messages(Input(file), pa.schema([])) == text + b'{"c": 5000}'
    for damaged in (whole[:-100], text, whole[:-6] + b"\0\0\0\0" + whole[-2:]):
        file.write_bytes(damaged)
        with pytest.raises(InvalidData, match=r"rows\.jsonl\.gz cannot be read"):
            list(read_batches(file, read_rows))
        with pytest.raises(InvalidData, match=r"rows\.jsonl\.gz cannot be read"):
            read_messages(Input(file), pa.schema([]))
