"""What a bound tree knows without another bind: its conjuncts, each with its bound form."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind, bind_conjuncts
from rowsieve.predicate.semantics import Semantics
from tests.oracle_texts import known_texts
from tests.profiles import examples
from tests.strategies import SCHEMA, SEMANTICS, predicates

_ABOVE = ir.Comparison(ir.ComparisonOp.GT, ir.Column("i32"), ir.Literal(5))
_EMPTY = ir.IsNull(ir.Column("s"))


_WRAPPERS: tuple[Callable[[ir.Predicate], ir.Predicate], ...] = (
    lambda term: term,
    lambda term: ir.Or((term,)),
    lambda term: ir.Not(ir.Not(term)),
    lambda term: ir.BooleanOperand(ir.Condition(term)),
    lambda term: ir.And((ir.TRUE, term)),
)


@st.composite
def wrapped(draw: st.DrawFn) -> ir.Predicate:
    """Trees whose conjuncts `root_conjuncts` looks through."""
    terms = draw(st.lists(predicates(1), min_size=1, max_size=3))
    for _ in range(2):
        terms = [_WRAPPERS[draw(st.integers(0, len(_WRAPPERS) - 1))](term) for term in terms]
        terms = [ir.And(tuple(terms))]
    return terms[0]


@examples(200)
@given(wrapped(), st.sampled_from(SEMANTICS))
@known_texts()
def test_conjuncts_are_bound_as_they_are_alone(
    predicate: ir.Predicate, semantics: Semantics
) -> None:
    """Each conjunct has the form that binding it by itself gives."""
    pairs = bind(predicate, SCHEMA, semantics, simplified=False).conjuncts
    assert tuple(term for term, _ in pairs) == ir.root_conjuncts(predicate)
    for term, root in pairs:
        assert root == bind(term, SCHEMA, semantics, simplified=False).root
    for term, bound in bind_conjuncts(predicate, SCHEMA, semantics, now_us=0):
        assert bound == bind(term, SCHEMA, semantics, now_us=0)


@pytest.mark.parametrize(
    "predicate",
    [
        ir.Not(ir.Not(ir.And((_ABOVE, _EMPTY)))),
        ir.And((ir.Or((_ABOVE,)), ir.TRUE, ir.And((_EMPTY,)))),
        ir.BooleanOperand(ir.Condition(ir.And((_ABOVE, _EMPTY)))),
    ],
)
def test_conjuncts_below_what_changes_nothing(predicate: ir.Predicate) -> None:
    """NOT of NOT, junctions of one term and conditions as booleans hide no conjunct."""
    pairs = bind(predicate, SCHEMA, simplified=False).conjuncts
    assert [term for term, _ in pairs] == [_ABOVE, _EMPTY]
