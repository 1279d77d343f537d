"""Filters that DataFusion folds to a constant arrive as a boolean, not as an expression."""

from __future__ import annotations

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("at = TIMESTAMP '2024-02-28' AND at IN (TIMESTAMP '2024-02-29')", 0),
        ("id = 1 AND id IN (2)", 0),
        ("id = id OR id IS NULL", 2),
        ("NULL", 0),
        ("1 = 1", 2),
    ],
)
def test_a_filter_folded_to_a_constant_selects_all_or_nothing(where: str, count: int) -> None:
    columns = {"id": pa.array([1, 2]), "at": pa.array([0, 1], pa.timestamp("us"))}
    table = rs.create_table("memory://folded", pa.table(columns), key=["id"], if_exists="ignore")
    context = datafusion.SessionContext()
    context.register_table("t", table)
    assert context.sql(f"SELECT * FROM t WHERE {where}").count() == count
    assert len(context.sql(f"SELECT id FROM t WHERE {where}").to_pylist()) == count
