"""`BEGIN … COMMIT` in our session: what statements see, what is committed, and what is refused."""

from __future__ import annotations

from typing import Any

import datafusion
import pytest

import rowsieve
from rowsieve import Catalog, Table
from rowsieve.errors import (
    InvalidInput,
    NotFound,
    RowsieveError,
    TransactionConflict,
    TransactionEnded,
    UnsupportedOperation,
)
from rowsieve.providers.datafusion import SessionContext
from tests.small_tables import appended, fresh_uri, keyed, kv, pairs


def session(**tables: Table) -> SessionContext:
    context = SessionContext()
    for name, table in tables.items():
        context.register_table(name, table)
    return context


def rows(context: SessionContext, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in context.sql(query).to_arrow_table().to_pylist()]


@pytest.mark.parametrize("make", [keyed, appended])
def test_statements_see_the_changes_between_begin_and_commit(make: Any) -> None:
    table = make({"k": [1, 2, 3], "v": [10, 20, 30]})
    context = session(t=table, was=rowsieve.open_table(table.uri, version=1))
    context.sql("CREATE VIEW large AS SELECT * FROM t WHERE v > 15")
    assert rows(context, "BEGIN") == [(None,)]
    assert rows(context, "INSERT INTO t VALUES (4, 40)") == [(1,)]
    assert rows(context, "UPDATE t SET v = v + (SELECT count(*) FROM t) WHERE k = 4") == [(1,)]
    assert rows(context, "DELETE FROM t WHERE k IN (SELECT k FROM large WHERE k < 3)") == [(1,)]
    query = "SELECT t.k, t.v, was.v AS w FROM t LEFT JOIN was ON t.k = was.k ORDER BY 1"
    expected = [(1, 10, 10), (3, 30, 30), (4, 44, None)]
    assert rows(context, query) == expected
    assert rows(context, "SELECT max(v) FROM large") == [(44,)]
    assert context.table("t").count() == 3
    assert pairs(table) == [(1, 10), (2, 20), (3, 30)]
    assert rows(context, "COMMIT") == [(2,)]
    assert rows(context, query) == expected
    assert pairs(table) == [(1, 10), (3, 30), (4, 44)]
    assert table.history(1)[0].operation == "transaction"
    assert rows(context, "INSERT INTO t VALUES (9, 9)") == [(1,)]
    assert table.refresh() == 3


def test_merge_and_truncate_are_parts_of_a_transaction() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]})
    context = session(t=table)
    context.sql("START TRANSACTION")
    context.sql("TRUNCATE TABLE t")
    context.sql(
        "MERGE INTO t USING (VALUES (2, 5), (3, 6)) s(k, v) ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)"
    )
    context.sql("INSERT INTO t VALUES (2, 7) ON CONFLICT (k) DO UPDATE SET v = t.v + excluded.v")
    assert rows(context, "SELECT * FROM t ORDER BY k") == [(2, 12), (3, 6)]
    context.sql("END")
    assert pairs(table) == [(2, 12), (3, 6)]
    assert len(table.history()) == 3


def test_savepoints_in_sql() -> None:
    table = keyed({"k": [1], "v": [1]})
    context = session(t=table)
    context.sql("BEGIN TRANSACTION")
    context.sql('SAVEPOINT "A b"')
    context.sql("INSERT INTO t VALUES (2, 2)")
    context.sql("SAVEPOINT Inner")
    context.sql("DELETE FROM t")
    context.sql("ROLLBACK TO inner")
    assert rows(context, "SELECT count(*) FROM t") == [(2,)]
    context.sql("RELEASE SAVEPOINT inner")
    with pytest.raises(NotFound, match="savepoint 'inner' does not exist"):
        context.sql("ROLLBACK TO SAVEPOINT inner")
    context.sql('ROLLBACK WORK TO SAVEPOINT "A b"')
    assert rows(context, "SELECT count(*) FROM t") == [(1,)]
    assert rows(context, "COMMIT WORK") == [(None,)]
    assert table.refresh() == 1


@pytest.mark.parametrize("end", ["ROLLBACK", "ABORT", "ROLLBACK TRANSACTION"])
def test_rollback_forgets_the_changes(end: str) -> None:
    table = keyed({"k": [1], "v": [1]})
    context = session(t=table)
    context.sql("BEGIN")
    context.sql("DELETE FROM t")
    context.sql(end)
    assert rows(context, "SELECT * FROM t") == [(1, 1)]
    assert table.refresh() == 1


READS = [
    "SELECT k FROM t WHERE v > 10",
    "SELECT count(*) FROM t WHERE v > 10",
    "SELECT o.k FROM o JOIN t ON o.k = t.k WHERE t.v > 10",
    "SELECT * FROM o WHERE EXISTS (SELECT 1 FROM t WHERE t.v > 10 AND t.k = o.k)",
    "SELECT * FROM o WHERE k IN (SELECT k FROM t WHERE v > 10)",
    "SELECT k FROM t WHERE v > 10 ORDER BY v LIMIT 1",
    "SELECT max(v) FROM t",
    "SELECT * FROM o WHERE k = (SELECT min(k) FROM t WHERE v > 10)",
    "DELETE FROM t WHERE v > 10",
    "INSERT INTO t SELECT k + 1000, v FROM t WHERE v > 10",
]


@pytest.mark.parametrize("query", READS)
def test_what_a_statement_reads_is_proved_again(query: str) -> None:  # invariant 41
    for row in ((50, 50), (5, 0)):
        table = keyed({"k": [1, 5, 8], "v": [1, 20, 30]})
        context = session(t=table)
        context.from_pydict({"k": [5]}, name="o")
        context.sql("SELECT count(*) FROM t WHERE v > 10").to_arrow_table()  # caches outside of it
        context.sql("BEGIN")
        context.sql(query).to_arrow_table()
        context.sql("INSERT OR REPLACE INTO t VALUES (100, 1)")
        table.upsert(kv(row))
        after = pairs(table)
        with pytest.raises(TransactionConflict):
            context.sql("COMMIT")
        assert rows(context, "SELECT * FROM t ORDER BY k") == after
        with pytest.raises(InvalidInput, match="no transaction is open"):
            context.sql("COMMIT")


def test_other_rows_are_no_conflict() -> None:
    table = keyed({"k": [1, 5, 8], "v": [1, 20, 30]})
    context = session(t=table)
    context.sql("BEGIN ISOLATION LEVEL SERIALIZABLE")
    context.sql("SELECT k FROM t WHERE v > 10").to_arrow_table()
    context.sql("UPDATE t SET v = 31 WHERE k = 8")
    context.sql(
        "MERGE INTO t USING (SELECT 5 AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 21"
    )
    table.upsert(kv((2, 2), (1, 3)))
    context.sql("COMMIT")
    assert pairs(table) == [(1, 3), (2, 2), (5, 21), (8, 31)]


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SNAPSHOT"])
def test_snapshot_isolation_reads_other_tables(level: str) -> None:
    table, other = keyed({"k": [1], "v": [1]}), keyed({"k": [1], "v": [7]})
    context = session(t=table, o=other)
    context.sql(f"BEGIN TRANSACTION ISOLATION LEVEL {level}")
    context.sql("UPDATE t SET v = (SELECT max(v) FROM o)")
    other.upsert(kv((1, 8)))
    assert rows(context, "SELECT v FROM o") == [(7,)]
    context.sql("COMMIT")
    assert pairs(table) == [(1, 7)]
    assert rows(context, "SELECT v FROM o") == [(8,)]


def test_a_serializable_transaction_has_one_table() -> None:
    context = session(t=keyed({"k": [1], "v": [1]}), o=keyed({"k": [1], "v": [7]}))
    context.sql("BEGIN")
    context.sql("DELETE FROM t")
    with pytest.raises(UnsupportedOperation, match="reads and changes one table"):
        context.sql("SELECT * FROM o")
    context.sql("ROLLBACK")
    assert rows(context, "SELECT v FROM o") == [(7,)]


def test_two_names_of_a_table_are_one_in_a_transaction_and_a_transaction_is_another() -> None:
    table = keyed({"k": [1], "v": [1]})
    with table.transaction() as tx:
        tx.upsert(kv((2, 2)))
        context = session(a=table, b=table, x=tx)
        counts = ", ".join(f"(SELECT count(*) FROM {name}) {name}" for name in "abx")
        query = f"SELECT {counts}"
        assert rows(context, query) == [(1, 1, 2)]
        context.sql("INSERT INTO x SELECT k + 10, v FROM a")
        assert rows(context, query) == [(1, 1, 3)]
        context.sql("BEGIN")
        context.sql("INSERT INTO a VALUES (5, 5)")
        assert rows(context, query) == [(2, 2, 3)]
        context.sql("ROLLBACK")
        assert rows(context, query) == [(1, 1, 3)]
    with pytest.raises(TransactionEnded):
        context.sql("SELECT * FROM x")
    context.deregister_table("x")
    assert rows(context, "SELECT count(*) FROM a") == [(3,)]


def test_tables_of_a_catalog() -> None:
    catalog = Catalog(fresh_uri())
    table = catalog.create_table("db.t", kv((1, 1), (2, 2)), ["k"])
    context = SessionContext()
    context.register_catalog_provider("lake", catalog.to_datafusion())
    context.register_table("mine", keyed({"k": [1], "v": [1]}))
    context.sql("BEGIN")
    context.sql("UPDATE lake.db.t SET v = v + 1")
    assert rows(context, "SELECT sum(v) FROM lake.db.t") == [(5,)]
    context.sql("INSERT INTO lake.db.t SELECT k + 10, v FROM lake.db.t")
    assert rows(context, "SELECT count(*) FROM lake.db.t WHERE v > 2") == [(2,)]
    assert pairs(table) == [(1, 1), (2, 2)]
    for text in (
        "CREATE TABLE lake.db.u AS SELECT 1 AS k",
        "DROP TABLE lake.db.t",
        "CREATE TABLE own AS SELECT 1 AS k",
        "CREATE TABLE empty (x INT)",
        "DROP TABLE mine",
        "DROP TABLE IF EXISTS mine",
        "CREATE OR REPLACE TABLE mine AS SELECT 1 AS k",
        "CREATE VIEW v AS SELECT * FROM mine",
        "DROP VIEW v",
        "CREATE SCHEMA s",
        "DROP SCHEMA public CASCADE",
        "CALL lake.system.vacuum('db.t')",
    ):
        with pytest.raises(UnsupportedOperation, match="cannot be part of a transaction"):
            context.sql(text)
    with pytest.raises(UnsupportedOperation, match="changes of a transaction are not committed"):
        context.sql("SELECT * FROM changes('lake.db.t', 0)")
    context.sql("COMMIT")
    assert rows(context, "SELECT count(*) FROM changes('lake.db.t', 0)") == [(8,)]
    assert rows(context, "SELECT count(*) FROM mine") == [(1,)]
    assert pairs(table) == [(1, 2), (2, 3), (11, 2), (12, 3)]
    assert rows(context, "SELECT count(*) FROM lake.db.t") == [(4,)]


WRONG = [
    ("COMMIT", InvalidInput, "no transaction is open; write BEGIN"),
    ("SAVEPOINT a", InvalidInput, "no transaction is open"),
    ("BEGIN; DELETE FROM t", InvalidInput, "one statement"),
    ("BEGIN ISOLATION LEVEL READ COMMITTED", UnsupportedOperation, "write SERIALIZABLE"),
    ("BEGIN READ ONLY", UnsupportedOperation, "READ ONLY"),
    ("COMMIT AND CHAIN", UnsupportedOperation, "AND CHAIN"),
    ("START", InvalidInput, "TRANSACTION"),
    ("SAVEPOINT", InvalidInput, "expected a name"),
    ("RELEASE SAVEPOINT", InvalidInput, "expected a name"),
]


@pytest.mark.parametrize(("text", "error", "message"), WRONG)
def test_wrong_statements_say_what_to_write(
    text: str, error: type[RowsieveError], message: str
) -> None:
    context = session(t=keyed({"k": [1], "v": [1]}))
    with pytest.raises(error, match=message):
        context.sql(text)
    assert rows(context, "SELECT count(*) FROM t") == [(1,)]


def test_a_transaction_is_not_begun_twice_nor_by_options_that_forbid_it() -> None:
    context = session(t=keyed({"k": [1], "v": [1]}))
    options = datafusion.SQLOptions().with_allow_statements(allow=False)
    with pytest.raises(ValueError, match="not supported"):
        context.sql("BEGIN", options)
    context.sql("BEGIN")
    with pytest.raises(InvalidInput, match="open already"):
        context.sql("BEGIN")
    with pytest.raises(InvalidInput):
        context.sql("INSERT INTO t VALUES (1)")
    assert rows(context, "SELECT count(*) FROM t") == [(1,)]
    context.sql("ROLLBACK")
