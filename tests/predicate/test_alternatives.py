"""Values with holes: unions of few ranges, and columns of NaN alone."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest

from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.evaluate import compute, evaluate
from rowsieve.predicate.interpret import Verdict, interpret, interpret_operand
from rowsieve.predicate.interpretation.abstract import MAX_ALTERNATIVES, AbstractColumn
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Float, Int, LogicalType, String
from tests.predicate.functions.claims import outside
from tests.predicate.functions.sample_ranges import Parts, draw_parts, schema_of
from tests.profiles import DEEP_FACTOR, IS_DEEP
from tests.strategies import SEMANTICS, arrow_array

TYPES: Mapping[str, LogicalType] = {"x": Int(8), "y": Int(8), "f": Float(64), "s": String()}
SCHEMA = schema_of(TYPES)
X, Y, F, S = (ir.Column(name) for name in TYPES)
OPS = (
    *(ir.ComparisonOp.EQ, ir.ComparisonOp.NE, ir.ComparisonOp.LT),
    *(ir.ComparisonOp.LE, ir.ComparisonOp.GE),
)
ROUNDS = 50 * (DEEP_FACTOR if IS_DEEP else 1)


def whole(value: int) -> ir.Literal:
    return ir.Literal(value, Int(8))


def _number(rng: random.Random) -> ir.Literal:
    return whole(rng.choice([-128, -127, -9, -3, -1, 0, 1, 2, 7, 99, 126, 127]))


def _choice(rng: random.Random, depth: int = 2) -> ir.Operand:
    """Whole numbers of a few ranges: NULLIF, coalesce, CASE, and functions of these."""
    if depth == 0:
        leaves: list[ir.Operand] = [X, X, Y, _number(rng)]
        return rng.choice(leaves)
    inner = [_choice(rng, depth - 1) for _ in range(3)]
    kind = rng.randrange(6)
    if kind == 0:
        others: list[ir.Operand] = [_number(rng), Y]
        return ir.Call("nullif", (inner[0], rng.choice(others)))
    if kind == 1:
        return ir.Call(
            rng.choice(["coalesce", "greatest", "least"]), tuple(inner[: rng.choice([2, 3])])
        )
    if kind == 2:
        branches = tuple(
            (ir.Comparison(rng.choice(OPS), X, _number(rng)), each) for each in inner[:2]
        )
        return ir.Case(branches, inner[2])
    if kind == 3:
        return ir.Call(rng.choice(["abs", "negate"]), (inner[0],))
    if kind == 4:
        return ir.Call(rng.choice(["add", "multiply", "modulo"]), (inner[0], inner[1]))
    return ir.Cast(inner[0], Int(8), try_=rng.random() < 0.5)


def _fact(rng: random.Random) -> ir.Predicate:
    """What leaves several ranges of a column."""
    column = rng.choice([X, Y])
    leaves: list[ir.Predicate] = [
        ir.Comparison(rng.choice(OPS), column, _number(rng)) for _ in range(rng.choice([2, 3]))
    ]
    listed = ir.ValueSet(pa.array([_number(rng).value for _ in range(3)], pa.int8()), Int(8))
    kind = rng.randrange(5)
    if kind == 0:
        return ir.Or((ir.And((leaves[0], leaves[1])), *leaves[2:], ir.InList(column, listed)))
    if kind == 1:
        return ir.Or(tuple(leaves))
    if kind == 2:
        return ir.Comparison(ir.ComparisonOp.NE, column, _number(rng))
    inside = ir.InList(column, listed)
    return ir.Not(inside) if kind == 3 else inside


def _condition(rng: random.Random) -> ir.Predicate:
    kind = rng.randrange(6)
    if kind > 3:
        return ir.And((_fact(rng), *(_fact(rng) for _ in range(kind - 4)), _condition(rng)))
    if kind == 0:
        members: list[int | None] = [_number(rng).value for _ in range(3)]  # type: ignore[misc]
        members += [None] if rng.random() < 0.2 else []
        return ir.InList(_choice(rng), ir.ValueSet(pa.array(members, pa.int8()), Int(8)))
    if kind == 1:
        texts = tuple(ir.Literal(text, String()) for text in rng.sample(["", "a", "ab", "b"], 2))
        chosen: list[ir.Operand] = [ir.Call("nullif", (S, texts[0])), S]
        made = ir.Call("coalesce", (rng.choice(chosen), texts[1]))
        return ir.Like(made, rng.choice(["a%", "ab", "%b", "_"]))
    if kind == 2:
        floats = [ir.Literal(value, Float(64)) for value in (math.nan, 0.5, -0.0, math.inf)]
        reals: list[ir.Operand] = [F, ir.Call("coalesce", (F, rng.choice(floats)))]
        return ir.Comparison(rng.choice(OPS), rng.choice(reals), rng.choice(floats))
    sides: list[ir.Operand] = [_number(rng), Y]
    return ir.Comparison(rng.choice(OPS), _choice(rng), rng.choice(sides))


@pytest.mark.parametrize("semantics", SEMANTICS, ids=lambda semantics: semantics.name)
def test_values_lie_in_their_alternatives(semantics: Semantics) -> None:
    rng, met = random.Random(7), 0
    for _ in range(ROUNDS):
        bound = bind_operand(_choice(rng), SCHEMA, semantics)
        parts = draw_parts(TYPES, rng, 30, nans=rng)
        may = interpret_operand(bound, parts)
        met += bool(may.alternatives)
        assert len(may.alternatives) <= MAX_ALTERNATIVES
        values, failed = compute(bound, parts.batch)
        wrong = outside(values, failed, may, parts.part_of_row)
        assert not wrong.any(), (
            bound.root,
            parts.batch.slice(int(np.argmax(wrong)), 1).to_pylist(),
        )
    assert met > ROUNDS // 4


@pytest.mark.parametrize("semantics", SEMANTICS, ids=lambda semantics: semantics.name)
def test_verdicts_of_values_with_holes_hold_of_every_row(semantics: Semantics) -> None:
    rng, decided = random.Random(8), 0
    for _ in range(ROUNDS):
        bound = bind(_condition(rng), SCHEMA, semantics)
        parts = draw_parts(TYPES, rng, 30, nans=rng)
        verdicts = interpret(bound, parts)[parts.part_of_row]
        outcome = evaluate(bound, parts.batch)
        assert not ((outcome.true | outcome.failed) & (verdicts == Verdict.NONE)).any(), bound.root
        assert not (~outcome.true & (verdicts == Verdict.ALL)).any(), bound.root
        decided += int((verdicts != Verdict.SOME).sum())
    assert decided


def _part(**cells: Sequence[object]) -> Parts:
    """One part of these rows with exact statistics."""
    known = {}
    for name, values in cells.items():
        present = [each for each in values if each is not None]
        numbers = [each for each in present if not isinstance(each, float) or not math.isnan(each)]
        type_ = TYPES[name]
        known[name] = AbstractColumn(
            arrow_array([min(numbers, default=None)], type_),  # type: ignore[type-var]
            arrow_array([max(numbers, default=None)], type_),  # type: ignore[type-var]
            np.array([not present]),
            np.array([len(present) < len(values)]),
            np.array([len(numbers) < len(present)]),
            all_nan=np.array([bool(present) and not numbers]),
        )
    batch = pa.record_batch(
        {name: arrow_array([*each], TYPES[name]) for name, each in cells.items()}
    )
    return Parts(batch, np.zeros(batch.num_rows, np.int64), known)


ROWS = _part(x=[1, 2, None], y=[50, 60, 70], s=["m", "n", None])
EQ, NE, LT, GT = ir.ComparisonOp.EQ, ir.ComparisonOp.NE, ir.ComparisonOp.LT, ir.ComparisonOp.GT
FLAG = ir.Case(((ir.Comparison(GT, X, whole(1)), whole(3)),), whole(90))
HOLES: Mapping[str, tuple[ir.Predicate, Verdict]] = {
    "between two columns of coalesce": (
        ir.Comparison(EQ, ir.Call("coalesce", (X, Y)), whole(9)),
        Verdict.NONE,
    ),
    "between the branches of CASE": (ir.Comparison(EQ, FLAG, whole(7)), Verdict.NONE),
    "in a function of CASE": (
        ir.Comparison(GT, ir.Call("abs", (ir.Call("subtract", (FLAG, whole(40))),)), whole(30)),
        Verdict.ALL,
    ),
    "a list between the branches": (
        ir.InList(FLAG, ir.ValueSet(pa.array([4, 80], pa.int8()), Int(8))),
        Verdict.NONE,
    ),
    "a list of both branches": (
        ir.InList(FLAG, ir.ValueSet(pa.array([3, 90], pa.int8()), Int(8))),
        Verdict.ALL,
    ),
    "at the end of NULLIF": (
        ir.Comparison(EQ, ir.Call("nullif", (Y, whole(50))), whole(50)),
        Verdict.NONE,
    ),
    "within NULLIF": (
        ir.Comparison(EQ, ir.Call("add", (ir.Call("nullif", (Y, whole(55))), whole(1))), whole(56)),
        Verdict.NONE,
    ),
    "of text": (ir.Like(ir.Call("coalesce", (S, ir.Literal("a", String()))), "f%"), Verdict.NONE),
    "NULLIF of a value that may be NULL has none": (
        ir.Comparison(EQ, ir.Call("nullif", (Y, X)), whole(55)),
        Verdict.SOME,
    ),
}


WIDE = _part(x=[1, 30, 50], y=[1, 2, 3])


def _plus_one(value: int) -> ir.Predicate:
    return ir.Comparison(EQ, ir.Call("add", (X, whole(1))), whole(value))


def _either(*terms: ir.Predicate) -> ir.Predicate:
    return ir.Or((ir.Comparison(LT, X, whole(10)), ir.Comparison(GT, X, whole(40)), *terms))


def _listed(*members: int) -> ir.Predicate:
    return ir.InList(X, ir.ValueSet(pa.array(members, pa.int8()), Int(8)))


FAILING = ir.Comparison(EQ, ir.Call("divide", (X, Y)), whole(10))
TOGETHER: Mapping[str, tuple[tuple[ir.Predicate, ...], Verdict]] = {
    "between two ranges": ((_either(), _plus_one(20)), Verdict.NONE),
    "in one of two ranges": ((_either(), _plus_one(42)), Verdict.SOME),
    "two ranges of two ranges": (
        (
            _either(),
            ir.Or((ir.Comparison(LT, X, whole(5)), ir.Comparison(EQ, X, whole(45)))),
            _plus_one(50),
        ),
        Verdict.NONE,
    ),
    "ranges that exclude each other": ((_either(), _listed(15, 30)), Verdict.NONE),
    "few members of a list": ((_listed(2, 49), _plus_one(20)), Verdict.NONE),
    "a member of a list": ((_listed(2, 49), _plus_one(3)), Verdict.SOME),
    "a value that it is not": ((ir.Comparison(NE, X, whole(20)), _plus_one(21)), Verdict.NONE),
    "values that it is not": ((ir.Not(_listed(20, 21)), _plus_one(22)), Verdict.NONE),
    "besides a branch of another column": (
        (_either(ir.Comparison(EQ, Y, whole(2))), _plus_one(20)),
        Verdict.SOME,
    ),
    "besides a branch that may fail": ((_either(FAILING), _plus_one(20)), Verdict.SOME),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_conjuncts_leave_ranges(name: str) -> None:
    terms, expected = TOGETHER[name]
    assert interpret(bind(ir.And(terms), SCHEMA, Semantics.SQL), WIDE) == [expected]


@pytest.mark.parametrize("name", HOLES)
def test_holes_decide(name: str) -> None:
    predicate, expected = HOLES[name]
    assert interpret(bind(predicate, SCHEMA, Semantics.SQL), ROWS) == [expected]


def test_nullif_has_no_hole_where_the_other_may_be_null() -> None:
    part = _part(x=[5, None], y=[9, 5])
    five = ir.Comparison(EQ, ir.Call("nullif", (Y, X)), whole(5))
    assert interpret(bind(five, SCHEMA, Semantics.SQL), part) == [Verdict.SOME]


def test_the_fifth_alternative_joins_the_fourth() -> None:
    names = [whole(value) for value in (0, 20, 40, 60, 80)]
    branches = tuple(
        (ir.Comparison(EQ, X, whole(i)), then) for i, then in enumerate(names[:-1], start=1)
    )
    part = _part(x=[1, 2, 3, 4, 5])
    many = bind_operand(ir.Case(branches, names[-1]), SCHEMA, Semantics.SQL)
    ends = [
        (one.lower[0].as_py(), one.upper[0].as_py())
        for one in interpret_operand(many, part).alternatives
    ]
    assert ends == [(0, 0), (20, 20), (40, 40), (60, 80)]


def test_a_column_of_nan_alone_is_above_every_number() -> None:
    part = _part(f=[math.nan, None, math.nan])
    for op, number in itertools.product(OPS, (-math.inf, 0.0, math.inf)):
        found = interpret(bind(ir.Comparison(op, F, ir.Literal(number, Float(64))), SCHEMA), part)
        below = op in (ir.ComparisonOp.EQ, ir.ComparisonOp.LT, ir.ComparisonOp.LE)
        assert found == [Verdict.NONE if below else Verdict.SOME], op  # a row is NULL


NAN = ir.Literal(math.nan, Float(64))
OF_NAN: Mapping[str, tuple[ir.Predicate, Verdict]] = {
    **{
        f"f {op.value} NaN": (
            ir.Comparison(op, F, NAN),
            Verdict.NONE if op in (NE, LT, GT) else Verdict.ALL,
        )
        for op in OPS
        if op not in (ir.ComparisonOp.DISTINCT, ir.ComparisonOp.NOT_DISTINCT)
    },
    "NaN <= f": (ir.Comparison(ir.ComparisonOp.LE, NAN, F), Verdict.ALL),
    "f IS DISTINCT FROM NaN": (ir.Comparison(ir.ComparisonOp.DISTINCT, F, NAN), Verdict.NONE),
    "f IN (1.0, NaN)": (
        ir.InList(F, ir.ValueSet(pa.array([1.0, math.nan]), Float(64))),
        Verdict.ALL,
    ),
    "f NOT IN (NaN)": (
        ir.Not(ir.InList(F, ir.ValueSet(pa.array([math.nan]), Float(64)))),
        Verdict.NONE,
    ),
    "f IN (1.0)": (ir.InList(F, ir.ValueSet(pa.array([1.0]), Float(64))), Verdict.NONE),
    "abs(f) < NaN": (ir.Comparison(LT, ir.Call("abs", (F,)), NAN), Verdict.NONE),
}


@pytest.mark.parametrize("name", OF_NAN)
def test_a_column_of_nan_alone_is_a_point(name: str) -> None:
    predicate, expected = OF_NAN[name]
    part = _part(f=[math.nan, math.nan])
    assert interpret(bind(predicate, SCHEMA, Semantics.SQL), part) == [expected]


@pytest.mark.parametrize("op", OPS)
def test_a_column_with_a_number_is_no_point(op: ir.ComparisonOp) -> None:
    part = _part(f=[math.nan, 1.0])
    found = interpret(bind(ir.Comparison(op, F, NAN), SCHEMA, Semantics.SQL), part)
    always = {GT: Verdict.NONE, ir.ComparisonOp.LE: Verdict.ALL}  # nothing is above NaN
    assert found == [always.get(op, Verdict.SOME)]


@pytest.mark.parametrize("op", OPS)
def test_nan_alone_is_no_point_under_ieee_754(op: ir.ComparisonOp) -> None:
    part = _part(f=[math.nan, math.nan])
    found = interpret(bind(ir.Comparison(op, F, NAN), SCHEMA, Semantics.PYARROW), part)
    outcome = evaluate(bind(ir.Comparison(op, F, NAN), SCHEMA, Semantics.PYARROW), part.batch)
    assert not (outcome.true.any() and found == [Verdict.NONE])
    assert not (not outcome.true.all() and found == [Verdict.ALL])
