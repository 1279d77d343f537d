"""Wide conditions, of ten thousand terms, through every bridge, and deep ones refused.

`make test` takes 1,200, which a walk that recurses into a chain does not survive either.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import Expr, col, lit

from rowsieve.bridges.delta_dnf import MAX_FILTERS
from rowsieve.bridges.functions import substrait
from rowsieve.bridges.languages import BRIDGES, Bridge, bridge_named
from rowsieve.bridges.substrait_exprs import from_substrait
from rowsieve.bridges.substrait_exprs.write import SubstraitWriter
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.limits import MAX_NODES
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Bool, Float, Int, String
from tests.profiles import IS_DEEP

TERMS = 10_000 if IS_DEEP else 1_200
CHAIN_OF_DATAFUSION = 1_000  # it copies the whole chain with each term, and crashes at 10,000
SCHEMA = schema_of(pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())]))[0]
ALIKE = ("spark", "datafusion", "postgres", "trino")  # one reader and one writer for all SQL
HERE = [
    bridge
    for bridge in BRIDGES
    if bridge.name != "spark_columns" and (IS_DEEP or bridge.name not in ALIKE)
]


def term(number: int) -> ir.Comparison:
    """Terms that no list can hold together."""
    match number % 3:
        case 0:
            return ir.Comparison(ir.ComparisonOp.GT, ir.Column("id"), ir.Literal(number, Int(64)))
        case 1:
            return ir.Comparison(
                ir.ComparisonOp.NE, ir.Column("name"), ir.Literal(f"n{number}", String())
            )
        case _:
            return ir.Comparison(
                ir.ComparisonOp.LT, ir.Column("x"), ir.Literal(number + 0.5, Float(64))
            )


FLAT = tuple(map(term, range(TERMS)))


@pytest.mark.parametrize("bridge", HERE, ids=lambda bridge: bridge.name)
def test_an_or_of_different_comparisons_passes_both_ways(bridge: Bridge) -> None:
    written = bridge.writes(ir.Or(FLAT), SCHEMA, bridge.semantics)
    if bridge.name == "spark_filters":
        assert "Spark has no filter of this form" in written.notes[0]
        return
    read = bridge.reads(written.exact(), SCHEMA).exact()
    assert isinstance(read, ir.Or)
    assert len(read.terms) == TERMS


@pytest.mark.parametrize("bridge", HERE, ids=lambda bridge: bridge.name)
def test_an_and_keeps_every_condition(bridge: Bridge) -> None:
    written = bridge.writes(ir.And(FLAT), SCHEMA, bridge.semantics).exact()
    assert len(ir.conjuncts(bridge.reads(written, SCHEMA).exact())) >= TERMS


@pytest.mark.spark
def test_spark_columns_are_as_wide(spark: Any) -> None:
    from pyspark.sql import functions as f

    bridge = bridge_named("spark_columns")
    text = bridge_named("spark").writes(ir.Or(FLAT), SCHEMA, bridge.semantics).exact()
    read = bridge.reads(f.expr(text), SCHEMA).exact()
    assert isinstance(read, ir.Or)
    assert len(read.terms) == TERMS
    some = FLAT if IS_DEEP else FLAT[: TERMS // 20]  # each is thirty calls into the JVM
    for junction in (ir.Or, ir.And):
        column = bridge.writes(junction(some), SCHEMA, bridge.semantics).exact()
        read = bridge.reads(column, SCHEMA).exact()
        assert isinstance(read, junction)
        assert len(read.terms) == len(some)


def _terms(column: Callable[[str], Any], constant: Callable[[Any], Any], count: int) -> list[Any]:
    made = []
    for number in range(count):
        at = term(number)
        assert isinstance(at.left, ir.Column)
        assert isinstance(at.right, ir.Literal)
        compare = {">": operator.gt, "<": operator.lt, "<>": operator.ne}[at.op.value]
        made.append(compare(column(at.left.name), constant(at.right.value)))
    return made


def left_deep(name: str) -> tuple[Any, int]:
    """A chain of ORs, each with all that came before on its left, as loops over them make it."""
    match name:
        case "pyarrow_exprs":
            made = _terms(pc.field, lambda value: value, TERMS)
        case "polars":
            made = _terms(pl.col, pl.lit, TERMS)
        case "datafusion_exprs":
            made = _terms(col, lit, CHAIN_OF_DATAFUSION)
        case _:
            pairs = (f"id > {number} OR x < {number}.5" for number in range(TERMS // 2))
            return " OR ".join(pairs), TERMS
    return functools.reduce(operator.or_, made), len(made)


@pytest.mark.parametrize("name", ["pyarrow_exprs", "polars", "datafusion_exprs", "duckdb"])
def test_a_left_deep_chain_is_one_or(name: str) -> None:
    expression, count = left_deep(name)
    read = bridge_named(name).reads(expression, SCHEMA).exact()
    assert isinstance(read, ir.Or)
    assert len(read.terms) == count
    assert isinstance(expression, str | Expr | pl.Expr | pc.Expression)


def test_a_left_deep_chain_of_substrait_is_one_or() -> None:
    writer = SubstraitWriter(SCHEMA)
    terms = [writer.predicate(bind(item, SCHEMA).root) for item in FLAT[::3] * 3]
    chain = functools.reduce(
        lambda left, right: writer._boolean(substrait.BOOLEAN, "or", left, right), terms
    )
    read = from_substrait(writer.message([chain]), SCHEMA).exact()
    assert isinstance(read, ir.Or)
    assert len(read.terms) == len(terms)


def test_a_case_of_as_many_branches_is_read_and_written() -> None:
    branches = tuple((item, ir.Literal(value=True, type=Bool())) for item in FLAT[:1_500])
    chosen = ir.BooleanOperand(ir.Case(branches, ir.Literal(value=False, type=Bool())))
    bridge = bridge_named("duckdb")
    text = bridge.writes(chosen, SCHEMA, bridge.semantics).exact()
    read = bridge.reads(text, SCHEMA).exact()
    assert isinstance(read, ir.BooleanOperand)
    assert isinstance(read.operand, ir.Case)
    assert len(read.operand.branches) == len(branches)


@pytest.mark.parametrize("bridge", HERE, ids=lambda bridge: bridge.name)
def test_deeper_or_larger_conditions_are_rejected(bridge: Bridge) -> None:
    deep: ir.Predicate = FLAT[0]
    for number in range(10_000):
        deep = ir.Or((ir.Not(deep), FLAT[number % TERMS]))
    wide = ir.Or(tuple(ir.Or((item, item)) for item in FLAT) * (MAX_NODES // (6 * TERMS) + 1))
    if bridge.name == "rowsieve":
        return  # it hands on what it is given; whatever binds it looks
    for hostile, why in ((deep, "nests deeper"), (wide, "more than 200,000 nodes")):
        with pytest.raises(InvalidPredicate, match=why):
            bridge.writes(hostile, SCHEMA, bridge.semantics)


def test_ands_of_ors_do_not_multiply_without_end() -> None:
    pairs = ir.And(tuple(ir.Or((FLAT[n], FLAT[n + 1])) for n in range(40)))
    bridge = bridge_named("delta_dnf")
    assert f"{MAX_FILTERS:,}" in bridge.writes(pairs, SCHEMA, bridge.semantics).notes[0]
