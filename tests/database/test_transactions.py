"""Transactions over several tables: one version before, one entry after, or nothing."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import rowsieve as rs
from rowsieve.errors import (
    CommitConflict,
    InvalidInput,
    TableExists,
    TableNotFound,
    TransactionConflict,
    TransactionEnded,
    UnsupportedOperation,
)
from rowsieve.objects import open_store
from rowsieve.objects.shared.shared_entry import LOG
from tests.differential.updates import KV as UPDATED
from tests.differential.updates import sums, updates
from tests.small_tables import fresh_uri, kv, pairs


@pytest.fixture
def database() -> rs.Database:
    """Two tables of accounts."""
    database = rs.Database(fresh_uri())
    for name in "ab":
        database.create_table(name, kv((1, 100), (2, 100)), ["k"])
    return database


def balance(database: rs.Database, version: int | None = None) -> int:
    tables = [database.open_table(name, version=version) for name in "ab"]
    return sum(value for table in tables for _, value in pairs(table))


def test_several_tables_change_in_one_entry(database: rs.Database) -> None:
    before = len(open_store(database.uri).list(LOG))
    with database.transaction(metadata={"why": "transfer"}) as tx:
        a, b = tx.table("a"), tx.table("default.b")
        a.upsert(kv((1, 70)))
        assert pairs(a) == [(1, 70), (2, 100)]
        b.upsert(kv((1, 130)))
        b.delete("k = 2")
        assert balance(database) == 400
    assert database.version == 3
    assert len(open_store(database.uri).list(LOG)) == before + 1
    assert pairs(database.open_table("b")) == [(1, 130)]
    assert [database.open_table(name).history()[0].metadata for name in "ab"] == [
        {"why": "transfer"},
        {"why": "transfer"},
    ]
    commits = database.transaction()
    commits.table("a").upsert(kv((3, 1)))
    assert {name: each.rows_written for name, each in commits.commit().items()} == {"a": 1}


def test_a_block_that_raises_commits_nothing(database: rs.Database) -> None:
    def fails(tx: Any) -> None:
        with tx:
            tx.table("a").upsert(kv((1, 0)))
            tx.create_table("c", kv())
            raise ZeroDivisionError

    tx = database.transaction()
    with pytest.raises(ZeroDivisionError):
        fails(tx)
    assert (database.version, database.tables(), balance(database)) == (2, ["a", "b"], 400)
    with pytest.raises(TransactionEnded):
        tx.table("a")


def test_all_tables_are_read_in_one_version(database: rs.Database) -> None:
    with database.transaction(isolation="snapshot") as tx:
        assert pairs(tx.table("a")) == [(1, 100), (2, 100)]
        database.open_table("b").upsert(kv((1, 0)))
        assert pairs(tx.table("b")) == [(1, 100), (2, 100)]


def test_a_table_that_was_read_may_not_have_changed(database: rs.Database) -> None:
    tx = database.transaction()
    assert tx.table("b").count("k = 1") == 1
    tx.table("a").upsert(kv((1, 50)))
    database.open_table("b").upsert(kv((1, 0)))
    with pytest.raises(CommitConflict):
        tx.commit()
    assert pairs(database.open_table("a")) == [(1, 100), (2, 100)]
    tx = database.transaction()
    assert tx.table("b").count("k = 1") == 1
    tx.table("a").upsert(kv((1, 50)))
    database.open_table("b").upsert(kv((2, 0)))  # not what was read
    tx.commit()
    assert pairs(database.open_table("a")) == [(1, 50), (2, 100)]


def test_a_transaction_that_only_reads_never_conflicts(database: rs.Database) -> None:
    with database.transaction() as tx:
        assert tx.table("a").count() == 2
        database.open_table("a").upsert(kv((3, 1)))
        assert tx.table("a").count() + tx.table("b").count() == 4
    assert database.version == 3


def test_write_skew_over_two_tables_is_refused(database: rs.Database) -> None:
    first, second = database.transaction(), database.transaction()
    assert first.table("a").count() == second.table("b").count() == 2
    first.table("b").upsert(kv((3, 1)))
    second.table("a").upsert(kv((3, 1)))
    first.commit()
    with pytest.raises(CommitConflict):
        second.commit()


def test_tables_are_created_with_the_commit(database: rs.Database) -> None:
    with database.transaction() as tx:
        for number in range(60):
            tx.create_table(f"new.t{number}", kv((number, number)), ["k"])
        with pytest.raises(TableExists):
            tx.create_table("new.t1", kv())
        with pytest.raises(TableExists):
            tx.create_table("a", kv())
        with pytest.raises(TableNotFound, match="commit that first"):
            tx.table("new.t1")
        tx.table("a").upsert(kv((1, 1)))
    assert database.version == 3
    assert len(database.tables("new")) == 60
    assert pairs(database.open_table("new.t7")) == [(7, 7)]
    tx = database.transaction()
    tx.create_table("late", kv())
    database.create_table("late", kv())
    tx.table("a").upsert(kv((1, 2)))
    with pytest.raises(TableExists):
        tx.commit()
    assert pairs(database.open_table("a")) == [(1, 1), (2, 100)]


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_a_differential_table_is_created_and_read(database: rs.Database, isolation: Any) -> None:
    with database.transaction() as tx:
        tx.create_table("d", UPDATED, mode="differential", time="uint64")
        tx.create_table("log", kv((1, 1)), mode="append")
    table = database.open_table("d")
    assert (table.detail()["mode"], database.open_table("log").key) == ("differential", ())
    table.append_updates(updates((1, "a", 0, 1)), upper=1)
    tx = database.transaction(isolation=isolation)
    assert sums(tx.table("d")) == {(1, "a"): 1}
    assert tx.sql("SELECT count(*) AS n FROM d").to_pylist() == [{"n": 1}]
    tx.table("a").upsert(kv((1, 1)))
    table.compact()
    table.append_updates(updates((2, "b", 1, 1)), upper=2)
    if isolation == "snapshot":
        tx.commit()
    else:
        with pytest.raises(TransactionConflict, match="changed updates that it read"):
            tx.commit()
    assert balance(database) == (301 if isolation == "snapshot" else 400)


def test_a_savepoint_undoes_the_creation_of_tables(database: rs.Database) -> None:
    with database.transaction() as tx:
        tx.create_table("c", kv((1, 1)), ["k"])
        tx.savepoint("s")
        for value in (2, 3):
            tx.table("a").upsert(kv((1, value)))
            tx.create_table("d", kv((1, value)), ["k"])
            tx.savepoint("t")
            tx.create_table("e", kv())
            tx.rollback_to("s")
            for name, why in (("c", "commit that first"), ("d", "there is none")):
                with pytest.raises(TableNotFound, match=why):
                    tx.table(name)
        tx.create_table("e", kv((1, 4)), ["k"])
        tx.rollback_to("s")
    assert database.tables() == ["a", "b", "c"]
    assert pairs(database.open_table("a")) == [(1, 100), (2, 100)]
    before = database.version
    tx = database.transaction()
    tx.savepoint("s")
    tx.create_table("d", kv())
    tx.rollback_to("s")
    assert tx.commit() == {}
    assert (database.tables(), database.version) == (["a", "b", "c"], before)


def test_savepoints_reach_over_tables(database: rs.Database) -> None:
    with database.transaction() as tx:
        a, b = tx.table("a"), tx.table("b")
        a.upsert(kv((1, 1)))
        tx.savepoint("s")
        a.upsert(kv((1, 2)))
        b.upsert(kv((1, 2)))
        tx.rollback_to("s")
        tx.release("s")
        b.upsert(kv((2, 3)))
    assert pairs(database.open_table("a")) == [(1, 1), (2, 100)]
    assert pairs(database.open_table("b")) == [(1, 100), (2, 3)]


def test_a_dropped_or_renamed_table_is_noticed(database: rs.Database) -> None:
    tx = database.transaction()
    tx.table("a").upsert(kv((1, 1)))
    tx.table("b").upsert(kv((1, 1)))
    database.drop_table("b")
    with pytest.raises(TableNotFound, match="was dropped"):
        tx.commit()
    assert pairs(database.open_table("a")) == [(1, 100), (2, 100)]
    tx = database.transaction()
    tx.table("a").upsert(kv((1, 1)))
    database.rename_table("a", "c")
    tx.commit()
    assert pairs(database.open_table("c")) == [(1, 1), (2, 100)]


def test_a_transaction_knows_its_commits(database: rs.Database) -> None:
    with database.transaction() as tx:
        tx.table("a").upsert(kv((1, 70)))
    assert (tx.committed or {})["a"].version == database.open_table("a").version
    with database.transaction() as tx:
        tx.table("a").count()
    assert tx.committed == {}


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_a_dropped_table_is_named(database: rs.Database, isolation: Any) -> None:
    tx = database.transaction(isolation=isolation)
    tx.table("a").upsert(kv((1, 70)))
    tx.table("b").upsert(kv((1, 130)))
    database.drop_table("b")
    database.create_table("b", kv((1, 5)), ["k"])
    with pytest.raises(TableNotFound, match=r"table 'b' of .* was dropped"):
        tx.commit()
    assert balance(database) == 205


def test_many_small_commits_are_folded(database: rs.Database) -> None:
    properties = {"inline_bytes": 16_384, "inline_total_bytes": 2_000}
    for name in "cd":
        database.create_table(name, kv((0, 0)), ["k"], properties=properties)
    for turn in range(8):
        with database.transaction() as tx:
            for name in "cd":
                tx.table(name).upsert(kv((turn, turn)))
    for name in "cd":
        table = database.open_table(name)
        assert "compact" in [commit.operation for commit in table.history()]
        assert pairs(table) == [(turn, turn) for turn in range(8)]


def test_each_commit_is_published_as_the_property_says(tmp_path: Path) -> None:
    database = rs.Database(tmp_path / "db")
    for name in "ab":
        database.create_table(name, kv((1, 1)), ["k"], properties={"publish": "delta"})
    with database.transaction() as tx:
        for name in "ab":
            tx.table(name).upsert(kv((2, 2)))
        tx.create_table("c", kv((3, 3)), ["k"], properties={"publish": "delta"})
    database.branch("audit")
    database.open_table("a", ref="audit").upsert(kv((3, 3)))
    database.fast_forward("audit")
    for name, rows in (("a", 3), ("b", 2), ("c", 1)):
        folder = Path(database.open_table(name).uri.removeprefix("file://"))
        assert DeltaTable(folder).to_pyarrow_table().num_rows == rows, name


def test_a_token_is_used_once(database: rs.Database) -> None:
    for _ in range(2):
        with database.transaction(token=("loader", 1)) as tx:
            tx.table("a").upsert(kv((5, 5)))
            tx.table("b").upsert(kv((5, 5)))
    assert database.version == 3


def test_run_transaction_runs_again_after_a_conflict(database: rs.Database) -> None:
    attempts: list[int] = []

    def transfer(tx: Any) -> int:
        (value,) = tx.table("a").to_arrow("k = 1").column("v").to_pylist()
        if not attempts:
            database.open_table("a").upsert(kv((1, 10)))
        attempts.append(value)
        tx.table("a").upsert(kv((1, value - 1)))
        tx.table("b").upsert(kv((1, value + 1)))
        return int(value)

    assert rs.run_transaction(transfer, database, token=("job", 1)) == 10
    assert attempts == [100, 10]
    assert rs.run_transaction(transfer, database, token=("job", 1)) == 9
    assert [dict(pairs(database.open_table(name)))[1] for name in "ab"] == [9, 11]
    with pytest.raises(InvalidInput, match="table is"):
        rs.run_transaction(transfer, "a")  # type: ignore[arg-type]


def test_only_rows_change_in_a_transaction(database: rs.Database) -> None:
    with database.transaction() as tx:
        with pytest.raises(UnsupportedOperation):
            tx.table("a").add_column("n", "int64")
        with pytest.raises(UnsupportedOperation):
            tx.table("a").compact()


def test_transfers_keep_the_balance(database: rs.Database) -> None:
    def transfer(seed: int) -> int:
        draws = random.Random(seed)
        done = 0
        while done < 4:
            source, target = draws.sample("ab", 2)
            key, amount = draws.choice([1, 2]), draws.randint(1, 20)
            try:
                with database.transaction() as tx:
                    have = dict(pairs(tx.table(source), f"k = {key}"))[key]
                    there = dict(pairs(tx.table(target), f"k = {key}"))[key]
                    tx.table(source).upsert(kv((key, have - amount)))
                    tx.table(target).upsert(kv((key, there + amount)))
            except CommitConflict:
                continue
            done += 1
        return done

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(transfer, range(3))) == 12
    for version in range(2, database.version + 1):
        assert balance(database, version) == 400


def test_engines_read_a_table_of_a_transaction(database: rs.Database) -> None:
    from rowsieve.providers.datafusion.sql_session import SessionContext

    with database.transaction() as tx:
        tx.table("a").upsert(kv((1, 7)))
        context = SessionContext()
        for name in "ab":
            context.register_table(name, tx.table(name))
        joined = context.sql("SELECT a.v + b.v AS v FROM a JOIN b ON a.k = b.k WHERE a.k = 1")
        rows: pa.Table = joined.to_arrow_table()
        assert rows["v"].to_pylist() == [107]


@pytest.mark.parametrize("key", [["k"], None])
def test_sql_reads_and_changes_tables_inside_the_transaction(key: list[str] | None) -> None:
    database = rs.Database(fresh_uri())
    for name in ("a", "shop.b"):
        database.create_table(name, kv((1, 100), (2, 100)), key)
    with database.transaction() as tx:
        assert tx.sql("UPDATE a SET v = v - 30 WHERE k = 1").to_pylist() == [{"count": 1}]
        tx.sql("INSERT INTO shop.b SELECT k + 10, v FROM a")
        tx.sql("DELETE FROM shop.b WHERE v IN (SELECT v FROM a WHERE k = 1)")
        tx.sql("MERGE INTO shop.b USING a ON a.k = b.k WHEN MATCHED THEN UPDATE SET v = b.v + a.v")
        both = tx.sql("SELECT (SELECT sum(v) FROM a) AS a, sum(v) AS b FROM shop.b").to_pylist()
        assert both == [{"a": 170, "b": 470}]
        assert pairs(database.open_table("a")) == [(1, 100), (2, 100)]
    assert database.version == 3
    assert pairs(database.open_table("a")) == [(1, 70), (2, 100)]
    assert pairs(database.open_table("shop.b")) == [(1, 170), (2, 200), (12, 100)]


def test_a_query_in_sql_is_proved_again(database: rs.Database) -> None:  # invariant 41
    tx = database.transaction()
    tx.sql("SELECT sum(v) FROM a WHERE k = 2")
    tx.sql("UPDATE b SET v = 0 WHERE k = 1")
    database.open_table("a").upsert(kv((2, 1)))
    with pytest.raises(CommitConflict, match='"k" = 2'):
        tx.commit()
    assert pairs(database.open_table("b")) == [(1, 100), (2, 100)]


def test_errors_name_the_table_that_another_commit_changed(database: rs.Database) -> None:
    database.rename_table("a", "shop.accounts")
    first, second = database.transaction(), database.transaction(isolation="snapshot")
    for tx in (first, second):
        tx.sql("SELECT sum(v) FROM shop.accounts")
        tx.table("b").upsert(kv((9, 9)))
        tx.table("shop.accounts").upsert(kv((1, 1)))
    database.open_table("shop.accounts").upsert(kv((1, 2)))
    for tx in (first, second):
        with pytest.raises(TransactionConflict, match=r"on table 'shop\.accounts' of memory:"):
            tx.commit()


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT", "savepoint x", "ROLLBACK TO x"])
def test_statements_of_transactions_name_the_methods(database: rs.Database, statement: str) -> None:
    with database.transaction() as tx:
        with pytest.raises(UnsupportedOperation, match="savepoint, rollback_to and release"):
            tx.sql(statement)
        with pytest.raises(InvalidInput, match="empty"):
            tx.sql(" ")
    with pytest.raises(UnsupportedOperation, match="transaction of a table or database"):
        database.sql(statement)


@pytest.mark.parametrize(
    "statement",
    [
        *("CREATE TABLE x AS SELECT 1 AS k", "DROP TABLE a", "SHOW TABLES", "BEGIN", "SET x = 1"),
        *("CALL system.compact('a')", "ALTER TABLE a RENAME TO c", "CREATE VIEW x AS SELECT 1"),
    ],
)
def test_other_statements_are_refused_inside_a_transaction(
    database: rs.Database, statement: str
) -> None:
    with database.transaction() as tx:
        tx.table("a").upsert(kv((3, 3)))
        with pytest.raises(UnsupportedOperation):
            tx.sql(statement)
        with pytest.raises(TableNotFound):
            tx.sql("SELECT * FROM absent")
        tx.create_table("new", kv((1, 1)), ["k"])
        with pytest.raises(TableNotFound, match="created by this transaction"):
            tx.sql("SELECT * FROM new")
        for query in ('SELECT * FROM "a@audit"', "SELECT * FROM a FOR VERSION AS OF 1"):
            with pytest.raises(UnsupportedOperation, match="another version"):
                tx.sql(query)
    assert (3, 3) in pairs(database.open_table("a"))
    with pytest.raises(TransactionEnded):
        tx.sql("SELECT 1")
