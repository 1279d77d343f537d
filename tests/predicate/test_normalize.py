"""The normal form: what it looks like, and that it means the same."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.ir import (
    FALSE,
    TRUE,
    And,
    BooleanOperand,
    Column,
    Comparison,
    ComparisonOp,
    Condition,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    ValueSet,
)
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Field, Float, Int, Timestamp
from rowsieve.types.schema import Schema
from tests.oracle_texts import known_texts
from tests.predicate.test_evaluate import answers
from tests.profiles import examples
from tests.strategies import IEEE, SCHEMA, SEMANTICS, batches, predicates

EQ, NE, LT, GE = ComparisonOp.EQ, ComparisonOp.NE, ComparisonOp.LT, ComparisonOp.GE
A, B, C = (IsNull(Column(name)) for name in "abc")


def equals(name: str, value: int | str) -> Comparison:
    return Comparison(EQ, Column(name), Literal(value))


def listed(name: str, values: list[int] | list[str]) -> InList:
    return InList(Column(name), ValueSet(pa.array(values)))


@pytest.mark.parametrize(
    ("predicate", "wanted"),
    [
        (And((A, And((B, C)))), And((A, B, C))),
        (Or((A, Or((B, C)), FALSE)), Or((A, B, C))),
        (And((A, TRUE)), A),
        (And((A, FALSE)), FALSE),
        (Or((A, TRUE)), TRUE),
        (And((A, A)), A),
        (Not(Not(A)), A),
        (Not(TRUE), FALSE),
        (Not(equals("x", 1)), Comparison(NE, Column("x"), Literal(1))),
        (BooleanOperand(Condition(A)), A),
        (Or((equals("x", 1), A, equals("x", 2))), Or((listed("x", [1, 2]), A))),
        (Or((equals("x", "a"), equals("x", "b"))), listed("x", ["a", "b"])),
        (Or((equals("x", 1), equals("y", 2))), Or((equals("x", 1), equals("y", 2)))),
    ],
)
def test_shapes(predicate: Predicate, wanted: Predicate) -> None:
    assert normalize(predicate) == wanted


def pairs(*values: tuple[int, int]) -> Or:
    return Or(tuple(And((equals("x", x), equals("y", y))) for x, y in values))


@pytest.mark.parametrize(
    ("predicate", "wanted"),
    [
        (pairs((1, 5), (2, 5)), And((listed("x", [1, 2]), equals("y", 5)))),
        (pairs((1, 5), (1, 6)), And((equals("x", 1), listed("y", [5, 6])))),
        (
            pairs((1, 5), (2, 5), (1, 6), (2, 6)),
            And((listed("x", [1, 2]), listed("y", [5, 6]))),
        ),
        (pairs((1, 5), (2, 6)), pairs((1, 5), (2, 6))),
    ],
)
def test_pairs_that_share_a_value_become_lists(predicate: Predicate, wanted: Predicate) -> None:
    assert normalize(predicate) == wanted


def test_thousands_of_pairs_become_a_few_terms() -> None:
    many = normalize(pairs(*((i, i % 7) for i in range(9000))))
    assert isinstance(many, Or)
    assert len(many.terms) == 7


def ray(op: ComparisonOp, name: str, value: int) -> Comparison:
    return Comparison(op, Column(name), Literal(value, Int(64)))


def test_of_alike_comparisons_an_or_keeps_the_weakest() -> None:
    above, below = [ray(GE, "x", value) for value in (7, 5, 9)], [ray(LT, "x", v) for v in (1, 2)]
    assert normalize(Or((*above, A, *below))) == Or((above[1], A, below[1]))
    assert normalize(And(tuple(above))) == And(tuple(above))
    pairs_of_rays = Or(tuple(And((term, ray(LT, "y", 3))) for term in above))
    assert normalize(pairs_of_rays) == And((above[1], ray(LT, "y", 3)))
    mixed = Or((ray(GE, "x", 1), Comparison(GE, Column("x"), Literal(0.5, Float()))))
    assert normalize(mixed) == mixed


SMALL = st.integers(0, 3)


@examples(100)
@given(
    st.lists(st.tuples(st.sampled_from([LT, GE, EQ]), SMALL, SMALL), min_size=2, max_size=8),
    st.lists(st.tuples(st.none() | SMALL, st.none() | SMALL), min_size=1, max_size=16),
    st.booleans(),
)
def test_the_weakest_means_the_same(
    wanted: list[tuple[ComparisonOp, int, int]],
    rows: list[tuple[int | None, int | None]],
    negated: bool,
) -> None:
    schema = Schema(0, (Field(1, "x", Int(64)), Field(2, "y", Int(64))))
    columns = [pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1)]
    batch = pa.record_batch(columns, ["x", "y"])
    whole = Or(tuple(And((ray(op, "x", i), ray(LT, "y", j))) for op, i, j in wanted))
    predicate: Predicate = Not(whole) if negated else whole
    plain = bind(predicate, schema, Semantics.SQL, simplified=False)
    shorter = BoundPredicate(normalize(plain.root, Semantics.SQL), 0, Semantics.SQL)
    assert answers(evaluate(shorter, batch)) == answers(evaluate(plain, batch))


@examples(100)
@given(
    st.lists(st.tuples(SMALL, SMALL), min_size=2, max_size=8, unique=True),
    st.lists(st.tuples(st.none() | SMALL, st.none() | SMALL), min_size=1, max_size=16),
    st.booleans(),
)
def test_pairs_as_lists_mean_the_same(
    wanted: list[tuple[int, int]], rows: list[tuple[int | None, int | None]], negated: bool
) -> None:
    schema = Schema(0, (Field(1, "x", Int(64)), Field(2, "y", Int(64))))
    columns = [pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1)]
    batch = pa.record_batch(columns, ["x", "y"])
    predicate: Predicate = Not(pairs(*wanted)) if negated else pairs(*wanted)
    plain = bind(predicate, schema, Semantics.SQL, simplified=False)
    shorter = BoundPredicate(normalize(plain.root, Semantics.SQL), 0, Semantics.SQL)
    assert answers(evaluate(shorter, batch)) == answers(evaluate(plain, batch))


def test_an_order_is_turned_round_only_where_nan_has_a_place_in_it() -> None:
    below = Comparison(LT, Column("x"), Literal(1))
    assert normalize(Not(below)) == Not(below)
    assert normalize(Not(below), IEEE) == Not(below)
    assert normalize(Not(below), Semantics.SQL) == Comparison(GE, Column("x"), Literal(1))


def test_floats_stay_out_of_lists() -> None:
    terms = tuple(Comparison(EQ, Column("x"), Literal(value, Float())) for value in (0.0, 1.0))
    assert normalize(Or(terms)) == Or(terms)


def test_an_instant_and_a_local_time_are_left_to_the_time_zone() -> None:
    sides = Literal(0, Timestamp(utc=False)), Literal(0, Timestamp(utc=True))
    assert normalize(Comparison(ComparisonOp.EQ, *sides)) == Comparison(ComparisonOp.EQ, *sides)


def test_bound_constants_fold() -> None:
    same = Comparison(EQ, Literal(1, Int(32)), Literal(1, Int(32)))
    assert normalize(And((A, same))) == A
    assert normalize(And((A, Not(same)))) == FALSE


@examples(200)
@given(predicates(), batches(), st.sampled_from(SEMANTICS))
@known_texts()
def test_the_normal_form_means_the_same(
    predicate: Predicate, batch: pa.RecordBatch, semantics: Semantics
) -> None:
    wanted = answers(evaluate(bind(predicate, SCHEMA, semantics), batch))
    before = bind(normalize(predicate, semantics), SCHEMA, semantics)
    assert answers(evaluate(before, batch)) == wanted
    bound = bind(predicate, SCHEMA, semantics)
    after = BoundPredicate(normalize(bound.root, semantics), bound.schema_id, semantics)
    assert answers(evaluate(after, batch)) == wanted


@examples(200)
@given(predicates(3), st.sampled_from([None, *SEMANTICS]))
@known_texts()
def test_normalizing_twice_changes_nothing(
    predicate: Predicate, semantics: Semantics | None
) -> None:
    once = normalize(predicate, semantics)
    assert normalize(once, semantics) == once
