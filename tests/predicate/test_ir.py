"""The tree as data: what is one, what is not."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import get_args

import pyarrow as pa
import pytest

from rowsieve.predicate import ir
from rowsieve.types.logical import Int

DIFFERENT: tuple[ir.PhysicalValue, ...] = (
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
def test_literals_are_equal_only_if_no_function_distinguishes_them(
    one: ir.PhysicalValue, other: ir.PhysicalValue
) -> None:
    same = repr(one) == repr(other)
    assert (ir.Literal(one) == ir.Literal(other)) == same
    assert (hash(ir.Literal(one)) == hash(ir.Literal(other))) or not same


def test_every_nan_of_one_sign_is_one() -> None:
    assert ir.Literal(math.nan) == ir.Literal(float("nan")) != ir.Literal(-math.nan)
    assert ir.Literal(-math.nan) == ir.Literal(-float("nan"))


def test_no_term_is_dropped_for_one_that_python_takes_for_equal() -> None:
    terms = tuple(
        ir.Comparison(ir.ComparisonOp.GT, ir.Column("k"), ir.Literal(value))
        for value in (0.0, -0.0, 0)
    )
    assert ir.disjoin(terms) == ir.Or(terms)
    assert ir.conjoin(terms) == ir.And(terms)
    assert ir.disjoin((*terms, terms[0])) == ir.Or(terms)


TREES = (
    ir.Comparison(
        ir.ComparisonOp.LT, ir.Call("add", (ir.Column("a"), ir.Literal(1))), ir.Column("b")
    ),
    ir.And(
        (ir.TRUE, ir.Or((ir.Not(ir.IsNull(ir.Column("a"))), ir.FALSE)), ir.Opaque("x", "spark"))
    ),
    ir.InList(ir.Cast(ir.FieldAccess(ir.Column("a"), "x"), Int(64)), ir.ValueSet(pa.array([1, 2]))),
    ir.Like(ir.Column("a"), "x%"),
    ir.BooleanOperand(ir.Case(((ir.IsNull(ir.Column("a")), ir.Column("b")),), ir.Literal(1))),
    ir.BooleanOperand(
        ir.Case(
            ((ir.IsNull(ir.Column("a")), ir.Now()),),
            ir.Condition(ir.Comparison(ir.ComparisonOp.EQ, ir.Column("a"), ir.Literal("x"))),
        )
    ),
)


def renamed(node: ir.Predicate) -> ir.Predicate:
    return ir.map_children(node, renamed, renamed_operand)


def renamed_operand(node: ir.Operand) -> ir.Operand:
    if isinstance(node, ir.Column):
        return ir.Column(node.name.upper())
    return ir.map_children(node, renamed, renamed_operand)


def lowered(node: ir.Predicate) -> ir.Predicate:
    return ir.map_children(node, lowered, lowered_operand)


def lowered_operand(node: ir.Operand) -> ir.Operand:
    if isinstance(node, ir.Column):
        return ir.Column(node.name.lower())
    return ir.map_children(node, lowered, lowered_operand)


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_children_are_mapped_wherever_they_stand(tree: ir.Predicate) -> None:
    found = [node.name for node in ir.walk(renamed(tree)) if isinstance(node, ir.Column)]
    assert found == [node.name.upper() for node in ir.walk(tree) if isinstance(node, ir.Column)]
    shapes = [[type(node) for node in ir.walk(each)] for each in (tree, renamed(tree))]
    assert shapes[0] == shapes[1]
    assert ir.map_children(renamed(tree), lowered, lowered_operand) == tree


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_a_node_whose_children_stay_is_itself(tree: ir.Predicate) -> None:
    assert ir.map_children(tree, lambda term: term, lambda operand: operand) is tree


def test_every_kind_of_node_is_among_the_trees() -> None:
    kinds = {type(node) for tree in TREES for node in ir.walk(tree)}
    known = {*get_args(ir.Predicate), *get_args(ir.Operand)} - {ir.BoundColumn}
    assert kinds == known


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_a_fold_meets_every_node_after_its_children(tree: ir.Predicate) -> None:
    def combine(node: ir.Node, below: tuple[list[ir.Node], ...]) -> list[ir.Node]:
        assert [each[-1] for each in below] == list(ir.children(node))
        return [*(item for each in below for item in each), node]

    found: list[ir.Node] = ir.fold(tree, combine)
    assert sorted(map(id, found)) == sorted(map(id, ir.walk(tree)))


def test_a_fold_of_a_deep_tree_needs_no_stack() -> None:
    deep: ir.Predicate = ir.TRUE
    for _ in range(50_000):
        deep = ir.Not(deep)
    assert ir.fold(deep, lambda _, below: 1 + sum(below)) == 50_001
