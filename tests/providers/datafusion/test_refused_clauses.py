"""Clauses of other systems are refused by name, and names that are spelled alike are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import UnsupportedOperation
from rowsieve.providers.datafusion import SessionContext

REFUSED = [
    (
        "RETURNING",
        "INSERT INTO t VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET v = 1 returning id",
    ),
    ("RETURNING", "MERGE INTO t USING src s ON t.id = s.id WHEN MATCHED THEN DELETE RETURNING t.v"),
    (
        "RETURNING",
        "MERGE INTO t USING src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1 RETURNING *",
    ),
    ("RETURNING", "TRUNCATE TABLE t RETURNING *"),
    ("DEFAULT VALUES", "INSERT INTO t DEFAULT VALUES"),
    ("DEFAULT VALUES", "INSERT INTO t (id) default /* of all */ values"),
    ("DEFAULT as a value", "INSERT INTO t VALUES (7, DEFAULT, 'x')"),
    ("DEFAULT as a value", "INSERT INTO t VALUES (7, 1, 'x'), (8, 2, default)"),
    ("DEFAULT as a value", "REPLACE INTO t VALUES (DEFAULT, 2, 'x')"),
    ("DEFAULT as a value", "UPDATE t SET v = DEFAULT"),
    ("DEFAULT as a value", "UPDATE t SET v = DEFAULT, s = 'x' WHERE id = 1"),
    (
        "DEFAULT as a value",
        "MERGE INTO t USING src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = DEFAULT",
    ),
    (
        "DO NOTHING in MERGE",
        "MERGE INTO t USING src s ON t.id = s.id WHEN MATCHED AND s.v > 1 THEN DO NOTHING",
    ),
    (
        "DO NOTHING in MERGE",
        "MERGE INTO t USING src s ON t.id = s.id WHEN NOT MATCHED THEN DO NOTHING",
    ),
    ("UPDATE with ORDER", "UPDATE t SET v = 1 ORDER BY id LIMIT 1"),
    ("UPDATE with LIMIT", "UPDATE t SET v = 1 WHERE id > 0 LIMIT 1"),
]


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    rows = pa.table({"id": [1, 2], "v": [10, 20], "s": ["a", "b"]})
    return rs.create_table(str(tmp_path / "t"), rows, key=["id"])


@pytest.fixture
def context(table: rs.Table) -> SessionContext:
    made = SessionContext()
    made.register_table("t", table)
    made.from_arrow(pa.table({"id": [2, 3], "v": [21, 31], "s": ["c", "d"]}), "src")
    return made


@pytest.mark.parametrize(("clause", "text"), REFUSED)
def test_a_clause_is_refused_by_name(
    clause: str, text: str, context: SessionContext, table: rs.Table
) -> None:
    with pytest.raises(UnsupportedOperation, match=f"{clause} is not available"):
        context.sql(text)
    assert table.refresh() == 0


def test_columns_spelled_like_a_clause_are_columns(tmp_path: Path) -> None:
    names = ["id", "returning", "default", "limit"]
    rows = pa.table([[1], [2], [3], [4]], names=names)
    table = rs.create_table(str(tmp_path / "t"), rows, key=["id"])
    context = SessionContext()
    context.register_table("t", table)
    for text in (
        "UPDATE t SET returning = returning + 1 WHERE returning = 2",
        "UPDATE t SET limit = 4 WHERE id = 1",
        'UPDATE t SET "default" = "default" + 1 WHERE "limit" = 4 AND t."default" = 3',
        'INSERT INTO t SELECT id + 1, t.returning, t."default", "limit" FROM t ORDER BY id LIMIT 1',
    ):
        assert context.sql(text).to_pylist() == [{"count": 1}]
    table.refresh()
    rows = table.scan(order_by_key=True).to_arrow()
    assert rows.to_pylist() == [
        dict(zip(names, values, strict=True)) for values in ((1, 3, 4, 4), (2, 3, 4, 4))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE made USING rowsieve AS SELECT 1 AS a",
        "CREATE OR REPLACE TABLE made (a int) USING ROWSIEVE",
        "create table if not exists other.made (a int) -- here\n using rowsieve",
    ],
)
def test_a_table_is_created_only_under_the_name_of_a_catalog(
    text: str, context: SessionContext
) -> None:
    with pytest.raises(UnsupportedOperation, match="needs a name in a registered Rowsieve catalog"):
        context.sql(text)


def test_a_join_using_a_column_creates_a_table_of_datafusion(context: SessionContext) -> None:
    context.sql("CREATE TABLE made AS SELECT t.id FROM t JOIN src USING (id)").collect()
    assert context.sql("SELECT * FROM made").to_pylist() == [{"id": 2}]


@pytest.mark.parametrize(
    "text",
    [
        *("DELETE FROM t", "INSERT INTO t VALUES (7, 1, 'x')", "UPDATE t SET v = 1"),
        "MERGE INTO t USING src s ON t.id = s.id WHEN MATCHED THEN DELETE",
        *("TRUNCATE TABLE t", "WITH x AS (SELECT 1 AS id) DELETE FROM t WHERE id IN (SELECT 1)"),
    ],
)
def test_a_change_is_not_analyzed(text: str, context: SessionContext, table: rs.Table) -> None:
    for explain in ("EXPLAIN ANALYZE", "explain /* all */ analyze verbose"):
        with pytest.raises(UnsupportedOperation, match=r"EXPLAIN ANALYZE \w+ is not available"):
            context.sql(f"{explain} {text}")
    assert table.refresh() == 0
    if not text.startswith("WITH"):  # DataFusion plans no such statement
        for words in ("EXPLAIN", "explain verbose", "EXPLAIN FORMAT INDENT"):
            kinds = context.sql(f"{words} {text}").to_pydict()["plan_type"]
            assert "logical_plan" in kinds
            assert "physical_plan_error" not in kinds
        with pytest.raises(UnsupportedOperation, match="leave FORMAT TREE out"):
            context.sql(f"EXPLAIN /* . */ FORMAT tree {text}")


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        *(("VACUUM t RETAIN 7 HOURS", "VACUUM"), ("OPTIMIZE t", "OPTIMIZE"), ("BEGIN", "BEGIN")),
        *(("START TRANSACTION", "START"), ("commit", "COMMIT"), ("ROLLBACK", "ROLLBACK")),
        *(("CREATE INDEX i ON t (id)", "CREATE INDEX"), ("EXPLAIN DROP INDEX i", "DROP INDEX")),
        *(("LOCK TABLE t", "LOCK"), ("GRANT SELECT ON t TO r", "GRANT")),
    ],
)
def test_a_statement_of_others_names_the_way_out(
    text: str, verb: str, context: SessionContext, table: rs.Table, tmp_path: Path
) -> None:
    runs: list[Any] = [table.sql, rs.Catalog(str(tmp_path / "c")).sql]
    if verb not in ("BEGIN", "START", "COMMIT", "ROLLBACK"):  # our session has transactions
        runs.append(context.sql)
    for run in runs:
        with pytest.raises(UnsupportedOperation, match=f"sql: {verb} is not available: "):
            run(text)
    assert table.refresh() == 0
