"""Transactions: several changes as one commit, reads that see them, and how they end."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table, Transaction
from rowsieve.errors import (
    CommitConflict,
    InvalidInput,
    KeyViolation,
    NotFound,
    TableNotFound,
    TransactionConflict,
    TransactionEnded,
    UnsupportedOperation,
)
from tests.differential.updates import differential, sums, updates
from tests.small_tables import KV, appended, files, fresh_uri, keyed, kv, overtake, pairs


def keys(*values: int) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.int64())})


def test_a_transaction_is_one_commit_that_nobody_sees_before_it() -> None:
    table = keyed({"k": [1, 2, 3], "v": [10, 20, 30]})
    with table.transaction(metadata={"job": "nightly"}) as tx:
        assert not tx.upsert(kv((4, 40))).committed
        tx.update({"v": "v + 1"}, where="k >= 3")
        tx.delete("k = 1")
        assert pairs(tx) == [(2, 20), (3, 31), (4, 41)]
        assert tx.count("v > 30") == 2
        assert pairs(table) == [(1, 10), (2, 20), (3, 30)]
        assert table.refresh() == 1
    assert pairs(table) == [(2, 20), (3, 31), (4, 41)]
    newest = table.history(1)[0]
    assert newest == tx.committed
    assert (newest.version, newest.operation) == (2, "transaction")
    assert (newest.rows_written, newest.rows_deleted) == (2, 1)
    assert newest.metadata == {"job": "nightly"}


def test_the_change_feed_shows_the_net_change() -> None:  # invariant 9
    table = keyed({"k": [1, 2], "v": [1, 2]})
    with table.transaction() as tx:
        tx.upsert(kv((1, 5), (3, 3), (4, 4)))
        tx.upsert(kv((1, 6)))
        tx.delete(keys=keys(2, 4))
        tx.upsert(kv((2, 9)))
    rows = table.changes(table.version).read_all().to_pylist()
    shown = [(row["_change_type"], row["k"], row["v"]) for row in rows]
    assert sorted(shown) == [
        ("insert", 3, 3),
        ("update_postimage", 1, 6),
        ("update_postimage", 2, 9),
        ("update_preimage", 1, 1),
        ("update_preimage", 2, 2),
    ]


def test_a_key_is_in_the_rows_or_in_the_tombstones_of_a_commit_once() -> None:  # invariant 10
    table = keyed({"k": [1, 2], "v": [1, 2]})
    with table.transaction() as tx:
        for value in range(5):
            tx.upsert(kv((1, value), (value + 10, value)))
            tx.delete(keys=keys(2, value + 10))
    assert pairs(table) == [(1, 4)]
    parts = table.handle.pinned.parts.take([1])
    assert (parts.numbers("data.rows")[0], parts.numbers("deletes.rows")[0]) == (1, 6)
    assert len(table.handle.pinned.parts) == 2


def test_changes_of_one_call_are_committed_as_they_were_written() -> None:
    table = keyed({"k": [1], "v": [1]})
    with table.transaction() as tx:
        tx.upsert(kv(*((k, k) for k in range(5_000))))  # too many to stay in memory
        (written,) = tx.handle.layers.layers
    assert written.request.added is not None
    assert set(written.request.added.part_ids) <= set(table.handle.pinned.parts.part_ids)


@pytest.mark.parametrize("make", [keyed, appended])
@pytest.mark.parametrize("inline_bytes", [0, 4096])
def test_small_changes_stay_in_memory_until_the_commit(
    make: Callable[..., Table], inline_bytes: int
) -> None:
    table = make({"k": [1], "v": [1]}, properties={"inline_bytes": str(inline_bytes)})
    before = len(files(table))
    with table.transaction() as tx:
        for k in range(2, 8):
            (tx.upsert if tx.key else tx.append)(kv((k, k + 1)))
        assert pairs(tx, "k > 5") == [(6, 7), (7, 8)]
        assert len(files(table)) == before
    assert pairs(table) == [(1, 1), *((k, k + 1) for k in range(2, 8))]
    added = [path for path in files(table) if path.startswith("data/")]
    assert len(added) <= (2 if table.key else 7)


def test_a_table_without_a_key_appends_hides_and_updates() -> None:
    table = appended({"k": [1, 2, 3], "v": [10, 20, 30]})
    with table.transaction() as tx:
        tx.append(kv((7, 1), (8, 2)))
        assert tx.delete("k = 7 OR k = 1").rows_deleted == 2
        tx.update({"v": "v * 2"}, where="k = 8")
        assert pairs(tx) == [(2, 20), (3, 30), (8, 4)]
    assert pairs(table) == [(2, 20), (3, 30), (8, 4)]
    assert tx.committed is not None
    assert (tx.committed.rows_written, tx.committed.rows_deleted) == (1, 1)
    rows = table.changes(table.version).read_all().to_pylist()
    assert [(row["_change_type"], row["k"]) for row in rows] == [("delete", 1), ("insert", 8)]


def test_rows_that_come_and_go_leave_no_commit() -> None:
    table = appended({"k": [1], "v": [1]})
    before = table.version
    with table.transaction() as tx:
        tx.append(kv((2, 2)))
        tx.delete("k = 2")
    assert tx.committed is not None
    assert not tx.committed.committed
    assert table.refresh() == before


@pytest.mark.parametrize("make", [keyed, appended])
def test_overwrites_replace_rows_of_the_transaction_too(make: Callable[..., Table]) -> None:
    table = make({"k": [1, 2], "v": [1, 2]})
    with table.transaction() as tx:
        (tx.upsert if tx.key else tx.append)(kv((3, 3)))
        tx.overwrite(kv((2, 20), (3, 30)), where="k >= 2")
        assert pairs(tx) == [(1, 1), (2, 20), (3, 30)]
        tx.overwrite(kv((5, 5)))
        tx.delete("k = 9")
        assert pairs(tx) == [(5, 5)]
    assert pairs(table) == [(5, 5)]
    assert table.history(1)[0].operation == "overwrite"


def test_partial_rows_and_combined_values_see_earlier_changes() -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64()), ("w", "i8")])
    table = keyed({"k": [1], "v": [1], "w": [1]}, schema=schema)
    with table.transaction() as tx:
        tx.upsert(pa.table({"k": [1, 2], "v": [2, 5]}), columns="given")
        tx.upsert(
            pa.table({"k": [1, 2], "v": [3, 3], "w": pa.array([2, 2], "i8")}), combine={"v": "sum"}
        )
        tx.upsert(pa.table({"k": [2], "w": pa.array([7], "i8")}), columns="given")
    rows = sorted(table.to_arrow().to_pylist(), key=lambda row: row["k"])
    assert rows == [{"k": 1, "v": 5, "w": 2}, {"k": 2, "v": 8, "w": 7}]


def test_an_event_order_holds_within_a_transaction_and_against_others() -> None:  # invariant 36
    schema = KV.append(pa.field("s", pa.int64(), nullable=False))

    def row(k: int, v: int, s: int) -> pa.Table:
        return pa.table({"k": [k], "v": [v], "s": [s]}, schema=schema)

    table = rowsieve.create_table(fresh_uri(), schema, key=["k"], sequence="s")
    table.upsert(row(1, 1, 10))
    with table.transaction() as tx:
        assert tx.upsert(row(1, 2, 5)).rows_late == 1
        tx.upsert(row(1, 3, 20))
        assert tx.upsert(row(1, 4, 15)).rows_late == 1
        tx.delete(keys=pa.table({"k": [2], "s": [30]}))
        assert tx.upsert(row(2, 5, 25)).rows_late == 1
    assert [each["v"] for each in table.to_arrow().to_pylist()] == [3]
    assert table.upsert(row(2, 6, 29)).rows_late == 1
    tx = table.transaction()
    tx.upsert(row(1, 7, 40))
    table.upsert(row(1, 8, 50))
    with pytest.raises(CommitConflict, match="changed a row that it writes"):
        tx.commit()
    assert [each["v"] for each in table.to_arrow().to_pylist()] == [8]


def test_constraints_hold_for_each_change() -> None:
    table = keyed({"k": [1], "v": [1]})
    table.add_constraint("small", "v < 100")
    with table.transaction() as tx:
        with pytest.raises(rowsieve.errors.ConstraintViolation):
            tx.upsert(kv((2, 200)))
        tx.upsert(kv((3, 3)))
        tx.upsert(kv((3, 4)))
    assert pairs(table) == [(1, 1), (3, 4)]


def test_savepoints_return_and_are_released() -> None:
    table = keyed({"k": [1], "v": [1]})
    with table.transaction() as tx:
        tx.savepoint("a")
        tx.upsert(kv((2, 2)))
        tx.savepoint("b")
        tx.upsert(kv((3, 3)))
        tx.rollback_to("b")
        assert pairs(tx) == [(1, 1), (2, 2)]
        tx.savepoint("a")  # hides the first
        tx.upsert(kv((4, 4)))
        tx.rollback_to("a")
        tx.release("a")
        tx.rollback_to("a")
        assert pairs(tx) == [(1, 1)]
        with pytest.raises(NotFound, match="savepoint 'b' does not exist; there are: a"):
            tx.rollback_to("b")
        tx.upsert(kv((5, 5)))
        tx.release("a")
        with pytest.raises(NotFound, match="there are: none"):
            tx.release("a")
    assert pairs(table) == [(1, 1), (5, 5)]


def test_an_exception_rolls_back() -> None:
    table = keyed({"k": [1], "v": [1]})
    tx = table.transaction()

    def fail() -> None:
        with tx:
            tx.upsert(kv((2, 2)))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert pairs(table) == [(1, 1)]
    assert tx.committed is None
    assert not tx.is_open
    with pytest.raises(TransactionEnded, match="rolled back"):
        tx.upsert(kv((2, 2)))


def test_a_change_that_is_refused_leaves_the_transaction_as_it_was() -> None:
    table = keyed({"k": [1], "v": [1]})
    with table.transaction() as tx:
        with pytest.raises(KeyViolation):
            tx.upsert(kv((2, 2), (2, 3)))
        tx.upsert(kv((4, 4)))
    assert pairs(table) == [(1, 1), (4, 4)]


REFUSED = [
    pytest.param(lambda tx: tx.add_column("w", "int64"), id="columns"),
    pytest.param(lambda tx: tx.set_properties({"audit_percent": 1}), id="properties"),
    pytest.param(lambda tx: tx.add_constraint("c", "v > 0"), id="constraints"),
    pytest.param(lambda tx: tx.restore(0), id="restore"),
    pytest.param(lambda tx: tx.compact(), id="compact"),
    pytest.param(lambda tx: tx.vacuum(), id="vacuum"),
    pytest.param(lambda tx: tx.analyze(), id="analyze"),
    pytest.param(
        lambda tx: tx.upsert(pa.table({"k": [1], "v": [1], "w": [1]}), schema_mode="merge"),
        id="columns of the data",
    ),
    pytest.param(lambda tx: tx.transaction(), id="nested"),
    pytest.param(lambda tx: tx.scan(version=0), id="another version"),
    pytest.param(lambda tx: tx.changes(0), id="the change feed"),
    pytest.param(lambda tx: tx.last_changed(0), id="rows that commits changed"),
    pytest.param(lambda tx: tx.publish("delta"), id="a publication"),
    pytest.param(lambda tx: tx.tag("q3"), id="a tag"),
    pytest.param(lambda tx: tx.branch("audit"), id="a branch"),
    pytest.param(lambda tx: tx.at_ref("old"), id="a tag that is there"),
    pytest.param(lambda tx: tx.drop_tag("old"), id="no tag"),
    pytest.param(lambda tx: tx.cherry_pick(1), id="cherry pick"),
    pytest.param(lambda tx: tx.writer(durability="commit"), id="a writer"),
]


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_not_a_change_of_rows_is_refused(call: Callable[[Transaction], Any]) -> None:
    table = keyed({"k": [1], "v": [1]})
    table.tag("old")
    before = table.refresh()
    with table.transaction() as tx:
        tx.upsert(kv((2, 2)))
        with pytest.raises(UnsupportedOperation):
            call(tx)
        assert pairs(tx) == [(1, 1), (2, 2)]
    assert pairs(table) == [(1, 1), (2, 2)]
    assert table.refresh() == before + 1


def test_a_token_belongs_to_the_transaction_and_commits_once() -> None:
    table = keyed({"k": [1], "v": [1]})
    with table.transaction(token=("job", 1)) as tx:
        with pytest.raises(InvalidInput, match="give token= to transaction"):
            tx.upsert(kv((2, 2)), token=("job", 2))
        tx.update({"v": "v + 1"})
    again = table.transaction(token=("job", 1))
    again.update({"v": "v + 1"})
    assert again.commit() == tx.committed
    assert pairs(table) == [(1, 2)]
    calls: list[Transaction] = []
    assert rowsieve.run_transaction(calls.append, table, token=("job", 1)) is None
    assert calls == []


USES = [
    pytest.param(lambda tx: tx.upsert(kv((1, 1))), id="upsert"),
    pytest.param(lambda tx: tx.scan(), id="scan"),
    pytest.param(lambda tx: tx.count(), id="count"),
    pytest.param(lambda tx: tx.delete("k = 1"), id="delete"),
    pytest.param(lambda tx: tx.commit(), id="commit"),
    pytest.param(lambda tx: tx.rollback(), id="rollback"),
    pytest.param(lambda tx: tx.savepoint("a"), id="savepoint"),
    pytest.param(lambda tx: tx.__enter__(), id="with"),
]


@pytest.mark.parametrize("use", USES)
def test_a_transaction_that_has_ended_is_not_used(use: Callable[[Transaction], Any]) -> None:
    table = keyed({"k": [1], "v": [1]})
    tx = table.transaction()
    tx.commit()
    with pytest.raises(TransactionEnded, match="the transaction was committed"):
        use(tx)


@pytest.mark.parametrize("use", USES)
def test_another_thread_does_not_use_it(use: Callable[[Transaction], Any]) -> None:
    table = keyed({"k": [1], "v": [1]})
    errors: list[BaseException] = []

    def run() -> None:
        try:
            use(tx)
        except TransactionEnded as error:
            errors.append(error)

    with table.transaction() as tx:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        tx.upsert(kv((2, 2)))
    assert "belongs to the thread" in str(errors[0])
    assert pairs(table) == [(1, 1), (2, 2)]


SCAN_READS = [
    pytest.param(lambda scan: scan.to_arrow(), id="to_arrow"),
    pytest.param(lambda scan: scan.to_batches(), id="to_batches"),
    pytest.param(lambda scan: scan.count(), id="count"),
    pytest.param(pa.table, id="stream"),
    pytest.param(lambda scan: scan.explain(analyze=True), id="analyze"),
]


@pytest.mark.parametrize("read", SCAN_READS)
def test_its_scan_is_not_read_after_its_end_nor_in_another_thread(
    read: Callable[[Any], Any],
) -> None:
    table = keyed({"k": [1], "v": [1]})
    errors: list[BaseException] = []

    def run() -> None:
        try:
            read(scan)
        except TransactionEnded as error:
            errors.append(error)

    with table.transaction() as tx:
        scan = tx.scan()
        read(scan)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert "belongs to the thread" in str(errors[0])
    with pytest.raises(TransactionEnded, match="the transaction was committed"):
        read(scan)


def test_a_forked_process_does_not_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed({"k": [1], "v": [1]})
    with table.transaction() as tx:
        other = os.getpid() + 1
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: other)
            with pytest.raises(TransactionEnded, match="forked"):
                tx.upsert(kv((2, 2)))
        tx.upsert(kv((3, 3)))
    assert pairs(table) == [(1, 1), (3, 3)]


def test_one_that_is_left_open_warns_and_commits_nothing() -> None:
    table = keyed({"k": [1], "v": [1]})

    def forget() -> None:
        table.transaction().upsert(kv((2, 2)))
        gc.collect()

    with pytest.warns(ResourceWarning, match="nothing was committed"):
        forget()
    assert table.refresh() == 1


def test_commits_of_others_that_it_did_not_read_are_no_conflict() -> None:
    table = keyed({"k": [1, 5], "v": [1, 5]})
    with table.transaction() as tx:
        assert tx.count("k = 5") == 1
        tx.upsert(kv((6, 6)))
        tx.upsert(kv((6, 7)))
        table.upsert(kv((2, 2), (6, 1)))
        table.compact()
        table.analyze()
        assert tx.count("k = 5") == 1
    assert pairs(table) == [(1, 1), (2, 2), (5, 5), (6, 7)]


def test_evidence_that_has_expired_is_no_evidence() -> None:  # invariant 12
    table = keyed({"k": [1], "v": [1]}, properties={"checkpoint_interval": "1"})
    tx = table.transaction()
    assert tx.count("k > 4") == 0
    tx.upsert(kv((6, 6)))
    for value in range(3):
        table.upsert(kv((2, value)))
    table.vacuum(retain_last=1, grace_s=0)
    with pytest.raises(TransactionConflict, match="commits since then have expired") as raised:
        tx.commit()
    assert (raised.value.table, raised.value.version) == (table.uri, 2)
    assert not tx.is_open
    assert pairs(table) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("make", [keyed, appended])
def test_a_commit_that_overtakes_is_checked_each_time(
    make: Callable[..., Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make({"k": [1], "v": [1]})
    write = "upsert" if table.key else "append"
    with table.transaction() as tx:
        assert tx.count("k > 10") == 0
        getattr(tx, write)(kv((5, 5)))
        overtake(table, monkeypatch, lambda other: getattr(other, write)(kv((2, 2))))
    assert pairs(table) == [(1, 1), (2, 2), (5, 5)]
    tx = table.transaction()
    assert tx.count("k > 10") == 0
    getattr(tx, write)(kv((6, 6)))
    overtake(table, monkeypatch, lambda other: getattr(other, write)(kv((20, 2))))
    with pytest.raises(CommitConflict, match=r'version 4.*"k" > 10'):
        tx.commit()
    assert pairs(table) == [(1, 1), (2, 2), (5, 5), (20, 2)]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda table: table.restore(0), id="restored"),
        pytest.param(lambda table: table.overwrite(kv((1, 1))), id="overwritten"),
        pytest.param(lambda table: table.add_column("w", "int64"), id="another column"),
        pytest.param(lambda table: table.set_properties({"isolation": "snapshot"}), id="property"),
    ],
)
def test_what_changes_the_table_as_a_whole_conflicts(other: Callable[[Table], Any]) -> None:
    table = keyed({"k": [1], "v": [1]})
    tx = table.transaction()
    assert tx.count("k = 77") == 0
    tx.upsert(kv((2, 2)))
    other(table)
    with pytest.raises(CommitConflict, match="Run the transaction again"):
        tx.commit()
    assert not tx.is_open


@pytest.mark.parametrize("change", ["delete", "update", "overwrite"])
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_a_rewrite_of_parts_that_it_changes_is_a_conflict(change: str, isolation: Any) -> None:
    table = appended({"k": [1, 2], "v": [1, 2]})
    table.append(kv((3, 3)))
    tx = table.transaction(isolation=isolation)
    changes: dict[str, Callable[[], Any]] = {
        "delete": lambda: tx.delete("k = 1"),
        "update": lambda: tx.update({"v": "v + 1"}, where="k = 1"),
        "overwrite": lambda: tx.overwrite(kv((9, 9))),
    }
    changes[change]()
    table.compact()
    with pytest.raises(TransactionConflict, match="version 3") as raised:
        tx.commit()
    assert raised.value.version == 3
    assert pairs(table) == [(1, 1), (2, 2), (3, 3)]


def test_a_differential_table_is_read_in_a_transaction() -> None:
    table = differential()
    table.append_updates(updates((1, "a", 0, 1), (2, "b", 0, 2)), upper=1)
    with table.transaction() as tx:
        table.append_updates(updates((3, "c", 1, 1)), upper=2)
        assert sums(tx) == {(1, "a"): 1, (2, "b"): 2}
        assert tx.count("k = 1") == 1
        with pytest.raises(UnsupportedOperation, match="upsert: the table is differential"):
            tx.upsert(kv((1, 1)))
    assert table.refresh() == 2


@pytest.mark.parametrize("make", [keyed, appended])
def test_without_reads_a_transaction_goes_on_top_of_an_overwrite(
    make: Callable[..., Table],
) -> None:
    table = make({"k": [1], "v": [1]})
    tx = table.transaction()
    getattr(tx, "upsert" if table.key else "append")(kv((2, 2)))
    rowsieve.open_table(table.uri).overwrite(kv((7, 7)))
    tx.commit()
    assert pairs(table) == [(2, 2), (7, 7)]


def test_a_table_that_is_dropped_under_it_is_not_there() -> None:
    from rowsieve import Catalog

    catalog = Catalog(fresh_uri())
    table = catalog.create_table("db.t", kv((1, 1)), ["k"])
    tx = table.transaction()
    tx.upsert(kv((2, 2)))
    catalog.drop_table("db.t", purge=True)
    with pytest.raises(TableNotFound):
        tx.commit()


def test_run_transaction_runs_again_after_a_conflict() -> None:
    table = keyed({"k": [1], "v": [1]})
    attempts: list[int] = []

    def add(tx: Transaction) -> int:
        (value,) = tx.to_arrow("k = 1").column("v").to_pylist()
        if not attempts:
            table.upsert(kv((1, 10)))
        attempts.append(value)
        tx.upsert(kv((1, value + 1)))
        return int(value)

    assert rowsieve.run_transaction(add, table) == 10
    assert attempts == [1, 10]
    assert pairs(table) == [(1, 11)]


def test_run_transaction_ends_at_its_limit() -> None:
    table = keyed({"k": [1], "v": [1]})

    def lose(tx: Transaction) -> None:
        tx.update({"v": "v + 1"})
        table.upsert(kv((1, 1)))

    with pytest.raises(CommitConflict, match="retry_timeout_s=0"):
        rowsieve.run_transaction(lose, table, retry_timeout_s=0)


def test_a_second_table_needs_snapshot_isolation() -> None:
    from rowsieve.storage.log.conflicts import Isolation
    from rowsieve.transactions.open_transaction import OpenTransaction, TransactionOptions

    one, two = keyed({"k": [1], "v": [1]}), keyed({"k": [2], "v": [2]})
    strict = OpenTransaction(TransactionOptions())
    strict.join(one.handle)
    with pytest.raises(UnsupportedOperation, match="reads and changes one table"):
        strict.join(two.handle)
    strict.rollback()
    loose = OpenTransaction(TransactionOptions(Isolation.SNAPSHOT))
    handles = [Table(loose.join(each.handle)) for each in (one, two)]
    handles[0].upsert(kv((2, 2)))
    assert pairs(handles[1]) == [(2, 2)]
    handles[1].upsert(kv((3, 3)))
    with pytest.raises(UnsupportedOperation, match="it changed 2 tables"):
        loose.commit()
    assert pairs(one) == [(1, 1)]
