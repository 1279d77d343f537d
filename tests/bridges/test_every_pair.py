"""Random conditions between every two filter languages: no row is lost, none is gained unseen.

A condition is written in a source's words, translated, and read back by the target's bridge; either
end is judged by our evaluator under its engine's rules, for which each bridge answers to its engine
in tests of its own. Spark's columns, which need the JVM, are tried where there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.bridges.registry import BRIDGES, Bridge, bridge_named
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.ir import (
    Column,
    InList,
    Predicate,
    ValueSet,
    walk,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int
from tests.profiles import IS_DEEP, examples
from tests.strategies import SCHEMA, batches, predicates

CONDITIONS = 160 if IS_DEEP else 85  # each between its source and all targets
TO_SPARK, FROM_SPARK = 30, 6  # a column is analysed in the JVM, for every target anew
MEMBERS = 1_000_000 if IS_DEEP else 100_000
NEEDS_JAVA = ("spark_columns",)
HERE = [bridge for bridge in BRIDGES if bridge.name not in NEEDS_JAVA]
COLUMNS = bridge_named("spark_columns")


def judged(
    predicate: Predicate, batch: pa.RecordBatch, semantics: Semantics
) -> tuple[list[bool], bool]:
    """Which rows match, and whether any failed."""
    outcome = evaluate(bind(predicate, SCHEMA, semantics), batch)
    return outcome.true.tolist(), bool(outcome.failed.any())


def read(bridge: Bridge, expression: Any) -> Predicate:
    found = bridge.reads(expression, SCHEMA)
    assert found.expression is not None, (bridge.name, expression, found.notes)
    assert found.residual is None, (bridge.name, expression, found.notes)
    return found.expression


@pytest.fixture(scope="module")
def with_times(spark: Any) -> Iterator[None]:
    """Spark's session, which knows the type of times of day only if it is told to."""
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield
    spark.conf.unset("spark.sql.timeType.enabled")


@examples(CONDITIONS)
@given(source=st.sampled_from(HERE), predicate=predicates(1), batch=batches(min_rows=1, max_rows=4))
def test_no_row_is_lost_between_any_two(
    source: Bridge, predicate: Predicate, batch: pa.RecordBatch
) -> None:
    passes(source, HERE, predicate, batch)


@pytest.mark.spark
@pytest.mark.usefixtures("with_times")
@examples(TO_SPARK)
@given(source=st.sampled_from(HERE), predicate=predicates(1), batch=batches(min_rows=1, max_rows=4))
def test_no_row_is_lost_on_the_way_to_sparks_columns(
    source: Bridge, predicate: Predicate, batch: pa.RecordBatch
) -> None:
    passes(source, [COLUMNS], predicate, batch)


@pytest.mark.spark
@pytest.mark.usefixtures("with_times")
@examples(FROM_SPARK)
@given(predicate=predicates(1), batch=batches(min_rows=1, max_rows=4))
def test_no_row_is_lost_on_the_way_from_sparks_columns(
    predicate: Predicate, batch: pa.RecordBatch
) -> None:
    passes(COLUMNS, BRIDGES, predicate, batch)


def passes(
    source: Bridge, targets: Iterable[Bridge], predicate: Predicate, batch: pa.RecordBatch
) -> None:
    """Write the predicate in the source's words, and translate those to every target."""
    try:
        original = source.writes(predicate, SCHEMA, source.semantics).expression
    except InvalidPredicate:
        reject()
    if original is None:
        reject()
    before = source.reads(original, SCHEMA)
    if before.expression is None or before.residual is not None:
        reject()
    wanted, failed = judged(before.expression, batch, source.semantics)
    for target in targets:
        made = rs.translate(original, source.name, target=target.name, schema=SCHEMA)
        if made.expression is None:
            assert made.exactness is rs.Exactness.UNSUPPORTED
            assert made.notes
            continue
        back = target.reads(made.expression, SCHEMA)
        if back.expression is None or back.residual is not None:
            continue  # written with guards of the target's own, which nobody reads
        found, fails = judged(back.expression, batch, target.semantics)
        if failed or fails:
            continue
        where = (target.name, made.expression)
        if made.exactness is rs.Exactness.EXACT:
            assert found == wanted, where
        else:
            assert all(kept for kept, row in zip(found, wanted, strict=True) if row), where
            rest = source.reads(made.residual, SCHEMA)
            assert rest.residual is None
            if rest.expression is not None:
                left, left_failed = judged(rest.expression, batch, source.semantics)
                both = [a and b for a, b in zip(found, left, strict=True)]
                assert left_failed or both == wanted, where


@pytest.mark.parametrize("bridge", HERE, ids=lambda bridge: bridge.name)
def test_lists_of_many_values_pass(bridge: Bridge) -> None:
    values = ValueSet(pa.array(range(MEMBERS)), Int(64))
    written = bridge.writes(InList(Column("i64"), values), SCHEMA, bridge.semantics).exact()
    again = bridge.reads(written, SCHEMA).exact()
    (listed,) = (node for node in walk(again) if isinstance(node, InList))
    assert set(listed.values.array.to_pylist()) == set(range(MEMBERS))


def test_every_bridge_but_sparks_columns_is_tried() -> None:
    assert {bridge.name for bridge in BRIDGES} - {bridge.name for bridge in HERE} <= {*NEEDS_JAVA}
    assert bridge_named("rowsieve") in HERE
