"""Moments at the ends of the years 1 to 9999, for which exactness holds, keep their rows.

DataFusion makes nanoseconds of some moments and fails beyond 1677 and 2262: it may fail, not err.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.languages import bridge_named
from rowsieve.bridges.translation import Exactness
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Date, Int, LogicalType, Timestamp
from tests.bridges.conformance import ours
from tests.bridges.datafusion_exprs import engine as datafusion_engine
from tests.bridges.polars_exprs import engine as polars_engine
from tests.bridges.sql.engines import JUDGES
from tests.bridges.sql.spelled import CALLS, call

DAY_US = 86_400_000_000
FIRST, LAST = -719_162, 2_932_896
MOMENTS = [
    *(datetime.datetime(1, 1, 1), datetime.datetime(1, 1, 1, 0, 0, 0, 1)),
    *(datetime.datetime(1, 12, 31, 23, 59, 59, 999_999), datetime.datetime(100, 2, 28, 12)),
    *(datetime.datetime(1582, 10, 4, 23), datetime.datetime(1677, 9, 21, 0, 12, 43)),
    *(datetime.datetime(2262, 4, 11, 23, 47, 17), datetime.datetime(9998, 12, 31)),
    *(datetime.datetime(9999, 1, 1, 5), datetime.datetime(9999, 12, 31)),
    *(datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999), None),
]
BATCH = pa.record_batch(
    {
        "ts": pa.array(MOMENTS, pa.timestamp("us")),
        "day": pa.array([at and at.date() for at in MOMENTS], pa.date32()),
    }
)
SCHEMA = schema_of(BATCH.schema)[0]
UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
MOVES = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, -3_600_000_000), (0, 0, DAY_US)]
OPERANDS: list[ir.Operand] = [
    *(ir.Column(name) for name in ("ts", "day")),
    *(item for name, items in CALLS.items() if name.startswith("extract_") for item in items),
    *(item for name in ("last_day", "days_between", "epoch_us") for item in CALLS[name]),
    *(call("date_trunc", unit, "$ts") for unit in UNITS),
    *(ir.Cast(ir.Column("day"), Timestamp()), ir.Cast(ir.Column("ts"), Date())),
    *(
        ir.Call(name, (ir.Column("ts"), *(ir.Literal(part, Int(64)) for part in parts)))
        for name in ("shift_timestamp", "add_interval")
        for parts in MOVES
    ),
]


def _constants(type_: LogicalType) -> list[ir.Literal]:
    if isinstance(type_, Int):
        return [ir.Literal(value, type_) for value in (1, 7, 53, 366, 9999)]
    unit = DAY_US if isinstance(type_, Timestamp) else 1
    return [ir.Literal(day * unit, type_) for day in (FIRST, FIRST + 31, 0, LAST)]


def _comparisons() -> Iterator[ir.Comparison]:
    for operand in OPERANDS:
        for constant in _constants(bind_operand(operand, SCHEMA, Semantics.SQL).type):
            yield from (ir.Comparison(op, operand, constant) for op in (ir.ComparisonOp.LE, EQ))


def _arrow_rows(expression: Any, batch: pa.RecordBatch) -> list[int]:
    numbered = batch.append_column("n", pa.array(range(batch.num_rows)))
    found: list[int] = pa.table(numbered).filter(expression)["n"].to_pylist()
    return found


EQ = ir.ComparisonOp.EQ
ENGINES: Mapping[str, Callable[[Any, pa.RecordBatch], list[int] | None]] = {
    **JUDGES,
    "datafusion_exprs": datafusion_engine.theirs,
    "polars": polars_engine.theirs,
    "pyarrow_exprs": _arrow_rows,
}


@pytest.mark.parametrize("target", ENGINES)
def test_functions_of_the_first_and_the_last_moments_keep_their_rows(target: str) -> None:
    semantics, checked = bridge_named(target).semantics, 0
    for predicate in _comparisons():
        made = rs.translate(predicate, target=target, schema=BATCH.schema, semantics=semantics)
        if made.exactness is not Exactness.EXACT:
            continue
        mine = ours(predicate, SCHEMA, BATCH, semantics)
        found = ENGINES[target](made.expression, BATCH)
        if found is None:
            assert target.startswith("datafusion")
            continue
        assert found == mine, made.expression
        checked += 1
    assert checked > 60


def test_timestamps_beyond_nanoseconds_have_no_datafusion_literal() -> None:
    """Whatever the rows, it fails on such a constant; `arrow_cast` has microseconds."""
    far = ir.Literal(LAST * DAY_US, Timestamp())
    listed = ir.InList(
        ir.Column("ts"), ir.ValueSet(pa.array([0, LAST * DAY_US], pa.timestamp("us")))
    )
    last_second = ir.Literal(9_223_372_036_854_775, Timestamp())
    for predicate in (ir.Comparison(ir.ComparisonOp.LT, ir.Column("ts"), far), listed):
        mine = ours(predicate, SCHEMA, BATCH, Semantics.DATAFUSION)
        for target in ("datafusion", "datafusion_exprs"):
            made = rs.translate(predicate, target=target, schema=BATCH.schema).exact()
            assert ENGINES[target](made, BATCH) == mine
            again = rs.translate(made, target, target="rowsieve", schema=BATCH.schema).exact()
            assert ours(again, SCHEMA, BATCH, Semantics.DATAFUSION) == mine
    assert JUDGES["datafusion"]("ts < TIMESTAMP '9999-12-31 00:00:00'", BATCH) is None
    near = ir.Comparison(ir.ComparisonOp.LT, ir.Column("ts"), last_second)
    text = rs.translate(near, target="datafusion", schema=BATCH.schema).exact()
    assert JUDGES["datafusion"](text, BATCH) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("target", ["polars", "duckdb", "datafusion", "pyarrow_exprs"])
@pytest.mark.parametrize("day", [FIRST - 1, LAST + 1, 2**31 - 1])
def test_constants_beyond_are_written_or_left(target: str, day: int) -> None:
    for column, constant in (("day", ir.Literal(day, Date())), ("ts", ir.Literal(day * DAY_US))):
        typed = constant if constant.type else ir.Literal(constant.value, Timestamp())
        predicate = ir.Comparison(ir.ComparisonOp.LT, ir.Column(column), typed)
        if isinstance(typed.value, int) and abs(typed.value) < 2**63:
            made = rs.translate(predicate, target=target, schema=BATCH.schema)
            assert made.exactness is Exactness.EXACT or made.residual == predicate


def test_a_truncated_constant_beyond_nanoseconds_is_not_exact_in_datafusion() -> None:
    schema = pa.schema([("t", pa.timestamp("us"))])
    for constant, exact in (("9000-01-01 05:00:00", False), ("2024-01-31 05:00:00", True)):
        condition = f"date_trunc('month', TIMESTAMP '{constant}') > t"
        translation = rs.translate(condition, "postgres", target="datafusion", schema=schema)
        assert (translation.exactness is Exactness.EXACT) is exact


# A local time is truncated to days without nanoseconds, an instant to minutes.
UNITS_OF_INSTANTS = frozenset({"hour", "day"})
UNITS_OF_NANOSECONDS = frozenset({"week", "month", "quarter", "year"})


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("column", ["ts", "tz"])
@pytest.mark.parametrize("target", ["datafusion", "datafusion_exprs"])
def test_truncations_that_fail_in_datafusion_alone_are_not_exact(
    target: str, column: str, unit: str
) -> None:
    """Where the condition is DataFusion's own, it fails in its source, too, and stays exact."""
    batch = BATCH.append_column("tz", BATCH["ts"].cast(pa.timestamp("us", "UTC")))
    condition = f"date_trunc('{unit}', {column}) <= {column}"
    exact = rs.translate(condition, "datafusion", target=target, schema=batch.schema).exact()
    fails = unit in UNITS_OF_NANOSECONDS or (column == "tz" and unit in UNITS_OF_INSTANTS)
    assert (ENGINES[target](exact, batch) is None) is fails
    foreign = rs.translate(condition, "postgres", target=target, schema=batch.schema)
    assert (foreign.exactness is Exactness.EXACT) is not fails


@pytest.mark.parametrize("condition", ["last_day(day) > day", "last_day(ts) > day"])
def test_last_days_that_fail_in_datafusion_alone_are_not_exact(condition: str) -> None:
    foreign = rs.translate(condition, "postgres", target="datafusion", schema=BATCH.schema)
    assert foreign.exactness is Exactness.UNSUPPORTED
