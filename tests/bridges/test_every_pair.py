"""Random conditions between every two filter languages: no row is lost, none is gained unseen.

A condition is written in a source's words and translated into every target's, so that the source
writes and judges it once. Either end is judged by its engine where one runs here, otherwise by our
evaluator under the engine's rules, for which each bridge answers to its engine in tests of its own.
Every ordered pair gets the same number of conditions; those that Spark judges are tried where there
is a JVM.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.bridges.languages import BRIDGES, Bridge, bridge_named
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import Outcome, evaluate
from rowsieve.types.logical import Field, Float, Int, Uuid
from tests.bridges import awkward
from tests.bridges.judges import JUDGES
from tests.bridges.spark_columns.nasty import in_driver
from tests.bridges.spark_columns.outcomes import ROW, theirs
from tests.profiles import IS_DEEP, judged
from tests.strategies import SCHEMA, predicates

EACH = 16  # conditions a pair
ALWAYS = 7  # in `make test`, too: more than 1,000 of all pairs
LISTS = 2  # of conditions that Spark judges; the first is of the simplest ones
AT_ONCE = 12  # conditions that Spark judges in one query
ROWS = 24
MEMBERS = 1_000_000 if IS_DEEP else 20_000
NAN_SEED = 5  # of rows that hold NaN
FEWEST_SAID = 4  # of the conditions on NaN, in any language
LT = ir.ComparisonOp.LT
NEEDS_JAVA = ("spark_columns",)
HERE = [bridge for bridge in BRIDGES if bridge.name not in NEEDS_JAVA]
PAIR_COUNT = len(HERE) * (len(HERE) - 1)
SPARKS = [bridge_named(name) for name in ("spark", "spark_columns")]
SEEDS = st.integers(0, 9)
Mask = npt.NDArray[np.bool_]
Judge = Callable[[Bridge, Any, Mask], list[int] | None]


@cache
def rows(seed: int) -> pa.RecordBatch:
    return awkward.rows(seed, ROWS)


def name_of(value: Any) -> str:
    return str(value.name)


def matches(bridge: Bridge, words: Any, batch: pa.RecordBatch) -> Outcome | None:
    """What our evaluator makes of a condition; None if the bridge cannot read it whole."""
    read = bridge.reads(words, SCHEMA)
    if read.expression is None or read.residual is not None:
        return None
    return evaluate(bind(read.expression, SCHEMA, bridge.semantics), batch)


def judge_of(batch: pa.RecordBatch) -> Judge:
    """The rows of the batch, of those asked for, that a condition keeps; None where it fails."""

    def rows_kept(bridge: Bridge, words: Any, asked: Mask) -> list[int] | None:
        numbers = np.flatnonzero(asked)
        if (judge := JUDGES.get(bridge.name)) is not None:
            found = judge(words, batch.filter(pa.array(asked)))
            if found is not None:
                return sorted(numbers[found].tolist())
        outcome = matches(bridge, words, batch)
        if outcome is None or outcome.failed[asked].any():
            return None
        return np.flatnonzero(outcome.true & asked).tolist()

    return rows_kept


def in_one_query(
    spark: Any, words: Sequence[Any], asked: Sequence[Mask], batch: pa.RecordBatch
) -> list[list[int] | None]:
    """The rows that Spark keeps by each condition, SQL text or a column, of those asked for."""
    from pyspark.sql import functions as f

    if not words:
        return []
    numbered = batch.append_column(ROW, pa.array(range(batch.num_rows), pa.int32()))
    fields = (*SCHEMA.fields, Field(101, ROW, Int(32)))  # Arrow alone does not say what a UUID is
    frame = in_driver(spark, numbered, replace(SCHEMA, fields=fields))
    columns = [f.expr(each) if isinstance(each, str) else each for each in words]
    spared = [np.flatnonzero(~each).tolist() for each in asked]
    judged = theirs(frame, columns, spared)
    return [
        None if isinstance(found, str) else [row for row, true in enumerate(found) if true]
        for found in judged
    ]


@dataclass(frozen=True)
class Condition:
    """A condition in a source's words; `asked`: the rows on which it does not fail."""

    source: Bridge
    words: Any
    asked: Mask
    kept: dict[bytes, list[int] | None] = field(default_factory=dict)  # by the rows asked for

    def asked_of(self, target: Bridge, words: Any, batch: pa.RecordBatch) -> Mask:
        """Those of the rows on which the target's words do not fail either, as far as is known."""
        outcome = matches(target, words, batch)
        return self.asked if outcome is None else self.asked & ~outcome.failed

    def translated(self, target: Bridge) -> rs.Translation[Any, Any] | None:
        made = rs.translate(self.words, self.source.name, target=target.name, schema=SCHEMA)
        if made.expression is not None:
            return made
        assert made.exactness is rs.Exactness.UNSUPPORTED
        assert made.notes
        return None

    def check(self, target: Bridge, batch: pa.RecordBatch, rows_kept: Judge) -> None:
        """Translate it, and fail if the target's words lose a row, or gain one unseen."""
        if (made := self.translated(target)) is None:
            return
        asked = self.asked_of(target, made.expression, batch)
        found = rows_kept(target, made.expression, asked)
        self.compare(target, made, found, asked, rows_kept)

    def wanted(self, asked: Mask, rows_kept: Judge) -> list[int] | None:
        """The rows that the source's words keep; None where they fail."""
        if (rows := asked.tobytes()) not in self.kept:
            self.kept[rows] = rows_kept(self.source, self.words, asked)
        return self.kept[rows]

    def compare(
        self, target: Bridge, made: Any, found: list[int] | None, asked: Mask, rows_kept: Judge
    ) -> None:
        """Hold the rows that the target's words keep against those that the source's keep."""
        wanted = self.wanted(asked, rows_kept)
        if found is None or wanted is None:
            return  # one of the engines fails on a value
        where = (target.name, self.words, made.expression)
        if made.exactness is rs.Exactness.EXACT:
            assert found == wanted, where
            return
        assert set(found) >= set(wanted), where
        rest = rows_kept(self.source, made.residual, asked)
        assert rest is None or sorted(set(found) & set(rest)) == wanted, where


def said(source: Bridge, predicate: ir.Predicate, batch: pa.RecordBatch) -> Condition | None:
    """The predicate in the source's words; None where it has none that it reads again."""
    try:
        words = source.writes(predicate, SCHEMA, source.semantics).expression
    except InvalidPredicate:
        return None
    outcome = None if words is None else matches(source, words, batch)
    return None if outcome is None else Condition(source, words, ~outcome.failed)


@pytest.mark.parametrize("source", HERE, ids=name_of)
@judged(EACH, always=ALWAYS)
@given(predicate=predicates(1), seed=SEEDS)
def test_no_row_is_lost_on_the_way_to_any_other(
    source: Bridge, predicate: ir.Predicate, seed: int
) -> None:
    batch = rows(seed)
    condition = said(source, predicate, batch)
    assume(condition is not None)
    assert condition is not None
    for target in HERE:
        if target is not source:
            condition.check(target, batch, judge_of(batch))


HALF = ir.Literal(0.5, Float())
ON_NAN: list[ir.Predicate] = [
    *(ir.Comparison(op, ir.Column("f64"), HALF) for op in ir.ComparisonOp),
    *(ir.Comparison(op, HALF, ir.Column("f64")) for op in (LT, ir.ComparisonOp.GE)),
    *(ir.Not(ir.Comparison(op, ir.Column("f64"), HALF)) for op in (LT, ir.ComparisonOp.GT)),
]


@pytest.mark.parametrize("source", HERE, ids=name_of)
def test_nan_is_ordered_as_the_source_orders_it(source: Bridge) -> None:
    batch = rows(NAN_SEED)
    said_so = [each for predicate in ON_NAN if (each := said(source, predicate, batch))]
    assert len(said_so) >= FEWEST_SAID
    targets = [target for target in HERE if target.semantics.nan is not source.semantics.nan]
    assert targets
    for condition in said_so:
        for target in targets:
            condition.check(target, batch, judge_of(batch))


def test_the_rows_contain_nan_together_with_numbers_and_null() -> None:
    values = rows(NAN_SEED).column("f64").to_pylist()
    assert None in values
    assert any(value is not None and math.isnan(value) for value in values)
    assert {value > 0.5 for value in values if value is not None} == {True, False}


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[list[Any]]:
    """Spark's session, told to know times of day; in a list, as Hypothesis would print it whole."""
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield [spark]
    spark.conf.unset("spark.sql.timeType.enabled")


PREDICATES = st.lists(predicates(1), min_size=AT_ONCE, max_size=AT_ONCE)
UUIDS = ir.InList(
    ir.Column("uid"), ir.ValueSet(pa.array([b"\xff" * 16, None], pa.binary(16)), Uuid())
)


@pytest.mark.spark
@pytest.mark.parametrize("source", HERE, ids=name_of)
@judged(LISTS)
@given(asked=PREDICATES, seed=SEEDS)
@example(asked=[UUIDS], seed=4)
def test_no_row_is_lost_on_the_way_to_spark(
    session: list[Any], source: Bridge, asked: list[ir.Predicate], seed: int
) -> None:
    batch = rows(seed)
    conditions = [c for each in asked if (c := said(source, each, batch)) is not None]
    for target in SPARKS:
        made = [(c, m) for c in conditions if (m := c.translated(target)) is not None]
        words = [m.expression for _, m in made]
        masks = [c.asked_of(target, m.expression, batch) for c, m in made]
        judged = in_one_query(session[0], words, masks, batch)
        for (condition, one), found, mask in zip(made, judged, masks, strict=True):
            condition.compare(target, one, found, mask, judge_of(batch))


@pytest.mark.spark
@pytest.mark.parametrize("source", SPARKS, ids=name_of)
@judged(LISTS)
@given(asked=PREDICATES, seed=SEEDS)
@example(asked=[UUIDS], seed=4)
def test_no_row_is_lost_on_the_way_from_spark(
    session: list[Any], source: Bridge, asked: list[ir.Predicate], seed: int
) -> None:
    batch = rows(seed)
    conditions = [c for each in asked if (c := said(source, each, batch)) is not None]
    words, masks = [c.words for c in conditions], [c.asked for c in conditions]
    judged = in_one_query(session[0], words, masks, batch)
    for condition, kept in zip(conditions, judged, strict=True):
        if kept is None:
            continue
        for target in HERE:
            condition.check(target, batch, judge_that_knows(condition.words, kept, batch))


def judge_that_knows(known: Any, kept: list[int], batch: pa.RecordBatch) -> Judge:
    """A judge that has Spark's answer to one condition already."""
    here = judge_of(batch)

    def rows_kept(bridge: Bridge, words: Any, asked: Mask) -> list[int] | None:
        if words is known:
            return [row for row in kept if asked[row]]
        return here(bridge, words, asked)

    return rows_kept


@pytest.mark.parametrize("bridge", HERE, ids=lambda bridge: bridge.name)
def test_lists_of_many_values_pass(bridge: Bridge) -> None:
    values = ir.ValueSet(pa.array(range(MEMBERS)), Int(64))
    written = bridge.writes(ir.InList(ir.Column("i64"), values), SCHEMA, bridge.semantics).exact()
    again = bridge.reads(written, SCHEMA).exact()
    (listed,) = (node for node in ir.walk(again) if isinstance(node, ir.InList))
    assert set(listed.values.array.to_pylist()) == set(range(MEMBERS))


def test_every_bridge_but_sparks_columns_is_tried() -> None:
    assert {bridge.name for bridge in BRIDGES} - {bridge.name for bridge in HERE} <= {*NEEDS_JAVA}
    assert bridge_named("rowsieve") in HERE
    assert ALWAYS * PAIR_COUNT >= 1_000
