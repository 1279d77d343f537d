"""Lists of lists and structs with `[]` and NULL among their items, as DuckDB compares them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowsieve.bridges.where import to_predicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.sql.engines import duckdb_rows

PAIR = pa.struct([("a", pa.int32())])
SCHEMA = pa.schema(
    [
        ("l", pa.list_(pa.list_(pa.int32()))),
        ("s", pa.list_(PAIR)),
        ("w", pa.list_(pa.struct([("k", pa.string()), ("d", pa.date32())]))),
    ]
)
WORDS = [[{"k": "x", "d": None}, None], [{"k": "x", "d": 1}], [], None, [None]]
ROWS = pa.record_batch(
    [
        pa.array([[[], [1]], [[1]], [], None, [None, [1]]], SCHEMA.field("l").type),
        pa.array([[{"a": 1}, None], [{"a": 1}], [], None, [{"a": None}, None]], pa.list_(PAIR)),
        pa.array(WORDS, SCHEMA.field("w").type),
    ],
    schema=SCHEMA,
)


@pytest.mark.parametrize(
    "condition",
    [
        "l = [[], [1]]",
        "l = [NULL, [1]]",
        "l = [[]]",
        "l = [[NULL], [1]]",
        "l <> [[], [1]]",
        "l < [[], [1]]",
        "l IN ([[], [1]], [[1]])",
        "s = [{'a': 1}, NULL]",
        "s = [{'a': NULL}, NULL]",
        "s = [{'a': NULL}, {'a': 1}, NULL]",
        "s > [{'a': 1}, NULL]",
        "s = [NULL]",
        "w = [{'k': 'x', 'd': NULL}, NULL]",
        "w = [{'k': 'x', 'd': DATE '1970-01-02'}]",
        "w = [NULL, {'k': 'x', 'd': '1970-01-02'}]",
        "w = [NULL]",
    ],
)
def test_duckdb_keeps_the_same_rows(condition: str) -> None:
    columns = schema_of(SCHEMA)[0]
    predicate = to_predicate(condition, "duckdb", columns)
    outcome = evaluate(bind(predicate, columns, Semantics.DUCKDB), ROWS)
    assert not outcome.failed.any()
    assert outcome.true.nonzero()[0].tolist() == duckdb_rows(condition, ROWS)
