"""Elements of lists and values of maps, in whole columns and slices of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.evaluate import compute, evaluate
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Field, Int, List, Map, String
from rowsieve.types.schema import Schema

NUMBERS = List(Field(11, "element", Int(64)))
NAMED = Map(Field(12, "key", String(), nullable=False), Field(13, "value", Int(64)))
BY_NUMBER = Map(Field(14, "key", Int(16), nullable=False), Field(15, "value", String()))
SCHEMA = Schema(0, (Field(1, "l", NUMBERS), Field(2, "m", NAMED), Field(3, "n", BY_NUMBER)))
BATCH = pa.record_batch(
    {
        "l": pa.array([[9], [1, None, 3], None, []], arrow_type(NUMBERS)),
        "m": pa.array([[], [("a", 1), ("b", None)], None, [("b", 2)]], arrow_type(NAMED)),
        "n": pa.array([[], [(1, "x")], None, [(2, "y")]], arrow_type(BY_NUMBER)),
    }
)


def result(operand: Any, batch: pa.RecordBatch = BATCH) -> list[Any]:
    values, failed = compute(bind_operand(operand, SCHEMA), batch)
    assert not failed.any()
    found: list[Any] = values.to_pylist()
    return found


CALLS: list[tuple[Any, list[Any]]] = [
    (ir.Call("list_length", (ir.Column("l"),)), [1, 3, None, 0]),
    (ir.Call("length", (ir.Column("l"),)), [1, 3, None, 0]),
    (ir.Call("list_length", (ir.Column("m"),)), [0, 2, None, 1]),
    (ir.Call("list_element", (ir.Column("l"), ir.Literal(1))), [9, 1, None, None]),
    (ir.Call("list_element", (ir.Column("l"), ir.Literal(2))), [None, None, None, None]),
    (ir.Call("list_element", (ir.Column("l"), ir.Literal(3))), [None, 3, None, None]),
    (ir.Call("list_element", (ir.Column("l"), ir.Literal(0))), [None] * 4),
    (ir.Call("list_element", (ir.Column("l"), ir.Literal(-1))), [None] * 4),
    (
        ir.Call("list_element", (ir.Column("l"), ir.Call("list_length", (ir.Column("l"),)))),
        [9, 3, None, None],
    ),
    (ir.Call("map_value", (ir.Column("m"), ir.Literal("a"))), [None, 1, None, None]),
    (ir.FieldAccess(ir.Column("m"), "b"), [None, None, None, 2]),
    (ir.Call("map_value", (ir.Column("m"), ir.Literal(None))), [None] * 4),
    (ir.Call("map_value", (ir.Column("n"), ir.Literal(2))), [None, None, None, "y"]),
]


@pytest.mark.parametrize(("call", "wanted"), CALLS, ids=lambda case: str(case)[:60])
def test_members(call: Any, wanted: list[Any]) -> None:
    assert result(call) == wanted
    for start in range(5):
        assert result(call, BATCH.slice(start)) == wanted[start:]


def test_a_condition_on_an_element() -> None:
    element = ir.Call("list_element", (ir.Column("l"), ir.Literal(1)))
    outcome = evaluate(
        bind(ir.Comparison(ir.ComparisonOp.GT, element, ir.Literal(5)), SCHEMA), BATCH
    )
    assert outcome.true.tolist() == [True, False, False, False]
    assert outcome.null.tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    "call",
    [
        ir.Call("list_element", (ir.Column("l"), ir.Literal("x"))),
        ir.Call("list_element", (ir.Column("m"), ir.Literal(1))),
        ir.Call("map_value", (ir.Column("m"), ir.Literal(1))),
        ir.Call("map_value", (ir.Column("n"), ir.Column("n"))),
        ir.Call("list_length", (ir.Literal(1),)),
    ],
    ids=str,
)
def test_undefined_calls_are_rejected(call: ir.Call) -> None:
    with pytest.raises(InvalidPredicate, match="it is used as"):
        bind_operand(call, SCHEMA)
