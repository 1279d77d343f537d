"""What is written keeps, in DataFusion, the rows that our evaluator keeps."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from rowsieve.bridges.datafusion_exprs import from_datafusion, to_datafusion
from rowsieve.bridges.translation import Exactness
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Float
from tests.bridges.conformance import ours
from tests.bridges.datafusion_exprs.engine import theirs
from tests.strategies import IEEE, SCHEMA, arrow_array


def equals(name: str, value: int) -> ir.Comparison:
    return ir.Comparison(ir.ComparisonOp.EQ, ir.Column(name), ir.Literal(value))


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


@pytest.mark.parametrize("name", ["u8", "u64"])
def test_the_negative_of_an_unsigned_number_stays_behind(name: str) -> None:
    negative = ir.Call("negate", (ir.Column(name),))
    made = to_datafusion(ir.Comparison(ir.ComparisonOp.EQ, negative, ir.Literal(0)), SCHEMA)
    assert made.expression is None
    assert "only for signed numbers" in made.notes[0]


def test_names_are_taken_as_they_are_written() -> None:

    batch = pa.record_batch({'A "b".c': pa.array(["x", "y"])})
    predicate = ir.Comparison(ir.ComparisonOp.EQ, ir.Column('A "b".c'), ir.Literal("y"))
    written = to_datafusion(predicate, schema_of(batch.schema)[0]).exact()
    assert theirs(written, batch) == [1]
    assert from_datafusion(written, schema_of(batch.schema)[0]).exact() == predicate
