"""Conditions on lists and structs that DataFusion pushes down: its rows over its own table."""

from __future__ import annotations

import math

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from tests.small_tables import fresh_uri

NAN = math.nan
STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string())])
LISTS = [[], None, [3], [None], [3, None], [3, 4], [4], [2, 9], [3], []]
FLOATS = [[0.0], [-0.0], [NAN], [None], [], None, [1.5], [math.inf], [0.0, 1.0], [-0.0, 1.0]]
TEXTS = [["ß"], ["s"], ["é"], ["e\u0301"], [""], [None], None, [], ["İ", "i"], ["😀"]]
PAIRS = [
    *(None, {"a": None, "b": None}, {"a": 1, "b": "x"}, {"a": 1, "b": None}),
    *({"a": None, "b": "x"}, {"a": 2, "b": ""}, {"a": 1, "b": "y"}, {"a": 1, "b": "x"}),
    *({"a": 0, "b": "ß"}, {"a": 3, "b": "z"}),
]
ROWS = pa.table(
    {
        "k": pa.array(range(10), pa.int64()),
        "l": pa.array(LISTS, pa.list_(pa.int64())),
        "f": pa.array(FLOATS, pa.list_(pa.float64())),
        "t": pa.array(TEXTS, pa.list_(pa.string())),
        "s": pa.array(PAIRS, STRUCT),
    }
)
NULL = "CAST(NULL AS BIGINT)"
CONDITIONS = [
    *(f"l {op} [3]" for op in ("=", "<>", "<", "<=", ">", ">=")),
    *(f"l {op} [3, {NULL}]" for op in ("=", "<>", "<", ">=")),
    "l = arrow_cast(make_array(), 'List(Int64)')",
    "l IN ([3])",
    "l IN ([3], [4])",
    "l NOT IN ([3], [4])",
    "l IN ([3], [4], [5], [2, 9])",
    f"l = [{NULL}]",
    "l IS NOT DISTINCT FROM [3]",
    "l = [3] OR k = 7",
    "NOT (l = [3])",
    *(f"f {op} [0.0]" for op in ("=", "<>", "<", ">")),
    *(f"f {op} [-0.0]" for op in ("=", "<", ">")),
    *(f"f {op} ['NaN'::double]" for op in ("=", "<", ">=")),
    *(f"t {op} ['e']" for op in ("=", "<", ">")),
    "t = ['ß']",
    "t IN (['é'], [''])",
    *(f"s {op} named_struct('a', 1, 'b', 'x')" for op in ("=", "<>", "<", "<=", ">", ">=")),
    *(f"s {op} named_struct('a', {NULL}, 'b', 'x')" for op in ("=", "<>", "<", ">")),
    "s IN (named_struct('a', 1, 'b', 'x'))",
    "s IN (named_struct('a', 1, 'b', 'x'), named_struct('a', 2, 'b', ''))",
    "s NOT IN (named_struct('a', 1, 'b', 'x'), named_struct('a', 2, 'b', ''))",
    "s IS NULL",
]


@pytest.fixture(scope="module")
def contexts() -> tuple[datafusion.SessionContext, datafusion.SessionContext]:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), *list(ROWS.schema)[1:]])
    table = rs.create_table(fresh_uri(), schema, key=["k"])
    for start in range(0, 10, 3):
        table.upsert(ROWS.slice(start, 3))
    ours, own = datafusion.SessionContext(), datafusion.SessionContext()
    ours.register_table("t", table)
    own.register_record_batches("t", [ROWS.to_batches()])
    return ours, own


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_on_lists_or_structs_keeps_the_engine_s_own_rows(
    contexts: tuple[datafusion.SessionContext, datafusion.SessionContext], condition: str
) -> None:
    ours, own = (
        sorted(row["k"] for row in context.sql(f"SELECT k FROM t WHERE {condition}").to_pylist())
        for context in contexts
    )
    assert ours == own
