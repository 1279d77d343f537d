"""Defaults as text: every constant that a column can hold comes back bit by bit."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.errors import CorruptData, InvalidSchemaChange, SchemaMismatch
from rowsieve.types import logical
from rowsieve.types.conform import conform_values
from rowsieve.types.encodings import arrow_type
from rowsieve.types.stored_defaults import constant, constant_text

UTC = datetime.UTC
NOON = datetime.datetime(2013, 2, 8, 12)
X = logical.Field(2, "x", logical.Int())
VALUES: list[tuple[logical.LogicalType, Any]] = [
    (logical.Bool(), True),
    (logical.Bool(), False),
    (logical.Int(8), -128),
    (logical.Int(64), -(2**63)),
    (logical.Int(64, signed=False), 2**63),
    (logical.Float(64), 0.1),
    (logical.Float(64), -0.0),
    (logical.Float(64), math.inf),
    (logical.Float(64), math.nan),
    (logical.Float(32), 0.5),
    (logical.Float(32), math.nan),
    (logical.Decimal(38, 10), decimal.Decimal("-1234567890123456789012345678.0000000001")),
    (logical.Decimal(9, 2), decimal.Decimal("1E+3")),
    (logical.String(), ""),
    (logical.String(), 'a "ß"\n\0'),
    (logical.Json(), '{"a": [1]}'),
    (logical.Binary(), b"\0\xff"),
    (logical.Uuid(), uuid.UUID(int=5)),
    (logical.Date(), datetime.date(1, 1, 1)),
    (logical.Date(), pa.scalar(2**31 - 1, pa.int32()).cast(pa.date32())),
    (logical.Time(), datetime.time(23, 59, 59, 999999)),
    (logical.Timestamp(), NOON),
    (logical.Timestamp(), pa.scalar(-(2**63), pa.timestamp("us"))),
    (logical.Timestamp(utc=True), datetime.datetime(2013, 2, 8, 12, tzinfo=UTC)),
]


@pytest.mark.parametrize(("type_", "value"), VALUES, ids=range(len(VALUES)))
def test_a_constant_comes_back_from_its_text(type_: logical.LogicalType, value: Any) -> None:
    text = constant_text(value, type_, "c")
    found = constant(text, type_)
    assert found.type == arrow_type(type_)
    plain = value.bytes if isinstance(value, uuid.UUID) else value
    guessed = pa.uint64() if type_ == logical.Int(64, signed=False) else None
    given = pa.array([plain], plain.type if isinstance(plain, pa.Scalar) else guessed)
    stored = conform_values(given, type_, "c")
    again = pa.array([found], found.type)
    assert [bytes(b) if b else b for b in again.buffers()[1:]] == [
        bytes(b) if b else b for b in stored.slice(0, 1).buffers()[1:]
    ] or again.equals(stored)
    assert constant_text(found, type_, "c") == text


def test_null_has_no_text() -> None:
    assert constant_text(None, logical.Int(), "c") is None
    assert constant_text(pa.scalar(None, pa.int8()), logical.Int(), "c") is None
    assert not constant(None, logical.List(logical.Field(2, "item", logical.Int()))).is_valid


@pytest.mark.parametrize(
    ("type_", "value", "error"),
    [
        pytest.param(logical.Int(8), 128, SchemaMismatch, id="too large"),
        pytest.param(logical.Int(), 1.5, SchemaMismatch, id="not whole"),
        pytest.param(logical.Int(), "1", SchemaMismatch, id="text for a number"),
        pytest.param(logical.Float(32), 0.1, SchemaMismatch, id="a float that would be rounded"),
        pytest.param(logical.Decimal(3, 1), decimal.Decimal("0.01"), SchemaMismatch, id="scale"),
        pytest.param(logical.Timestamp(utc=True), NOON, SchemaMismatch, id="no zone"),
        pytest.param(logical.Int(), object(), InvalidSchemaChange, id="no value"),
        pytest.param(logical.Struct((X,)), {"x": 1}, InvalidSchemaChange, id="nested"),
    ],
)  # fmt: skip
def test_a_default_that_does_not_fit_is_refused(
    type_: logical.LogicalType, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="'c'"):
        constant_text(value, type_, "c")


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (logical.Int(8), "300"),
        (logical.Int(), "x"),
        (logical.Bool(), "yes"),
        (logical.Decimal(3, 1), "123456"),
        (logical.Binary(), "0g"),
        (logical.Date(), "2013-02-08"),
        (logical.List(logical.Field(2, "item", logical.Int())), "[]"),
    ],
    ids=str,
)
def test_a_malformed_default_in_the_log_is_corrupt(type_: logical.LogicalType, text: str) -> None:
    with pytest.raises(CorruptData, match="default"):
        constant(text, type_)
