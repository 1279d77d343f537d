"""Texts of values that are cast to `jsonb`, compared with PostgreSQL."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError
from tests.bridges.sql.postgres import connection
from tests.small_tables import fresh_uri

DOCUMENTS = [
    *('{"a":1e2}', '{"a":"1e2"}', '{"a":1.50}', '{"a":1E+2}', '{"a":1e-2}', '{"a":-0}'),
    *('{"a":-0.0}', '{"a":0.0e1}', '{"a":0e5}', '{"a":0e-3}', '{"a":1e400}', '{"a":true}'),
    *('{"a":null}', '{"a":[1.0,2e1 ]}', '{"a":{"b":1e2,"c":1}}', '{"a":"t\\u0041\\n"}'),
    *('{"a":1,"a":2e0}', '{"a":{"bb":1,"b":2,"b":3,"é":0}}', '{ "a" : [ ] }', '{"a":1e140000}'),
    *('{"a":["\\u0001\\t\\"\\\\/",{}]}', '{"a":["\\u0000"]}', '{"b":7}', "[1,  2]", '"x"', "1e1"),
    *('{"a":12345678901234567890123456789012345678901}', '{"a":100}', '{"a":"7"}'),
]
VALUES = [
    *("j::jsonb ->> 'a'", "(j::jsonb -> 'a')::text", "j::jsonb::text", "j::jsonb #>> '{a,b}'"),
    *("j::jsonb -> 'a' ->> 'b'", "(j::jsonb ->> 'a')::int", "(j::jsonb ->> 'a')::bool"),
    *("lower(j::jsonb ->> 'a')", "CAST(j AS jsonb) #>> '{a,0}'", "j ->> 'a'"),
]
CONDITIONS = [
    *("j::jsonb ->> 'a' = '100'", "j::jsonb ->> 'a' <> 'true'", "j::jsonb ->> 'a' IN ('7', 'x')"),
    *("j::jsonb ->> 'a' LIKE '[%'", "(j::jsonb ->> 'a') IS NULL", "j::jsonb ->> 'a' = '[1.0, 20]'"),
    *("(j::jsonb ->> 'a') > '1'", "j::jsonb ->> 'a' = '{\"b\": 100, \"c\": 1}'"),
]


def of_documents(documents: list[str]) -> rs.Table:
    values = pa.ExtensionArray.from_storage(pa.json_(), pa.array(documents))
    return rs.create_table(fresh_uri(), pa.table({"j": values}))


def in_postgres(text: str, document: str) -> object:
    shown = text.replace("%", "%%")
    asked = f"SELECT ({shown})::text FROM (SELECT %s::json AS j) AS t"
    (value,) = connection().execute(asked, (document,)).fetchone()
    return value


@pytest.mark.parametrize("value", VALUES)
def test_texts_of_jsonb_are_those_of_postgres(value: str) -> None:
    for document in DOCUMENTS:
        table = of_documents([document])
        try:
            theirs = in_postgres(value, document)
        except psycopg.errors.DataError:
            if "140000" not in document and "u0000" not in document:
                with pytest.raises(EvaluationError):
                    table.scan(columns={"v": value}).to_arrow()
            continue
        (ours,) = table.scan(columns={"v": value}).to_arrow()["v"].to_pylist()
        assert (None if ours is None else str(ours).removesuffix("e")) == theirs or (
            str(ours).lower() == theirs
        ), document


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_on_texts_of_jsonb_keep_the_rows_of_postgres(condition: str) -> None:
    known = [each for each in DOCUMENTS if "140000" not in each and "u0000" not in each]
    kept = of_documents(known).scan(condition).to_arrow()["j"].to_pylist()
    assert kept == [each for each in known if in_postgres(condition, each) == "true"]


def test_a_text_that_cannot_be_a_number_is_looked_for_as_it_is_stored() -> None:
    table = of_documents(['{"a":"x"}'])
    for condition in ("j::jsonb ->> 'a' = 'x'", "(j::jsonb ->> 'a')::numeric = 1"):
        assert "::jsonb" not in str(table.scan(condition).explain())
    assert "::jsonb" in str(table.scan("j::jsonb ->> 'a' = '1'").explain())
