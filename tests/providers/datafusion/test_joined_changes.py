"""`UPDATE … FROM` and `DELETE … USING`, which run as merges; DuckDB judges them."""

from __future__ import annotations

import uuid

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, KeyViolation, UnsupportedOperation
from rowsieve.providers.datafusion import SessionContext
from tests.duckdb_sessions import duckdb_session

ROWS = pa.table({"id": [1, 2, 3, 4], "v": [10, 20, 30, None], "s": ["a", "b", "c", None]})
SOURCE = pa.table({"id": [2, 3, 9], "v": [100, None, 300]})
STATEMENTS = (
    "UPDATE t SET v = u.v + 1 FROM u WHERE t.id = u.id",
    (
        "UPDATE t AS x SET v = x.v + s.v, s = 'z' FROM (SELECT id, v FROM u) AS s"
        " WHERE x.id = s.id AND x.v < 25"
    ),
    (
        "UPDATE t SET v = CASE WHEN t.s IS DISTINCT FROM 'b' THEN 1 ELSE 2 END FROM u w"
        " WHERE t.id = w.id"
    ),
    "UPDATE t SET s = CAST(t.v IS DISTINCT FROM 20 AS varchar) FROM u WHERE t.id = u.id",
    "UPDATE t SET v = 7 FROM (SELECT max(v) AS most FROM u) m WHERE t.v * 10 < m.most",
    "UPDATE t SET v = r.v FROM t r WHERE r.id = t.id + 1",
    "DELETE FROM t USING u WHERE t.id = u.id",
    "DELETE FROM t AS x USING (SELECT 1 AS id UNION ALL SELECT 1) s WHERE x.id = s.id",
    "DELETE FROM t USING u WHERE t.v * 6 > u.v",
    "DELETE FROM t USING u",
)


def context_of(key: list[str] | None) -> tuple[rs.Table, SessionContext]:
    """A session over `t` and the source `u`."""
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", ROWS, key=key)
    source = rs.create_table(f"memory:///{uuid.uuid4().hex}", SOURCE, key=["id"])
    context = SessionContext()
    context.register_table("t", table)
    context.register_table("u", source)
    return table, context


def rows_of(table: rs.Table) -> list[tuple[object, ...]]:
    rows = table.scan(columns=["id", "v", "s"]).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


@pytest.mark.parametrize("key", [["id"], None], ids=["keyed", "append"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_joined_changes_are_those_of_duckdb(statement: str, key: list[str] | None) -> None:
    judge = duckdb_session()
    judge.register("rows", ROWS)
    judge.register("source", SOURCE)
    judge.execute("CREATE OR REPLACE TEMP TABLE t AS FROM rows")
    judge.execute("CREATE OR REPLACE TEMP TABLE u AS FROM source")
    (count,) = judge.execute(statement).fetchone() or (None,)
    wanted = sorted(judge.execute("SELECT id, v, s FROM t").fetchall(), key=repr)
    table, context = context_of(key)
    assert context.sql(statement).to_pylist() == [{"count": count}]
    table.refresh()
    assert rows_of(table) == wanted
    assert table.version == 1


@pytest.mark.parametrize("key", [["id"], None], ids=["keyed", "append"])
@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("UPDATE t SET v = u.v FROM u", KeyViolation, "rows of the source"),
        ("UPDATE t SET v = 1 FROM u, u w WHERE t.id = u.id", UnsupportedOperation, "subquery"),
        ("UPDATE t SET v = 1 FROM (SELECT 1 AS id)", InvalidInput, "needs an alias"),
        ("UPDATE t SET nope = 1 FROM u WHERE t.id = u.id", InvalidInput, "nope"),
        ("UPDATE t SET v = 1 FROM u WHERE t.id = u.id RETURNING id", UnsupportedOperation,
         "RETURNING"),
        ("DELETE FROM t USING u WHERE nope", InvalidInput, "nope"),
    ],
)  # fmt: skip
def test_joined_changes_without_one_meaning_change_nothing(
    statement: str, error: type[Exception], message: str, key: list[str] | None
) -> None:
    table, context = context_of(key)
    with pytest.raises(error, match=message):
        context.sql(statement)
    table.refresh()
    assert table.version == 0


def test_the_key_keeps_its_values() -> None:
    _, context = context_of(["id"])
    with pytest.raises(UnsupportedOperation, match="key column 'id'"):
        context.sql("UPDATE t SET id = 7 FROM u WHERE t.id = u.id")


@pytest.mark.parametrize("key", [["id"], None], ids=["keyed", "append"])
def test_a_setting_may_test_the_keys_of_joins_for_null(key: list[str] | None) -> None:
    """DataFusion pushes these tests into scans, also for the numbers of the rows."""
    table, _ = context_of(key)
    config = datafusion.SessionConfig({"datafusion.optimizer.filter_null_join_keys": "true"})
    session = SessionContext(config)
    session.register_table("t", table)
    session.sql(
        "MERGE INTO t USING (VALUES (2, 7)) AS s(k, v) ON t.id = s.k WHEN MATCHED THEN"
        " UPDATE SET v = s.v WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0"
    )
    assert [row[:2] for row in rows_of(table)] == [(1, 0), (2, 7), (3, 0), (4, 0)]
