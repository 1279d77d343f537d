"""Three-valued logic with errors: named cases and the laws that every predicate obeys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import EvaluationError, UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate, matching
from rowsieve.predicate.ir import (
    FALSE,
    TRUE,
    And,
    BooleanOperand,
    Call,
    Case,
    Column,
    Comparison,
    ComparisonOp,
    Condition,
    InList,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    ValueSet,
)
from rowsieve.predicate.semantics import Semantics
from tests.predicate.test_evaluate import answers
from tests.profiles import examples
from tests.strategies import IEEE, SCHEMA, SEMANTICS, batches, predicates

EQ, LT, GT = ComparisonOp.EQ, ComparisonOp.LT, ComparisonOp.GT
ROW = pa.record_batch(
    {
        "b": pa.array([None], pa.bool_()),
        "i32": pa.array([0], pa.int32()),
        "f64": pa.array([float("nan")]),
        "s": pa.array(["a\nb"]),
    }
)
NULL = BooleanOperand(Column("b"))
ERROR = Comparison(EQ, Call("divide", (Literal(1), Column("i32"))), Literal(1))


def answer(predicate: Predicate, semantics: Semantics = Semantics.SQL) -> str:
    return answers(evaluate(bind(predicate, SCHEMA, semantics), ROW))


@pytest.mark.parametrize(
    ("predicate", "wanted"),
    [
        (And((FALSE, ERROR)), "F"),
        (And((ERROR, FALSE)), "F"),
        (And((NULL, ERROR)), "N"),  # at the top a row with a NULL conjunct raises nothing
        (And((And((NULL, TRUE)), ERROR)), "N"),
        (And((TRUE, ERROR)), "E"),
        (Not(And((NULL, ERROR))), "E"),
        (Not(Not(And((NULL, ERROR)))), "N"),
        (Or((TRUE, ERROR)), "T"),
        (Or((ERROR, TRUE)), "T"),
        (Or((NULL, ERROR)), "E"),
        (Or((FALSE, ERROR)), "E"),
        (Not(NULL), "N"),
        (And((NULL, FALSE)), "F"),
        (Or((NULL, TRUE)), "T"),
        (IsNull(Condition(ERROR)), "E"),
        (IsNull(Condition(NULL)), "T"),
        (Not(ERROR), "E"),
        (And(()), "T"),
        (Or(()), "F"),
    ],
)
def test_errors_and_nulls_in_junctions(predicate: Predicate, wanted: str) -> None:
    assert answer(predicate) == wanted


def test_t8_not_in_a_list_with_null_is_never_true() -> None:
    members = ValueSet(pa.array([1, None]))
    assert answer(Not(InList(Column("i32"), members))) == "N"
    assert answer(InList(Column("i32"), ValueSet(pa.array([0, None])))) == "T"
    assert answer(InList(Column("i32"), ValueSet(pa.array([], pa.int32())))) == "F"


def test_equals_null_is_null() -> None:
    assert answer(Comparison(EQ, Column("i32"), Literal(None))) == "N"
    assert answer(Comparison(EQ, Literal(None), Literal(None))) == "N"
    assert answer(Comparison(ComparisonOp.NOT_DISTINCT, Column("b"), Literal(None))) == "T"


def test_t13_nan_is_greatest_in_sql_and_nothing_in_ieee() -> None:
    above = Comparison(GT, Column("f64"), Literal(float("inf")))
    same = Comparison(EQ, Column("f64"), Literal("NaN"))
    member = InList(Column("f64"), ValueSet(pa.array([float("nan")])))
    assert [answer(each) for each in (above, same, member)] == ["T", "T", "T"]
    assert [answer(each, IEEE) for each in (above, same, member)] == ["F", "F", "F"]
    assert answer(IsNull(Column("f64"))) == "F"


def test_t13_lists_tell_zeros_apart_where_the_engine_does() -> None:
    batch = pa.record_batch({"f64": pa.array([0.0, -0.0])})
    for member in (0.0, -0.0):
        found = InList(Column("f64"), ValueSet(pa.array([member, 7.0, 8.0, 9.0])))
        same = [str(value) == str(member) for value in (0.0, -0.0)]
        assert evaluate(bind(found, SCHEMA), batch).true.tolist() == [True, True]
        bitwise = bind(found, SCHEMA, Semantics.DATAFUSION)
        assert evaluate(bitwise, batch).true.tolist() == same


def test_a_branch_fails_only_where_it_is_taken() -> None:
    quotient = Call("divide", (Literal(1), Column("i32")))
    zero = Comparison(EQ, Column("i32"), Literal(0))
    guarded = Case(((zero, Literal(7)),), quotient)
    assert answer(Comparison(EQ, guarded, Literal(7))) == "T"
    assert answer(Comparison(EQ, Case(((Not(zero), Literal(7)),), quotient), Literal(7))) == "E"
    assert answer(Comparison(EQ, Call("coalesce", (Column("i32"), quotient)), Literal(0))) == "T"
    assert answer(Comparison(EQ, Call("coalesce", (quotient, Literal(0))), Literal(0))) == "E"


def test_like_matches_newlines_and_takes_text_for_what_it_is() -> None:
    assert answer(Like(Column("s"), "a%b")) == "T"
    assert answer(Like(Column("s"), "a_b")) == "T"
    assert answer(Like(Column("s"), "a.b")) == "F"
    assert answer(Like(Column("s"), "A%", ignore_case=True)) == "T"


def test_matching_raises_for_a_surviving_row_and_names_its_values() -> None:
    with pytest.raises(EvaluationError, match="i32 = '0'"):
        matching(bind(ERROR, SCHEMA), ROW)
    assert not matching(bind(And((ERROR, FALSE)), SCHEMA), ROW).any()


def test_an_opaque_condition_is_not_evaluated_here() -> None:
    with pytest.raises(UnsupportedOperation, match="spark"):
        answer(Opaque("udf(x)", "spark"))


@examples(100)
@given(predicates(1), batches(), st.sampled_from(SEMANTICS))
def test_true_false_null_and_failed_partition_the_rows(
    predicate: Predicate, batch: pa.RecordBatch, semantics: Semantics
) -> None:
    def rows(*terms: Predicate) -> np.ndarray:
        return evaluate(bind(Or(terms), SCHEMA, semantics), batch).true

    nested = And((Or((predicate, FALSE)),))
    outcome = evaluate(bind(Or((predicate, FALSE)), SCHEMA, semantics), batch)
    yes, no, null = rows(nested, FALSE), rows(Not(nested), FALSE), rows(IsNull(Condition(nested)))
    total = yes.astype(int) + no.astype(int) + null.astype(int) + outcome.failed.astype(int)
    assert total.tolist() == [1] * batch.num_rows


def test_long_lists_find_what_short_ones_find() -> None:
    members = [*range(-50, 50, 7), 2**31 - 1, -(2**31)]
    column = pa.array([0, -1, 6, 2**31 - 1, -(2**31), None, 1_000], pa.int32())
    batch = pa.record_batch({"i32": column})
    for tail in ([], [None]):
        short = InList(Column("i32"), ValueSet(pa.array([*members[:3], *tail], pa.int64())))
        for found in (short, InList(Column("i32"), ValueSet(pa.array(members + tail)))):
            kept = [value for value in found.values.array.to_pylist() if value is not None]
            outcome = evaluate(bind(found, SCHEMA), batch)
            wanted = [value in kept for value in column.to_pylist()]
            assert outcome.true.tolist() == wanted
            unmatched = [
                not hit if tail else value is None
                for hit, value in zip(wanted, column.to_pylist(), strict=True)
            ]
            assert outcome.null.tolist() == unmatched
