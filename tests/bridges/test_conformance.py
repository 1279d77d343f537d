"""Every bridge whose engine runs here keeps the promises of `conformance`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.languages import Bridge, bridge_named
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int
from tests.bridges.conformance import (
    SEEDS,
    awkward_batch,
    check_read_back,
    check_written,
    ours,
    simple_predicates,
)
from tests.bridges.judges import JUDGES
from tests.oracle_texts import known_texts
from tests.profiles import examples
from tests.strategies import SCHEMA, SEMANTICS, batches, predicates

BRIDGES = [bridge_named(name) for name in JUDGES]
PAIRS = [
    pytest.param(bridge, semantics, id=f"{bridge.name}-{semantics.name}")
    for bridge in BRIDGES
    for semantics in dict.fromkeys((bridge.semantics, *SEMANTICS))
]
NAMED = pytest.mark.parametrize("bridge", BRIDGES, ids=lambda bridge: bridge.name)
JUNCTIONS = st.sampled_from([ir.And, ir.Or])
ELSEWHERE = ir.Opaque("rlike(s, 'a')", "spark", ("s",))


def equals(name: str, value: int) -> ir.Comparison:
    return ir.Comparison(ir.ComparisonOp.EQ, ir.Column(name), ir.Literal(value))


@pytest.mark.parametrize(("bridge", "semantics"), PAIRS)
@examples(40)
@given(predicate=predicates(1), batch=batches(min_rows=1))
@known_texts()
def test_random_predicates_keep_the_same_rows(
    bridge: Bridge, semantics: Semantics, predicate: ir.Predicate, batch: pa.RecordBatch
) -> None:
    check_written(bridge, predicate, batch, semantics)


@pytest.mark.parametrize(("bridge", "semantics"), PAIRS)
@examples(30)
@given(terms=st.lists(simple_predicates(), min_size=1, max_size=3), kind=JUNCTIONS, seed=SEEDS)
@known_texts()
def test_junctions_of_simple_conditions_keep_the_same_rows(
    bridge: Bridge, semantics: Semantics, terms: list[ir.Predicate], kind: Any, seed: int
) -> None:
    for predicate in (kind(tuple(terms)), ir.Not(kind(tuple(terms)))):
        check_written(bridge, predicate, awkward_batch(seed), semantics)


@NAMED
@examples(60)
@given(predicate=predicates(1) | simple_predicates(), batch=batches(min_rows=1))
@known_texts()
def test_reading_what_was_written_keeps_the_rows(
    bridge: Bridge, predicate: ir.Predicate, batch: pa.RecordBatch
) -> None:
    check_read_back(bridge, predicate, batch)


@NAMED
def test_what_cannot_be_written_goes_to_the_residual_as_a_whole(bridge: Bridge) -> None:
    one = equals("i64", 1)
    written = bridge.writes(ir.And((one, ELSEWHERE)), SCHEMA, bridge.semantics)
    assert written.exactness is Exactness.SUPERSET
    assert written.residual == ELSEWHERE
    for predicate in (ir.Or((one, ELSEWHERE)), ir.Not(ir.And((one, ELSEWHERE)))):
        written = bridge.writes(predicate, SCHEMA, bridge.semantics)
        assert written.expression is None
        assert written.residual == predicate
        with pytest.raises(UnsupportedOperation, match="condition 1 of 1"):
            bridge.writes(predicate, SCHEMA, bridge.semantics, strict=True)


@NAMED
def test_wide_disjunctions_keep_the_rows_and_are_read_back(bridge: Bridge) -> None:
    wide = ir.Or(tuple(equals("i64", value) for value in range(1_200)))
    written = bridge.writes(wide, SCHEMA, bridge.semantics).exact()
    read = bridge.reads(written, SCHEMA).exact()
    assert isinstance(read, ir.Or)
    assert len(read.terms) == 1_200
    batch = awkward_batch(0)
    assert JUDGES[bridge.name](written, batch) == ours(wide, SCHEMA, batch, bridge.semantics)


@NAMED
def test_not_in_a_list_with_null_is_never_true(bridge: Bridge) -> None:
    listed = ir.InList(ir.Column("i64"), ir.ValueSet(pa.array([1, None]), Int(64)))
    written = bridge.writes(ir.Not(listed), SCHEMA, bridge.semantics)
    if written.expression is not None:
        assert JUDGES[bridge.name](written.exact(), awkward_batch(0)) == []
