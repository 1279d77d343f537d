"""The tree as data: what is one, what is not."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import get_args

import pyarrow as pa
import pytest

from rowsieve.predicate.ir import (
    FALSE,
    TRUE,
    And,
    BooleanOperand,
    BoundColumn,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    ComparisonOp,
    Condition,
    FieldAccess,
    InList,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Now,
    Opaque,
    Operand,
    Or,
    PhysicalValue,
    Predicate,
    ValueSet,
    children,
    conjoin,
    disjoin,
    fold,
    map_children,
    walk,
)
from rowsieve.types.logical import Int

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


def test_every_nan_of_one_sign_is_one() -> None:
    assert Literal(math.nan) == Literal(float("nan")) != Literal(-math.nan)
    assert Literal(-math.nan) == Literal(-float("nan"))


def test_no_term_is_dropped_for_one_that_python_takes_for_equal() -> None:
    terms = tuple(
        Comparison(ComparisonOp.GT, Column("k"), Literal(value)) for value in (0.0, -0.0, 0)
    )
    assert disjoin(terms) == Or(terms)
    assert conjoin(terms) == And(terms)
    assert disjoin((*terms, terms[0])) == Or(terms)


TREES = (
    Comparison(ComparisonOp.LT, Call("add", (Column("a"), Literal(1))), Column("b")),
    And((TRUE, Or((Not(IsNull(Column("a"))), FALSE)), Opaque("x", "spark"))),
    InList(Cast(FieldAccess(Column("a"), "x"), Int(64)), ValueSet(pa.array([1, 2]))),
    Like(Column("a"), "x%"),
    BooleanOperand(Case(((IsNull(Column("a")), Column("b")),), Literal(1))),
    BooleanOperand(
        Case(
            ((IsNull(Column("a")), Now()),),
            Condition(Comparison(ComparisonOp.EQ, Column("a"), Literal("x"))),
        )
    ),
)


def renamed(node: Predicate) -> Predicate:
    return map_children(node, renamed, renamed_operand)


def renamed_operand(node: Operand) -> Operand:
    if isinstance(node, Column):
        return Column(node.name.upper())
    return map_children(node, renamed, renamed_operand)


def lowered(node: Predicate) -> Predicate:
    return map_children(node, lowered, lowered_operand)


def lowered_operand(node: Operand) -> Operand:
    if isinstance(node, Column):
        return Column(node.name.lower())
    return map_children(node, lowered, lowered_operand)


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_children_are_mapped_wherever_they_stand(tree: Predicate) -> None:
    found = [node.name for node in walk(renamed(tree)) if isinstance(node, Column)]
    assert found == [node.name.upper() for node in walk(tree) if isinstance(node, Column)]
    shapes = [[type(node) for node in walk(each)] for each in (tree, renamed(tree))]
    assert shapes[0] == shapes[1]
    assert map_children(renamed(tree), lowered, lowered_operand) == tree


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_a_node_whose_children_stay_is_itself(tree: Predicate) -> None:
    assert map_children(tree, lambda term: term, lambda operand: operand) is tree


def test_every_kind_of_node_is_among_the_trees() -> None:
    kinds = {type(node) for tree in TREES for node in walk(tree)}
    known = {*get_args(Predicate), *get_args(Operand)} - {BoundColumn}
    assert kinds == known


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_a_fold_meets_every_node_after_its_children(tree: Predicate) -> None:
    def combine(node: Node, below: tuple[list[Node], ...]) -> list[Node]:
        assert [each[-1] for each in below] == list(children(node))
        return [*(item for each in below for item in each), node]

    found: list[Node] = fold(tree, combine)
    assert sorted(map(id, found)) == sorted(map(id, walk(tree)))


def test_a_fold_of_a_deep_tree_needs_no_stack() -> None:
    deep: Predicate = TRUE
    for _ in range(50_000):
        deep = Not(deep)
    assert fold(deep, lambda _, below: 1 + sum(below)) == 50_001
