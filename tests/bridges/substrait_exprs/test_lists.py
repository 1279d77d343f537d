"""Lists of constants at once are byte for byte what they are one by one."""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.substrait_exprs import from_substrait, to_substrait
from rowsieve.bridges.substrait_exprs.lists import members_of, options_of
from rowsieve.bridges.substrait_exprs.types import literal_message
from rowsieve.bridges.substrait_exprs.wire import part, parts
from rowsieve.predicate.ir import Column, InList, Literal, ValueSet
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)
from tests.profiles import examples
from tests.strategies import arrow_array, values_of

NAMES = schema_of(pa.schema([("name", pa.string())]))[0]
TYPES: list[LogicalType] = [
    String(),
    Binary(),
    Uuid(),
    Float(32),
    Float(64),
    Decimal(12, 2),
    *(Int(bits) for bits in (8, 16, 32, 64)),
    Date(),
    Time(),
    Timestamp(),
    Timestamp(utc=True),
]


@st.composite
def lists(draw: st.DrawFn) -> tuple[LogicalType, list[Any]]:
    type_ = draw(st.sampled_from(TYPES))
    return type_, draw(st.lists(values_of(type_), min_size=1, max_size=20))


@examples(200)
@given(listed=lists())
def test_all_at_once_is_one_by_one(listed: tuple[LogicalType, list[Any]]) -> None:
    type_, values = listed
    array = arrow_array(values, type_)
    single = parts(2, (part(1, literal_message(Literal(value, type_))) for value in values))
    assert options_of(array, type_) == single
    found = members_of(single, type_)
    assert found is not None
    assert options_of(found, type_) == single  # floats by their bits


@pytest.mark.parametrize("type_", [Bool(), Json(), Int(64, signed=False)], ids=str)
def test_other_types_are_left_to_the_reader_of_one(type_: LogicalType) -> None:
    array = arrow_array([None], type_)
    assert options_of(array, type_) is None
    assert options_of(array.drop_null(), type_) is None
    assert members_of(b"\x12\x02\x0a\x00", type_) is None


@examples(60)
@given(listed=lists())
def test_a_slice_is_its_own_members_only(listed: tuple[LogicalType, list[Any]]) -> None:
    type_, values = listed
    whole = arrow_array([values[-1], *values, values[0]], type_)
    assert options_of(whole[1:-1], type_) == options_of(arrow_array(values, type_), type_)


def _option(value: Any, type_: LogicalType) -> bytes:
    return part(1, literal_message(Literal(value, type_)))


def test_texts_of_more_than_a_hundred_bytes_are_left_to_the_reader_of_one() -> None:
    for size, alike in ((123, True), (124, False)):
        array = pa.array(["x" * size])
        single = part(2, _option("x" * size, String()))
        assert options_of(array, String()) == (single if alike else None)
        found = members_of(single, String())
        assert (found is not None) is alike
        assert found is None or found.equals(array)


def test_bytes_in_a_text_that_look_like_a_member_mislead_nobody() -> None:
    inside = part(2, _option("y", String()))
    values = ["x", inside.decode(), "z"]
    options = parts(2, (_option(value, String()) for value in values))
    assert members_of(options, String()) is None
    message = to_substrait(
        InList(Column("name"), ValueSet(pa.array(values), String())), NAMES
    ).exact()
    read = from_substrait(message, NAMES).exact()
    assert isinstance(read, InList)
    assert read.values.array.to_pylist() == values


def test_damaged_text_is_no_member() -> None:
    options = part(2, _option("\u00e9", String())).replace(b"\xc3", b"\xff")
    assert members_of(options, String()) is None


def test_a_decimal_of_other_digits_is_no_member() -> None:
    options = part(2, _option(decimal.Decimal("1.50"), Decimal(5, 2)))
    assert members_of(options, Decimal(5, 2)) is not None
    assert members_of(options, Decimal(5, 1)) is None
    assert members_of(options, Decimal(6, 2)) is None
    beyond = part(2, _option(decimal.Decimal("1234.50"), Decimal(6, 2)))
    assert members_of(beyond.replace(b"\x10\x06", b"\x10\x05"), Decimal(5, 2)) is None


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
    assert members_of(parts(2, [good, good]), Int(64)) is not None
    assert members_of(parts(2, [good, bad]), Int(64)) is None
    assert members_of(parts(2, [bad, good]), Int(64)) is None


def test_numbers_beyond_the_type_are_not_wrapped() -> None:
    assert members_of(part(2, part(1, literal_message(Literal(5, Int(8))))), Int(8)) is not None
    beyond = literal_message(Literal(300, Int(16))).replace(b"\x18", b"\x10")
    assert members_of(part(2, part(1, beyond)), Int(8)) is None
