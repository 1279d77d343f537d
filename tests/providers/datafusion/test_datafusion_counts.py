"""Statements that only count rows read no row numbers: our dataset counts parts with hidden rows.

The oracle is DataFusion over the visible rows in memory.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.providers.datafusion.final_frame import FinalFrame
from tests.providers.datafusion.test_datafusion_hidden import contexts, made, tiny_row_groups
from tests.providers.datafusion.test_datafusion_native import answer

__all__ = ["tiny_row_groups"]
COUNTS = (
    "SELECT count(*) FROM t",
    "SELECT count(*) AS n, count(1), 5 AS five, sum(3) FROM t",
    "SELECT count(*) FROM t UNION ALL SELECT count(*) FROM u UNION ALL SELECT count(*) FROM t",
    "SELECT n FROM (SELECT count(*) AS n FROM t GROUP BY 1 = 1)",
    "SELECT x, count(*) FROM (SELECT 1 AS x FROM t UNION ALL SELECT 2 FROM u) GROUP BY x",
    "WITH c AS (SELECT count(*) AS n FROM t) SELECT n, n AS m FROM c",
    "SELECT 7 FROM t",
)
OTHERS = (
    "SELECT count(i) FROM t WHERE i > 3",
    "SELECT count(*) FROM t UNION ALL SELECT sum(i) FROM t",
    "SELECT count(*), max(id) FROM t",
    "SELECT count(*) FROM t GROUP BY s",
    "SELECT count(*) FROM t WHERE x IS NULL",
    "SELECT count(*) FROM t a, u b",
    "SELECT DISTINCT i FROM t",
)


@pytest.mark.parametrize("query", COUNTS)
def test_statements_that_only_count_number_no_rows(
    tmp_path: Path, tiny_row_groups: None, query: str
) -> None:  # invariant 26
    table, rows = made(tmp_path)
    ours, memory = contexts(table, rows)
    ours.register_table("u", rs.open_table(table.uri, version=1))
    memory.register_record_batches("u", [rows.slice(0, table.scan(version=1).count()).to_batches()])
    frame = ours.sql(query)
    assert "rowsieve_visible" not in frame.execution_plan().display_indent()
    assert answer(ours, query, ordered=False) == answer(memory, query, ordered=False)


@pytest.mark.parametrize("query", OTHERS)
def test_statements_that_read_a_column_leave_out_the_hidden_rows(
    tmp_path: Path, query: str
) -> None:
    table, rows = made(tmp_path)
    ours, memory = contexts(table, rows)
    ours.register_table("u", rs.open_table(table.uri, version=0))
    memory.register_record_batches(
        "u", [rs.open_table(table.uri, version=0).to_arrow().to_batches()]
    )
    plan = ours.sql(query).execution_plan().display_indent()
    assert "rowsieve_visible" in plan or "DatasetExec" in plan
    assert answer(ours, query, ordered=False) == answer(memory, query, ordered=False)


def test_calls_that_number_rows_are_never_given_other_rows(tmp_path: Path) -> None:
    ours, _ = contexts(*made(tmp_path))
    for query in (
        "SELECT count(*) FILTER (WHERE file_row_index() < 30) FROM t",
        "SELECT count(file_row_index()) FROM t",
        "SELECT file_row_index() FROM t",
    ):
        frame = ours.sql(query)
        if isinstance(frame, FinalFrame):
            assert "rowsieve_visible" in frame.execution_plan().display_indent()


def test_each_version_has_its_own_count(tmp_path: Path) -> None:
    table, rows = made(tmp_path)
    ours, _ = contexts(table, rows)
    query, count = "SELECT count(*) AS n FROM t", rows.num_rows
    before = ours.sql(query)
    table.delete(keys=pa.table({"id": [25, 26]}))
    assert ours.sql(query).to_pylist() == [{"n": count - 2}]
    table.upsert(rows.slice(0, 9).set_column(0, "id", pa.array(range(1000, 1009))))
    assert ours.sql(query).to_pylist() == [{"n": count + 7}]
    table.compact()
    assert ours.sql(query).to_pylist() == [{"n": count + 7}]
    assert before.to_pylist() == [{"n": count}]
    assert before.filter("n > 1").to_pylist() == [{"n": count}]


def test_mostly_hidden_and_unsafe_parts_count_too(tmp_path: Path) -> None:
    table, rows = made(tmp_path)
    ours, _ = contexts(table, rows)
    table.delete(keys=pa.table({"id": range(30, 380)}))
    table.upsert(rows.slice(0, 40).set_column(0, "id", pa.array(range(1000, 1040))))
    table.delete(keys=pa.table({"id": [1000]}))
    left = table.scan().count()
    for query in ("SELECT count(*) AS n FROM t", "SELECT count(*) AS n FROM (SELECT 1 FROM t)"):
        assert ours.sql(query).to_pylist() == [{"n": left}]
