"""Floats that become whole numbers, floats and decimals as Spark has it: NaN, infinity, 2^63."""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.interpret import interpret_operand
from rowsieve.predicate.ir import Call, Cast, Column, Operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Decimal, Float, Int, LogicalType
from tests.predicate.functions.claims import outside
from tests.predicate.part_statistics import statistics
from tests.profiles import examples
from tests.strategies import COLUMN_TYPES

SCHEMA = schema_of(pa.schema([("f64", pa.float64()), ("f32", pa.float32())]))[0]
MOST = 2**63 - 1
FLOATS = [0.0, -0.0, -0.5, 1.5, -2.5, math.nan, math.inf, -math.inf, 2.0**63, -(2.0**63), 1e300]
NUMBERS = st.none() | st.sampled_from([*FLOATS, 2.0**63 - 1024, 2.0**31, 3.4028235677973366e38])
TARGETS: list[LogicalType] = [Int(64), Int(32), Int(8), Float(32), Decimal(10, 2), Decimal(38, 0)]
OPERANDS: list[Operand] = [
    *(Call(name, (Column(column),)) for name in ("floor", "ceil") for column in ("f64", "f32")),
    *(Cast(Call(name, (Column("f64"),)), Int(64)) for name in ("floor", "ceil")),
    *(Cast(Column(column), target) for target in TARGETS for column in ("f64", "f32")),
    *(Cast(Column("f64"), target, try_=True) for target in TARGETS),
]


def computed(operand: Operand, value: float, semantics: Semantics) -> Any:
    """The value; `ValueError` in its place where it fails."""
    batch = pa.record_batch({"f64": pa.array([value]), "f32": pa.array([value], pa.float32())})
    values, failed = compute(bind_operand(operand, SCHEMA, semantics), batch)
    return ValueError if failed.any() else values[0].as_py()


@pytest.mark.parametrize(
    ("operand", "value", "wanted"),
    [
        (Call("floor", (Column("f64"),)), math.nan, 0.0),
        (Call("ceil", (Column("f32"),)), math.nan, 0.0),
        (Call("ceil", (Column("f64"),)), -0.5, 0.0),
        (Call("floor", (Column("f64"),)), math.inf, ValueError),
        (Call("ceil", (Column("f64"),)), 2.0**63, ValueError),
        (Call("floor", (Column("f64"),)), -(2.0**63), -(2.0**63)),
        (Cast(Column("f64"), Int(64)), 2.0**63, MOST),
        (Cast(Column("f32"), Int(64)), 2.0**63, MOST),
        (Cast(Column("f64"), Int(64), try_=True), 2.0**63, MOST),
        (Cast(Column("f64"), Int(64)), 2.0**63 + 2048, ValueError),
        (Cast(Column("f64"), Int(64)), math.nan, ValueError),
        (Cast(Column("f64"), Int(32)), 2.0**31, ValueError),
        (Cast(Column("f64"), Float(32)), 1e300, math.inf),
        (Cast(Column("f64"), Float(32)), -1e300, -math.inf),
        (Cast(Column("f64"), Decimal(10, 2)), math.nan, None),
        (Cast(Column("f32"), Decimal(10, 2)), -math.inf, None),
        (Cast(Column("f64"), Decimal(10, 2)), 1e300, ValueError),
        (Cast(Column("f64"), Decimal(10, 2)), 1.5, decimal.Decimal("1.50")),
    ],
    ids=repr,
)
def test_the_values_are_those_that_spark_gives(operand: Operand, value: float, wanted: Any) -> None:
    found = computed(operand, value, Semantics.SPARK)
    assert found == wanted
    if wanted == 0.0:
        assert math.copysign(1, found) == 1


def test_other_engines_fail_there() -> None:
    for operand in OPERANDS[6:]:
        if isinstance(operand, Cast) and not operand.try_ and operand.operand == Column("f64"):
            assert computed(operand, 1e300, Semantics.SQL) is ValueError


@example([[1.5, math.nan], [-2.5, math.nan], [math.nan, None]], OPERANDS[0])
@example([[7.0, math.nan, 1e300]], OPERANDS[3])
@examples(150)
@given(
    parts=st.lists(st.lists(NUMBERS, min_size=1, max_size=3), min_size=1, max_size=3),
    operand=st.sampled_from(OPERANDS),
)
def test_derived_values_contain_computed_values(
    parts: list[list[float | None]], operand: Operand
) -> None:
    with np.errstate(over="ignore"):
        batches = [
            pa.record_batch(
                {"f64": pa.array(cells, pa.float64()), "f32": pa.array(cells, pa.float64())}
            ).cast(pa.schema([("f64", pa.float64()), ("f32", pa.float32())]))
            for cells in parts
        ]
    bound = bind_operand(operand, SCHEMA, Semantics.SPARK)
    may = interpret_operand(bound, statistics(batches, frozenset(COLUMN_TYPES) - {"f64", "f32"}))
    for place, batch in enumerate(batches):
        values, failed = compute(bound, batch)
        wrong = outside(values, failed, may, np.full(batch.num_rows, place))
        assert not wrong.any(), (values, failed, may.lower[place], may.upper[place])
