"""Lists of whole numbers at once are byte for byte what they are one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.substrait_exprs.lists import members_of, options_of
from rowsieve.bridges.substrait_exprs.types import literal_message
from rowsieve.bridges.substrait_exprs.wire import fields, part, parts
from rowsieve.predicate.ir import Literal
from rowsieve.types.logical import Date, Float, Int, LogicalType, String, Time, Timestamp
from tests.profiles import examples
from tests.strategies import arrow_array, values_of

WHOLE: list[LogicalType] = [
    *(Int(bits) for bits in (8, 16, 32, 64)),
    Date(),
    Time(),
    Timestamp(),
    Timestamp(utc=True),
]


@st.composite
def lists(draw: st.DrawFn) -> tuple[LogicalType, list[Any]]:
    type_ = draw(st.sampled_from(WHOLE))
    return type_, draw(st.lists(values_of(type_), min_size=1, max_size=20))


@examples(200)
@given(listed=lists())
def test_all_at_once_is_one_by_one(listed: tuple[LogicalType, list[Any]]) -> None:
    type_, values = listed
    array = arrow_array(values, type_)
    single = parts(2, (part(1, literal_message(Literal(value, type_))) for value in values))
    assert options_of(array, type_) == single
    found = members_of(fields(single)[2], type_)
    assert found is not None
    assert found.equals(array)


@pytest.mark.parametrize("type_", [String(), Float(64), Int(64, signed=False)], ids=str)
def test_other_types_are_left_to_the_reader_of_one(type_: LogicalType) -> None:
    assert options_of(pa.array([]), type_) is None
    assert members_of([b"x"], type_) is None


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"\x0a",
        b"\x0a\x02\x38",  # shorter than it says
        b"\x0a\x01\x38",  # no value
        b"\x0a\x02\x38\x80",  # a value that does not end
        b"\x0a\x03\x38\x01\x01",  # two values
        b"\x0a\x0c\x38" + b"\x80" * 10 + b"\x01",  # more than 64 bits
        b"\x0a\x02\x28\x01",  # of another type
    ],
)
def test_what_is_not_of_the_one_form_is_not_guessed(bad: bytes) -> None:
    good = b"\x0a\x02\x38\x01"
    assert members_of([good, good], Int(64)) is not None
    assert members_of([good, bad], Int(64)) is None
    assert members_of([bad, good], Int(64)) is None


def test_numbers_beyond_the_type_are_not_wrapped() -> None:
    assert members_of([part(1, literal_message(Literal(5, Int(8))))], Int(8)) is not None
    beyond = literal_message(Literal(300, Int(16))).replace(b"\x18", b"\x10")
    assert members_of([part(1, beyond)], Int(8)) is None
