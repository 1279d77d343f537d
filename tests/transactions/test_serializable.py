"""What a transaction reads is proved again at its commit: anomalies by name, for each way to read.

Each way reads the rows with `v > 10`, or the key 5. Each event is one commit of somebody else; a
transaction that writes something else, key 100, must fail exactly if the event changes what it
read. `missed` counts the way's false conflicts, which are allowed but have to be known.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table, Transaction
from rowsieve.errors import TransactionConflict
from tests.profiles import some
from tests.small_tables import appended, keyed, kv, pairs

ROWS = {"k": [1, 5, 8], "v": [1, 20, 30]}


def in_datafusion(tx: Transaction, query: str) -> Any:
    from rowsieve.providers.datafusion import SessionContext

    context = SessionContext()
    context.register_table("t", tx)
    context.from_pydict({"k": [5]}, name="others")
    return context.sql(query).to_arrow_table()


def plain_datafusion(tx: Transaction) -> Any:
    import datafusion

    context = datafusion.SessionContext()
    context.register_table("t", tx)
    return context.sql("SELECT k FROM t WHERE v > 10").to_arrow_table()


def in_duckdb(tx: Transaction) -> Any:
    import duckdb

    t = tx.to_dataset()  # noqa: F841 - DuckDB finds it by its name
    with duckdb.connect() as connection:
        return connection.execute("SELECT k FROM t WHERE v > 10").fetchall()


RANGE: list[Any] = [
    pytest.param(lambda tx: tx.scan("v > 10").to_arrow(), id="scan"),
    pytest.param(
        lambda tx: tx.scan("v > 10", limit=1, order_by_key=bool(tx.key)).to_arrow(), id="limit"
    ),
    pytest.param(lambda tx: tx.count("v > 10"), id="count"),
    pytest.param(lambda tx: tx.to_polars("v > 10"), id="polars"),
    pytest.param(
        lambda tx: tx.to_dataset().to_table(filter=pa.compute.field("v") > 10), id="dataset"
    ),
    pytest.param(in_duckdb, id="duckdb"),
    pytest.param(plain_datafusion, id="datafusion"),
    pytest.param(lambda tx: in_datafusion(tx, "SELECT k FROM t WHERE v > 10"), id="sql"),
    pytest.param(
        lambda tx: in_datafusion(tx, "SELECT count(*) FROM t WHERE v > 10"), id="sql count"
    ),
    pytest.param(lambda tx: tx.update({"v": "v + 0"}, where="v > 10"), id="update"),
    pytest.param(lambda tx: tx.delete("v > 10"), id="delete"),
    pytest.param(
        lambda tx: in_datafusion(tx, "UPDATE t SET v = v + 0 WHERE v > 10"), id="sql update"
    ),
    pytest.param(lambda tx: in_datafusion(tx, "DELETE FROM t WHERE v > 10"), id="sql delete"),
]
ALL: list[Any] = [
    pytest.param(lambda tx: tx.count(), id="count of all"),
    pytest.param(len, id="len"),
    pytest.param(lambda tx: tx.detail(), id="detail"),
    pytest.param(lambda tx: tx.files(), id="files"),
    pytest.param(lambda tx: tx.head(), id="head"),
    pytest.param(lambda tx: tx.scan().statistics(), id="statistics"),
    pytest.param(lambda tx: tx.distinct_counts(), id="distinct counts"),
    pytest.param(
        lambda tx: in_datafusion(tx, "SELECT o.k FROM others o JOIN t ON o.k = t.k WHERE t.v > 10"),
        id="join",
    ),
    pytest.param(
        lambda tx: in_datafusion(
            tx, "SELECT k FROM others o WHERE EXISTS (SELECT 1 FROM t WHERE t.k = o.k AND t.v > 10)"
        ),
        id="exists",
    ),
    pytest.param(
        lambda tx: in_datafusion(
            tx, "SELECT k FROM others WHERE k IN (SELECT k FROM t WHERE v > 10)"
        ),
        id="in",
    ),
    pytest.param(
        lambda tx: in_datafusion(
            tx, "SELECT k FROM others WHERE k < (SELECT max(v) FROM t WHERE v > 10)"
        ),
        id="scalar subquery",
    ),
]  # they may read more than the condition


def changed(table: Table, *rows: tuple[int, int]) -> None:
    """Write rows, which replace those with their keys."""
    if table.key:
        table.upsert(kv(*rows))
        return
    table.delete(" OR ".join(f"k = {k}" for k, _ in rows))
    table.append(kv(*rows))


def removed(table: Table, key: int) -> None:
    if table.key:
        table.delete(keys=pa.table({"k": [key]}))
    else:
        table.delete(f"k = {key}")


def moved_and_removed(table: Table) -> None:
    table.compact()
    removed(table, 5)


def several(table: Table) -> None:
    changed(table, (60, 60))
    removed(table, 60)
    changed(table, (8, 0))


CHANGES: list[Any] = [
    pytest.param(lambda table: changed(table, (50, 50)), id="phantom: a new row matches"),
    pytest.param(lambda table: changed(table, (1, 50)), id="a row matches now"),
    pytest.param(lambda table: changed(table, (5, 0)), id="a row matches no longer"),
    pytest.param(lambda table: changed(table, (5, 21)), id="a matching row has another value"),
    pytest.param(lambda table: removed(table, 5), id="a matching row is gone"),
    pytest.param(lambda table: table.overwrite(kv((5, 20), (8, 30))), id="all rows are replaced"),
    pytest.param(lambda table: table.overwrite(kv((70, 0))), id="all rows are gone"),
    pytest.param(moved_and_removed, id="a matching row is gone from new files"),
    pytest.param(several, id="several commits"),
]
OTHERS: list[Any] = [
    pytest.param(lambda table: changed(table, (2, 2)), id="a row that does not match"),
    pytest.param(lambda table: changed(table, (1, 9)), id="another value that does not match"),
    pytest.param(lambda table: removed(table, 1), id="a row that did not match is gone"),
    pytest.param(lambda table: table.analyze(), id="statistics"),
]


def crossed(reads: list[Any], changes: list[Any], one_in: int) -> list[Any]:
    """Each way to read with each event; in the small profile some, each of both at least once."""
    return [
        pytest.param(*read.values, *change.values, id=f"{read.id}, {change.id}")
        for place, read in enumerate(reads)
        for change in some(changes, one_in, place)
    ]


def begun(table: Table, read: Callable[[Transaction], Any]) -> Transaction:
    """A transaction that has read, and written what nobody else does."""
    tx = table.transaction()
    read(tx)
    (tx.upsert if tx.key else tx.append)(kv((100, 1)))
    return tx


@pytest.mark.parametrize(("read", "change"), crossed(RANGE + ALL, CHANGES, one_in=3))
@pytest.mark.parametrize("make", [keyed, appended])
def test_a_read_conflicts_with_each_change_of_its_rows(
    make: Callable[..., Table], read: Callable[[Transaction], Any], change: Callable[[Table], Any]
) -> None:  # invariant 41
    table = make(ROWS)
    tx = begun(table, read)
    change(table)
    after = pairs(table)
    with pytest.raises(TransactionConflict) as raised:
        tx.commit()
    assert pairs(table) == after
    assert 1 < raised.value.version <= table.version


@pytest.mark.parametrize(("read", "change"), crossed(RANGE, OTHERS, one_in=3))
@pytest.mark.parametrize("make", [keyed, appended])
def test_a_read_does_not_conflict_with_other_changes(
    make: Callable[..., Table], read: Callable[[Transaction], Any], change: Callable[[Table], Any]
) -> None:
    table = make(ROWS)
    tx = begun(table, read)
    if not table.key and any(layer.request.removed for layer in tx.handle.layers.layers):
        tx.rollback()
        pytest.skip("without a key, two commits that hide rows of one part conflict")
    change(table)
    tx.commit()
    assert (100, 1) in pairs(table)


LOOKUPS: list[Any] = [
    pytest.param(lambda tx: tx.scan("k = 5").to_arrow(), id="point lookup"),
    pytest.param(lambda tx: in_datafusion(tx, "SELECT v FROM t WHERE k = 5"), id="sql lookup"),
    pytest.param(lambda tx: tx.upsert(pa.table({"k": [5]}), columns="given"), id="partial row"),
    pytest.param(lambda tx: tx.upsert(kv((5, 1)), combine={"v": "sum"}), id="combined value"),
    pytest.param(
        lambda tx: in_datafusion(
            tx,
            "MERGE INTO t USING (SELECT k FROM others) s ON t.k = s.k "
            "WHEN MATCHED THEN UPDATE SET v = t.v + 1",
        ),
        id="merge",
    ),
    pytest.param(
        lambda tx: in_datafusion(tx, "INSERT INTO t VALUES (5, 1) ON CONFLICT DO NOTHING"),
        id="insert that finds its key",
    ),
]


@pytest.mark.parametrize("read", LOOKUPS)
def test_a_key_that_was_looked_up_conflicts_with_changes_of_its_row_alone(
    read: Callable[[Transaction], Any],
) -> None:
    table = keyed(ROWS)
    events: list[Callable[[Table], Any]] = [
        lambda table: changed(table, (5, 99)),
        lambda table: removed(table, 5),
    ]
    for change in events:
        tx = begun(table, read)
        change(table)
        with pytest.raises(TransactionConflict):
            tx.commit()
        changed(table, (5, 20))
    tx = begun(table, read)
    changed(table, (4, 99), (6, 99))
    removed(table, 8)
    tx.commit()
    assert (100, 1) in pairs(table)


def test_a_key_that_was_not_there_conflicts_when_it_comes() -> None:
    table = keyed(ROWS)
    for read in (
        lambda tx: tx.count("k = 7"),
        lambda tx: in_datafusion(tx, "INSERT INTO t VALUES (7, 7)"),
        lambda tx: tx.upsert(pa.table({"k": [7]}), columns="given"),
    ):
        tx = begun(table, read)
        changed(table, (7, 1))
        with pytest.raises(TransactionConflict):
            tx.commit()
        removed(table, 7)


def test_write_skew_is_refused() -> None:
    """Two doctors are on call; each goes off call if the other one stays."""
    table = keyed({"k": [1, 2], "v": [1, 1]})
    one, two = table.transaction(), table.transaction()
    for tx, doctor in ((one, 1), (two, 2)):
        assert tx.count("v = 1") == 2
        tx.update({"v": 0}, where=f"k = {doctor}")
    one.commit()
    with pytest.raises(TransactionConflict):
        two.commit()
    assert pairs(table) == [(1, 0), (2, 1)]


def test_write_skew_happens_under_snapshot_isolation_alone() -> None:
    table = keyed({"k": [1, 2], "v": [1, 1]})
    one, two = (table.transaction(isolation="snapshot") for _ in range(2))
    for tx, doctor in ((one, 1), (two, 2)):
        assert tx.count("v = 1") == 2
        tx.update({"v": 0}, where=f"k = {doctor}")
    one.commit()
    two.commit()
    assert pairs(table) == [(1, 0), (2, 0)]


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_no_update_is_lost(isolation: Any) -> None:
    table = keyed({"k": [1], "v": [1]})
    one, two = (table.transaction(isolation=isolation) for _ in range(2))
    for tx in (one, two):
        (value,) = tx.to_arrow("k = 1").column("v").to_pylist()
        tx.upsert(kv((1, value + 1)))
    one.commit()
    with pytest.raises(TransactionConflict):
        two.commit()
    assert pairs(table) == [(1, 2)]


def test_what_was_rolled_back_to_a_savepoint_counts_as_read() -> None:
    table = keyed(ROWS)
    tx = table.transaction()
    tx.savepoint("a")
    tx.delete("v > 10")
    tx.rollback_to("a")
    tx.upsert(kv((100, 1)))
    changed(table, (50, 50))
    with pytest.raises(TransactionConflict):
        tx.commit()


def test_a_condition_that_failed_conflicts_with_its_row() -> None:
    from rowsieve.errors import EvaluationError

    table = keyed({"k": [1, 2], "v": [1, 0]})
    tx = table.transaction()
    with pytest.raises(EvaluationError):
        tx.count("10 / v > 5")
    tx.upsert(kv((100, 1)))
    removed(table, 2)
    with pytest.raises(TransactionConflict):
        tx.commit()


def test_blind_writes_conflict_with_nothing() -> None:
    table = keyed(ROWS)
    tx = table.transaction()
    tx.upsert(kv((5, 1)))
    tx.delete(keys=pa.table({"k": [8]}))
    changed(table, (5, 2), (8, 2), (9, 9))
    tx.commit()
    assert pairs(table) == [(1, 1), (5, 1), (9, 9)]


def test_a_transaction_that_only_reads_needs_no_proof() -> None:
    table = keyed(ROWS)
    with table.transaction() as tx:
        assert tx.count() == 3
        changed(table, (50, 50))
        assert tx.count() == 3
    assert tx.committed is not None
    assert not tx.committed.committed


def test_very_many_conditions_become_one_that_matches_all_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rowsieve.transactions import condition_log

    monkeypatch.setattr(condition_log, "MAX_CONDITIONS", 3)
    table = keyed(ROWS)
    tx = table.transaction()
    for key in range(200, 205):
        tx.count(f"k = {key}")
    assert len(tx.handle.layers.reads.questions()) == 1
    tx.upsert(kv((100, 1)))
    changed(table, (50, 50))
    with pytest.raises(TransactionConflict):
        tx.commit()


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.parametrize("deletes", [False, True])
def test_conflict_checks_see_what_a_writer_flushed(
    tmp_path: Path, isolation: Any, deletes: bool
) -> None:  # trap T27
    table = rs.create_table(tmp_path / "t", kv((1, 1), (2, 2)), key=["k"])
    other = rs.open_table(table.uri)
    with other.writer(wal_dir=tmp_path / "wal", flush_interval_s=3600) as writer:
        tx = table.transaction(isolation=isolation)
        assert tx.count("k = 1") == 1
        tx.upsert(kv((1, 5)))
        change = writer.delete(keys={"k": 1}) if deletes else writer.upsert({"k": 1, "v": 7})
        change.result()
        writer.flush()
        with pytest.raises(TransactionConflict):
            tx.commit()
    assert pairs(rs.open_table(table.uri)) == ([] if deletes else [(1, 7)]) + [(2, 2)]
