"""Whether an expression may fail on a row, by statistics: never "no" where a row makes it fail."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.planner.failures import may_fail
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int
from tests.profiles import examples


def table_of(values: list[int | None]) -> rs.Table:
    rows = pa.table({"id": range(len(values)), "v": pa.array(values, pa.int64())})
    made = rs.create_table(f"memory:///{uuid.uuid4().hex}", rows.slice(0, 2), key=["id"])
    made.upsert(rows.slice(2))
    return made


def fails(table: rs.Table, operand: ir.Operand) -> bool:
    snapshot = table.handle.pinned
    return may_fail(snapshot, bind_operand(operand, snapshot.schema, Semantics.SPARK))


def plus(summand: int) -> ir.Operand:
    return ir.Call("add", (ir.Column("v"), ir.Literal(summand, Int(64))))


_SIZES = st.sampled_from([0, 2**31, 2**62, 2**63 - 20])
_VALUES = st.builds(
    lambda size, more, sign: sign * (size + more),
    _SIZES,
    st.integers(0, 19),
    st.sampled_from([1, -1]),
)


@examples(60)
@given(st.lists(st.none() | _VALUES, min_size=3, max_size=5), _VALUES)
def test_a_row_that_fails_is_never_denied(values: list[int | None], summand: int) -> None:
    sums = [value + summand for value in values if value is not None]
    is_outside = any(not -(2**63) <= each < 2**63 for each in sums)
    assert fails(table_of(values), plus(summand)) is is_outside  # bounds are exact here


@pytest.mark.parametrize("text", ["x", "5"])
def test_a_text_that_may_be_no_number_may_fail(text: str) -> None:
    rows = pa.table({"id": [1], "s": [text]})
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", rows, key=["id"])
    cast = ir.Cast(ir.Column("s"), Int(32))
    assert fails(table, cast) or text == "5"


def test_rows_without_statistics_may_fail() -> None:
    rows = pa.table({"id": [1], "v": pa.array([1], pa.int64())})
    table = rs.create_table(
        f"memory:///{uuid.uuid4().hex}", rows, key=["id"], properties={"statistics": "off"}
    )
    assert fails(table, plus(1))
