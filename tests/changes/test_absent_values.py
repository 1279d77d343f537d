"""Rows of dicts that lack a name: absent is not NULL, in any kind of data and at any depth."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import SchemaMismatch

POINT = pa.struct([("x", pa.int64()), ("y", pa.int64())])
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.string()),
        ("p", POINT),
        ("l", pa.list_(POINT)),
        ("m", pa.map_(pa.string(), POINT)),
    ]
)
FULL: dict[str, Any] = {
    "id": 1,
    "v": "a",
    "p": {"x": 1, "y": 2},
    "l": [{"x": 1, "y": 2}],
    "m": {"k": {"x": 1, "y": 2}},
}
OTHER: dict[str, Any] = {**FULL, "id": 2}
PARTIAL = [
    ({"id": 1, "p": None, "l": None, "m": None}, "row 1, .* lacks the column 'v'"),
    ({**FULL, "p": {"x": 5}}, r"lacks the field 'p\.y'"),
    ({**FULL, "l": [None, {"y": 5}]}, r"lacks the field 'l\.\w+\.x'"),
    ({**FULL, "m": {"j": {"x": 5}}}, r"lacks the field 'm\.value\.y'"),
]


def made(*key: str, columns: pa.Schema = COLUMNS) -> rs.Table:
    return rs.create_table(f"memory:///absent-{uuid.uuid4().hex}", columns, key=list(key))


@pytest.mark.parametrize(("row", "message"), PARTIAL)
def test_a_row_that_lacks_what_others_have_is_refused(row: dict[str, Any], message: str) -> None:
    table = made("id")
    table.upsert([FULL, OTHER])
    before = table.scan().to_arrow()
    writes: list[Callable[[], object]] = [
        lambda: table.upsert([OTHER, row]),
        lambda: table.upsert([OTHER, row], schema_mode="merge"),
        lambda: table.overwrite([OTHER, row]),
        lambda: table.apply_changes(
            [{**OTHER, "op": "u", "seq": 1}, {**row, "op": "u", "seq": 2}], op="op", sequence="seq"
        ),
    ]
    for write in writes:
        with pytest.raises(SchemaMismatch, match=message):
            write()
    assert table.scan().to_arrow().equals(before)


@pytest.mark.parametrize(("row", "message"), PARTIAL[1:])
def test_fields_of_columns_are_checked_too(row: dict[str, Any], message: str) -> None:
    table = made("id")
    columns = {name: [OTHER[name], row[name]] for name in row}
    columns["m"] = [list(each.items()) for each in columns["m"]]
    with pytest.raises(SchemaMismatch, match=message):
        table.upsert(columns)
    with pytest.raises(SchemaMismatch, match=message):
        table.upsert(pd.DataFrame({**columns, "id": [2, 1]}))


def test_null_and_names_in_another_case_are_not_absent() -> None:
    table = made("id")
    other = {"ID": 2, **{name: OTHER[name] for name in OTHER if name != "id"}}
    table.upsert([other, {"ID": 1, "v": None, "p": None, "l": [], "m": {}}])
    assert table.scan("id = 1").to_arrow()["v"].to_pylist() == [None]


def test_a_deleted_row_needs_only_its_key() -> None:
    table = made("id")
    table.upsert([FULL])
    changes = [{"id": 1, "op": "D", "seq": 1}, {**OTHER, "op": "i", "seq": 2}]
    commit = table.apply_changes(changes, op="op", sequence="seq")
    assert (commit.rows_written, commit.rows_deleted) == (1, 1)


def test_appended_rows_may_lack_what_is_null_by_default() -> None:
    table = made(columns=pa.schema([("id", pa.int64()), ("v", pa.string())]))
    table.add_column("n", "int64", default=5)
    table.append([{"id": 1, "n": 1}, {"id": 2, "v": "b", "n": None}])
    table.append([{"id": 3}])
    with pytest.raises(SchemaMismatch, match=r"row 0, .* lacks the column 'n'"):
        table.append([{"id": 4}, {"id": 5, "n": 6}])
    found = [tuple(row.values()) for row in table.scan().to_arrow().sort_by("id").to_pylist()]
    assert found == [(1, None, 1), (2, "b", None), (3, None, 5)]
