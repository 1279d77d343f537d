"""Long lists of pyiceberg's made and read at once are those that its constructors make."""

from __future__ import annotations

import decimal
from typing import Any

import pyiceberg.expressions as ice
import pytest

from rowsieve.bridges.iceberg_exprs import from_iceberg, to_iceberg
from rowsieve.predicate import ir
from rowsieve.types.logical import (
    Binary,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.schema import Schema
from tests.strategies import SCHEMA, arrow_array

LISTED: list[tuple[LogicalType, list[Any]]] = [
    (Int(32), [*range(-600, 600), 2**31 - 1]),
    (Int(64), [*range(-600, 600), 2**63 - 1]),
    (Float(64), [number / 8 for number in range(1, 1_200)]),
    (Decimal(18, 2), [decimal.Decimal(number).scaleb(-2) for number in range(1_200)]),
    (String(), [f"n{number}" for number in range(1_200)]),
    (Binary(), [bytes([number % 256, number // 256]) for number in range(1_200)]),
    (Date(), list(range(1_200))),
    (Time(), list(range(1_200))),
    (Timestamp(), list(range(1_200))),
    (Timestamp(utc=True), list(range(1_200))),
    (Uuid(), [number.to_bytes(16, "big") for number in range(1_200)]),
]


@pytest.mark.parametrize(("type_", "values"), LISTED, ids=lambda item: str(item)[:12])
def test_a_long_list_equals_one_built_by_the_constructors(
    type_: LogicalType, values: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every attribute of each object, and the members that are read of it."""
    array = arrow_array(values, type_)
    schema = Schema(0, (Field(1, "a", type_),))
    for predicate in (
        ir.InList(ir.Column("a"), ir.ValueSet(array, type_)),
        ir.Not(ir.InList(ir.Column("a"), ir.ValueSet(array, type_))),
    ):
        monkeypatch.undo()
        at_once = to_iceberg(predicate, schema).exact()
        read = from_iceberg(at_once, schema).exact()
        monkeypatch.setattr("rowsieve.bridges.iceberg_exprs.write.LONG", 10**9)
        plain = to_iceberg(predicate, schema).exact()
        assert at_once == plain
        assert _insides(at_once) == _insides(plain)
        (read,) = (node for node in ir.walk(read) if isinstance(node, ir.InList))
        wanted = ir.ValueSet(array, Int(64) if isinstance(type_, Int) else type_)
        assert read.values.ordered.equals(wanted.ordered.cast(read.values.array.type))


def _insides(expression: Any) -> Any:
    """All that the objects hold, deep down."""
    names = ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
    if isinstance(expression, ice.And):
        return [_insides(expression.left), _insides(expression.right)]
    found = [type(expression), *(getattr(expression, name) for name in names)]
    for literal in sorted(getattr(expression, "literals", ()), key=lambda item: item.value):
        held = [getattr(literal, name) for name in names]
        found.append((type(literal), vars(literal), type(literal.value), held, hash(literal)))
    return found


def test_a_long_list_out_of_range_goes_to_the_residual() -> None:
    numbers = ice.In("i32", [2**40, *range(1_200)])
    assert "beyond the column's type" in from_iceberg(numbers, SCHEMA).notes[0]
    decimals = ice.In("d", [decimal.Decimal(number) for number in range(1_200)])
    assert from_iceberg(decimals, SCHEMA).expression is None


@pytest.mark.parametrize("column", ["i64", "s"])
def test_a_long_list_is_read_without_converting_each_literal(
    column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`to` takes seconds for a million; the ends of the list are enough."""
    numbers = range(1_200)
    expression = ice.In(column, list(numbers) if column == "i64" else list(map(str, numbers)))
    kind = type(next(iter(expression.literals)))
    convert, converted = kind.__dict__["to"], []

    def counted(self: Any, type_: Any) -> Any:
        converted.append(self)
        return convert.__get__(self, kind)(type_)

    monkeypatch.setattr(kind, "to", counted)
    assert from_iceberg(expression, SCHEMA).residual is None
    assert 0 < len(converted) <= 2


def test_a_member_below_the_column_type_goes_to_the_residual() -> None:
    numbers = ice.In("i32", [-(2**40), *range(1_200)])
    assert "beyond the column's type" in from_iceberg(numbers, SCHEMA).notes[0]
