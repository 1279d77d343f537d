"""The normal form: what it looks like, and that it means the same."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Field, Float, Int, Timestamp
from rowsieve.types.schema import Schema
from tests.oracle_texts import known_texts
from tests.predicate.test_evaluate import answers
from tests.profiles import examples
from tests.strategies import IEEE, SCHEMA, SEMANTICS, batches, predicates

EQ, NE, LT, GE = ir.ComparisonOp.EQ, ir.ComparisonOp.NE, ir.ComparisonOp.LT, ir.ComparisonOp.GE
A, B, C = (ir.IsNull(ir.Column(name)) for name in "abc")


def equals(name: str, value: int | str) -> ir.Comparison:
    return ir.Comparison(EQ, ir.Column(name), ir.Literal(value))


def listed(name: str, values: list[int] | list[str]) -> ir.InList:
    return ir.InList(ir.Column(name), ir.ValueSet(pa.array(values)))


@pytest.mark.parametrize(
    ("predicate", "wanted"),
    [
        (ir.And((A, ir.And((B, C)))), ir.And((A, B, C))),
        (ir.Or((A, ir.Or((B, C)), ir.FALSE)), ir.Or((A, B, C))),
        (ir.And((A, ir.TRUE)), A),
        (ir.And((A, ir.FALSE)), ir.FALSE),
        (ir.Or((A, ir.TRUE)), ir.TRUE),
        (ir.And((A, A)), A),
        (ir.Not(ir.Not(A)), A),
        (ir.Not(ir.TRUE), ir.FALSE),
        (ir.Not(equals("x", 1)), ir.Comparison(NE, ir.Column("x"), ir.Literal(1))),
        (ir.BooleanOperand(ir.Condition(A)), A),
        (ir.Or((equals("x", 1), A, equals("x", 2))), ir.Or((listed("x", [1, 2]), A))),
        (ir.Or((equals("x", "a"), equals("x", "b"))), listed("x", ["a", "b"])),
        (ir.Or((equals("x", 1), equals("y", 2))), ir.Or((equals("x", 1), equals("y", 2)))),
    ],
)
def test_shapes(predicate: ir.Predicate, wanted: ir.Predicate) -> None:
    assert normalize(predicate) == wanted


def pairs(*values: tuple[int, int]) -> ir.Or:
    return ir.Or(tuple(ir.And((equals("x", x), equals("y", y))) for x, y in values))


@pytest.mark.parametrize(
    ("predicate", "wanted"),
    [
        (pairs((1, 5), (2, 5)), ir.And((listed("x", [1, 2]), equals("y", 5)))),
        (pairs((1, 5), (1, 6)), ir.And((equals("x", 1), listed("y", [5, 6])))),
        (
            pairs((1, 5), (2, 5), (1, 6), (2, 6)),
            ir.And((listed("x", [1, 2]), listed("y", [5, 6]))),
        ),
        (pairs((1, 5), (2, 6)), pairs((1, 5), (2, 6))),
    ],
)
def test_pairs_that_share_a_value_become_lists(
    predicate: ir.Predicate, wanted: ir.Predicate
) -> None:
    assert normalize(predicate) == wanted


def test_thousands_of_pairs_become_a_few_terms() -> None:
    many = normalize(pairs(*((i, i % 7) for i in range(9000))))
    assert isinstance(many, ir.Or)
    assert len(many.terms) == 7


def ray(op: ir.ComparisonOp, name: str, value: int) -> ir.Comparison:
    return ir.Comparison(op, ir.Column(name), ir.Literal(value, Int(64)))


def test_of_alike_comparisons_an_or_keeps_the_weakest() -> None:
    above, below = [ray(GE, "x", value) for value in (7, 5, 9)], [ray(LT, "x", v) for v in (1, 2)]
    assert normalize(ir.Or((*above, A, *below))) == ir.Or((above[1], A, below[1]))
    assert normalize(ir.And(tuple(above))) == ir.And(tuple(above))
    pairs_of_rays = ir.Or(tuple(ir.And((term, ray(LT, "y", 3))) for term in above))
    assert normalize(pairs_of_rays) == ir.And((above[1], ray(LT, "y", 3)))
    mixed = ir.Or((ray(GE, "x", 1), ir.Comparison(GE, ir.Column("x"), ir.Literal(0.5, Float()))))
    assert normalize(mixed) == mixed


SMALL = st.integers(0, 3)


@examples(100)
@given(
    st.lists(st.tuples(st.sampled_from([LT, GE, EQ]), SMALL, SMALL), min_size=2, max_size=8),
    st.lists(st.tuples(st.none() | SMALL, st.none() | SMALL), min_size=1, max_size=16),
    st.booleans(),
)
def test_the_weakest_means_the_same(
    wanted: list[tuple[ir.ComparisonOp, int, int]],
    rows: list[tuple[int | None, int | None]],
    negated: bool,
) -> None:
    schema = Schema(0, (Field(1, "x", Int(64)), Field(2, "y", Int(64))))
    columns = [pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1)]
    batch = pa.record_batch(columns, ["x", "y"])
    whole = ir.Or(tuple(ir.And((ray(op, "x", i), ray(LT, "y", j))) for op, i, j in wanted))
    predicate: ir.Predicate = ir.Not(whole) if negated else whole
    plain = bind(predicate, schema, Semantics.SQL, simplified=False)
    shorter = BoundPredicate(normalize(plain.root, Semantics.SQL), 0, Semantics.SQL)
    assert answers(evaluate(shorter, batch)) == answers(evaluate(plain, batch))


@examples(100)
@given(
    st.lists(st.tuples(SMALL, SMALL), min_size=2, max_size=8, unique=True),
    st.lists(st.tuples(st.none() | SMALL, st.none() | SMALL), min_size=1, max_size=16),
    st.booleans(),
)
def test_pairs_rewritten_as_lists_keep_their_result(
    wanted: list[tuple[int, int]], rows: list[tuple[int | None, int | None]], negated: bool
) -> None:
    schema = Schema(0, (Field(1, "x", Int(64)), Field(2, "y", Int(64))))
    columns = [pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1)]
    batch = pa.record_batch(columns, ["x", "y"])
    predicate: ir.Predicate = ir.Not(pairs(*wanted)) if negated else pairs(*wanted)
    plain = bind(predicate, schema, Semantics.SQL, simplified=False)
    shorter = BoundPredicate(normalize(plain.root, Semantics.SQL), 0, Semantics.SQL)
    assert answers(evaluate(shorter, batch)) == answers(evaluate(plain, batch))


def test_an_order_is_turned_round_only_where_nan_has_a_place_in_it() -> None:
    below = ir.Comparison(LT, ir.Column("x"), ir.Literal(1))
    assert normalize(ir.Not(below)) == ir.Not(below)
    assert normalize(ir.Not(below), IEEE) == ir.Not(below)
    assert normalize(ir.Not(below), Semantics.SQL) == ir.Comparison(
        GE, ir.Column("x"), ir.Literal(1)
    )


def test_floats_stay_out_of_lists() -> None:
    terms = tuple(
        ir.Comparison(EQ, ir.Column("x"), ir.Literal(value, Float())) for value in (0.0, 1.0)
    )
    assert normalize(ir.Or(terms)) == ir.Or(terms)


def test_comparing_an_instant_with_a_local_time_needs_the_time_zone() -> None:
    sides = ir.Literal(0, Timestamp(utc=False)), ir.Literal(0, Timestamp(utc=True))
    assert normalize(ir.Comparison(ir.ComparisonOp.EQ, *sides)) == ir.Comparison(
        ir.ComparisonOp.EQ, *sides
    )


def test_bound_constants_fold() -> None:
    same = ir.Comparison(EQ, ir.Literal(1, Int(32)), ir.Literal(1, Int(32)))
    assert normalize(ir.And((A, same))) == A
    assert normalize(ir.And((A, ir.Not(same)))) == ir.FALSE


@examples(200)
@given(predicates(), batches(), st.sampled_from(SEMANTICS))
@known_texts()
def test_the_normal_form_means_the_same(
    predicate: ir.Predicate, batch: pa.RecordBatch, semantics: Semantics
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
    predicate: ir.Predicate, semantics: Semantics | None
) -> None:
    once = normalize(predicate, semantics)
    assert normalize(once, semantics) == once
