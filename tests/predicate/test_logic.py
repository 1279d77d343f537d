"""Three-valued logic with errors: named cases and the laws that every predicate obeys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import EvaluationError, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate, matching
from rowsieve.predicate.semantics import Semantics
from tests.predicate.test_evaluate import answers
from tests.profiles import examples
from tests.strategies import IEEE, SCHEMA, SEMANTICS, batches, predicates

EQ, LT, GT = ir.ComparisonOp.EQ, ir.ComparisonOp.LT, ir.ComparisonOp.GT
ROW = pa.record_batch(
    {
        "b": pa.array([None], pa.bool_()),
        "i32": pa.array([0], pa.int32()),
        "f64": pa.array([float("nan")]),
        "s": pa.array(["a\nb"]),
    }
)
NULL = ir.BooleanOperand(ir.Column("b"))
ERROR = ir.Comparison(EQ, ir.Call("divide", (ir.Literal(1), ir.Column("i32"))), ir.Literal(1))


def answer(predicate: ir.Predicate, semantics: Semantics = Semantics.SQL) -> str:
    return answers(evaluate(bind(predicate, SCHEMA, semantics), ROW))


@pytest.mark.parametrize(
    ("predicate", "wanted"),
    [
        (ir.And((ir.FALSE, ERROR)), "F"),
        (ir.And((ERROR, ir.FALSE)), "F"),
        (ir.And((NULL, ERROR)), "N"),  # at the top a row with a NULL conjunct raises nothing
        (ir.And((ir.And((NULL, ir.TRUE)), ERROR)), "N"),
        (ir.And((ir.TRUE, ERROR)), "E"),
        (ir.Not(ir.And((NULL, ERROR))), "E"),
        (ir.Not(ir.Not(ir.And((NULL, ERROR)))), "N"),
        (ir.Or((ir.TRUE, ERROR)), "T"),
        (ir.Or((ERROR, ir.TRUE)), "T"),
        (ir.Or((NULL, ERROR)), "E"),
        (ir.Or((ir.FALSE, ERROR)), "E"),
        (ir.Not(NULL), "N"),
        (ir.And((NULL, ir.FALSE)), "F"),
        (ir.Or((NULL, ir.TRUE)), "T"),
        (ir.IsNull(ir.Condition(ERROR)), "E"),
        (ir.IsNull(ir.Condition(NULL)), "T"),
        (ir.Not(ERROR), "E"),
        (ir.And(()), "T"),
        (ir.Or(()), "F"),
    ],
)
def test_errors_and_nulls_in_junctions(predicate: ir.Predicate, wanted: str) -> None:
    assert answer(predicate) == wanted


def test_t8_not_in_a_list_with_null_is_never_true() -> None:
    members = ir.ValueSet(pa.array([1, None]))
    assert answer(ir.Not(ir.InList(ir.Column("i32"), members))) == "N"
    assert answer(ir.InList(ir.Column("i32"), ir.ValueSet(pa.array([0, None])))) == "T"
    assert answer(ir.InList(ir.Column("i32"), ir.ValueSet(pa.array([], pa.int32())))) == "F"


def test_equals_null_is_null() -> None:
    assert answer(ir.Comparison(EQ, ir.Column("i32"), ir.Literal(None))) == "N"
    assert answer(ir.Comparison(EQ, ir.Literal(None), ir.Literal(None))) == "N"
    assert (
        answer(ir.Comparison(ir.ComparisonOp.NOT_DISTINCT, ir.Column("b"), ir.Literal(None))) == "T"
    )


def test_t13_nan_is_greatest_in_sql_and_unordered_in_ieee() -> None:
    above = ir.Comparison(GT, ir.Column("f64"), ir.Literal(float("inf")))
    same = ir.Comparison(EQ, ir.Column("f64"), ir.Literal("NaN"))
    member = ir.InList(ir.Column("f64"), ir.ValueSet(pa.array([float("nan")])))
    assert [answer(each) for each in (above, same, member)] == ["T", "T", "T"]
    assert [answer(each, IEEE) for each in (above, same, member)] == ["F", "F", "F"]
    assert answer(ir.IsNull(ir.Column("f64"))) == "F"


def test_t13_lists_tell_zeros_apart_where_the_engine_does() -> None:
    batch = pa.record_batch({"f64": pa.array([0.0, -0.0])})
    for member in (0.0, -0.0):
        found = ir.InList(ir.Column("f64"), ir.ValueSet(pa.array([member, 7.0, 8.0, 9.0])))
        same = [str(value) == str(member) for value in (0.0, -0.0)]
        assert evaluate(bind(found, SCHEMA), batch).true.tolist() == [True, True]
        bitwise = bind(found, SCHEMA, Semantics.DATAFUSION)
        assert evaluate(bitwise, batch).true.tolist() == same


def test_a_branch_fails_only_where_it_is_taken() -> None:
    quotient = ir.Call("divide", (ir.Literal(1), ir.Column("i32")))
    zero = ir.Comparison(EQ, ir.Column("i32"), ir.Literal(0))
    guarded = ir.Case(((zero, ir.Literal(7)),), quotient)
    assert answer(ir.Comparison(EQ, guarded, ir.Literal(7))) == "T"
    assert (
        answer(
            ir.Comparison(EQ, ir.Case(((ir.Not(zero), ir.Literal(7)),), quotient), ir.Literal(7))
        )
        == "E"
    )
    assert (
        answer(ir.Comparison(EQ, ir.Call("coalesce", (ir.Column("i32"), quotient)), ir.Literal(0)))
        == "T"
    )
    assert (
        answer(ir.Comparison(EQ, ir.Call("coalesce", (quotient, ir.Literal(0))), ir.Literal(0)))
        == "E"
    )


def test_like_matches_newlines_and_literal_characters() -> None:
    assert answer(ir.Like(ir.Column("s"), "a%b")) == "T"
    assert answer(ir.Like(ir.Column("s"), "a_b")) == "T"
    assert answer(ir.Like(ir.Column("s"), "a.b")) == "F"
    assert answer(ir.Like(ir.Column("s"), "A%", ignore_case=True)) == "T"


def test_matching_raises_for_a_surviving_row_and_names_its_values() -> None:
    with pytest.raises(EvaluationError, match="i32 = '0'"):
        matching(bind(ERROR, SCHEMA), ROW)
    assert not matching(bind(ir.And((ERROR, ir.FALSE)), SCHEMA), ROW).any()


def test_an_opaque_condition_is_not_evaluated_here() -> None:
    with pytest.raises(UnsupportedOperation, match="spark"):
        answer(ir.Opaque("udf(x)", "spark"))


@examples(100)
@given(predicates(1), batches(), st.sampled_from(SEMANTICS))
def test_true_false_null_and_failed_partition_the_rows(
    predicate: ir.Predicate, batch: pa.RecordBatch, semantics: Semantics
) -> None:
    def rows(*terms: ir.Predicate) -> np.ndarray:
        return evaluate(bind(ir.Or(terms), SCHEMA, semantics), batch).true

    nested = ir.And((ir.Or((predicate, ir.FALSE)),))
    outcome = evaluate(bind(ir.Or((predicate, ir.FALSE)), SCHEMA, semantics), batch)
    yes, no, null = (
        rows(nested, ir.FALSE),
        rows(ir.Not(nested), ir.FALSE),
        rows(ir.IsNull(ir.Condition(nested))),
    )
    total = yes.astype(int) + no.astype(int) + null.astype(int) + outcome.failed.astype(int)
    assert total.tolist() == [1] * batch.num_rows


def test_long_lists_match_the_same_rows_as_short_ones() -> None:
    members = [*range(-50, 50, 7), 2**31 - 1, -(2**31)]
    column = pa.array([0, -1, 6, 2**31 - 1, -(2**31), None, 1_000], pa.int32())
    batch = pa.record_batch({"i32": column})
    for tail in ([], [None]):
        short = ir.InList(
            ir.Column("i32"), ir.ValueSet(pa.array([*members[:3], *tail], pa.int64()))
        )
        for found in (short, ir.InList(ir.Column("i32"), ir.ValueSet(pa.array(members + tail)))):
            kept = [value for value in found.values.array.to_pylist() if value is not None]
            outcome = evaluate(bind(found, SCHEMA), batch)
            wanted = [value in kept for value in column.to_pylist()]
            assert outcome.true.tolist() == wanted
            unmatched = [
                not hit if tail else value is None
                for hit, value in zip(wanted, column.to_pylist(), strict=True)
            ]
            assert outcome.null.tolist() == unmatched
