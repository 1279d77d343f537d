"""What is written keeps, in Spark, the rows that our evaluator keeps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.session import Session
from rowsieve.bridges.spark_columns import from_spark_column, to_spark_column
from rowsieve.bridges.sql import parse_predicate
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Float, Int, String, Time
from tests.bridges.excluded_failures import has_failing_term, rows_or_failure
from tests.bridges.spark_columns import nasty
from tests.bridges.spark_columns.nasty import in_spark, ours, theirs
from tests.cases import cases_in
from tests.profiles import examples
from tests.strategies import IEEE, SCHEMA, batches, predicates

pytestmark = pytest.mark.spark

ELSEWHERE = ir.Opaque("rlike(s, 'a')", "duckdb", ("s",))
TEXTS = cases_in(__file__, "written.txt")
# What comes back in another form that means the same.
OTHER_FORMS = (
    *(
        "ILIKE",
        "upper(s) IS",
        *("round(small", "round(whole", "nullif(", "list_length(l)"),
        "floor(whole",
        "list_length(m)",
        "concat(",
        "dow FROM",
        "shift(",
    ),
    *("date_trunc('week'", "date_trunc('quarter'", "INTERVAL", "rpad(", "is_nan("),
)


def written(predicate: ir.Predicate, semantics: Semantics = Semantics.SPARK) -> Any:
    return to_spark_column(predicate, nasty.SCHEMA, semantics).exact()


def test_every_function_is_written(spark: Any) -> None:
    found = [parse_predicate(text) for text in TEXTS]
    judged = []
    for start in range(0, len(TEXTS), 40):
        columns = [written(predicate) for predicate in found[start : start + 40]]
        judged += theirs(in_spark(spark), columns)
    for text, predicate, wanted in zip(TEXTS, found, judged, strict=True):
        assert ours(predicate) == wanted, text


@pytest.mark.parametrize("text", TEXTS)
def test_written_columns_are_read_back(spark: Any, text: str) -> None:
    predicate = parse_predicate(text)
    read = from_spark_column(written(predicate), nasty.SCHEMA)
    assert read.exactness is Exactness.EXACT, read.notes
    assert ours(read.exact()) == ours(predicate)
    if not any(form in text for form in OTHER_FORMS):
        assert settled(read.exact()) == settled(predicate)


def settled(predicate: ir.Predicate) -> ir.Predicate:
    bound = bind(predicate, nasty.SCHEMA, Semantics.SPARK, now_us=nasty.NOW_US)
    return normalize(bound.root)


@examples(6)
@given(several=st.lists(predicates(1), min_size=24, max_size=24), batch=batches(min_rows=3))
def test_random_predicates_keep_the_same_rows(
    several: list[ir.Predicate], batch: pa.RecordBatch, spark: Any
) -> None:
    columns, meant, sound = [], [], []
    for predicate in several:
        try:
            bound = bind(predicate, SCHEMA, Semantics.SPARK)
        except InvalidPredicate:
            continue
        made = to_spark_column(predicate, SCHEMA)
        outcome = evaluate(bound, batch)
        if made.expression is None or outcome.failed.any():
            continue
        columns.append(made.expression)
        meant.append((bound, np.flatnonzero(outcome.true).tolist()))
        sound.append(made.exactness is Exactness.EXACT)
    frame = in_spark(spark, batch, SCHEMA)
    found = rows_or_failure(lambda some: theirs(frame, some, batch), columns)
    for kept, (bound, mine), exact in zip(found, meant, sound, strict=True):
        if kept is None:
            assert has_failing_term(bound, batch)
        else:
            assert kept == mine if exact else set(mine) <= set(kept)


def test_a_null_among_times_needs_no_type_that_spark_switches_off(spark: Any) -> None:
    batch = pa.record_batch({"at": pa.array([1, 2, None], pa.time64("us"))})
    schema = schema_of(batch.schema)[0]
    frame = in_spark(spark, batch, schema)
    for members in ([None], [None, 1], [1, None, 3]):
        values = ir.ValueSet(pa.array(members, pa.int64()).cast(pa.time64("us")), Time())
        listed = ir.InList(ir.Column("at"), values)
        for predicate in (listed, ir.Not(listed), ir.IsNull(ir.Condition(listed))):
            column = to_spark_column(predicate, schema).exact()
            assert theirs(frame, [column], batch) == [ours(predicate, batch, schema)]
    alone = ir.Comparison(ir.ComparisonOp.DISTINCT, ir.Column("at"), ir.Literal(None, Time()))
    assert "only by a setting" in to_spark_column(alone, schema).notes[0]


def test_without_ansi_mode_only_equivalent_conditions_are_exact(spark: Any) -> None:
    texts = ["i + 1 > 0", "whole / 2 > 0", "CAST(k AS integer) = 1", "d / 2 = 1", "-i = 1"]
    said = ["f + 1 > 2", "d + d = 3", "CAST(i AS bigint) = 12", "CAST(day AS text) = ''", "-f = 0"]
    for text in texts:
        found = to_spark_column(
            parse_predicate(text), nasty.SCHEMA, Semantics.SPARK, session=Session(ansi=False)
        )
        assert found.expression is None, text
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        found_columns = [
            to_spark_column(
                parse_predicate(text), nasty.SCHEMA, session=Session(ansi=False)
            ).exact()
            for text in said
        ]
        judged = theirs(in_spark(spark), found_columns)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert judged == [ours(parse_predicate(text)) for text in said]


def test_differences_of_semantics_go_to_the_residual(spark: Any) -> None:
    above = ir.Comparison(ir.ComparisonOp.GT, ir.Column("f"), ir.Literal(0.0, Float(64)))
    bound = bind(above, nasty.SCHEMA, IEEE)
    guarded = to_spark_column(above, nasty.SCHEMA, IEEE).exact()
    kept = evaluate(bound, nasty.BATCH).true.nonzero()[0].tolist()
    assert theirs(in_spark(spark), [guarded]) == [kept]
    zeros = ir.InList(ir.Column("f"), ir.ValueSet(pa.array([0.0, 1.0, 2.0, 3.0]), Float(64)))
    assert to_spark_column(zeros, nasty.SCHEMA, Semantics.DATAFUSION).expression is None
    total = ir.Comparison(
        ir.ComparisonOp.GT, ir.Call("add", (ir.Column("i"), ir.Column("i"))), ir.Literal(0)
    )
    whole = ir.And((ir.Comparison(ir.ComparisonOp.EQ, ir.Column("i"), ir.Literal(1)), total))
    made = to_spark_column(whole, nasty.SCHEMA, Semantics.DATAFUSION)
    assert made.exactness is Exactness.SUPERSET
    assert made.residual == total
    assert "overflow" in made.notes[0]
    quotient = parse_predicate("whole / f > 0")
    assert to_spark_column(quotient, nasty.SCHEMA, Semantics.DUCKDB).expression is None
    cut = parse_predicate("CAST(d AS integer) = 2")
    assert to_spark_column(cut, nasty.SCHEMA, Semantics.SQL).expression is None
    rounded = parse_predicate("round(whole) = 2")
    half_to_even = written(rounded, Semantics.SQL)
    bound = bind(rounded, nasty.SCHEMA, Semantics.SQL)
    mine = evaluate(bound, nasty.BATCH).true.nonzero()[0].tolist()
    assert theirs(in_spark(spark), [half_to_even]) == [mine]


@pytest.mark.parametrize("semantics", [IEEE, Semantics.SQL])
def test_operations_that_give_null_are_tried(spark: Any, semantics: Semantics) -> None:
    texts = ["i + i > 0", "i * 2 < 0", "CAST(k AS smallint) = 12", "TRY_CAST(k AS integer) = 12"]
    found = [parse_predicate(text, "duckdb") for text in texts]
    columns = [to_spark_column(item, nasty.SCHEMA, semantics).exact() for item in found]
    if semantics is IEEE:
        judged = theirs(in_spark(spark), columns)
        outcomes = [evaluate(bind(item, nasty.SCHEMA, IEEE), nasty.BATCH) for item in found]
        assert judged == [outcome.true.nonzero()[0].tolist() for outcome in outcomes]


def test_nothing_is_dropped_under_or_and_not(spark: Any) -> None:
    one = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("i"), ir.Literal(1))
    for predicate in (ir.Or((one, ELSEWHERE)), ir.Not(ir.And((one, ELSEWHERE)))):
        made = to_spark_column(predicate, nasty.SCHEMA)
        assert made.expression is None
        assert made.residual == predicate
        with pytest.raises(UnsupportedOperation, match=r"condition 1 of 1 .*another engine"):
            to_spark_column(predicate, nasty.SCHEMA, strict=True)


def test_an_empty_list_is_null_for_null(spark: Any) -> None:
    empty = ir.InList(ir.Column("i"), ir.ValueSet(pa.array([], pa.int32()), Int(32)))
    assert theirs(in_spark(spark), [written(ir.Not(empty))]) == [ours(ir.Not(empty))]


def test_wide_disjunctions_and_long_lists_pass(spark: Any) -> None:
    terms = [
        ir.Comparison(ir.ComparisonOp.EQ, ir.Column("i"), ir.Literal(n)) for n in range(1, 500)
    ]
    values = ir.ValueSet(pa.array([math.nan, 0.0, *map(float, range(1_000))]), Float(64))
    columns = [written(ir.Or(tuple(terms))), written(ir.InList(ir.Column("f"), values))]
    judged = theirs(in_spark(spark), columns)
    assert judged == [ours(ir.Or(tuple(terms))), ours(ir.InList(ir.Column("f"), values))]


def test_names_are_taken_as_they_are_written(spark: Any) -> None:
    batch = pa.record_batch({"A `b`.c": pa.array(["x", "y"])})
    schema = schema_of(batch.schema)[0]
    predicate = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("A `b`.c"), ir.Literal("y", String()))
    made = to_spark_column(predicate, schema).exact()
    assert theirs(in_spark(spark, batch, schema), [made], batch) == [[1]]
    read = from_spark_column(made, schema).exact()
    assert bind(read, schema, Semantics.SPARK) == bind(predicate, schema, Semantics.SPARK)


def test_full_case_mapping_is_written_where_the_semantics_have_it(spark: Any) -> None:
    full = parse_predicate("upper(s) = 'SS'")
    assert to_spark_column(full, nasty.SCHEMA, Semantics.SQL).expression is None
    assert theirs(in_spark(spark), [written(full)]) == [ours(full)]
    assert to_spark_column(parse_predicate("s ILIKE 'é'"), nasty.SCHEMA).expression is None
    backslash = ir.Like(ir.Column("s"), "a\\b")
    assert theirs(in_spark(spark), [written(backslash)]) == [ours(backslash)]
