"""What is written keeps, in DataFusion, the rows that our evaluator keeps."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, reject

from rowsieve.bridges.datafusion_exprs import from_datafusion, to_datafusion
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Float, Int
from tests.bridges.datafusion_exprs.engine import ours, theirs
from tests.profiles import examples
from tests.strategies import IEEE, SCHEMA, arrow_array, batches, predicates

ELSEWHERE = ir.Opaque("rlike(s, 'a')", "spark", ("s",))


def equals(name: str, value: int) -> ir.Comparison:
    return ir.Comparison(ir.ComparisonOp.EQ, ir.Column(name), ir.Literal(value))


@pytest.mark.parametrize("name", ["datafusion", "sql", "duckdb", "spark", "pyarrow"])
@examples(60)
@given(predicate=predicates(1), batch=batches(min_rows=1))
def test_random_predicates_keep_the_same_rows(
    name: str, predicate: ir.Predicate, batch: pa.RecordBatch
) -> None:
    semantics = Semantics.named(name)
    try:
        bind(predicate, SCHEMA, semantics)
    except InvalidPredicate:
        reject()
    written = to_datafusion(predicate, SCHEMA, semantics)
    if written.expression is None:
        assert written.exactness is Exactness.UNSUPPORTED
        return
    mine, found = ours(predicate, SCHEMA, batch, semantics), theirs(written.expression, batch)
    if mine is None or found is None:
        return
    if written.exactness is Exactness.EXACT:
        assert found == mine
        return
    assert written.residual is not None
    kept = ours(written.residual, SCHEMA, batch, semantics)
    assert set(mine) <= set(found)
    assert kept is None or sorted(set(found) & set(kept)) == mine


@examples(60)
@given(batch=batches(min_rows=1), predicate=predicates(1))
def test_reading_what_was_written_keeps_the_rows(
    batch: pa.RecordBatch, predicate: ir.Predicate
) -> None:
    try:
        written = to_datafusion(predicate, SCHEMA)
    except InvalidPredicate:
        reject()
    if written.exactness is not Exactness.EXACT:
        return
    read = from_datafusion(written.exact(), SCHEMA)
    if read.exactness is not Exactness.EXACT:
        return
    mine = ours(predicate, SCHEMA, batch, Semantics.DATAFUSION)
    again = ours(read.exact(), SCHEMA, batch, Semantics.DATAFUSION)
    assert mine is None or again is None or mine == again


@pytest.mark.parametrize(
    ("pattern", "escape"),
    [("a%", None), ("a_b", None), ("100!%", "!"), ("a.c", None), ("-#&~ \n\t", None), ("", None)],
)
@pytest.mark.parametrize("ignore_case", [False, True])
def test_patterns_match_alike(pattern: str, escape: str | None, *, ignore_case: bool) -> None:
    texts = ["", "a", "A", "aXb", "a\nb", "100%", "100x", "a.c", "abc", "-#&~ \n\t", "ab\n", None]
    rows = pa.record_batch({"s": pa.array(texts, pa.string())})
    like = ir.Like(ir.Column("s"), pattern, escape, ignore_case)
    found = theirs(to_datafusion(like, SCHEMA).exact(), rows)
    assert found == ours(like, SCHEMA, rows, Semantics.DATAFUSION)


def test_a_nan_of_the_other_sign_out_of_arithmetic_is_guarded() -> None:
    rows = pa.record_batch({"f64": arrow_array([math.inf, 1.0, math.nan, None], Float(64))})
    difference = ir.Call("subtract", (ir.Column("f64"), ir.Column("f64")))
    predicate = ir.Comparison(ir.ComparisonOp.GT, difference, ir.Literal(5.0, Float(64)))
    made = to_datafusion(predicate, SCHEMA, Semantics.DUCKDB)
    assert theirs(made.exact(), rows) == [0, 2]
    assert to_datafusion(predicate, SCHEMA).expression is None  # there the sign decides


@pytest.mark.parametrize(
    ("semantics", "rows"), [(Semantics.SQL, [0, 1]), (Semantics.DATAFUSION, [1])]
)
def test_long_lists_find_the_zeros_that_the_semantics_find(
    semantics: Semantics, rows: list[int]
) -> None:
    batch = pa.record_batch({"f64": pa.array([-0.0, 0.0, 9.0, None])})
    values = ir.ValueSet(pa.array([0.0, 1.0, 2.0, 3.0]), Float(64))
    written = to_datafusion(ir.InList(ir.Column("f64"), values), SCHEMA, semantics)
    assert theirs(written.exact(), batch) == rows


@pytest.mark.parametrize("op", [ir.ComparisonOp.EQ, ir.ComparisonOp.NE])
def test_equals_that_the_engine_makes_a_list_of_find_both_zeros(op: ir.ComparisonOp) -> None:
    batch = pa.record_batch({"f64": pa.array([-0.0, 0.0, 9.0, math.nan, None])})
    terms = tuple(
        ir.Comparison(op, ir.Column("f64"), ir.Literal(float(n), Float(64))) for n in range(5)
    )
    predicate = ir.Or(terms) if op is ir.ComparisonOp.EQ else ir.And(terms)
    found = theirs(to_datafusion(predicate, SCHEMA).exact(), batch)
    assert found == ours(predicate, SCHEMA, batch, Semantics.DATAFUSION)


def test_not_in_a_list_with_null_is_never_true() -> None:
    batch = pa.record_batch({"i64": pa.array([1, 2, None])})
    values = ir.ValueSet(pa.array([1, None]), Int(64))
    written = to_datafusion(ir.Not(ir.InList(ir.Column("i64"), values)), SCHEMA)
    assert theirs(written.exact(), batch) == []


def test_operations_on_which_the_engines_differ_stay_behind() -> None:
    total = ir.Comparison(
        ir.ComparisonOp.GT, ir.Call("add", (ir.Column("i64"), ir.Column("i64"))), ir.Literal(0)
    )
    assert to_datafusion(total, SCHEMA, Semantics.DATAFUSION).exactness is Exactness.EXACT
    written = to_datafusion(ir.And((equals("i64", 1), total)), SCHEMA, Semantics.SQL)
    assert written.exactness is Exactness.SUPERSET
    assert written.residual == total
    assert "wraps around" in written.notes[0]
    above = ir.Comparison(ir.ComparisonOp.GT, ir.Column("f64"), ir.Literal(0.0, Float(64)))
    guarded = to_datafusion(above, SCHEMA, IEEE).exact()
    rows = pa.record_batch({"f64": pa.array([1.0, math.nan, None, -1.0])})
    assert theirs(guarded, rows) == [0]


def test_nothing_is_dropped_under_or_and_not() -> None:
    for predicate in (
        ir.Or((equals("i64", 1), ELSEWHERE)),
        ir.Not(ir.And((equals("i64", 1), ELSEWHERE))),
    ):
        written = to_datafusion(predicate, SCHEMA)
        assert written.expression is None
        assert written.residual == predicate
        with pytest.raises(UnsupportedOperation, match=r"condition 1 of 1 .*another engine"):
            to_datafusion(predicate, SCHEMA, strict=True)


def test_wide_disjunctions_and_long_lists_pass() -> None:
    batch = pa.record_batch({"i64": pa.array([-1, 3, 9_999, None])})
    wide = ir.Or(tuple(equals("i64", value) for value in range(6_000)))
    written = to_datafusion(wide, SCHEMA).exact()
    assert theirs(written, batch) == [1]
    read = from_datafusion(written, SCHEMA).exact()
    assert isinstance(read, ir.Or)
    assert len(read.terms) == 6_000
    values = ir.ValueSet(pa.array(range(10_000)), Int(64))
    listed = to_datafusion(ir.InList(ir.Column("i64"), values), SCHEMA).exact()
    assert from_datafusion(listed, SCHEMA).exact() == ir.InList(ir.Column("i64"), values)


def test_names_are_taken_as_they_are_written() -> None:

    batch = pa.record_batch({'A "b".c': pa.array(["x", "y"])})
    predicate = ir.Comparison(ir.ComparisonOp.EQ, ir.Column('A "b".c'), ir.Literal("y"))
    written = to_datafusion(predicate, schema_of(batch.schema)[0]).exact()
    assert theirs(written, batch) == [1]
    assert from_datafusion(written, schema_of(batch.schema)[0]).exact() == predicate
