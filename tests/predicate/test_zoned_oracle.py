"""Conditions in a session's time zone: evaluator and interpreter against the oracle."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given, reject
from hypothesis import strategies as st

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, LogicalType, Timestamp
from tests.predicate.test_evaluate import answers, expected
from tests.predicate.test_interpret import check, statistics
from tests.profiles import examples
from tests.strategies import COLUMN_TYPES, SCHEMA
from tests.zoned_strategies import conditions, zones

_RARELY = st.integers(0, 9).map(lambda chance: chance == 9)
TIMES: dict[str, LogicalType] = {"ts": Timestamp(), "tz": Timestamp(utc=True), "day": Date()}


@st.composite
def parts(draw: st.DrawFn, moments: Sequence[int]) -> list[pa.RecordBatch]:
    """Parts whose times lie around the changes of zones; other columns are NULL."""
    made = []
    for _ in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, 6))
        columns = {name: pa.nulls(count, arrow_type(type_)) for name, type_ in COLUMN_TYPES.items()}
        for name, type_ in TIMES.items():
            first = draw(st.integers(0, len(moments) - 1))  # neighbours, with changes between
            values = [
                None if draw(_RARELY) else moments[(first + row) % len(moments)]
                for row in range(count)
            ]
            if isinstance(type_, Date):
                values = [None if each is None else each // 86_400_000_000 for each in values]
            storage = pa.int32() if isinstance(type_, Date) else pa.int64()
            columns[name] = pa.array(values, storage).cast(arrow_type(type_))
        made.append(pa.record_batch(columns))
    return made


@st.composite
def cases(draw: st.DrawFn) -> tuple[Predicate, list[pa.RecordBatch], Semantics]:
    """A condition and parts around one change of the session's zone."""
    semantics, moments = draw(zones())
    where = draw(conditions(moments, (semantics.time_zone, "Asia/Kathmandu")))
    return where, draw(parts(moments)), semantics


@examples(600)
@given(cases())
def test_evaluator_and_interpreter_agree_with_the_oracle_in_every_zone(
    case: tuple[Predicate, list[pa.RecordBatch], Semantics],
) -> None:
    predicate, batches, semantics = case
    try:
        bound = bind(predicate, SCHEMA, semantics)
    except InvalidPredicate:
        reject()  # an instant as text, where an engine has no one spelling
    for batch in batches:
        assert answers(evaluate(bound, batch)) == expected(predicate, batch, semantics)
    check(predicate, batches, statistics(batches, frozenset()), semantics)
