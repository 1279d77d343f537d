"""What one engine means is said in another's words, or refused: every rule, every function."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from rowsieve.bridges.meanings import RULES, differ, keep_meaning
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.evaluate import Outcome, compute, evaluate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Float
from rowsieve.types.schema import Schema
from tests.bridges.sql.spelled import CALLS, OTHERS, table
from tests.profiles import examples
from tests.strategies import IEEE, SCHEMA, batches, predicates

KNOWN = [value for value in vars(Semantics).values() if isinstance(value, Semantics)] + [IEEE]
PAIRS = list(itertools.permutations(KNOWN, 2))
NAMES = [f"{ours.name}-{theirs.name}" for ours, theirs in PAIRS]
ROWS = table().combine_chunks().to_batches()[0]
COLUMNS = schema_of(ROWS.schema)[0]
FLOATS = [1.0, -0.0, 0.0, math.nan, math.inf, -math.inf, None]


def test_every_rule_has_a_handler() -> None:
    assert {field.name for field in fields(Semantics)} == RULES


def outcome(
    predicate: ir.Predicate, schema: Schema, batch: pa.RecordBatch, semantics: Semantics
) -> Any:
    return truth(evaluate(bind(predicate, schema, semantics, simplified=False), batch))


def truth(found: Outcome) -> Any:
    return found.true.tolist(), found.null.tolist(), found.failed.tolist()


@examples(250)
@given(number=st.integers(0, len(PAIRS) - 1), predicate=predicates(1), batch=batches(min_rows=1))
def test_random_conditions_are_true_false_and_null_alike(
    number: int, predicate: ir.Predicate, batch: pa.RecordBatch
) -> None:
    ours, theirs = PAIRS[number]
    try:
        bound = bind(predicate, SCHEMA, ours, simplified=False)
        kept = keep_meaning(bound.root, ours, theirs)
        bind(kept, SCHEMA, theirs, simplified=False)
    except (InvalidPredicate, UnsupportedOperation):
        reject()
    assert outcome(kept, SCHEMA, batch, theirs) == outcome(predicate, SCHEMA, batch, ours)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=NAMES)
def test_functions_with_other_results_are_rejected(ours: Semantics, theirs: Semantics) -> None:
    calls = [call for group in (*CALLS.values(), *OTHERS.values()) for call in group]
    for call in calls:
        mine, other = values(call, ours), values(call, theirs)
        if mine is None or mine == other:
            continue
        bound = bind(ir.IsNull(call), COLUMNS, ours, simplified=False)
        with pytest.raises(UnsupportedOperation):
            keep_meaning(bound.root, ours, theirs)


@pytest.mark.parametrize("divisor", [ir.Column("i"), ir.Literal(-1)])
def test_remainders_that_overflow_in_one_engine_are_refused(divisor: ir.Operand) -> None:
    bound = bind(ir.IsNull(ir.Call("modulo", (ir.Column("k"), divisor))), COLUMNS, Semantics.DUCKDB)
    with pytest.raises(UnsupportedOperation, match="modulo of the least whole number by -1"):
        keep_meaning(bound.root, Semantics.DUCKDB, Semantics.SQL)


@cache
def values(operand: ir.Operand, semantics: Semantics) -> list[str] | None:
    try:
        found, failed = compute(bind_operand(operand, COLUMNS, semantics), ROWS)
    except InvalidPredicate:
        return None
    return [
        "failed" if bad else repr(value)
        for value, bad in zip(found.to_pylist(), failed, strict=True)
    ]


@cache
def zeros_and_nan() -> tuple[Schema, pa.RecordBatch, tuple[ir.Predicate, ...]]:
    """Every pair of the floats, and conditions of two columns, constants and lists over them."""
    pairs = list(itertools.product(FLOATS, FLOATS))
    batch = pa.record_batch(
        {
            "a": pa.array([a for a, _ in pairs], pa.float64()),
            "b": pa.array([b for _, b in pairs], pa.float64()),
        }
    )
    schema = schema_of(batch.schema)[0]
    a, b = (bind_operand(operand, schema).root for operand in map(column, "ab"))
    constants = [ir.Literal(value, Float(64)) for value in FLOATS]
    conditions: list[ir.Predicate] = [
        ir.Comparison(op, left, right)
        for op in ir.ComparisonOp
        for left, right in [
            (a, b),
            *((a, item) for item in constants),
            *((item, b) for item in constants),
        ]
    ]
    conditions += [
        ir.InList(a, ir.ValueSet(pa.array(members, pa.float64()), Float(64)))
        for size in (1, 2, 4, 5)
        for members in itertools.combinations(FLOATS, size)
    ]
    return schema, batch, tuple(w for each in conditions for w in (each, ir.Not(each)))


@cache
def meant(semantics: Semantics) -> list[tuple[ir.Predicate, Any]]:
    """Each condition as `semantics` binds it, and its outcome."""
    schema, batch, conditions = zeros_and_nan()
    bound = [bind(whole, schema, semantics, simplified=False) for whole in conditions]
    return [(each.root, truth(evaluate(each, batch))) for each in bound]


@cache
def outcome_of_floats(predicate: ir.Predicate, semantics: Semantics) -> Any:
    schema, batch, _ = zeros_and_nan()
    return outcome(predicate, schema, batch, semantics)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=NAMES)
def test_guards_for_nan_and_zeros_combine(ours: Semantics, theirs: Semantics) -> None:
    for root, wanted in meant(ours):
        try:
            kept = keep_meaning(root, ours, theirs)
        except UnsupportedOperation as error:
            assert "-0.0" in str(error)  # noqa: PT017 - most are not refused
            continue
        assert outcome_of_floats(kept, theirs) == wanted, root


def column(name: str) -> ir.Operand:
    return ir.Column(name)


def test_equal_rules_change_nothing() -> None:
    assert not differ(Semantics.SQL, Semantics.SQL)
    assert differ(Semantics.SQL, Semantics.SPARK)
