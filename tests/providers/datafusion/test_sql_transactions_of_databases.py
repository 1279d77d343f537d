"""`BEGIN … COMMIT` over tables of one database, and the version of it that a statement reads."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import rowsieve as rs
from rowsieve.errors import TransactionConflict, UnsupportedOperation
from rowsieve.objects import open_store
from rowsieve.objects.shared.shared_entry import LOG
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.own_table import OwnTable
from tests.small_tables import fresh_uri, kv, pairs


@pytest.fixture
def database() -> rs.Database:
    """Two tables of accounts."""
    database = rs.Database(fresh_uri())
    for name in "ab":
        database.create_table(name, kv((1, 100), (2, 100)), ["k"])
    return database


def session(database: rs.Database, names: str = "ab") -> SessionContext:
    context = SessionContext()
    for name in names:
        context.register_table(name, database.open_table(name))
    return context


def rows(context: SessionContext, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in context.sql(query).to_arrow_table().to_pylist()]


def transfer(database: rs.Database) -> None:
    with database.transaction() as tx:
        tx.table("a").upsert(kv((1, 70)))
        tx.table("b").upsert(kv((1, 130)))


def test_tables_of_a_database_change_in_one_entry(database: rs.Database) -> None:
    context = session(database)
    before = len(open_store(database.uri).list(LOG))
    context.sql("BEGIN")
    assert rows(context, "UPDATE a SET v = v - 30 WHERE k = 1 RETURNING v") == [(70,)]
    context.sql("SAVEPOINT half")
    context.sql("DELETE FROM b")
    context.sql("ROLLBACK TO half")
    context.sql("UPDATE b SET v = v + (SELECT 100 - v FROM a WHERE k = 1) WHERE k = 1")
    assert rows(context, "SELECT sum(v) FROM (SELECT * FROM a UNION ALL SELECT * FROM b) t") == [
        (400,)
    ]
    assert pairs(database.open_table("a")) == [(1, 100), (2, 100)]
    assert rows(context, "COMMIT") == [(3,)]  # the version of the database
    assert database.version == 3
    assert len(open_store(database.uri).list(LOG)) == before + 1
    assert [pairs(database.open_table(name))[0] for name in "ab"] == [(1, 70), (1, 130)]
    context.sql("BEGIN")
    context.sql("DELETE FROM b WHERE k = 2")
    assert rows(context, "COMMIT") == [(2,)]  # that of the table
    assert rows(context, "SELECT count(*) FROM b") == [(1,)]


def test_what_was_read_of_another_table_is_proved_again(database: rs.Database) -> None:
    one, other = session(database), session(database)
    for context, read, changed in ((one, "a", "b"), (other, "b", "a")):  # write skew
        context.sql("BEGIN")
        assert rows(context, f"SELECT sum(v) FROM {read}") == [(200,)]
        context.sql(f"UPDATE {changed} SET v = 0")
    one.sql("COMMIT")
    with pytest.raises(TransactionConflict):
        other.sql("COMMIT")
    assert pairs(database.open_table("a")) == [(1, 100), (2, 100)]


def test_all_tables_are_read_in_the_version_of_the_first_use(database: rs.Database) -> None:
    context = session(database)
    context.sql("BEGIN")
    assert rows(context, "SELECT v FROM a WHERE k = 1") == [(100,)]
    transfer(database)
    assert rows(context, "SELECT v FROM b WHERE k = 1") == [(100,)]
    context.sql("COMMIT")
    assert rows(context, "SELECT v FROM b WHERE k = 1") == [(130,)]


def test_rows_that_open_writers_acknowledged_are_in_the_transaction(
    database: rs.Database, tmp_path: Path
) -> None:
    context = session(database, "a")
    table = database.open_table("b")
    context.register_table("b", table)
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=3600) as writer:
        writer.upsert({"k": 9, "v": 9}).result()
        context.sql("BEGIN")
        context.sql("UPDATE a SET v = 1 WHERE k = 1")
        assert rows(context, "SELECT count(*) FROM b") == [(3,)]
        context.sql("UPDATE b SET v = 10 WHERE k = 9")
        context.sql("COMMIT")
        assert table.count("v = 10") == 1
    assert pairs(database.open_table("b"))[-1] == (9, 10)


def test_a_transaction_conflicts_with_what_a_writer_acknowledged_since(
    database: rs.Database, tmp_path: Path
) -> None:  # invariants, rule 19: its commit takes a turn among the calls of the writer
    context, table = session(database, "a"), database.open_table("b")
    context.register_table("b", table)
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=3600) as writer:
        context.sql("BEGIN")
        assert rows(context, "SELECT count(*) FROM b") == [(2,)]
        writer.upsert({"k": 1, "v": 9}).result()
        context.sql("UPDATE b SET v = 10 WHERE k = 1")
        with pytest.raises(TransactionConflict):
            context.sql("COMMIT")
        writer.upsert({"k": 2, "v": 9}).result()
        context.sql("BEGIN")
        context.sql("UPDATE a SET v = 1")
        context.sql("UPDATE b SET v = v + 1")
        context.sql("COMMIT")
        assert pairs(table) == [(1, 10), (2, 10)]
    assert pairs(database.open_table("b")) == [(1, 10), (2, 10)]


def test_a_transaction_proves_what_it_read_over_acknowledged_rows(
    database: rs.Database, tmp_path: Path
) -> None:  # invariant 41: a reader of the row does not see the change, so it would have no place
    context, table = session(database, "a"), database.open_table("b")
    context.register_table("b", table)
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=3600) as writer:
        context.sql("BEGIN")
        assert rows(context, "SELECT count(*) FROM b WHERE v = 9") == [(0,)]
        writer.upsert({"k": 7, "v": 9}).result()
        context.sql("UPDATE a SET v = 5")
        assert table.count("v = 9") == 1
        with pytest.raises(TransactionConflict):
            context.sql("COMMIT")
        context.sql("BEGIN")
        assert rows(context, "SELECT count(*) FROM b WHERE v = 9") == [(1,)]
        writer.upsert({"k": 8, "v": 1}).result()  # which the condition does not match
        context.sql("UPDATE a SET v = 6")
        context.sql("COMMIT")
        writer.upsert({"k": 9, "v": 1}).result()
    assert {row[1] for row in pairs(database.open_table("a"))} == {6}
    assert len(pairs(database.open_table("b"))) == 5


def test_transactions_that_cross_wait_for_no_turn_in_a_circle(
    database: rs.Database, tmp_path: Path
) -> None:
    tables = {name: database.open_table(name) for name in "ab"}
    contexts = []
    for _ in tables:
        context = session(database, "")
        for name, table in tables.items():
            context.register_table(name, table)
        contexts.append(context)
    with ExitStack() as writers:
        for name, table in tables.items():
            wal = tmp_path / name
            writers.enter_context(table.writer(wal_dir=wal, flush_interval_s=3600))

        def run(context: Any, read: str, changed: str) -> None:
            for turn in range(3):
                with suppress(TransactionConflict):
                    context.sql("BEGIN")
                    context.sql(f"SELECT count(*) FROM {read} WHERE k = 1").to_pylist()
                    context.sql(f"UPDATE {changed} SET v = {turn} WHERE k = 2")
                    context.sql("COMMIT")

        calls = [(contexts[0], "a", "b"), (contexts[1], "b", "a")]
        threads = [Thread(target=run, args=call, daemon=True) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()


def test_tables_of_other_logs_are_refused_or_read(database: rs.Database) -> None:
    other = rs.Database(fresh_uri()).create_table("c", kv((1, 1)), ["k"])
    context = session(database)
    context.register_table("c", other)
    context.sql("BEGIN")
    context.sql("UPDATE a SET v = 0")
    with pytest.raises(UnsupportedOperation, match="several of one database"):
        context.sql("SELECT * FROM c")
    context.sql("COMMIT")
    context.sql("BEGIN ISOLATION LEVEL SNAPSHOT")
    assert rows(context, "SELECT v FROM c") == [(1,)]
    context.sql("UPDATE a SET v = 1")
    context.sql("UPDATE b SET v = 1")
    assert rows(context, "COMMIT") == [(4,)]
    context.sql("BEGIN ISOLATION LEVEL SNAPSHOT")
    context.sql("UPDATE a SET v = 2")
    context.sql("UPDATE c SET v = 2")
    with pytest.raises(UnsupportedOperation, match="no common log"):
        context.sql("COMMIT")
    assert (pairs(database.open_table("a"))[0], pairs(other)) == ((1, 1), [(1, 1)])


def test_a_namespace_with_one_log_is_a_database(database: rs.Database) -> None:
    catalog = rs.Catalog(fresh_uri())
    catalog.create_namespace("s", log="shared")
    for name in "xy":
        catalog.create_table(f"s.{name}", kv((1, 1)), ["k"])
    context = SessionContext()
    context.register_catalog_provider("lake", catalog.to_datafusion())
    context.sql("BEGIN")
    context.sql("UPDATE lake.s.x SET v = 5")
    context.sql("UPDATE lake.s.y SET v = (SELECT max(v) + 1 FROM lake.s.x)")
    context.sql("COMMIT")
    assert [pairs(catalog.open_table(f"s.{name}")) for name in "xy"] == [[(1, 5)], [(1, 6)]]


@pytest.mark.parametrize("registered", ["ab", "a"])
def test_a_statement_reads_tables_in_one_version(
    database: rs.Database, registered: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # invariant 40
    context = session(database, registered)
    context.register_catalog_provider("shop", database.to_datafusion())
    refresh, other = OwnTable.refresh, "b" if "b" in registered else 'shop."default".b'

    def overtaken(self: OwnTable, *, commits: bool) -> None:
        refresh(self, commits=commits)
        if self.given_name == "a" and pairs(database.open_table("a"))[0] == (1, 100):
            transfer(database)  # after one table was looked up, and before the other

    monkeypatch.setattr(OwnTable, "refresh", overtaken)
    query = f"SELECT a.v + b.v FROM a JOIN {other} b ON a.k = b.k WHERE a.k = 1"
    assert rows(context, query) == [(200,)]
    assert rows(context, query) == [(200,)]
