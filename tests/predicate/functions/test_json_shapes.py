"""The kind of a JSON value and the length of an array: those that PostgreSQL has."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError, RowsieveError
from rowsieve.predicate.arrays import Computed
from rowsieve.predicate.functions.registry import FUNCTIONS
from rowsieve.predicate.functions.row import Argument
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Json
from tests.bridges.sql.postgres import connection

DOCUMENTS = (
    *("{}", '{"a": [1, 2]}', "[]", " [1, [2, 3], {}] ", '"[1]"', '"a"', '""', "1", "-1.5e3"),
    *("true", "false", "null", "[null]", '\n{"b": null}', '["a,b", "]"]', "0"),
)


def evaluated(name: str, documents: list[str | None]) -> Computed:
    row = FUNCTIONS[name]
    signature = row.resolve([Argument(Json())])
    assert signature is not None
    return row.evaluate([pa.array(documents, pa.string())], signature, Semantics.POSTGRES)


@pytest.mark.parametrize("name", ["json_typeof", "json_array_length"])
def test_postgresql_has_the_same_values_and_errors(name: str) -> None:
    import psycopg

    for document in DOCUMENTS:
        found = evaluated(name, [document])
        query = f"SELECT {name.replace('json', 'jsonb')}(%s::jsonb)"
        try:
            (wanted,) = connection().execute(query, [document]).fetchone()
        except psycopg.errors.InvalidParameterValue:
            assert found.failed is not None
            assert found.failed.all(), document
        else:
            assert found.failed is None, document
            assert found.values[0].as_py() == wanted, document


@pytest.mark.parametrize("name", ["json_typeof", "json_array_length"])
def test_null_and_text_that_is_not_json_have_neither(name: str) -> None:
    found = evaluated(name, [None, "", "{", "nul", "[1,]", "[1] 2"])
    assert found.failed is None
    assert found.values.to_pylist() == [None] * 6


def test_conditions_find_values_by_their_kind() -> None:
    schema = pa.schema([("n", pa.int64()), pa.field("j", pa.json_())])
    storage = pa.array(['{"a": [1, 2]}', '{"a": "x"}', "[1]", None])
    column = pa.ExtensionArray.from_storage(pa.json_(), storage)
    rows = pa.table([pa.array([1, 2, 3, 4]), column], schema=schema)
    table = rs.create_table("memory:///json-shapes", rows)
    for text, wanted in {
        "jsonb_typeof(j) = 'object'": [1, 2],
        "json_typeof(j) <> 'object'": [3],
        "jsonb_typeof((j -> 'a')) = 'array'": [1],
        "jsonb_typeof(j -> 'a') = 'string'": [2],
        "jsonb_typeof(j) = 'array' AND jsonb_array_length(j) = 1": [3],
        "n = 1 AND jsonb_array_length((j -> 'a')) > 1": [1],
    }.items():
        assert table.scan(text).to_arrow()["n"].to_pylist() == wanted, text
    with pytest.raises(EvaluationError):
        table.scan("jsonb_array_length(j) = 1").to_arrow()
    with pytest.raises(RowsieveError):
        table.scan("jsonb_typeof(j) = 'object'", dialect="duckdb").to_arrow()
