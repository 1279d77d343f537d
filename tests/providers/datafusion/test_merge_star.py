"""`UPDATE SET *` and `INSERT *` take the columns of the source by their names, as Spark does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import UnknownColumn, UnsupportedOperation
from rowsieve.providers.datafusion import SessionContext

ROWS = {"id": [1, 2, 3], "V": ["a", "b", "c"], "n": [10, 20, 30]}
SOURCE = {"n": [21, 41, 51], "other": [0, 0, 0], "id": [2, 4, 5], "V": ["x", "y", None]}


@pytest.fixture(params=[["id"], None], ids=["key", "no key"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> rs.Table:
    return rs.create_table(str(tmp_path / "t"), pa.table(ROWS), key=request.param)


@pytest.fixture
def context(table: rs.Table) -> SessionContext:
    made = SessionContext()
    made.register_table("t", table)
    made.from_arrow(pa.table(SOURCE), "s")
    return made


def rows_of(table: rs.Table) -> list[tuple[object, ...]]:
    table.refresh()
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        (
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            [(1, "a", 10), (2, "x", 21), (3, "c", 30), (4, "y", 41), (5, None, 51)],
        ),
        (
            (
                "WHEN MATCHED AND a.n > 20 THEN UPDATE SET * WHEN NOT MATCHED AND b.id = 4 THEN "
                "INSERT * WHEN NOT MATCHED THEN INSERT (id) VALUES (b.id * 2) "
                "WHEN NOT MATCHED BY SOURCE AND a.id = 1 THEN DELETE"
            ),
            [(2, "b", 20), (3, "c", 30), (4, "y", 41), (10, None, None)],
        ),
    ],
)
def test_stars_are_the_columns_of_the_source(
    clauses: str, expected: list[tuple[object, ...]], context: SessionContext, table: rs.Table
) -> None:
    context.sql(f"MERGE INTO t a USING s AS b ON a.id = b.id {clauses}")
    assert rows_of(table) == expected


@pytest.mark.parametrize("clause", ["MATCHED THEN UPDATE SET *", "NOT MATCHED THEN INSERT *"])
def test_a_source_without_a_column_is_refused(
    clause: str, context: SessionContext, table: rs.Table
) -> None:
    with pytest.raises(UnknownColumn, match="each column of the table from the source, and 'V'"):
        context.sql(
            f"MERGE INTO t USING (SELECT id, n, 1 AS v FROM s) s ON t.id = s.id WHEN {clause}"
        )
    assert table.refresh() == 0


def test_another_value_of_the_key_is_refused(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), pa.table(ROWS), key=["id"])
    context = SessionContext()
    context.register_table("t", table)
    with pytest.raises(UnsupportedOperation, match="key column 'id'"):
        context.sql(
            """MERGE INTO t USING (SELECT id + 1 AS id, "V", n FROM t) s ON t.id + 1 = s.id """
            "WHEN MATCHED THEN UPDATE SET *"
        )
    assert table.refresh() == 0


def test_a_clause_for_rows_without_a_source_deletes_beside_one_for_pairs(tmp_path: Path) -> None:
    """One of them has nullable keys, as the source may."""
    table = rs.create_table(str(tmp_path / "t"), pa.table({"id": [1, 2], "v": [2, 2]}), key=["id"])
    context = SessionContext()
    context.register_table("t", table)
    context.from_arrow(pa.table({"id": [2, 5], "v": [3, 3]}), "s")
    context.sql(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.v < 99 THEN DELETE"
    )
    assert table.to_arrow().to_pylist() == [{"id": 5, "v": 3}]
