"""Statements that begin with WITH change the rows that the same queries inside would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext
from rowsieve.statements.leading_with import with_inside

KEPT = {1: "a", 2: "b", 3: "c"}
CASES: list[tuple[str, int, dict[int, str | None]]] = [
    ("WITH x AS (SELECT 7 AS id, 'q' AS v) INSERT INTO t SELECT * FROM x", 1, {**KEPT, 7: "q"}),
    (
        (
            "WITH x(id) AS (SELECT 8) INSERT INTO t (id) SELECT id FROM x UNION ALL "
            "SELECT id + 1 FROM x"
        ),
        2,
        {**KEPT, 8: None, 9: None},
    ),
    (
        "with x as (select 5 as id) insert into t (id, v) (select id, 'p' from x)",
        1,
        {**KEPT, 5: "p"},
    ),
    (
        (
            "WITH x AS (SELECT * FROM s) UPDATE t SET v = (SELECT max(v) FROM x) "
            "WHERE id IN (SELECT id FROM x)"
        ),
        1,
        {**KEPT, 2: "y"},
    ),
    (
        (
            "/* ; */ WITH x AS (SELECT id FROM s), y AS (SELECT id FROM x) "
            "DELETE FROM t WHERE id IN (SELECT id FROM y) OR id = (SELECT min(id) FROM t);"
        ),
        2,
        {3: "c"},
    ),
    (
        (
            "WITH RECURSIVE x AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM x WHERE id < 2) "
            "DELETE FROM t WHERE EXISTS (SELECT 1 FROM x WHERE x.id = t.id)"
        ),
        2,
        {3: "c"},
    ),
    (
        "WITH x AS (SELECT max(id) AS id FROM t) DELETE FROM t WHERE id IN (SELECT id FROM x)",
        1,
        {1: "a", 2: "b"},
    ),
    (
        (
            "WITH x AS (SELECT 1 AS id, 'z' AS v) MERGE INTO t USING x ON t.id = x.id "
            "WHEN MATCHED THEN UPDATE SET v = x.v"
        ),
        1,
        {**KEPT, 1: "z"},
    ),
    (
        (
            "WITH x AS (SELECT * FROM s) MERGE INTO t USING x AS y ON t.id = y.id "
            "WHEN MATCHED AND y.id = 2 THEN DELETE"
        ),
        1,
        {1: "a", 3: "c"},
    ),
    (
        (
            "WITH x AS (SELECT 9 AS id) MERGE INTO t USING (SELECT id FROM x) y ON t.id = y.id "
            "WHEN NOT MATCHED THEN INSERT (id) VALUES (y.id)"
        ),
        1,
        {**KEPT, 9: None},
    ),
]


@pytest.mark.parametrize("key", [["id"], None], ids=["key", "no key"])
@pytest.mark.parametrize(("statement", "count", "rows"), CASES)
def test_with_stands_before_a_change(
    statement: str, count: int, rows: dict[int, str | None], key: Any, tmp_path: Path
) -> None:
    table = rs.create_table(
        tmp_path / "t", pa.table({"id": [*KEPT], "v": [*KEPT.values()]}), key=key
    )
    context = SessionContext()
    context.register_table("t", table)
    context.from_pydict({"id": [2, 9], "v": ["x", "y"]}, name="s")
    assert context.sql(statement).to_pylist() == [{"count": count}]
    left = context.sql("SELECT id, v FROM t").to_pylist()
    assert {row["id"]: row["v"] for row in left} == rows
    assert len(left) == len(rows)


@pytest.mark.parametrize(
    "text",
    [
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "WITH delete AS (SELECT 1) SELECT * FROM delete",
        "DELETE FROM t WHERE id IN (SELECT 1)",
        "SELECT 'WITH x AS (SELECT 1) DELETE FROM t'",
        "WITH x AS (SELECT 1",
    ],
)
def test_other_statements_stay_as_they_are(text: str) -> None:
    assert with_inside(text) == text


@pytest.mark.parametrize("explain", ["EXPLAIN", "explain VERBOSE", "/* . */ EXPLAIN -- .\n"])
def test_explain_shows_the_plan_of_a_change_after_with(tmp_path: Path, explain: str) -> None:
    session = SessionContext()
    table = rs.create_table(str(tmp_path / "t"), pa.table({"id": [1, 2], "v": ["a", "b"]}), ["id"])
    session.register_table("t", table)
    text = f"{explain} WITH x AS (SELECT 1 AS id) DELETE FROM t WHERE id IN (SELECT id FROM x)"
    assert any("Delete" in row["plan"] for row in session.sql(text).to_pylist())
    assert (len(table), table.version) == (2, 0)
    query = f"{explain} WITH x AS (SELECT 1 AS id) SELECT * FROM x"
    assert any("EmptyRelation" in row["plan"] for row in session.sql(query).to_pylist())
