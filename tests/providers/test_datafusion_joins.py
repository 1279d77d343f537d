"""Joins in our session: their order follows sizes, and every way to read them comes to an end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datafusion
import numpy as np
import pyarrow as pa
import pytest
from datafusion import col, lit

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext

LARGE = 140_000  # from 131,072 rows on, both sides of a join have partitions
JOIN = "SELECT few.v FROM few JOIN many USING (id)"


def numbered(start: int, stop: int) -> pa.Table:
    ids = np.arange(start, stop)
    return pa.table({"id": ids, "v": ids})


def context(folder: Path, few: int, many: int) -> SessionContext:
    made = SessionContext(datafusion.SessionConfig().with_target_partitions(2))
    for name, rows in (("few", few), ("many", many)):
        made.register_table(name, rs.create_table(folder / name, numbered(0, rows), key=["id"]))
    return made


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> SessionContext:
    return context(tmp_path_factory.mktemp("large"), LARGE, LARGE)


def plan_of(frame: Any) -> str:
    found: str = frame.execution_plan().display_indent()
    return found


def streams(frame: Any) -> Iterator[int]:
    """The number of rows, read in each of the ways that read partitions one after another."""
    yield pa.table(frame).num_rows
    yield sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(frame))
    parts = frame.execute_stream_partitioned()
    yield sum(batch.to_pyarrow().num_rows for part in parts for batch in part)


@pytest.mark.parametrize("query", [JOIN, "SELECT few.v FROM many JOIN few USING (id)"])
def test_the_smaller_table_is_read_first_whichever_that_is(tmp_path: Path, query: str) -> None:
    made = context(tmp_path, 10, 2_000)
    plan = plan_of(made.sql(query))
    assert plan.index("/few/") < plan.index("/many/")
    rs.open_table(tmp_path / "few").upsert(numbered(10, 9_000))
    plan = plan_of(made.sql(query))
    assert plan.index("/few/") > plan.index("/many/")


@pytest.mark.parametrize(
    "query",
    [
        JOIN,
        "SELECT few.v FROM few, many AS m WHERE few.id = m.id",
        "SELECT v FROM few WHERE id IN (SELECT id FROM many)",
    ],
)
def test_a_join_skips_by_keys_of_its_other_side_and_ends(large: SessionContext, query: str) -> None:
    """DataFusion 55.0 waits for ever if partitions of such a join are read one after another."""
    frame = large.sql(query)
    plan = plan_of(frame)
    assert "mode=Partitioned" in plan
    assert "DynamicFilter" in plan
    assert list(streams(frame)) == [LARGE] * 3
    above = frame.filter(col("v") >= lit(10))
    plan = plan_of(above)
    assert "DynamicFilter" not in plan
    assert list(streams(above)) == [LARGE - 10] * 3


def test_a_join_of_a_small_table_with_several_parts_ends(tmp_path: Path) -> None:
    made = context(tmp_path, 20, 90)
    rs.open_table(tmp_path / "many").upsert(numbered(90, 200))
    frame = made.sql(JOIN)
    plan = plan_of(frame)
    assert "mode=CollectLeft" in plan
    assert "DynamicFilter" in plan
    above = frame.filter(col("v") >= lit(10))
    plan = plan_of(above)
    assert "DynamicFilter" not in plan
    assert list(streams(frame)) == [20] * 3
    assert list(streams(above)) == [10] * 3


def test_a_join_that_our_dataset_takes_part_in_ends(tmp_path: Path) -> None:
    made = context(tmp_path, 90, 90)
    for name in ("few", "many"):
        rs.open_table(tmp_path / name).upsert(numbered(90, 120))
        rs.open_table(tmp_path / name).upsert(numbered(100, 110))
    frame = made.sql(f"{JOIN} WHERE abs(many.v) >= 0")
    plan = plan_of(frame)
    assert "mode=Partitioned" in plan
    assert "DynamicFilter" in plan
    above = frame.filter(col("v") >= lit(10))
    plan = plan_of(above)
    assert "DynamicFilter" not in plan
    assert list(streams(frame)) == [120] * 3
    assert list(streams(above)) == [110] * 3
