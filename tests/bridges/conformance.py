"""What every bridge promises of the conditions that it writes, and conditions to hold it to.

An EXACT translation keeps, in the engine, the rows that our evaluator keeps; a SUPERSET loses none
of them, and its residual removes the others.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
from hypothesis import reject
from hypothesis import strategies as st

from rowsieve.bridges.languages import Bridge
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema
from tests.bridges.awkward import rows
from tests.bridges.judges import JUDGES
from tests.strategies import COLUMN_TYPES, SCHEMA, arrow_array, literals_of, values_of

SEEDS = st.integers(0, 99)


@cache
def awkward_batch(seed: int) -> pa.RecordBatch:
    """Forty awkward rows of every column of `SCHEMA`."""
    return rows(seed, 40)


def ours(
    predicate: ir.Predicate, schema: Schema, batch: pa.RecordBatch, semantics: Semantics
) -> list[int] | None:
    """The numbers of the rows that our evaluator keeps; None where it fails."""
    outcome = evaluate(bind(predicate, schema, semantics), batch)
    return None if outcome.failed.any() else outcome.true.nonzero()[0].tolist()


def check_written(
    bridge: Bridge, predicate: ir.Predicate, batch: pa.RecordBatch, semantics: Semantics
) -> None:
    """Write the predicate, and compare the rows that the engine keeps with ours."""
    try:
        bind(predicate, SCHEMA, semantics)
        written = bridge.writes(predicate, SCHEMA, semantics)
    except InvalidPredicate:
        reject()
    if written.expression is None:
        assert written.exactness is Exactness.UNSUPPORTED
        return
    mine = ours(predicate, SCHEMA, batch, semantics)
    found = JUDGES[bridge.name](written.expression, batch)
    if mine is None or found is None:
        return
    if written.exactness is Exactness.EXACT:
        assert found == mine, written.expression
        return
    assert written.residual is not None
    assert set(mine) <= set(found), written.expression
    kept = ours(written.residual, SCHEMA, batch, semantics)
    assert kept is None or sorted(set(found) & set(kept)) == mine


def check_read_back(bridge: Bridge, predicate: ir.Predicate, batch: pa.RecordBatch) -> None:
    """Read what was written exactly, and compare the rows of both predicates."""
    try:
        written = bridge.writes(predicate, SCHEMA, bridge.semantics)
    except InvalidPredicate:
        reject()
    if written.exactness is not Exactness.EXACT:
        return
    read = bridge.reads(written.exact(), SCHEMA)
    if read.exactness is not Exactness.EXACT:
        assert bridge.name not in READ_WHOLE, read.notes
        return
    mine = ours(predicate, SCHEMA, batch, bridge.semantics)
    again = ours(read.exact(), SCHEMA, batch, bridge.semantics)
    assert mine is None or again is None or mine == again


READ_WHOLE = ("pyarrow_exprs", "substrait")  # their readers take all that their writers write


@cache
def simple_predicates() -> st.SearchStrategy[ir.Predicate]:
    """Conditions that nearly every language has, and negations of them."""
    names = st.sampled_from([name for name in COLUMN_TYPES if name != "u64"])
    return names.flatmap(_simple_on)


@cache
def _simple_on(name: str) -> st.SearchStrategy[ir.Predicate]:
    type_, column = COLUMN_TYPES[name], ir.Column(name)
    ops = st.sampled_from(list(ir.ComparisonOp))
    listed = st.lists(st.none() | values_of(type_), max_size=5).map(
        lambda items: ir.InList(column, ir.ValueSet(arrow_array(items, type_), type_))
    )
    prefixes = st.sampled_from(["a%", "ab", "!%%", ""])
    leaves: st.SearchStrategy[ir.Predicate] = st.one_of(
        st.builds(ir.Comparison, ops, st.just(column), literals_of(type_)),
        st.builds(ir.Comparison, ops, st.just(column), st.just(column)),
        listed,
        st.just(ir.IsNull(column)),
        st.just(ir.BooleanOperand(ir.Column("b"))),
        st.builds(ir.Like, st.just(ir.Column("s")), prefixes, st.just("!")),
    )
    return st.one_of(
        leaves,
        leaves.map(ir.Not),
        leaves.map(lambda leaf: ir.Not(ir.Not(leaf))),
        leaves.map(lambda leaf: ir.BooleanOperand(ir.Condition(ir.Not(leaf)))),
    )
