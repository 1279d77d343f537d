"""The evaluator against the row-at-a-time oracle."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_predicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import Outcome, evaluate, matching
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Field, Float
from rowsieve.types.schema import Schema
from tests.oracle import Oracle
from tests.oracle_texts import known_texts
from tests.oracle_values import python_row
from tests.profiles import examples
from tests.strategies import SCHEMA, SEMANTICS, batches, predicates


def answers(outcome: Outcome) -> str:
    """One letter per row: T, F, N or E."""
    letters = []
    for true, null, failed in zip(outcome.true, outcome.null, outcome.failed, strict=True):
        assert int(true) + int(null) + int(failed) <= 1
        letters.append("T" if true else "N" if null else "E" if failed else "F")
    return "".join(letters)


def expected(predicate: Predicate, batch: pa.RecordBatch, semantics: Semantics) -> str:
    oracle = Oracle(SCHEMA, semantics)
    rows = [
        python_row({name: batch.column(name)[i] for name in batch.schema.names})
        for i in range(batch.num_rows)
    ]
    return "".join(oracle.judge(predicate, row).value for row in rows)


@examples(300)
@given(predicates(), batches(), st.sampled_from(SEMANTICS))
@known_texts()
def test_the_evaluator_agrees_with_the_oracle(
    predicate: Predicate, batch: pa.RecordBatch, semantics: Semantics
) -> None:
    bound = bind(predicate, SCHEMA, semantics)
    assert answers(evaluate(bound, batch)) == expected(predicate, batch, semantics)


@examples(80)
@given(predicates(), batches(min_rows=2), st.sampled_from(SEMANTICS), st.integers(0, 6))
@known_texts()
def test_a_slice_of_a_batch_gives_a_slice_of_the_outcome(
    predicate: Predicate, batch: pa.RecordBatch, semantics: Semantics, start: int
) -> None:
    bound = bind(predicate, SCHEMA, semantics)
    whole = answers(evaluate(bound, batch))
    assert answers(evaluate(bound, batch.slice(start, 3))) == whole[start : start + 3]


def test_datafusion_tells_zeros_apart_in_lists_of_four_and_more_only() -> None:
    schema = Schema(0, (Field(1, "x", Float(64)),))
    batch = pa.record_batch({"x": pa.array([-0.0, 0.0, 1.0])})
    for text, expected in (
        ("x IN (0, 1, 2)", [True, True, True]),
        ("x IN (0, 1, 2, 3)", [False, True, True]),
        ("x = 0 OR x = 1 OR x = 2 OR x = 3", [True, True, True]),
    ):
        predicate = normalize(parse_predicate(text, "datafusion"), Semantics.DATAFUSION)
        bound = bind(predicate, schema, Semantics.DATAFUSION)
        assert matching(bound, batch).tolist() == expected, text
