"""Statistics of a scan against its rows: bounds contain them, counts cover them."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve import Scan, Table
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.planner.statistics import ColumnSummary
from rowsieve.types.logical import Field, LogicalType, is_ordered
from rowsieve.types.ordering.keys import sort_form
from tests.oracle_table import to_arrow
from tests.parts_in_memory import count_in_memory, parts_in_memory
from tests.profiles import examples
from tests.random_tables import tiny_row_groups
from tests.small_tables import appended, fresh_uri, keyed, kv
from tests.table_strategies import TableShape, predicates, rows, table_shapes


def summary(table: Table, *arguments: Any, column: str = "v", **options: Any) -> dict[str, Any]:
    return table.scan(*arguments, **options).statistics().columns[column].as_dict()


EXACT = {
    "lower": 10, "lower_exact": True, "upper": 30, "upper_exact": True,
    "null_count": 1, "null_count_exact": True,
}  # fmt: skip
SOFT = EXACT | {"lower_exact": False, "upper_exact": False, "null_count_exact": False}
DATA: dict[str, list[int | None]] = {"k": [1, 2, 3, 4], "v": [10, None, 30, 20]}


def test_statistics_of_wholly_returned_parts_are_exact() -> None:
    scan = keyed(DATA).scan()
    found = scan.statistics()
    assert (found.rows, found.rows_exact, found.size_bytes_exact) == (4, True, True)
    assert found.size_bytes == scan.metrics.bytes_considered
    assert found.columns["v"].as_dict() == EXACT
    assert found.as_dict()["columns"]["v"] == EXACT
    assert summary(keyed(DATA), "k > 0") == EXACT  # all rows match


def test_a_condition_leaves_bounds() -> None:
    table = keyed(DATA)
    found = table.scan("v < 25", columns=["v"]).statistics()
    assert (found.rows, found.rows_exact, found.size_bytes_exact) == (4, False, False)
    assert found.columns["v"].as_dict() == SOFT


def test_rows_that_newer_parts_may_hide_leave_bounds() -> None:
    table = keyed(DATA, {"k": [1, 4], "v": [11, 21]})
    found = table.scan().statistics()
    assert (found.rows, found.rows_exact) == (6, False)
    assert found.columns["v"].as_dict() == SOFT
    table.upsert(kv((2, 5), (3, 40)))  # the newest part hides the least and greatest of the others
    newest = summary(table)
    assert (newest["lower"], newest["lower_exact"]) == (5, True)
    assert (newest["upper"], newest["upper_exact"]) == (40, True)
    assert newest["null_count_exact"] is False


def test_rows_that_a_vector_hides_are_counted_out() -> None:
    table = appended(DATA)
    table.delete("k = 1")
    found = table.scan().statistics()
    assert (found.rows, found.rows_exact) == (3, True)
    assert found.columns["v"].as_dict() == SOFT


@pytest.mark.parametrize("ordered", [False, True])
def test_a_limit_that_cuts_leaves_bounds(ordered: bool) -> None:
    table = keyed(DATA)
    found = table.scan(limit=2, order_by_key=ordered).statistics()
    assert (found.rows, found.rows_exact) == (2, True)
    assert found.columns["v"].as_dict() == SOFT
    assert summary(table, limit=4, order_by_key=ordered) == EXACT
    assert summary(table, limit=0, order_by_key=ordered)["null_count"] == 0


def test_tombstones_widen_bounds_but_are_not_values() -> None:  # trap T4
    table = keyed()
    table.apply_changes(
        pa.table({"k": [1, 5, 9], "v": [0, 1, 0], "op": ["d", "u", "d"], "lsn": [1, 2, 3]}),
        op="op",
        sequence="lsn",
    )
    assert summary(table, column="k") == {
        "lower": 1, "lower_exact": False, "upper": 9, "upper_exact": False,
        "null_count": 0, "null_count_exact": True,
    }  # fmt: skip


def test_nan_leaves_no_upper_bound() -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.float64())])
    table = keyed({"k": [1, 2, 3], "v": [1.5, math.nan, 2.5]}, schema=schema)
    assert summary(table) == {
        "lower": 1.5, "lower_exact": False, "upper": None, "upper_exact": False,
        "null_count": 0, "null_count_exact": True,
    }  # fmt: skip


@pytest.mark.parametrize("where", [None, "v IS NULL", "FALSE"])
def test_no_values_are_known_to_be_none(where: str | None) -> None:
    found = summary(appended({"k": [1, 2], "v": [None, None]}), where)
    assert (found["lower"], found["lower_exact"]) == (None, True)
    assert (found["upper"], found["upper_exact"]) == (None, True)
    assert found["null_count_exact"]


def test_computed_columns_are_unknown() -> None:
    found = keyed(DATA).scan(columns={"twice": "v * 2", "k": "k"}).statistics()
    assert found.columns == {"twice": ColumnSummary(), "k": ColumnSummary()}
    assert not found.size_bytes_exact


def test_times_beyond_python_are_numbers() -> None:
    schema = pa.schema([("k", pa.int64()), ("v", pa.timestamp("us"))])
    data = {"k": [1], "v": pa.array([2**62]).cast(pa.timestamp("us"))}
    table = appended(data, schema=schema)
    assert summary(table)["upper"] == 2**62


def test_one_split_of_a_part_is_not_the_part() -> None:
    with contextmanager(tiny_row_groups)(2):
        table = appended({"k": list(range(8)), "v": list(range(8))})
        plan = plan_scan(table.handle.pinned, table.uri, now_us=0, split_bytes=300)
        assert len(plan.splits) > 1
        for i in range(len(plan.splits)):
            scan = table.scan(plan=plan.only(i))
            check(scan, table)
            assert scan.statistics().rows_exact
            assert not scan.statistics().columns["v"].lower_exact
        assert table.scan(plan=plan).statistics().columns["v"].lower_exact


def check(scan: Scan, table: Table) -> None:
    """Hold the statistics of a scan against the rows that it returns."""
    found, result = scan.statistics(), scan.to_arrow()
    assert result.num_rows <= found.rows
    assert not found.rows_exact or result.num_rows == found.rows
    for field in table.handle.pinned.schema:
        check_column(found.columns[field.name], result.column(field.name), field)


def check_column(found: ColumnSummary, column: pa.ChunkedArray, field: Field) -> None:
    if found.null_count is not None:
        assert column.null_count <= found.null_count
    assert not found.null_count_exact or column.null_count == found.null_count
    values = sorted(sort_forms(column.drop_null().combine_chunks(), field.type))
    lower, upper = (ordinal(bound, field.type) for bound in (found.lower, found.upper))
    assert lower is None or not values or lower <= values[0]
    assert upper is None or not values or values[-1] <= upper
    assert not found.lower_exact or [lower] == (values[:1] or [None])
    assert not found.upper_exact or [upper] == (values[-1:] or [None])


def sort_forms(values: pa.Array, type_: LogicalType) -> list[Any]:
    """Values as what compares like them, NaN greatest; none of a type without an order."""
    return list(sort_form(values, type_).to_pylist()) if is_ordered(type_) else []


def ordinal(bound: pa.Scalar | None, type_: LogicalType) -> Any:
    return None if bound is None else sort_forms(pa.repeat(bound, 1), type_)[0]


@pytest.mark.parametrize("key", [["k"], None], ids=["key", "no key"])
@pytest.mark.parametrize("last", ["memory", "file"])
def test_parts_in_memory_have_the_statistics_of_files(key: list[str] | None, last: str) -> None:
    """Invariant 39: also of columns that were added, widened and renamed, of NaN and of NULL."""

    def made(*sources: str) -> Table:
        turns = (source == "memory" for source in sources)
        with parts_in_memory(lambda: next(turns)):
            table = rs.create_table(fresh_uri(), pa.schema(
                [pa.field("k", pa.int64(), nullable=False), ("v", pa.int32()), ("x", pa.float64()),
                 ("d", pa.decimal128(9, 2)), ("t", pa.timestamp("us", "UTC")), ("n", pa.string()),
                 ("s", pa.struct([("a", pa.int64())]))]
            ), key)  # fmt: skip
            write = table.upsert if key else table.append
            write(pa.table({
                "k": [1, 2, 3], "v": [7, None, -5], "x": [0.5, -0.0, None], "d": [1, 2, None],
                "t": [5, None, 2**60], "n": [None] * 3, "s": [{"a": 1}, None, {"a": None}],
            }, schema=table.schema))  # fmt: skip
            table.widen_column("v", pa.int64())
            table.add_column("w", pa.int64(), default=9)
            table.rename_column("d", "e")
            later = {"k": [8, 9], "v": [2**40, 1], "x": [math.nan, 1.5], "w": [None, 4]}
            write(pa.table({**later, **{name: [None] * 2 for name in "etns"}}, schema=table.schema))
        return table

    in_files, in_memory = made("file", "file"), made("memory", last)
    assert count_in_memory(in_memory) == (2 if last == "memory" else 1)
    assert not count_in_memory(in_files)
    for options in ({}, {"columns": ["w", "k"]}, {"limit": 3}):
        of_memory, of_files = (
            table.scan(**options).statistics() for table in (in_memory, in_files)
        )
        for name, known in of_files.columns.items():
            if name != "w":  # the bounds of a file hold before the column was added
                assert of_memory.columns[name] == known
        assert (of_memory.rows, of_memory.rows_exact) == (of_files.rows, of_files.rows_exact)
    added = summary(in_memory, column="w")
    assert (added["lower"], added["upper"], added["null_count"]) == (4, 9, 1)
    assert added["lower_exact"]


@st.composite
def histories(draw: st.DrawFn) -> tuple[TableShape, Table]:
    """A table of a random shape after some writes and deletes."""
    shape = draw(table_shapes(keyed=draw(st.booleans())))
    with parts_in_memory(lambda: draw(st.booleans())):
        table = rs.create_table(fresh_uri(), shape.arrow, key=list(shape.key) or None)
        for batch in draw(st.lists(rows(shape), min_size=1, max_size=3)):
            data = to_arrow(batch, shape.schema)
            if shape.key:
                table.upsert(data, on_duplicate="last")
                if draw(st.booleans()):
                    table.delete(keys=data.select(list(shape.key)).slice(0, 1))
            else:
                table.append(data)
                if draw(st.booleans()):
                    table.delete(f"{shape.schema.names[0]} IS NULL")
    return shape, table


@examples(150)
@given(histories(), st.data())
def test_statistics_are_true_of_the_rows(
    history: tuple[TableShape, Table], data: st.DataObject
) -> None:
    shape, table = history
    where = data.draw(st.none() | predicates(shape, functions=False, depth=1))
    ordered = bool(shape.key) and data.draw(st.booleans())
    limit = data.draw(st.none() | st.integers(0, 9))
    pruning: Literal["on", "off"] = data.draw(st.sampled_from(["on", "off"]))
    check(table.scan(where, limit=limit, order_by_key=ordered, pruning=pruning), table)
