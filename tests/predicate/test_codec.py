"""The JSON form: round trips, and refusals of what is not one."""

from __future__ import annotations

import dataclasses
import decimal
import json
import math
from enum import Enum
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from rowsieve.errors import CorruptData, InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.codec import (
    operand_from_json,
    operand_to_json,
    predicate_from_json,
    predicate_to_json,
    semantics_from_json,
    semantics_to_json,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Decimal, Field, Int, List, Struct, Timestamp
from tests.profiles import examples
from tests.strategies import SCHEMA, predicates


def through_text(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


@examples(200)
@given(predicates())
def test_a_predicate_survives(predicate: ir.Predicate) -> None:
    assert predicate_from_json(through_text(predicate_to_json(predicate))) == predicate
    root = bind(predicate, SCHEMA).root
    assert predicate_from_json(through_text(predicate_to_json(root))) == root


@pytest.mark.parametrize(
    "operand",
    [
        ir.Literal(2**53 + 1),
        ir.Literal(-(2**64)),
        ir.Literal(math.nan),
        ir.Literal(-0.0),
        ir.Literal(-math.inf),
        ir.Literal(0.1),
        ir.Literal(decimal.Decimal("1.50"), Decimal(3, 2)),
        ir.Literal(b"\x00\xff"),
        ir.Literal("\U0010ffff"),
        ir.Literal(value=True),
        ir.Literal(1),
        ir.Literal(1.0),
        ir.Literal(None, Timestamp(utc=True)),
        ir.Literal(None, List(Field(3, "element", Struct((Field(4, "x", Int()),))))),
        ir.Cast(ir.FieldAccess(ir.Column("a"), "b"), Int(8, signed=False), try_=True),
        ir.Now(),
    ],
    ids=repr,
)
def test_an_operand_survives_with_its_kind(operand: ir.Operand) -> None:
    found = operand_from_json(through_text(operand_to_json(operand)))
    assert found == operand
    assert repr(found) == repr(operand)


def test_lists_and_opaque_conditions_survive() -> None:
    texts = ir.ValueSet(pa.array(["a", None], pa.large_string()))
    floats = ir.ValueSet(pa.array([math.nan, -0.0, None]))
    assert floats != ir.ValueSet(pa.array([math.nan, 0.0, None]))
    lists = (ir.InList(ir.Column("s"), texts), ir.InList(ir.Column("f64"), floats))
    for predicate in (*lists, ir.Opaque("udf(x)", "spark", ("x",))):
        assert predicate_from_json(through_text(predicate_to_json(predicate))) == predicate


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "true",
        {},
        {"node": "drop"},
        {"node": "and", "terms": 5},
        {"node": "is_null", "operand": {"node": "column", "name": 5}},
        {"node": "is_null", "operand": {"node": "literal", "value": {"int": "x"}, "type": None}},
        {"node": "is_null", "operand": {"node": "literal", "value": 5, "type": None}},
        {"node": "in", "operand": {"node": "now"}, "values": "!!", "type": None},
        {"node": "in", "operand": {"node": "now"}, "values": "AAAA", "type": None},
        {"node": "comparison", "op": "~", "left": {"node": "now"}, "right": {"node": "now"}},
    ],
    ids=repr,
)
def test_invalid_predicates_are_rejected(value: Any) -> None:
    with pytest.raises(CorruptData, match="malformed"):
        predicate_from_json(value)


def test_depth_is_limited_while_reading() -> None:
    deep = predicate_to_json(ir.IsNull(ir.Column("a")))
    for _ in range(100_000):
        deep = {"node": "not", "term": deep}
    with pytest.raises(InvalidPredicate, match="nests deeper"):
        predicate_from_json(deep)
    while "term" in deep:  # taken apart here: the interpreter would recurse over it
        deep = deep.pop("term")


def other_value(value: Any) -> Any:
    """A value of the field that is not its own."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return "Asia/Kathmandu"
    if isinstance(value, Enum):
        return next(other for other in type(value) if other is not value)
    return 7


@pytest.mark.parametrize(
    "name", [f.name for f in dataclasses.fields(Semantics) if f.name != "name"]
)
def test_each_setting_of_semantics_survives(name: str) -> None:
    semantics = dataclasses.replace(
        Semantics.SPARK, **{name: other_value(getattr(Semantics.SPARK, name))}
    )
    assert semantics != Semantics.SPARK
    assert semantics_from_json(through_text(semantics_to_json(semantics))) == semantics


def test_built_in_semantics_are_their_name() -> None:
    assert semantics_to_json(Semantics.DUCKDB) == {"name": "duckdb"}


@pytest.mark.parametrize(
    "value",
    [
        {},
        "spark",
        {"name": "oracle"},
        {"name": "spark", "time_zone": 1},
        {"name": "spark", "time_zones": "UTC"},
        {"name": "spark", "failed_cast": "perhaps"},
        {"name": "spark", "full_case": 1},
    ],
)
def test_invalid_semantics_are_rejected(value: Any) -> None:
    with pytest.raises(CorruptData, match="malformed"):
        semantics_from_json(value)
