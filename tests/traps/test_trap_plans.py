"""The traps of plans: T23 and T34 to T36, each by its smallest story."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import SessionContext, udf

import rowsieve as rs
from rowsieve.errors import StalePlan
from rowsieve.planner.explain import explain
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate import ir
from rowsieve.predicate.rowset import RowSet
from tests.small_tables import appended, keyed, pairs


def test_t23_row_numbers_die_with_their_file() -> None:
    table = appended({"k": [1, 2], "v": [1, 2]}, {"k": [3, 4], "v": [3, 4]})
    table.delete("k = 1")
    plan = table.scan("v > 3").plan()  # row 1 of the second part
    sent = plan.to_bytes()
    table.compact()  # where row 1 is another
    with pytest.raises(StalePlan):
        table.delete(plan=plan)
    assert pairs(table) == [(2, 2), (3, 3), (4, 4)]
    read = table.scan(plan=ScanPlan.from_bytes(sent)).to_arrow()  # of the files it was made of
    assert read.to_pylist() == [{"k": 4, "v": 4}]


def test_t34_row_sets_of_different_sources_never_meet() -> None:
    short, long = RowSet.from_ids(np.array([1]), 4), RowSet.from_ids(np.array([1]), 5)
    for meet in (short.intersect, short.union, short.difference):
        with pytest.raises(ValueError, match=r"4|5"):
            meet(long)


def test_t35_conditions_that_statistics_answer_in_part_are_evaluated_on_rows() -> None:
    table = appended({"k": [1, 2, 3], "v": [1, 5, 9]}, {"k": [4, 5], "v": [20, 30]})
    scan = table.scan("v > 4")
    assert scan.explain().filtered
    assert pairs(table, "v > 4") == [(2, 5), (3, 9), (4, 20), (5, 30)]
    assert not table.scan("v > 10").explain().filtered  # here they answer all of it
    context = SessionContext()
    context.register_table("t", table)
    for where in ("v > 4", "v > 4 AND v % 2 = 1", "v BETWEEN 4 AND 20", "v IN (5, 20, 21)"):
        rows = context.sql(f"SELECT k, v FROM t WHERE {where}").to_arrow_table().to_pylist()
        assert sorted((row["k"], row["v"]) for row in rows) == pairs(table, where)


def test_t35_a_bloom_filter_hit_proves_nothing() -> None:
    schema = pa.schema([pa.field("k", pa.string(), nullable=False), pa.field("v", pa.int64())])
    table = keyed(schema=schema)
    table.upsert(pa.table({"k": [f"k{i:05}" for i in range(0, 4000, 2)], "v": [1] * 2000}))
    absent = [f"k{i:05}" for i in range(1, 3999, 2)]
    listed = ", ".join(f"'{key}'" for key in absent)
    assert table.scan(f"k IN ({listed})").count() == 0  # some of them are in the filter
    assert table.scan(f"k IN ({listed}, 'k00008')").to_arrow()["k"].to_pylist() == ["k00008"]


def test_t36_an_or_with_an_unknown_branch_prunes_nothing() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]}, {"k": [11, 12], "v": [11, 12]})
    snapshot = table.handle.pinned
    above = ir.Comparison(ir.ComparisonOp.GT, ir.Column("k"), ir.Literal(10))
    unknown = ir.Opaque("odd(v)", "spark", ("v",))
    for predicate, parts_read in ((ir.Or((above, unknown)), 2), (ir.And((above, unknown)), 1)):
        plan = plan_scan(snapshot, table.uri, predicate=predicate, now_us=0)
        assert explain(plan, snapshot, str).parts_read == parts_read


def test_t36_through_an_engine() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]}, {"k": [11, 12], "v": [11, 12]})

    def odd(v: pa.Array) -> pa.Array:
        return pc.equal(pc.bit_wise_and(v, 1), 1)

    context = SessionContext()
    context.register_table("t", table)
    context.register_udf(udf(odd, [pa.int64()], pa.bool_(), "stable", name="odd"))
    for where, expected in (("k > 10 OR odd(v)", [1, 11, 12]), ("k > 10 AND odd(v)", [11])):
        rows = context.sql(f"SELECT k FROM t WHERE {where} ORDER BY k").to_arrow_table()
        assert rows["k"].to_pylist() == expected
    with pytest.raises(rs.errors.InvalidPredicate, match="odd"):
        table.scan("k > 10 OR odd(v)")
