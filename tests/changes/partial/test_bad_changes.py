"""Changes that give some columns, and cannot be applied: refused by name, nothing written."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import (
    InvalidData,
    InvalidInput,
    KeyViolation,
    RowsieveError,
    SchemaMismatch,
)
from tests.small_tables import files, fresh_uri

TEXTS = pa.list_(pa.string())
SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("need", pa.int64(), nullable=False),
        pa.field("small", pa.int8()),
        pa.field("big", pa.int64()),
        pa.field("money", pa.decimal128(38, 2)),
        pa.field("real", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("doc", pa.string(), metadata={"ARROW:extension:name": "rowsieve.json.1"}),
        pa.field("lists", pa.list_(pa.list_(pa.int64()))),
        pa.field("pair", pa.struct([("x", pa.int64()), ("y", pa.int64())])),
    ]
)


@pytest.fixture
def table() -> Table:
    table = rowsieve.create_table(fresh_uri(), SCHEMA, key=["k"])
    row = {"k": 1, "need": 1, "small": 100, "big": 2**63 - 1, "money": None, "doc": '{"a":1}'}
    table.upsert([row], columns="given")
    return table


def refused(
    table: Table, error: type[RowsieveError], match: str, data: Any, **options: Any
) -> None:
    before = files(table)
    with pytest.raises(error, match=match):
        table.upsert(data, **{"columns": "given", **options})
    assert files(table) == before


@pytest.mark.parametrize(
    ("error", "match", "data", "options"),
    [
        pytest.param(
            SchemaMismatch,
            r"key \{'k': 2\} gives column 'need', which is NOT NULL and has no default",
            [{"k": 2, "big": 1}],
            {},
            id="not-null-without-a-row",
        ),
        pytest.param(
            SchemaMismatch,
            r"column 'need' is NOT NULL, but 1 rows give NULL for it, such as that of \{'k': 1\}",
            [{"k": 1, "need": None}],
            {},
            id="null-in-not-null",
        ),
        pytest.param(
            InvalidData,
            r"sum of column 'small' for the key \{'k': 1\} is beyond its type int8",
            [{"k": 1, "small": 100}],
            {"combine": {"small": "sum"}},
            id="sum-beyond-its-type",
        ),
        pytest.param(
            InvalidData,
            r"sum of column 'big' for the key \{'k': 1\} is beyond",
            [{"k": 0, "need": 1, "big": 1}, {"k": 1, "big": 1}],
            {"combine": {"big": "sum"}},
            id="sum-beyond-64-bits",
        ),
        pytest.param(
            InvalidData,
            r"sum of column 'money' for the key \{'k': 9\} is beyond",
            [{"k": 9, "need": 1, "money": int("9" * 36)}] * 3,
            {"combine": {"money": "sum"}, "on_duplicate": "last"},
            id="sum-beyond-38-digits",
        ),
        pytest.param(
            InvalidData,
            r"sum of column 'money' for the key \{'k': 9\} is beyond",
            [{"k": 9, "need": 1, "money": int("9" * 36)}] * 40,
            {"combine": {"money": "sum"}, "on_duplicate": "last"},
            id="sum-beyond-128-bits",
        ),
        pytest.param(
            InvalidInput,
            "'real': 'sum'.*is float64, and sum takes integers or decimals",
            [{"k": 1, "real": 1.0}],
            {"combine": {"real": "sum"}},
            id="sum-of-floats",
        ),
        pytest.param(
            InvalidInput, "sum takes", [{"k": 1}], {"combine": {"text": "sum"}}, id="sum-of-text"
        ),
        pytest.param(
            InvalidInput, "min takes", [{"k": 1}], {"combine": {"doc": "min"}}, id="min-of-json"
        ),
        pytest.param(
            InvalidInput, "max takes", [{"k": 1}], {"combine": {"pair": "max"}}, id="max-of-structs"
        ),
        pytest.param(
            InvalidInput,
            "union_of_lists takes lists",
            [{"k": 1}],
            {"combine": {"lists": "union_of_lists"}},
            id="union-of-lists-of-lists",
        ),
        pytest.param(
            InvalidInput,
            "json_merge takes a column of JSON",
            [{"k": 1}],
            {"combine": {"text": "json_merge"}},
            id="merge-of-text",
        ),
        pytest.param(
            InvalidInput, "did you mean 'sum'", [{"k": 1}], {"combine": {"big": "sume"}}, id="rule"
        ),
        pytest.param(
            InvalidInput,
            "names column 'k', which identifies",
            [{"k": 1}],
            {"combine": {"K": "min"}},
            id="key",
        ),
        pytest.param(
            InvalidInput,
            "names column 'big' twice",
            [{"k": 1}],
            {"combine": {"big": "sum", "BIG": "min"}},
            id="twice",
        ),
        pytest.param(RowsieveError, "nope", [{"k": 1}], {"combine": {"nope": "sum"}}, id="unknown"),
        pytest.param(
            InvalidData,
            r"column 'doc' for the key \{'k': 1\} cannot be merged",
            [{"k": 1, "doc": '{"a":'}],
            {"combine": {"doc": "json_merge"}},
            id="broken-json",
        ),
        pytest.param(
            SchemaMismatch,
            r"column 'bigg' that the table does not have; did you mean 'big'",
            [{"k": 1, "bigg": 1}],
            {},
            id="unknown-column",
        ),
        pytest.param(
            SchemaMismatch,
            "a struct of the data lacks the field 'pair.y'",
            [{"k": 1, "pair": {"x": 1, "y": 2}}, {"k": 2, "pair": {"x": 1}}],
            {},
            id="absent-field",
        ),
        pytest.param(
            SchemaMismatch,
            "'pair' lacks member 'y'",
            [{"k": 1, "pair": {"x": 1}}],
            {},
            id="absent-field-everywhere",
        ),
        pytest.param(
            KeyViolation,
            "does not give column 'k'",
            [{"k": 1}, {"big": 1}],
            {},
            id="no-key",
        ),
        pytest.param(SchemaMismatch, "lacks the key column", [{"big": 1}], {}, id="no-key-at-all"),
        pytest.param(KeyViolation, "is NULL", [{"k": None, "big": 1}], {}, id="null-key"),
        pytest.param(
            SchemaMismatch, "no column 'u'", [{"k": 1}], {"unchanged": "u"}, id="no-unchanged"
        ),
        pytest.param(
            SchemaMismatch,
            "'u' .unchanged=. is string; it must be a list of text",
            [{"k": 1, "u": "big"}],
            {"unchanged": "u"},
            id="unchanged-is-text",
        ),
        pytest.param(
            InvalidData,
            "names 'bog' in row 1, counted from 0, .*did you mean 'big'",
            [{"k": 1, "u": None}, {"k": 2, "u": ["bog"]}],
            {"unchanged": "u"},
            id="unchanged-names-no-column",
        ),
        pytest.param(
            InvalidData,
            "a list with NULL in it",
            [{"k": 1, "u": ["big", None]}],
            {"unchanged": "u"},
            id="unchanged-with-null",
        ),
        pytest.param(
            KeyViolation,
            "row 0, counted from 0, does not give column 'k'",
            [{"k": 1, "u": ["K"]}],
            {"unchanged": "u"},
            id="unchanged-key",
        ),
        pytest.param(
            SchemaMismatch,
            "lacks column",
            pa.table({"k": [1], "big": [1], "u": pa.array([["need"]], TEXTS)}),
            {"unchanged": "u", "columns": "all"},
            id="all-columns",
        ),
    ],
)
def test_refusals(
    table: Table, error: type[RowsieveError], match: str, data: Any, options: dict[str, Any]
) -> None:
    refused(table, error, match, data, **options)


def test_a_stream_is_refused_by_the_same_rules(table: Table) -> None:
    before = files(table)
    rows = [{"k": 1, "big": 0, "op": "u", "lsn": 1}, {"k": 1, "text": "x", "op": "u", "lsn": 1}]
    with pytest.raises(KeyViolation, match="have the same 'lsn'"):
        table.apply_changes(rows, op="op", sequence="lsn", missing="keep")
    for data, error, match in (
        ([{"k": 1, "op": "u"}], SchemaMismatch, "no column 'lsn'"),
        ([{"k": 1, "op": "?", "lsn": 1}], InvalidData, "unknown actions"),
        ([{"k": 1, "op": None, "lsn": 1}], InvalidData, "'op' .op=. is NULL"),
        ([{"k": 5, "op": "u", "lsn": 1}], SchemaMismatch, "'need', which is NOT NULL"),
    ):
        with pytest.raises(error, match=match):
            table.apply_changes(data, op="op", sequence="lsn", missing="keep")
    assert files(table) == before


def test_values_that_are_not_given_are_not_looked_at(table: Table) -> None:
    data = pa.table(
        {
            "k": [1, 7],
            "big": pa.array(["n/a", "n/a"]),
            "text": ["x", "y"],
            "op": ["u", "d"],
            "lsn": [1, 2],
            "u": pa.array([["BIG"], None], TEXTS),
        }
    )
    table.apply_changes(data, op="op", sequence="lsn", missing="keep", unchanged="u")
    (row,) = table.scan().to_arrow().to_pylist()
    assert (row["big"], row["text"]) == (2**63 - 1, "x")


def test_a_null_that_is_given_replaces_a_value(table: Table) -> None:
    table.upsert([{"k": 1, "big": None}], columns="given")
    assert table.scan().to_arrow().to_pylist()[0]["big"] is None


def test_what_stands_in_a_kept_column_does_not_tell_two_changes_apart(table: Table) -> None:
    change = {"op": "u", "lsn": 1, "k": 1, "need": 2, "big": 7, "kept": ["big"]}
    options: dict[str, Any] = {"op": "op", "sequence": "lsn", "missing": "keep"}
    again = change | {"big": None, "kept": ["BIG"]}
    table.apply_changes([change, again], unchanged="kept", **options)
    assert table.scan(columns=["need", "big"]).to_arrow().to_pylist() == [
        {"need": 2, "big": 2**63 - 1}
    ]
    with pytest.raises(KeyViolation, match=r"one of them is .*'big is kept': False"):
        table.apply_changes([change, change | {"kept": None}], unchanged="kept", **options)
