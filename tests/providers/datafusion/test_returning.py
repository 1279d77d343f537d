"""`RETURNING` of INSERT, UPDATE and DELETE; DuckDB judges it."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError, InvalidInput, KeyViolation, UnsupportedOperation
from rowsieve.providers.datafusion import SessionContext
from tests.duckdb_sessions import duckdb_session

ROWS = pa.table({"id": [1, 2, 3, 4], "v": [10, 20, 30, None], "s": ["a", "b", "c", None]})
SOURCE = pa.table({"id": [2, 3, 9], "v": [100, None, 300]})
STATEMENTS = (
    "INSERT INTO t VALUES (7, 1, 'x'), (8, 2, NULL) RETURNING *",
    "INSERT INTO t (id, s) SELECT id + 10, 'n' FROM u RETURNING id, v IS NULL AS empty, upper(s)",
    "INSERT INTO t SELECT id + 10, v, s FROM t RETURNING id",
    "INSERT INTO t BY NAME SELECT v, id + 20 AS id FROM u RETURNING v + 1 AS n, t.id",
    "UPDATE t SET v = v + 1 RETURNING id, v",
    "UPDATE t SET v = id * 7, s = s || '!' WHERE id > 1 RETURNING *",
    "UPDATE t AS x SET v = 0 WHERE x.id = 3 RETURNING x.s, x.v",
    "UPDATE t SET v = 0 WHERE id > 99 RETURNING *",
    "DELETE FROM t RETURNING *",
    "DELETE FROM t WHERE v > 15 RETURNING id AS gone, v / 10 AS tenth",
    "DELETE FROM t WHERE id IN (SELECT id FROM u) RETURNING t.id",
    "DELETE FROM t WHERE id > 99 RETURNING id",
    "WITH c AS (SELECT 2 AS id) DELETE FROM t WHERE id IN (SELECT id FROM c) RETURNING s",
)


def context_of(key: list[str] | None, rows: pa.Table = ROWS) -> tuple[rs.Table, SessionContext]:
    """A session over `t` and the source `u`."""
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", rows, key=key)
    source = rs.create_table(f"memory:///{uuid.uuid4().hex}", SOURCE, key=["id"])
    context = SessionContext()
    context.register_table("t", table)
    context.register_table("u", source)
    return table, context


def in_any_order(rows: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)


@pytest.mark.parametrize("key", [["id"], None], ids=["keyed", "append"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_returned_rows_are_those_of_duckdb(statement: str, key: list[str] | None) -> None:
    judge = duckdb_session()
    judge.register("rows", ROWS)
    judge.register("source", SOURCE)
    judge.execute("CREATE OR REPLACE TEMP TABLE t AS FROM rows")
    judge.execute("CREATE OR REPLACE TEMP TABLE u AS FROM source")
    expected = judge.execute(statement.replace(" / 10", " // 10")).fetchall()
    table, context = context_of(key)

    returned = context.sql(statement).to_arrow_table()

    assert in_any_order(returned) == sorted(expected, key=repr)
    stored = table.scan(columns=["id", "v", "s"]).to_arrow()
    assert in_any_order(stored) == sorted(judge.execute("FROM t").fetchall(), key=repr)
    assert table.version == (1 if returned.num_rows else 0)


def test_rows_that_do_nothing_on_conflict_are_not_returned() -> None:
    _, context = context_of(["id"])
    statement = "INSERT INTO t VALUES (1, 0, 'x'), (9, 0, 'y') ON CONFLICT DO NOTHING RETURNING id"

    assert context.sql(statement).to_pydict() == {"id": [9]}


def test_replaced_rows_are_returned_as_they_are_now() -> None:
    table, context = context_of(["id"])

    returned = context.sql("INSERT OR REPLACE INTO t (id, v) VALUES (1, 5) RETURNING *")

    assert returned.to_pydict() == {"id": [1], "v": [5], "s": [None]}
    assert table.count("s IS NULL") == 2


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("DELETE FROM t RETURNING nope", InvalidInput),
        ("DELETE FROM t RETURNING id FROM u", InvalidInput),
        ("DELETE FROM t RETURNING id ORDER BY id", InvalidInput),
        ("DELETE FROM t RETURNING id UNION SELECT 1", InvalidInput),
        ("UPDATE t SET v = 1 RETURNING id / (id - 2)", EvaluationError),
        ("INSERT INTO t VALUES (1, 1, 'x') RETURNING id", KeyViolation),
        ("INSERT INTO t VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET v = 1 RETURNING id",
         UnsupportedOperation),
        ("UPDATE t SET v = 1 FROM u WHERE t.id = u.id RETURNING t.id", UnsupportedOperation),
        ("DELETE FROM t USING u WHERE t.id = u.id RETURNING t.id", UnsupportedOperation),
        ("TRUNCATE TABLE t RETURNING *", UnsupportedOperation),
        ("MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE RETURNING *",
         UnsupportedOperation),
    ],
)  # fmt: skip
def test_a_failing_returning_changes_nothing(statement: str, error: type[Exception]) -> None:
    table, context = context_of(["id"])

    with pytest.raises(error):
        context.sql(statement)

    assert table.version == 0


def test_returning_refuses_late_rows_by_name() -> None:
    rows = pa.table({"id": [1], "v": [1], "at": [5]})
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", rows, key=["id"], sequence=["at"])
    context = SessionContext()
    context.register_table("t", table)

    with pytest.raises(UnsupportedOperation, match=r"RETURNING .* event order"):
        context.sql("UPDATE t SET v = 2 RETURNING id")


def test_returning_names_a_column_that_is_called_so() -> None:
    table, context = context_of(["id"], ROWS.append_column("returning", pa.array([1, 2, 3, 4])))

    count = context.sql("UPDATE t SET returning = returning + 1 WHERE id = 1").to_pydict()
    moved = "INSERT INTO t SELECT id + 10, v, s, v AS returning FROM t WHERE id = 1"

    assert count == {"count": [1]}
    assert context.sql(moved).to_pydict() == {"count": [1]}
    assert table.scan("id IN (1, 11)", columns=["returning"]).to_arrow().to_pydict() == {
        "returning": [2, 10]
    }


def test_returned_values_of_all_types_are_those_of_a_query() -> None:
    at = dt.datetime(2024, 1, 2, 3, 4, 5, 6)
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "u": pa.array([2**64 - 1, None], pa.uint64()),
            "f": pa.array([float("nan"), -0.0]),
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
            "b": pa.array([b"\xff", b""]),
            "at": pa.array([at, None], pa.timestamp("us")),
            "z": pa.array([at, None], pa.timestamp("us", "UTC")),
            "day": pa.array([at.date(), None]),
            "st": pa.array([{"a": 1, "b": ["x", None]}, None]),
            "l": pa.array([[1, None], []]),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    _, context = context_of(["id"], rows)
    expected = context.sql("SELECT * FROM t").to_arrow_table().to_pylist()

    updated = context.sql("UPDATE t SET u = u RETURNING *").to_arrow_table().to_pylist()
    deleted = context.sql("DELETE FROM t RETURNING *").to_arrow_table().to_pylist()

    assert repr(updated) == repr(deleted) == repr(expected)


def test_returning_in_a_transaction_and_a_catalog() -> None:
    table, context = context_of(["id"])
    context.sql("BEGIN")
    assert context.sql("DELETE FROM t WHERE id = 1 RETURNING v").to_pydict() == {"v": [10]}
    context.sql("ROLLBACK")
    assert table.count() == 4

    catalog = rs.Catalog(f"memory:///{uuid.uuid4().hex}")
    catalog.create_namespace("n")
    catalog.create_table("n.t", ROWS, key=["id"])
    returned = catalog.sql("UPDATE n.t SET v = 0 WHERE id = 2 RETURNING t.id, t.v")
    assert returned.to_pydict() == {"id": [2], "v": [0]}
