"""Text that is written as exact keeps, in the engine, the rows that our evaluator keeps."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, reject

from rowsieve.bridges.sql.language import to_text
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema
from tests.bridges.sql.engines import JUDGES
from tests.oracle_texts import known_texts
from tests.profiles import examples
from tests.strategies import SCHEMA, SEMANTICS, batches, predicates


def ours(
    predicate: Predicate, schema: Schema, batch: pa.RecordBatch, semantics: Semantics
) -> list[int] | None:
    outcome = evaluate(bind(predicate, schema, semantics), batch)
    if outcome.failed.any():
        return None
    return [row for row, true in enumerate(outcome.true) if true]


@pytest.mark.parametrize("dialect", JUDGES)
@pytest.mark.parametrize("semantics", SEMANTICS, ids=lambda item: item.name)
@examples(25)
@given(predicate=predicates(1), batch=batches(min_rows=1))
@known_texts()
def test_random_predicates_keep_the_same_rows(
    dialect: str, semantics: Semantics, predicate: Predicate, batch: pa.RecordBatch
) -> None:
    try:
        written = to_text(predicate, SCHEMA, semantics, dialect=dialect)
    except InvalidPredicate:
        reject()
    if written.expression is None:
        assert written.exactness is Exactness.UNSUPPORTED
        return
    mine = ours(predicate, SCHEMA, batch, semantics)
    found = JUDGES[dialect](written.expression, batch)
    if mine is None or found is None:
        return
    if written.exactness is Exactness.EXACT:
        assert found == mine, written.expression
        return
    assert written.residual is not None
    kept = ours(written.residual, SCHEMA, batch, semantics)
    assert set(mine) <= set(found), written.expression
    assert kept is None or sorted(set(found) & set(kept)) == mine
