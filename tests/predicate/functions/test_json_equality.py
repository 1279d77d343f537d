"""JSON compares and contains as PostgreSQL's jsonb does."""

from __future__ import annotations

import itertools
from typing import Literal

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidPredicate, RowsieveError
from rowsieve.predicate.functions.registry import FUNCTIONS
from rowsieve.predicate.functions.row import Argument
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Json, String
from tests.bridges.sql.postgres import connection

DOCUMENTS = (
    *("{}", "[]", "null", "true", "false", "1", "1.0", "10e-1", "-0", "0", '"1"', '""', '"a"'),
    *('["a"]', '["a", "b"]', '["b","a", "a"]', "[1, [1, 2]]", "[[1, 2]]", "[[]]", "[{}]", "[null]"),
    *('{"a": 1}', '{"a":1.00,"b":[1,2]}', '{"b":[2,1], "a":1}', '{"a": 2, "a": 1}', '{"a": null}'),
    *('{"a": {"b": 1, "c": [1]}}', '{"a": {"c": [1]}}', '{"a": {}}', '{"a": []}', '{"a": [1]}'),
    *('[{"a": 1}, {"b": 2}]', '[{"a": 1, "b": 2}]', "12345678901234567890123456789012345678901.5"),
    *(r'"é\n\""', r'"\u00e9\u000a\u0022"', " [ 1 , true ] ", '[1, "true"]', "1e400", "[1, 1]"),
    *(r'{"\u0061": 1}', '{"1": {"a": 1}}', '{"": ""}', "[true]", '["1"]'),
)
PRUNING: tuple[Literal["on", "soft", "off"], ...] = ("on", "soft", "off")
KEYS = ("a", "b", "", "1", "é", "true", "null")


def evaluated(name: str, pairs: list[tuple[str, str]]) -> list[bool | None]:
    row = FUNCTIONS[name]
    signature = row.resolve([Argument(Json()), Argument(None)])
    assert signature is not None
    sides = [pa.array(side, pa.string()) for side in zip(*pairs, strict=True)]
    found = row.evaluate(sides, signature, Semantics.POSTGRES)
    assert found.failed is None
    values: list[bool | None] = found.values.to_pylist()
    return values


@pytest.mark.parametrize(
    ("name", "operator"), [("jsonb_eq", "="), ("jsonb_contains", "@>"), ("jsonb_exists", "?")]
)
def test_postgresql_has_the_same_values(name: str, operator: str) -> None:
    is_key = name == "jsonb_exists"
    pairs = list(itertools.product(DOCUMENTS, KEYS if is_key else DOCUMENTS))
    second = "b" if is_key else "b::jsonb"
    query = (
        f"SELECT a::jsonb OPERATOR(pg_catalog.{operator}) {second} "
        "FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS t(a, b, n) ORDER BY n"
    )
    wanted = connection().execute(query, [list(side) for side in zip(*pairs, strict=True)])
    for pair, found, (expected,) in zip(pairs, evaluated(name, pairs), wanted, strict=True):
        assert found == expected, pair


def test_text_that_is_not_json_has_no_value() -> None:
    pairs = [("{", "{}"), ("{}", "nul"), ("[1,]", "[1]")]
    for name in ("jsonb_eq", "jsonb_contains"):
        assert evaluated(name, pairs) == [None] * 3
    assert evaluated("jsonb_exists", [("{", "a"), ("{}", "{")]) == [None, False]
    signature = FUNCTIONS["jsonb_exists"].resolve([Argument(Json()), Argument(Json())])
    assert signature is None
    assert FUNCTIONS["jsonb_contains"].resolve([Argument(Json()), Argument(String())]) is None


@pytest.fixture(scope="module")
def table() -> rs.Table:
    documents = ['{"a": 1, "b": [1, 2]}', '{"b": [2, 1], "a": 1.0}', '["a"]', "null", "{", None]
    return rs.create_table(
        "memory:///json-equality",
        pa.table({"n": range(6), "j": pa.array(documents, pa.json_()), "s": ["a", "b"] * 3}),
    )


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("j @> '{\"a\": 1}'", [0, 1]),
        ("NOT j @> '{\"a\": 1}'", [2, 3]),
        ("j @> '\"a\"'", [2]),
        ('\'{"a": 1, "b": [1, 2], "c": 0}\' @> j', [0, 1]),
        ('j <@ \'["a", "b"]\'::jsonb', [2]),
        ("j -> 'b' @> '[2]'", [0, 1]),
        ("j -> 'b' = '[1, 2]'", [0]),
        ("(j -> 'b') <> '[1, 2]'", [1]),
        ('j = \'{"b": [1.0, 2], "a": 1}\'', [0]),
        ('j = \'{"b": [2, 1], "a": 1}\'::jsonb', [1]),
        ("j IN ('null', '[\"a\"]')", [2, 3]),
        ("j NOT IN ('null')", [0, 1, 2]),
        ("j -> 'a' = j -> 'b' -> 0", [0]),
        ("j ? 'a'", [0, 1, 2]),
        ("j ? s", [0, 1, 2]),
        ("j ?| array['x', 'b']", [0, 1]),
        ("j ?& array['a', 'b']", [0, 1]),
        ("j::jsonb ? 'a' AND j -> 'a' @> '1'", [0, 1]),
        # functions of j -> 'key', which the grammar takes for a lambda
        ("jsonb_typeof(j -> 'b') = 'array'", [0, 1]),
        ("jsonb_array_length(j -> 'b' ) = 2 AND jsonb_typeof(j -> 'b' -> 0) = 'number'", [0, 1]),
        ("coalesce(j -> 'a' ->> 'x', \"j\" -> 'b' ->> 1, 'x') = '2'", [0]),
        ("coalesce(s, j ->> 'a') = 'a' AND (j -> 'a')::int = 1", [0]),
    ],
)
def test_conditions(table: rs.Table, where: str, rows: list[int]) -> None:
    for pruning in PRUNING:
        assert table.scan(where, pruning=pruning).to_arrow()["n"].to_pylist() == rows


def test_conditions_over_all_documents_are_those_of_postgresql() -> None:
    """The items 0 and -1 of a scalar in `jsonb` are the scalar; equality with NULL and IN too."""
    documents = [*DOCUMENTS, None]
    rows = pa.table({"n": range(len(documents)), "j": pa.array(documents, pa.json_())})
    table = rs.create_table("memory:///json-conditions", rows.slice(0, 20))
    table.append(rows.slice(20))
    judge = connection()
    judge.execute("CREATE TEMP TABLE documents AS SELECT n - 1 AS n, j::jsonb AS j FROM "
                  "unnest(%s::text[]) WITH ORDINALITY AS t(j, n)", [documents])  # fmt: skip
    try:
        for where in (
            *(
                "j -> 0 = '1'",
                "j -> -1 <> '1'",
                "j -> 0 -> 0 @> '1'",
                "j -> 1 = '1'",
                "j -> 0 ? 'a'",
            ),
            *("j -> 'a' -> 0 = '1'", "j -> 0 IN ('1', '\"a\"')", "j -> 0 -> 'a' = '1'"),
            *(
                "j -> 'a' -> 'b' -> -1 = '1'",
                "'[1, 2]' @> (j -> 0)",
                "j -> 0 = j",
                "j -> '0' = '1'",
            ),
            *("j IS DISTINCT FROM '1'", "j IS NOT DISTINCT FROM '1'", "j IS DISTINCT FROM NULL"),
            *("j -> 'a' IS NOT DISTINCT FROM j -> 0", "j -> 0 IS DISTINCT FROM 'null'"),
            *("j = NULL OR NOT j @> NULL", "j IN ('1', NULL)", "j NOT IN ('[]', NULL)"),
        ):
            query = f"SELECT n FROM documents WHERE {where} ORDER BY n"
            wanted = [row for (row,) in judge.execute(query).fetchall()]
            for pruning in PRUNING:
                found = table.scan(where, pruning=pruning).to_arrow()["n"].to_pylist()
                assert sorted(found) == wanted, (where, pruning)
    finally:
        judge.execute("DROP TABLE documents")


def test_text_that_is_not_json_is_as_distinct_as_null(table: rs.Table) -> None:
    found = table.scan("j IS NOT DISTINCT FROM NULL").to_arrow()["n"].to_pylist()
    assert found == [4, 5]
    assert table.scan("j IS DISTINCT FROM 'null'").count() == 5


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("j = 'x'", "is not JSON"),
        ("j @> '{'", "is not JSON"),
        ("j = 1", "JSON is compared with a int"),
        ("j = s", "JSON is compared with a string"),
        ("j < '1'", "cannot be compared"),
        ("j ?| array[s]", "constants"),
        ("j ? 1", "has no meaning"),
    ],
)
def test_refusals(table: rs.Table, where: str, message: str) -> None:
    with pytest.raises(InvalidPredicate, match=message):
        table.scan(where)


@pytest.mark.parametrize("dialect", ["duckdb", "spark", "datafusion", "trino"])
def test_other_engines_have_no_jsonb(table: rs.Table, dialect: str) -> None:
    for where in ("j @> '{\"a\": 1}'", "j = '1'::jsonb", "json_contains(j, '1')"):
        with pytest.raises(RowsieveError):
            table.scan(where, dialect=dialect)
