"""pyiceberg's expressions both ways: the rows that its scans and its evaluator keep."""

from __future__ import annotations

import datetime
import decimal
import functools
import inspect
import math
import operator
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyiceberg.expressions as ice
import pyiceberg.expressions.literals as ice_literals
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from pyiceberg.expressions.visitors import bind as bind_expression

import rowsieve as rs
from rowsieve.bridges.iceberg_exprs import (
    from_iceberg,
    function_table,
    is_iceberg_expression,
    to_iceberg,
)
from rowsieve.bridges.iceberg_exprs.read import foreign_schema
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import UnknownColumn, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Float, Int, String
from tests.bridges.conformance import awkward_batch, ours
from tests.bridges.iceberg_exprs.engine import judged, scanned
from tests.profiles import examples
from tests.strategies import (
    SCHEMA,
)

D = decimal.Decimal
UTC = datetime.UTC
MOMENT = datetime.datetime(2013, 1, 1, 10, 30)
CONSTANTS: dict[str, list[Any]] = {
    "b": [True, False],
    "i8": [0, 1, -1, 127, 200, 2**40, "7"],
    "i32": [0, 7, 2**31 - 1, 2**31, -(2**40), D("1.5")],
    "i64": [0, 1, 2**63 - 1, -(2**63)],
    "u8": [0, 255, 256, -1],
    "f32": [0.0, -0.0, 0.1, 1.5, 7, 1e300, -math.inf, D("0.1")],
    "f64": [0.0, -0.0, 0.1, 1.5, 7, math.inf, D("0.1")],
    "d": [D("1.50"), D("-2.50"), 7, "0.50"],
    "s": ["", "a", "ab", "é", "\U0010ffff"],
    "bin": [b"", b"a", b"\xff"],
    "day": [datetime.date(1970, 1, 1), "2013-01-01", 15_706],
    "time": [datetime.time(10, 30), 0],
    "ts": [MOMENT, "1969-12-31T00:00:00", 0],
    "tz": [MOMENT.replace(tzinfo=UTC), "2013-01-01T10:30:00+00:00", 1],
    "uid": [uuid.UUID(int=0), uuid.UUID(bytes=b"a" * 16)],
    "pair.x": [1, 2, -1],
    "pair.y": ["a", ""],
}
BY_NAME = [row.foreign for row in function_table.PREDICATES]


@st.composite
def leaves(draw: st.DrawFn) -> ice.BooleanExpression:
    name = draw(st.sampled_from(list(CONSTANTS)))
    kind: Any = getattr(ice, draw(st.sampled_from(BY_NAME)))
    if issubclass(kind, ice.UnaryPredicate):
        return kind(name)
    if issubclass(kind, ice.SetPredicate):
        return kind(name, draw(st.lists(st.sampled_from(CONSTANTS[name]), max_size=4)))
    if "StartsWith" in kind.__name__:
        return kind(draw(st.sampled_from(["s", "pair.y"])), draw(st.sampled_from(CONSTANTS["s"])))
    return kind(name, draw(st.sampled_from(CONSTANTS[name])))


EXPRESSIONS = st.recursive(
    leaves() | st.sampled_from([ice.AlwaysTrue(), ice.AlwaysFalse()]),
    lambda below: (
        st.builds(ice.And, below, below)
        | st.builds(ice.Or, below, below)
        | st.builds(ice.Not, below)
    ),
    max_leaves=5,
)


@pytest.mark.parametrize("meaning", ["scan", "evaluator"])
@examples(250)
@given(expression=EXPRESSIONS, seed=st.integers(0, 99))
def test_rows_are_those_of_pyiceberg(
    meaning: Any, expression: ice.BooleanExpression, seed: int
) -> None:
    batch = awkward_batch(seed)
    read = from_iceberg(expression, SCHEMA, meaning=meaning)
    if read.exactness is not Exactness.EXACT:
        assert any(reason in str(read.notes) for reason in ("cannot bind it", "beyond the column"))
        return
    try:
        found = (scanned if meaning == "scan" else judged)(expression, SCHEMA, batch)
    except pa.ArrowException:
        reject()
    if found is not None:
        assert ours(read.exact(), SCHEMA, batch, Semantics.ICEBERG) == found


def test_every_class_is_listed() -> None:
    found = {
        name
        for module in (ice, ice_literals)
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and value.__module__ == module.__name__
        and issubclass(value, ice.BooleanExpression | ice.Term | ice_literals.Literal)
        and not inspect.isabstract(value)
    }
    bases = {"Term", "AboveMax", "BelowMin"}
    assert found - bases == set(function_table.ROWS)


@pytest.mark.parametrize("meaning", ["scan", "evaluator"])
@examples(60)
@given(expression=EXPRESSIONS, seed=st.integers(0, 99))
def test_bound_expressions_are_read_as_unbound_ones(
    meaning: Any, expression: ice.BooleanExpression, seed: int
) -> None:
    read = from_iceberg(expression, SCHEMA, meaning=meaning)
    if read.exactness is not Exactness.EXACT:
        return
    bound = bind_expression(foreign_schema(SCHEMA), expression, case_sensitive=True)
    again = from_iceberg(bound, SCHEMA, meaning=meaning)
    if "pair." in str(expression):
        return
    both = (
        ours(it.exact(), SCHEMA, awkward_batch(seed), Semantics.ICEBERG) for it in (read, again)
    )
    assert next(both) == next(both)


def test_members_bound_elsewhere_are_not_guessed() -> None:
    inner = ice.EqualTo("pair.x", 1).bind(foreign_schema(SCHEMA))
    assert "give it unbound" in from_iceberg(inner, SCHEMA).notes[0]
    other = schema_of(pa.schema([("s", pa.int64())]))[0]
    wrong = ice.EqualTo("s", 1).bind(foreign_schema(other))
    assert "was bound as long" in from_iceberg(wrong, SCHEMA).notes[0]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (ice.EqualTo("i32", 1.5), "Cannot convert DoubleLiteral into int"),
        (ice.EqualTo("d", D("1.5")), "Could not convert 1.5"),
        (ice.In("i32", [1, 2**40]), "beyond the column's type"),
        (ice.EqualTo("u64", 1), "Could not find field with name u64"),
        (ice.EqualTo("s.x", 1), "Could not find field with name s.x"),
        (ice.StartsWith("i32", "1"), "is not a valid string"),
    ],
    ids=str,
)
def test_expressions_that_pyiceberg_cannot_bind_go_to_the_residual(
    expression: Any, reason: str
) -> None:
    read = from_iceberg(ice.And(ice.IsNull("i32"), expression), SCHEMA)
    assert read.expression == ir.IsNull(ir.Column("i32"))
    assert reason in read.notes[0]
    assert read.notes[0].startswith("condition 2 of 2")
    assert read.residual == expression
    with pytest.raises(UnsupportedOperation, match="condition 2 of 2"):
        from_iceberg(ice.And(ice.IsNull("i32"), expression), SCHEMA, strict=True)
    for kept in (ice.Or(ice.IsNull("i32"), expression), ice.Not(ice.Or(expression, expression))):
        assert from_iceberg(kept, SCHEMA).expression is None


def test_a_scan_and_the_evaluator_differ_about_null() -> None:
    batch = pa.record_batch({"x": pa.array([1, 2, None])})
    schema = schema_of(batch.schema)[0]
    other = ice.NotEqualTo("x", 1)
    for meaning, found in (("scan", [1]), ("evaluator", [1, 2])):
        read = from_iceberg(other, schema, meaning=meaning).exact()  # type: ignore[arg-type]
        assert ours(read, schema, batch, Semantics.ICEBERG) == found
    assert scanned(other, schema, batch) == [1]
    assert judged(other, schema, batch) == [1, 2]
    unequal = ir.Comparison(ir.ComparisonOp.NE, ir.Column("x"), ir.Literal(1, Int(64)))
    written = to_iceberg(unequal, schema).exact()
    assert written == ice.And(ice.NotNull("x"), other)
    assert scanned(written, schema, batch) == judged(written, schema, batch) == [1]


def test_conditions_without_an_iceberg_expression_go_to_the_residual() -> None:
    one = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("i32"), ir.Literal(1, Int(32)))
    two = ir.Comparison(ir.ComparisonOp.LT, ir.Column("i32"), ir.Column("i8"))
    written = to_iceberg(ir.And((one, two)), SCHEMA)
    assert written.exactness is Exactness.SUPERSET
    assert written.expression == ice.EqualTo("i32", 1)
    assert written.residual == two
    elsewhere = ir.Opaque("rlike(s, 'a')", "spark", ("s",))
    for predicate in (ir.Or((one, elsewhere)), ir.Not(ir.And((one, elsewhere)))):
        assert to_iceberg(predicate, SCHEMA).expression is None
    infinite = ir.Comparison(ir.ComparisonOp.LT, ir.Column("f32"), ir.Literal(math.inf, Float(32)))
    assert "infinite float32" in to_iceberg(infinite, SCHEMA).notes[0]
    zeros = ir.InList(ir.Column("f64"), ir.ValueSet(pa.array([0.0, 1.0, 2.0, 3.0]), Float(64)))
    assert "-0.0" in to_iceberg(zeros, SCHEMA, Semantics.DATAFUSION).notes[0]
    assert to_iceberg(zeros, SCHEMA, Semantics.SQL).exactness is Exactness.EXACT


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_lists_find_zeros_of_both_signs(zero: float) -> None:
    listed = ir.InList(ir.Column("f64"), ir.ValueSet(pa.array([zero, 1.0, 2.0]), Float(64)))
    for predicate in (listed, ir.Not(listed)):
        written = to_iceberg(predicate, SCHEMA, Semantics.SQL).exact()
        mine = ours(predicate, SCHEMA, awkward_batch(0), Semantics.SQL)
        assert scanned(written, SCHEMA, awkward_batch(0)) == mine
        assert judged(written, SCHEMA, awkward_batch(0)) == mine


def test_a_dot_in_a_column_name_is_not_a_path() -> None:
    schema = schema_of(pa.schema([("a.b", pa.string())]))[0]
    dotted = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("a.b"), ir.Literal("x", String()))
    assert "would be a path" in to_iceberg(dotted, schema).notes[0]


def test_long_chains_pass() -> None:
    chain = functools.reduce(operator.or_, [ice.EqualTo("i64", n) for n in range(10_000)])
    read = from_iceberg(chain, SCHEMA).exact()
    assert isinstance(read, ir.Or)
    assert len(read.terms) == 10_000
    written = to_iceberg(read, SCHEMA).exact()
    assert from_iceberg(written, SCHEMA).exact() == read
    few = functools.reduce(operator.or_, [ice.EqualTo("i64", n) for n in range(50)])
    nested = functools.reduce(lambda inner, _: ice.Not(ice.And(inner, few)), range(300), few)
    assert "nests deeper" in from_iceberg(nested, SCHEMA).notes[0]


def test_scans_take_expressions(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2, 3], "x": [math.nan, 1.0, None]})
    t = rs.create_table(str(tmp_path / "t"), data, key=["id"])
    assert t.scan(where=ice.GreaterThan("x", 0.0)).to_arrow()["id"].to_pylist() == [2]
    assert t.scan(where=ice.NotEqualTo("id", 2)).count() == 2
    with pytest.raises(UnknownColumn):
        t.scan(where=ice.IsNull("nowhere"))
    assert is_iceberg_expression(ice.AlwaysTrue())
    assert not is_iceberg_expression("id")
