"""Conditions that are written as exact in Spark's SQL keep, in Spark, the rows that we keep.

Spark may fail where a term of the condition fails on a row that another term excludes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql.language import to_text
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.ir import Predicate, column_names
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Timestamp
from tests.bridges.excluded_failures import has_failing_term, rows_or_failure
from tests.bridges.sql.allow_list import EVERY, conditions
from tests.profiles import examples
from tests.strategies import SCHEMA, SEMANTICS, batches, predicates

pytestmark = pytest.mark.spark

ABSENT = {"u8", "u64", "time", "uid"}  # types that Spark has not


def theirs(spark: Any, batch: pa.RecordBatch, texts: Sequence[str]) -> list[list[int]]:
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
    meant: list[tuple[BoundPredicate, list[int]]] = []
    for predicate, semantics in wanted:
        if ABSENT & set(column_names(predicate)):
            continue
        try:
            made = to_text(predicate, SCHEMA, semantics, dialect="spark")
            bound = bind(predicate, SCHEMA, semantics)
            outcome = evaluate(bound, batch)
        except InvalidPredicate:
            continue
        if made.exactness is Exactness.EXACT and not outcome.failed.any():
            texts.append(made.exact())
            meant.append((bound, np.flatnonzero(outcome.true).tolist()))
    found = rows_or_failure(lambda some: theirs(spark, rows, some), texts)
    for text, kept, (bound, expected) in zip(texts, found, meant, strict=True):
        assert kept == expected or (kept is None and has_failing_term(bound, batch)), text


def test_a_failure_that_another_term_excludes_is_known_as_one(spark: Any) -> None:
    batch = pa.record_batch({"t": ["true", "0"], "b": [False, False]})
    read = ir.IsNull(ir.Cast(ir.Column("t"), Timestamp()))
    excluded = ir.And((read, ir.BooleanOperand(ir.Column("b"))))
    schema = schema_of(batch.schema)[0]
    text = to_text(excluded, schema, Semantics.SPARK, dialect="spark").exact()
    found = rows_or_failure(lambda some: theirs(spark, batch, some), ["b", text, "NOT b"])
    assert found == [[], None, [0, 1]]
    bound = bind(excluded, schema, Semantics.SPARK)
    assert not evaluate(bound, batch).failed.any()
    assert has_failing_term(bound, batch)
    assert not has_failing_term(bound, pa.record_batch({"t": ["2013-01-01"], "b": [False]}))
