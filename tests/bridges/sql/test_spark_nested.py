"""Spark text on lists, structs and regular expressions: the rows that Spark itself keeps."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowsieve.bridges.where import semantics_of, to_predicate
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.types.schema import Schema
from tests.bridges.sql.reading import test_list_calls as lists
from tests.bridges.sql.reading import test_regexes as regexes
from tests.profiles import DEEP_FACTOR, IS_DEEP

pytestmark = pytest.mark.spark
STRUCT = "named_struct('a', 1, 'b', 'x')"
CONDITIONS = [
    *(f"l {op} array(3)" for op in ("=", "<>", "<", ">=", "<=>")),
    *(f"l {op} array(2, NULL)" for op in ("=", "<", ">")),
    *("l IN (array(3), array(1, 2))", "l NOT IN (array(3), array(1, 2))", "l = array(3L)"),
    *("array_contains(l, 3)", "array_contains(l, i)", "array_contains(t, 'é')"),
    *(f"array_contains(f, {value})" for value in ("0.0D", "-0.0D", "CAST('NaN' AS DOUBLE)")),
    *("f = array(0.0D)", "f < array(0.0D)", "f = array(CAST('NaN' AS DOUBLE))"),
    *("t = array('a')", "t < array('b')"),
    *(f"p {op} {STRUCT}" for op in ("=", "<>", "<", ">=")),
    f"p IN ({STRUCT}, named_struct('a', 2, 'b', ''))",
]


TEXTS = [
    *(
        f"s {op} {word} ('a%', '_')"
        for op in ("LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE")
        for word in ("ANY", "ALL", "SOME")
    ),
    *("s LIKE ANY ('a')", "NOT s LIKE ALL ('a%')", "s LIKE ALL ('%b%', '%!%%')"),
    *("nvl2(i, i > 1, s = 'a')", "nvl2(s, 1L, i) = 1"),
]


def ours(text: str, rows: pa.RecordBatch, schema: Schema) -> list[int]:
    predicate = to_predicate(text, "spark", schema)
    found = matching(bind(predicate, schema, semantics_of("spark", text)), rows)
    return [row for row, each in enumerate(found) if each]


def theirs(spark: Any, texts: list[str], rows: pa.RecordBatch) -> list[list[int]]:
    numbered = pa.table(rows).append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    frame = spark.createDataFrame(numbered)
    columns = [f"{text} AS c{place}" for place, text in enumerate(texts)]
    found = frame.selectExpr("row", *columns).orderBy("row").collect()
    return [[row["row"] for row in found if row[f"c{place}"]] for place in range(len(texts))]


def test_lists_and_structs_keep_spark_s_rows(spark: Any) -> None:
    texts = [each for text in CONDITIONS for each in (text, f"NOT ({text})")]
    for text, rows in zip(texts, theirs(spark, texts, lists.ROWS), strict=True):
        assert (text, ours(text, lists.ROWS, lists.SCHEMA)) == (text, rows)


def test_lists_of_patterns_keep_spark_s_rows(spark: Any) -> None:
    texts = [each for text in TEXTS for each in (text, f"NOT ({text})")]
    for text, rows in zip(texts, theirs(spark, texts, lists.ROWS), strict=True):
        assert (text, ours(text, lists.ROWS, lists.SCHEMA)) == (text, rows)


def test_random_patterns_keep_spark_s_rows(spark: Any) -> None:
    read = {}
    for number, pattern in enumerate(regexes.patterns(60 * DEEP_FACTOR if IS_DEEP else 40, seed=5)):
        quoted = pattern.replace("\\", "\\\\").replace("'", "\\'")
        text = f"s RLIKE '{'(?i)' if number % 2 else ''}{quoted}'"
        try:
            read[text] = ours(text, regexes.ROWS, regexes.SCHEMA)
        except InvalidPredicate:
            continue
    assert len(read) > 20
    texts = list(read)
    for start in range(0, len(texts), 50):
        some = texts[start : start + 50]
        for text, rows in zip(some, theirs(spark, some, regexes.ROWS), strict=True):
            assert (text, read[text]) == (text, rows)
