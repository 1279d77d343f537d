"""Conditions and operands in a session's time zone: evaluator, interpreter and the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.binding.zoned import zoned_trunc
from rowsieve.predicate.evaluate import compute, evaluate
from rowsieve.predicate.interpret import interpret_operand
from rowsieve.predicate.ir import Call, Cast, Column, Literal, Operand, Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, Int, LogicalType, String, Timestamp
from tests.predicate.functions.claims import outside, shown
from tests.predicate.part_statistics import check, statistics
from tests.predicate.test_evaluate import answers, expected
from tests.profiles import examples
from tests.strategies import COLUMN_TYPES, SCHEMA
from tests.zoned_strategies import Change, changes, conditions, operands

_RARELY = st.integers(0, 9).map(lambda chance: chance == 9)
TIMES: dict[str, LogicalType] = {"ts": Timestamp(), "tz": Timestamp(utc=True), "day": Date()}


@st.composite
def parts(draw: st.DrawFn, change: Change) -> list[pa.RecordBatch]:
    """Parts whose times lie around the change of a zone; other columns are NULL."""
    made = []
    for _ in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, 8))
        columns = {name: pa.nulls(count, arrow_type(type_)) for name, type_ in COLUMN_TYPES.items()}
        for name, type_ in TIMES.items():
            own = change.instants if name == "tz" else change.local
            moments = change.moments if draw(_RARELY) else own
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
    change = draw(changes())
    where = draw(conditions(change.moments, (change.semantics.time_zone, "Asia/Kathmandu")))
    return where, draw(parts(change)), change.semantics


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


@st.composite
def computed(draw: st.DrawFn) -> tuple[list[Operand], list[pa.RecordBatch], Semantics]:
    """Operands and parts around one change of the session's zone."""
    change = draw(changes())
    one = operands((change.semantics.time_zone, "Asia/Kathmandu"))
    asked = draw(st.lists(one, min_size=4, max_size=4))
    return asked, draw(parts(change)), change.semantics


@examples(300)
@given(computed())
def test_values_of_an_operand_are_within_the_range_of_its_part(
    case: tuple[list[Operand], list[pa.RecordBatch], Semantics],
) -> None:
    """A condition shows a range that is too narrow only if its constant lies just beside it."""
    asked, batches, semantics = case
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    part_of_row = np.repeat(np.arange(len(batches)), [batch.num_rows for batch in batches])
    known = statistics(batches, frozenset())
    for operand in asked:
        bound = bind_operand(operand, SCHEMA, semantics)
        values, failed = compute(bound, whole)
        wrong = outside(values, failed, interpret_operand(bound, known), part_of_row)
        row = int(np.argmax(wrong))
        assert not wrong.any(), (
            f"{operand} is {shown([values], row)} for {shown(whole.select([*TIMES]).columns, row)}"
        )


@pytest.mark.parametrize(
    "semantics", [Semantics.DUCKDB, Semantics.POSTGRES, Semantics.DATAFUSION, Semantics.SPARK]
)
def test_a_day_that_begins_twice_begins_within_its_range(semantics: Semantics) -> None:
    """In Havana midnight of 3 November 2024 comes twice, at 04:00 and at 05:00 of UTC."""
    day = zoned_trunc(Literal("day", String()), "America/Havana", Column("tz"), semantics)
    check_range(day, ["2024-11-03 04:10Z", "2024-11-03 06:30Z"], semantics)


def test_local_times_of_a_clock_that_is_set_back_are_within_their_range() -> None:
    """In Berlin the earlier of these instants has the later local time, 02:50."""
    semantics = replace(Semantics.POSTGRES, time_zone="Europe/Berlin")
    local = Cast(Column("tz"), Timestamp())
    check_range(local, ["2024-10-27 00:50Z", "2024-10-27 01:10Z"], semantics)


def test_days_that_months_move_out_of_order_are_within_their_range() -> None:
    """A month after 29 January at 23:00 is later than a month after 31 January at 13:00."""
    semantics = replace(Semantics.POSTGRES, time_zone="Asia/Kathmandu")
    parts = [Literal(part, Int(64)) for part in (1, 0, 0)]
    later = Call("add_interval", (Column("tz"), *parts))
    moments = ["2023-01-28 06:15Z", "2023-01-29 17:15Z", "2023-01-31 07:15Z"]
    check_range(later, moments, semantics)  # trap T11


def check_range(operand: Operand, instants: Sequence[str], semantics: Semantics) -> None:
    """The operand's values lie within its range in a part with these instants."""
    count = len(instants)
    column = pa.array(instants).cast(pa.timestamp("us", "UTC"))
    columns = {name: pa.nulls(count, arrow_type(type_)) for name, type_ in COLUMN_TYPES.items()}
    batch = pa.record_batch(columns | {"tz": column})
    bound = bind_operand(operand, SCHEMA, semantics)
    values, failed = compute(bound, batch)
    known = interpret_operand(bound, statistics([batch], frozenset()))
    assert not outside(values, failed, known, np.zeros(count, np.int64)).any(), values
