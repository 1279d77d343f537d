"""The tree as data: what is one, what is not."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from rowsieve.predicate.ir import (
    And,
    Column,
    Comparison,
    ComparisonOp,
    Literal,
    Or,
    PhysicalValue,
    conjoin,
    disjoin,
)

DIFFERENT: tuple[PhysicalValue, ...] = (
    0,
    0.0,
    -0.0,
    Decimal(0),
    Decimal("0.0"),
    False,
    "0",
    b"0",
    None,
)


@pytest.mark.parametrize("one", DIFFERENT, ids=repr)
@pytest.mark.parametrize("other", DIFFERENT, ids=repr)
def test_literals_are_one_only_if_they_are_the_same_thing(
    one: PhysicalValue, other: PhysicalValue
) -> None:
    same = repr(one) == repr(other)
    assert (Literal(one) == Literal(other)) == same
    assert (hash(Literal(one)) == hash(Literal(other))) or not same


def test_every_nan_is_one() -> None:
    assert Literal(math.nan) == Literal(float("nan")) == Literal(-math.nan)


def test_no_term_is_dropped_for_one_that_python_takes_for_equal() -> None:
    terms = tuple(
        Comparison(ComparisonOp.GT, Column("k"), Literal(value)) for value in (0.0, -0.0, 0)
    )
    assert disjoin(terms) == Or(terms)
    assert conjoin(terms) == And(terms)
    assert disjoin((*terms, terms[0])) == Or(terms)
