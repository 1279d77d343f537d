"""Forms of statements that DataFusion does not plan: rows of values, BY NAME, TABLE, ALTER TABLE.

DuckDB judges the changes of rows that it can run.
"""

from __future__ import annotations

import uuid

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, UnknownColumn, UnsupportedOperation, VersionNotFound
from rowsieve.providers.datafusion import SessionContext
from tests.duckdb_sessions import duckdb_session

ROWS = pa.table({"id": [1, 2, 3], "v": [10, 20, 30], "s": ["a", "b", "c"]})
SOURCE = pa.table({"id": [1, 9], "v": [100, 900], "s": ["u", "w"]})
JUDGED = (
    "INSERT INTO t BY NAME SELECT s, id + 10 AS id FROM u",
    "INSERT INTO t BY POSITION SELECT id + 10, v, s FROM u",
    "INSERT INTO t BY NAME SELECT * FROM u WHERE id > 1",
    "INSERT INTO t BY NAME SELECT 1 AS id, 7 AS v ON CONFLICT (id) DO UPDATE SET v = excluded.v",
    "INSERT INTO t FROM u WHERE id = 9",
    "INSERT OR REPLACE INTO t TABLE u",
    "INSERT INTO t (id, v) VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET s = excluded.s",
    (
        "INSERT INTO t (id, v) VALUES (1, 9), (2, 8) ON CONFLICT (id) DO UPDATE"
        " SET v = excluded.v WHERE excluded.s IS NULL AND t.id = 2"
    ),
    "UPDATE t SET v = u.v FROM u WHERE t.id = u.id",
    "WITH c AS (SELECT 1 AS id) UPDATE t SET v = 0 FROM c WHERE t.id = c.id",
    "WITH c AS (SELECT 1 AS i) UPDATE t SET v = x.i FROM c AS x WHERE t.id = x.i",
    "WITH c AS (SELECT 1 AS id) DELETE FROM t USING c WHERE t.id = c.id",
)
ROWS_OF_VALUES = (
    ("UPDATE t SET (v, s) = (v + 1, s || '!') WHERE id < 3", "v = v + 1, s = s || '!'"),
    ("UPDATE t SET (v, s) = ROW (coalesce(v, 0), 'x'), v2 = 1 WHERE id < 3", "s = 'x', v2 = 1"),
    ("UPDATE t SET (v) = (7), (s, v2) = ((s), (v + (1))) WHERE id < 3", "v = 7, v2 = v + 1"),
)


def context_of(rows: pa.Table = ROWS) -> tuple[rs.Table, SessionContext]:
    """A session over `t` and `u`, both with the key `id`."""
    context = SessionContext()
    tables = [
        rs.create_table(f"memory:///{uuid.uuid4().hex}", data, key=["id"])
        for data in (rows, SOURCE)
    ]
    context.register_table("t", tables[0])
    context.register_table("u", tables[1])
    return tables[0], context


def rows_of(table: rs.Table) -> list[dict[str, object]]:
    table.refresh()
    rows: list[dict[str, object]] = table.scan(order_by_key=True).to_arrow().to_pylist()
    return rows


@pytest.mark.parametrize("statement", JUDGED)
def test_a_form_of_a_statement_means_what_it_does_in_duckdb(statement: str) -> None:
    judge = duckdb_session()
    judge.register("rows", ROWS)
    judge.register("source", SOURCE)
    judge.execute("CREATE OR REPLACE TEMP TABLE t (id BIGINT PRIMARY KEY, v BIGINT, s VARCHAR)")
    judge.execute("INSERT INTO t FROM rows")
    judge.execute("CREATE OR REPLACE TEMP TABLE u AS FROM source")
    (count,) = judge.execute(statement).fetchone() or (None,)
    table, context = context_of()

    assert context.sql(statement).to_pylist()[0]["count"] == count
    expected = judge.execute("SELECT id, v, s FROM t ORDER BY id").fetchall()
    assert [tuple(row.values()) for row in rows_of(table)] == expected
    judge.execute("DROP TABLE t")


@pytest.mark.parametrize(("statement", "alone"), ROWS_OF_VALUES)
def test_a_row_of_values_is_assigned_by_columns(statement: str, alone: str) -> None:
    rows = ROWS.append_column("v2", pa.array([0, 0, 0]))
    at_once, context = context_of(rows)
    one_by_one, other = context_of(rows)

    assert context.sql(statement).to_pydict() == {"count": [2]}
    other.sql(f"UPDATE t SET {alone} WHERE id < 3")
    assert rows_of(at_once) == rows_of(one_by_one)


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("UPDATE t SET (v, s) = (1, 'x', 2)", InvalidInput, "3 values for 2 columns"),
        ("UPDATE t SET (v, s) = (1)", InvalidInput, "1 values for 2 columns"),
        ("UPDATE t SET (v, v) = (1, 2)", InvalidInput, "assigned twice"),
        ("UPDATE t SET (v, s) = (1, 'x') || 2", InvalidInput, "the end of the values"),
        ("UPDATE t SET (v, s) = (SELECT 1, 'x')", UnsupportedOperation, "join the query"),
        ("UPDATE t SET (v, s) = f(1)", UnsupportedOperation, "a value in brackets"),
        ("INSERT INTO t BY NAME SELECT 1 AS id, 2 AS nope", UnknownColumn, "nope"),
        ("INSERT INTO t BY NAME SELECT 1 AS id, 2 AS id", InvalidInput, "id"),
        ("INSERT INTO t BY NAME VALUES (7, 1, 'x')", UnknownColumn, "column1"),
    ],
)
def test_a_form_without_one_meaning_changes_nothing(
    statement: str, error: type[Exception], message: str
) -> None:
    table, context = context_of()

    with pytest.raises(error, match=message):
        context.sql(statement)

    assert table.refresh() == 0


EXPLAINED = (
    *(statement for statement, _ in ROWS_OF_VALUES[:1]),
    *(each for each in JUDGED if "BY POSITION" not in each),
    "DELETE FROM t USING u WHERE t.id = u.id RETURNING t.id",
    "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET *",
)


@pytest.mark.parametrize("statement", EXPLAINED)
@pytest.mark.parametrize("explain", ["EXPLAIN", "explain /* it */ verbose"])
def test_a_change_is_explained_and_does_not_run(explain: str, statement: str) -> None:
    table, context = context_of()

    plan = context.sql(f"{explain} {statement}").to_pydict()["plan"]

    assert any("Dml: op=" in each for each in plan)
    assert table.refresh() == 0


def test_alter_table_changes_columns_constraints_and_properties() -> None:
    table, context = context_of()
    context.sql("CREATE VIEW w AS SELECT * FROM t")

    version = context.sql("ALTER TABLE t ADD COLUMN n BIGINT DEFAULT 5, DROP COLUMN s")
    context.sql("ALTER TABLE t RENAME COLUMN v TO amount")
    context.sql("ALTER TABLE t ADD CONSTRAINT few CHECK (amount < 1000)")
    context.sql("ALTER TABLE t SET TBLPROPERTIES ('inline_bytes' = '0')")

    assert version.to_pydict() == {"version": [1]}
    assert context.sql("SELECT * FROM t WHERE n = 5 AND id = 1").to_pylist() == [
        {"id": 1, "amount": 10, "n": 5}
    ]
    table.refresh()
    assert table.constraints == {"few": "amount < 1000"}
    assert table.version == 4


def test_alter_table_obeys_options_transactions_and_versions() -> None:
    table, context = context_of()
    statement = "ALTER TABLE t ADD COLUMN n BIGINT"
    with pytest.raises(InvalidInput, match="DDL not supported"):
        context.sql(statement, datafusion.SQLOptions().with_allow_ddl(allow=False))
    with pytest.raises(InvalidInput, match="no parameters"):
        context.sql(statement, param_values={"a": 1})
    with pytest.raises(UnsupportedOperation, match="RENAME TO"):
        context.sql("ALTER TABLE t RENAME TO other")
    context.sql("BEGIN")
    with pytest.raises(UnsupportedOperation, match="cannot be part of a transaction"):
        context.sql(statement)
    context.sql("ROLLBACK")
    context.register_table("old", rs.open_table(table.uri, version=0))
    with pytest.raises(UnsupportedOperation, match="read-only"):
        context.sql("ALTER TABLE old ADD COLUMN n BIGINT")
    assert table.refresh() == 0


def test_alter_table_in_a_catalog_and_a_database() -> None:
    for names in (rs.Catalog, rs.Database):
        catalog = names(f"memory:///{uuid.uuid4().hex}")
        catalog.create_table("n.t", ROWS, key=["id"])
        context = SessionContext()
        context.register_catalog_provider("lake", catalog.to_datafusion())

        context.sql("ALTER TABLE lake.n.t ADD COLUMN a BIGINT DEFAULT 1")
        result = catalog.sql("ALTER TABLE n.t ADD COLUMN b BIGINT DEFAULT 2")

        assert result.column_names == ["version"]
        rows = context.sql("SELECT a, b FROM lake.n.t WHERE id = 1").to_pylist()
        assert rows == [{"a": 1, "b": 2}]
        with pytest.raises(InvalidInput, match="no table"):
            context.sql("ALTER TABLE lake.n.nope ADD COLUMN b BIGINT")


def test_a_version_of_a_registered_table_is_read_beside_the_newest() -> None:
    table, context = context_of()
    table.update({"v": "v + 1"}, where="id = 2")
    table.tag("first", version=0)

    joined = context.sql(
        "SELECT n.id, o.v AS old, n.v AS new FROM t n JOIN t FOR VERSION AS OF 0 AS o "
        "ON n.id = o.id WHERE n.v <> o.v"
    )
    tagged = context.sql("SELECT v FROM t FOR VERSION AS OF 'first' WHERE id = 2")
    quoted = context.sql('SELECT v FROM "t@v1" WHERE id = 2')
    context.sql("INSERT OR REPLACE INTO t SELECT * FROM t FOR VERSION AS OF 0 WHERE id = 2")

    assert joined.to_pylist() == [{"id": 2, "old": 20, "new": 21}]
    assert tagged.to_pydict() == {"v": [20]}
    assert quoted.to_pydict() == {"v": [21]}
    assert rows_of(table)[1]["v"] == 20
    with pytest.raises(VersionNotFound):
        context.sql("SELECT * FROM t FOR VERSION AS OF 99")
    with pytest.raises(UnsupportedOperation, match="FOR VERSION AS OF"):
        context.sql("SELECT * FROM t FOR TIMESTAMP AS OF TIMESTAMP '2030-01-01 00:00:00'")
