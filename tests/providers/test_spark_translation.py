"""Conditions that are written as exact in Spark's SQL keep, in Spark, the rows that we keep."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql.language import to_text
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.ir import Predicate, column_names
from rowsieve.predicate.semantics import Semantics
from tests.bridges.sql.vouched import EVERY, conditions
from tests.profiles import examples
from tests.strategies import SCHEMA, SEMANTICS, batches, predicates

pytestmark = pytest.mark.spark

ABSENT = {"u8", "u64", "time", "uid"}  # types that Spark has not


def theirs(spark: Any, batch: pa.RecordBatch, texts: list[str]) -> list[list[int]]:
    """The rows that Spark keeps by each text, in one query."""
    spark.createDataFrame(pa.table(batch)).coalesce(1).createOrReplaceTempView("translated")
    selected = ", ".join(f"({text}) AS c{place}" for place, text in enumerate(texts))
    found: pa.Table = spark.sql(f"SELECT {selected} FROM translated").toArrow()
    return [
        [row for row, true in enumerate(column.to_pylist()) if true] for column in found.columns
    ]


def test_functions_on_the_allow_list_keep_the_same_rows(spark: Any) -> None:
    groups: dict[bytes, list[tuple[str, pa.RecordBatch, list[int]]]] = defaultdict(list)
    for name in EVERY:
        for text, rows, matches in conditions(name, "spark"):
            groups[rows.serialize().to_pybytes()].append((text, rows, matches))
    for cases in groups.values():
        found = theirs(spark, cases[0][1], [text for text, _, _ in cases])
        for (text, _, matches), kept in zip(cases, found, strict=True):
            assert kept == matches, text


@examples(3)
@given(
    wanted=st.lists(st.tuples(predicates(1), st.sampled_from(SEMANTICS)), min_size=60, max_size=60),
    batch=batches(min_rows=4),
)
def test_random_conditions_keep_the_same_rows(
    spark: Any, wanted: list[tuple[Predicate, Semantics]], batch: pa.RecordBatch
) -> None:
    rows = batch.select([name for name in batch.schema.names if name not in ABSENT])
    texts: list[str] = []
    matches: list[list[int]] = []
    for predicate, semantics in wanted:
        if ABSENT & set(column_names(predicate)):
            continue
        try:
            made = to_text(predicate, SCHEMA, semantics, dialect="spark")
            outcome = evaluate(bind(predicate, SCHEMA, semantics), batch)
        except InvalidPredicate:
            continue
        if made.exactness is Exactness.EXACT and not outcome.failed.any():
            texts.append(made.exact())
            matches.append([row for row, true in enumerate(outcome.true) if true])
    if texts:
        for text, kept, expected in zip(texts, theirs(spark, rows, texts), matches, strict=True):
            assert kept == expected, text
