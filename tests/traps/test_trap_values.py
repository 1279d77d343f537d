"""T13 floats, T20 and T21 absent statistics and columns, T22 what a plan depends on."""

from __future__ import annotations

import dataclasses
import math

import pyarrow as pa
import pytest
from datafusion import SessionContext

from rowsieve import Table
from rowsieve.bridges.sql import parse_predicate
from rowsieve.errors import EvaluationError
from rowsieve.executor.execute import Execution
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.manifests.manifest import PartTable
from tests.small_tables import appended, keyed, kv, pairs

NAN, INF = math.nan, math.inf
FLOATS = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.float64())])


def keys_where(table: Table, where: str) -> list[int]:
    found = sorted(table.scan(where).to_arrow()["k"].to_pylist())
    assert found == sorted(table.scan(where, pruning="off").to_arrow()["k"].to_pylist())
    context = SessionContext()
    table.refresh()
    context.register_table("t", table)
    engine = where.replace("'NaN'", "'NaN'::double").replace("'Infinity'", "'Infinity'::double")
    rows = context.sql(f"SELECT k FROM t WHERE {engine}").to_arrow_table()
    assert sorted(rows["k"].to_pylist()) == found
    return found


@pytest.fixture(scope="module")
def floats() -> Table:
    """A part each: NaN above a small number; NaN and NULL; zeros; infinities."""
    return keyed(
        {"k": [1, 2], "v": [1.0, NAN]},
        {"k": [11, 12], "v": [NAN, None]},
        {"k": [21, 22], "v": [-0.0, 0.0]},
        {"k": [31, 32], "v": [-INF, INF]},
        schema=FLOATS,
    )


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("v > 2", [2, 11, 32]),  # NaN is above every number
        ("v = 'NaN'", [2, 11]),
        ("v > 'Infinity'", [2, 11]),
        ("v <> 1", [2, 11, 21, 22, 31, 32]),
        ("NOT (v <= 1)", [2, 11, 32]),
        ("v = 0", [21, 22]),
        ("v >= 0 AND v < 1", [21, 22]),
        ("v < 0", [31]),
        ("v IS NULL", [12]),
        ("v NOT IN (1, 0)", [2, 11, 31, 32]),
    ],
)
def test_t13_nan_signed_zeros_and_infinities(
    floats: Table, where: str, expected: list[int]
) -> None:
    found = sorted(floats.scan(where).to_arrow()["k"].to_pylist())
    assert found == sorted(floats.scan(where, pruning="off").to_arrow()["k"].to_pylist())
    assert found == expected


@pytest.mark.parametrize("where", ["v > 2", "v = 'NaN'", "v = 0", "v < 0", "v <> 1"])
def test_t13_datafusion_agrees(floats: Table, where: str) -> None:
    assert keys_where(floats, where)


def test_t13_nan_and_negative_zero_as_keys() -> None:
    schema = pa.schema([pa.field("k", pa.float64(), nullable=False), pa.field("v", pa.int64())])
    table = keyed({"k": [-0.0, NAN], "v": [1, 1]}, {"k": [0.0, -NAN], "v": [2, 2]}, schema=schema)
    found = table.scan(order_by_key=True).to_arrow()
    assert found["v"].to_pylist() == [2, 2]
    assert math.copysign(1, found["k"][0].as_py()) == 1
    assert math.isnan(found["k"][1].as_py())
    assert table.scan("k = 'NaN' AND v = 1").count() == 0
    table.delete("k = 'NaN'")
    assert table.scan().to_arrow()["k"].to_pylist() == [0.0]


def without_statistics(parts: PartTable, fact: str) -> PartTable:
    names = parts.table.column_names
    names = [name for name in names if not (name.startswith("stats.") and fact in name)]
    return PartTable(parts.table.select(names))


@pytest.mark.parametrize("fact", ["", ".lower", ".upper", ".null_count", ".nan_count"])
@pytest.mark.parametrize("where", ["v = 2", "v > 2", "v IS NULL", "v IS NOT NULL", "v < 1"])
def test_t21_absent_statistics_are_not_empty_ones(floats: Table, fact: str, where: str) -> None:
    snapshot = floats.handle.pinned
    bare = dataclasses.replace(snapshot, parts=without_statistics(snapshot.parts, fact))
    plan = plan_scan(bare, floats.uri, predicate=parse_predicate(where), now_us=0)
    rows = list(Execution(plan, floats.handle.store).read())
    found = sorted(key for batch in rows for key in batch.column("k").to_pylist())
    assert found == sorted(floats.scan(where).to_arrow()["k"].to_pylist())


def test_t20_t21_a_column_that_the_data_lacks_is_null_and_found_so() -> None:
    table = appended({"k": [1], "v": [5]})
    table.append(pa.table({"k": pa.array([2], pa.int64())}))
    assert pairs(table, "v IS NULL") == [(2, None)]
    assert pairs(table, "v = 5") == [(1, 5)]
    assert table.scan("v IS NULL").explain().parts_read == 1
    assert pairs(table, "v IS DISTINCT FROM 5") == [(2, None)]


def test_t21_an_all_null_part_is_refuted_only_by_conditions_that_need_a_value() -> None:
    table = keyed({"k": [1], "v": [None]}, {"k": [2], "v": [1]})
    assert pairs(table, "v IS NULL") == [(1, None)]
    assert pairs(table, "coalesce(v, 7) = 7") == [(1, None)]
    assert table.scan("v = 1").explain().parts_read == 1


def test_t22_a_plan_carries_all_that_its_answer_depends_on() -> None:
    table = keyed({"k": [1], "v": [1]})
    before = table.handle.pinned
    table.upsert(kv((2, 2)))
    after = table.handle.pinned
    later = ir.Comparison(ir.ComparisonOp.LT, ir.Literal(5), ir.Column("v"))
    plans = [
        plan_scan(before, table.uri, predicate=later, now_us=0),
        plan_scan(after, table.uri, predicate=later, now_us=0),
        plan_scan(after, table.uri, predicate=later, now_us=1),
        plan_scan(after, table.uri, predicate=later, now_us=0, semantics=Semantics.DATAFUSION),
        plan_scan(after, table.uri, predicate=later, now_us=0, limit=1),
    ]
    assert len({plan.to_bytes() for plan in plans}) == len(plans)
    other = keyed({"k": [1], "v": [1]})
    other.upsert(kv((2, 2)))
    elsewhere = plan_scan(other.handle.pinned, other.uri, now_us=0)
    assert plans[1].table_uuid != elsewhere.table_uuid


def test_t22_now_is_one_moment_of_the_plan_wherever_it_is_read() -> None:
    schema = pa.schema(
        [pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.timestamp("us", "UTC"))]
    )
    table = keyed(schema=schema)
    table.upsert(kv((1, 100), (2, 200)).cast(schema))
    predicate = ir.Comparison(ir.ComparisonOp.LT, ir.Column("v"), ir.Now())
    snapshot = table.handle.pinned
    for now_us, expected in ((100, []), (150, [1]), (10**15, [1, 2])):
        plan = plan_scan(snapshot, table.uri, predicate=predicate, now_us=now_us)
        sent = ScanPlan.from_bytes(plan.to_bytes())
        rows = list(Execution(sent, table.handle.store).read())
        assert [key for batch in rows for key in batch.column("k").to_pylist()] == expected


def test_t22_semantics_travel_with_the_plan() -> None:
    table = keyed({"k": [1], "v": [7]})
    table.upsert(kv((2, 0)))
    predicate = parse_predicate("1 / CAST(v AS double precision) > 5")
    snapshot = table.handle.pinned
    duck = plan_scan(snapshot, table.uri, predicate=predicate, now_us=0, semantics=Semantics.DUCKDB)
    sent = ScanPlan.from_bytes(duck.to_bytes())
    assert [b.column("k").to_pylist() for b in Execution(sent, table.handle.store).read()] == [[2]]
    plain = plan_scan(snapshot, table.uri, predicate=predicate, now_us=0)
    with pytest.raises(EvaluationError):
        list(Execution(plain, table.handle.store).read())
