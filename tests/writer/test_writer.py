"""The writer with a write-ahead log: what it acknowledges, commits and recovers."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import (
    CommitConflict,
    ConstraintViolation,
    CorruptData,
    InvalidInput,
    KeyViolation,
    SchemaMismatch,
    StoreError,
    UnsupportedOperation,
    WalLocked,
    WriterClosed,
    WriterFailed,
    WriterFenced,
)
from rowsieve.objects import LocalStore
from rowsieve.writer.logged import LoggedPath
from rowsieve.writer.table_writer import Writer
from rowsieve.writer.wal import Wal
from tests.faults.files import FileCalls
from tests.faults.stores import EveryStore
from tests.faults.vocabulary import Fault

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
NEVER = 3600.0


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(tmp_path / "t", SCHEMA, key=["id"])


@pytest.fixture
def wal_dir(tmp_path: Path) -> Path:
    return tmp_path / "wal"


def rows_of(table: rs.Table) -> dict[int, Any]:
    """The committed rows, as another process sees them."""
    rows = rs.open_table(table.uri).scan(order_by_key=True).to_arrow().to_pylist()
    return {row["id"]: row["name"] for row in rows}


def path_of(writer: Writer) -> LoggedPath:
    assert isinstance(writer._path, LoggedPath)
    return writer._path


def abandon(writer: Writer) -> None:
    """Let the writer end as its process would by kill -9, but for its threads."""
    path_of(writer)._wal.abandon()
    writer._compacting.stop()
    writer._intake.fail(WriterFailed("killed"))
    writer._path.stop()
    for thread in writer._threads:
        thread.join()
    writer._handle.writer = None


def test_changes_are_committed_in_their_order(table: rs.Table, wal_dir: Path) -> None:
    with table.writer(wal_dir=wal_dir, flush_interval_s=NEVER) as writer:
        acknowledged = [
            writer.upsert({"id": 1, "name": "a"}),
            writer.upsert([{"id": 2, "name": "b"}, {"id": 3, "name": "c"}]),
            writer.delete(keys=[{"id": 1}]),
            writer.upsert(pa.table({"id": [2], "name": ["again"]})),
            writer.delete(keys={"id": 3}),
            writer.upsert({"id": [3, 4], "name": ["d", "e"]}),
        ]
        sequences = [each.result() for each in acknowledged]
        assert sequences == sorted(sequences)
        assert rows_of(table) == {}
        assert writer.flush() == 1
        assert rows_of(table) == {2: "again", 3: "d", 4: "e"}
    assert [commit.operation for commit in table.history()] == ["apply", "create"]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param({"id": 1, "name": 5}, SchemaMismatch, id="type"),
        pytest.param({"id": None, "name": "x"}, KeyViolation, id="null-key"),
        pytest.param({"id": 1}, SchemaMismatch, id="column"),
        pytest.param([{"id": 1, "name": "a"}, {"id": 1, "name": "b"}], KeyViolation, id="twice"),
        pytest.param(5, InvalidInput, id="kind"),
        pytest.param({"id": 2**70, "name": "x"}, InvalidInput, id="range"),
    ],
)
def test_bad_data_fails_its_own_call_only(
    table: rs.Table, wal_dir: Path, data: Any, error: type[Exception]
) -> None:
    with table.writer(wal_dir=wal_dir) as writer:
        calls = [writer.upsert({"id": 10, "name": "before"}), writer.upsert(data)]
        calls.append(writer.upsert({"id": 11, "name": "after"}))
        with pytest.raises(error):
            calls[1].result()
        assert isinstance(calls[1].exception(), error)
        assert {calls[0].result(), calls[2].result()} <= {1, 2}
    assert rows_of(table) == {10: "before", 11: "after"}


def test_a_row_may_be_changed_by_its_caller_after_the_call(table: rs.Table, wal_dir: Path) -> None:
    row = {"id": 0, "name": "same"}
    with table.writer(wal_dir=wal_dir) as writer:
        for number in range(5):
            row["id"] = number
            writer.upsert(row)
    assert rows_of(table) == dict.fromkeys(range(5), "same")


def test_constraints_are_checked_before_the_acknowledgement(table: rs.Table, wal_dir: Path) -> None:
    table.add_constraint("short", "length(name) < 5")
    with table.writer(wal_dir=wal_dir) as writer:
        good, bad = (
            writer.upsert({"id": 1, "name": "ok"}),
            writer.upsert({"id": 2, "name": "x" * 9}),
        )
        good.result()
        with pytest.raises(ConstraintViolation):
            bad.result()
    assert rows_of(table) == {1: "ok"}


def test_an_append_table_has_each_row_once(tmp_path: Path, wal_dir: Path) -> None:
    table = rs.create_table(tmp_path / "log", SCHEMA)
    with table.writer(wal_dir=wal_dir, flush_interval_s=NEVER) as writer:
        writer.append([{"id": 1, "name": "a"}])
        writer.append({"id": [1, 2], "name": ["a", "b"]}).result()
        with pytest.raises(UnsupportedOperation, match="no key"):
            writer.upsert([{"id": 1, "name": "a"}])
        abandon(writer)
    with table.writer(wal_dir=wal_dir) as writer:
        writer.append([{"id": 3}])
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 1, 2, 3]
    with table.writer(wal_dir=wal_dir):
        pass
    assert table.count() == 4


def test_append_is_refused_for_a_table_with_a_key(table: rs.Table, wal_dir: Path) -> None:
    with table.writer(wal_dir=wal_dir) as writer, pytest.raises(UnsupportedOperation, match="key"):
        writer.append({"id": 1, "name": "a"})


def test_what_was_acknowledged_outlives_its_writer(table: rs.Table, wal_dir: Path) -> None:
    writer = table.writer(wal_dir=wal_dir, flush_interval_s=NEVER)
    writer.upsert({"id": 1, "name": "flushed"}).result()
    writer.flush()
    writer.upsert({"id": 2, "name": "logged"}).result()
    writer.delete(keys={"id": 1}).result()
    abandon(writer)
    assert rows_of(table) == {1: "flushed"}
    with table.writer(wal_dir=wal_dir, recovery="strict"):
        pass  # recovers, and writes nothing else
    assert rows_of(table) == {2: "logged"}
    versions = table.version
    with table.writer(wal_dir=wal_dir):
        pass
    assert table.refresh() == versions  # nothing is committed twice


def test_a_commit_whose_answer_was_lost_is_not_repeated(table: rs.Table, wal_dir: Path) -> None:
    """The process dies after the flush, before it forgets the log's files."""
    writer = table.writer(wal_dir=wal_dir, flush_interval_s=NEVER)
    writer.upsert({"id": 1, "name": "logged"}).result()
    copy = wal_dir.with_name("copy")
    shutil.copytree(wal_dir, copy)
    writer.flush()
    abandon(writer)
    other = rs.open_table(table.uri)
    other.upsert([{"id": 1, "name": "newer"}])
    shutil.rmtree(wal_dir)
    copy.rename(wal_dir)
    with table.writer(wal_dir=wal_dir):
        pass
    assert rows_of(table) == {1: "newer"}


def test_records_that_a_fenced_writer_committed_are_not_committed_again(
    tmp_path: Path, wal_dir: Path
) -> None:
    table = rs.create_table(tmp_path / "log", SCHEMA)
    first = table.writer(wal_dir=wal_dir, flush_interval_s=NEVER)
    first.append([{"id": 1, "name": "a"}]).result()
    (wal_dir / "lock").unlink()
    with rs.open_table(table.uri).writer(wal_dir=wal_dir, flush_interval_s=NEVER) as second:
        second.append([{"id": 2, "name": "b"}]).result()
        first.flush()  # the second one has this record, too
        with pytest.raises(WriterFenced):
            first.append([{"id": 3, "name": "c"}]).result()
        with pytest.raises(WriterFenced):
            first.close()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_an_older_copy_of_the_log_is_refused(table: rs.Table, wal_dir: Path) -> None:
    writer = table.writer(wal_dir=wal_dir, flush_interval_s=NEVER)
    shutil.copytree(wal_dir, wal_dir.with_name("copy"))
    writer.upsert({"id": 1, "name": "a"}).result()
    writer.close()
    with pytest.raises(CorruptData, match="an older copy"):
        table.writer(wal_dir=wal_dir.with_name("copy"))


def test_the_log_of_a_table_that_was_created_again(tmp_path: Path, wal_dir: Path) -> None:
    for attempt in range(2):
        table = rs.create_table(tmp_path / "t", SCHEMA, key=["id"])
        if attempt:
            with pytest.raises(InvalidInput, match="created again"):
                table.writer(wal_dir=wal_dir)
        else:
            table.writer(wal_dir=wal_dir).close()
            shutil.rmtree(tmp_path / "t")


def test_two_writers_on_one_log(table: rs.Table, wal_dir: Path) -> None:
    with table.writer(wal_dir=wal_dir):
        with pytest.raises(WalLocked):
            rs.open_table(table.uri).writer(wal_dir=wal_dir)
        with pytest.raises(UnsupportedOperation, match="open writer already"):
            table.writer(wal_dir=wal_dir.with_name("other"))
        with rs.open_table(table.uri).writer(wal_dir=wal_dir.with_name("other")) as second:
            second.upsert({"id": 1, "name": "other log"})
    assert rows_of(table) == {1: "other log"}


def test_a_closed_writer_takes_nothing(table: rs.Table, wal_dir: Path) -> None:
    writer = table.writer(wal_dir=wal_dir)
    writer.close()
    writer.close()
    with pytest.raises(WriterClosed, match="the writer is closed"):
        writer.upsert({"id": 1, "name": "a"})
    with pytest.raises(WriterClosed):
        writer.flush()


def test_a_forked_process_cannot_use_the_writer(table: rs.Table, wal_dir: Path) -> None:
    with table.writer(wal_dir=wal_dir, flush_interval_s=NEVER) as writer:
        writer.upsert({"id": 1, "name": "parent"}).result()
        child = os.fork()
        if not child:
            code = 1
            try:
                writer.upsert({"id": 2, "name": "child"})
            except WriterClosed:
                writer.close()
                code = 0
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        writer.upsert({"id": 3, "name": "parent"}).result()
    assert rows_of(table) == {1: "parent", 3: "parent"}


@pytest.mark.parametrize("fault", [Fault.NO_SPACE, Fault.IO_ERROR], ids=lambda fault: fault.name)
def test_a_failed_write_or_sync_ends_the_writer(
    table: rs.Table, wal_dir: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    writer = table.writer(wal_dir=wal_dir, flush_interval_s=NEVER)
    writer.upsert({"id": 1, "name": "durable"}).result()
    name = "pwrite" if fault is Fault.NO_SPACE else "fsync"
    with monkeypatch.context() as patch:
        FileCalls(patch, fault, 0, [name])
        waiting = [writer.upsert({"id": number, "name": "lost"}) for number in range(2, 9)]
        for each in waiting:
            with pytest.raises(WriterFailed, match="write-ahead log"):
                each.result()
    with pytest.raises(WriterFailed):
        writer.upsert({"id": 9, "name": "never"})
    with pytest.raises(WriterFailed):
        writer.flush()
    with pytest.raises(WriterFailed):
        writer.close()
    with table.writer(wal_dir=wal_dir):
        pass
    recovered = rows_of(table)
    assert recovered.pop(1) == "durable"
    assert set(recovered.values()) <= {"lost"}


def test_a_commit_that_fails_for_a_while(
    table: rs.Table, wal_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has no space left: callers wait at `max_buffered`, and go on once it has."""
    writer = table.writer(wal_dir=wal_dir, flush_interval_s=NEVER, max_buffered=3)
    with monkeypatch.context() as patch:
        EveryStore(patch, LocalStore).meet_where(Fault.NO_SPACE, "put_new")
        for number in range(3):
            writer.upsert({"id": number, "name": "a"}).result()
        with pytest.raises(StoreError):
            writer.flush()
        late = threading.Thread(target=writer.upsert, args=({"id": 3, "name": "a"},))
        late.start()
        late.join(0.05)
        assert late.is_alive()
    late.join()
    writer.close()
    assert rows_of(table) == dict.fromkeys(range(4), "a")


def test_changes_of_the_table_take_their_turn(table: rs.Table, wal_dir: Path) -> None:
    with table.writer(wal_dir=wal_dir, flush_interval_s=NEVER) as writer:
        writer.upsert({"id": 1, "name": "first"})
        writer.upsert({"id": 2, "name": "first"}).result()
        table.update({"name": "name || '!'"}, where="id = 1")
        writer.upsert({"id": 2, "name": "last"})
        table.delete("name = 'first'")
    assert rows_of(table) == {1: "first!", 2: "last"}


def test_columns_change_while_a_writer_is_open(table: rs.Table, wal_dir: Path) -> None:
    with table.writer(wal_dir=wal_dir, flush_interval_s=NEVER) as writer:
        writer.upsert({"id": 1, "name": "a"}).result()
        table.add_column("more", pa.int64(), default=7)
        table.rename_column("name", "title")
        writer.upsert({"id": 2, "title": "b", "more": 8}).result()
        other = rs.open_table(table.uri)
        other.drop_column("title")
        other.add_column("title", pa.int64())
        writer.flush()
    rows = table.scan(order_by_key=True).to_arrow().to_pylist()
    assert rows == [{"id": 1, "more": 7, "title": None}, {"id": 2, "more": 8, "title": None}]


def test_records_of_a_log_fit_the_columns_that_the_table_has_now(
    table: rs.Table, wal_dir: Path
) -> None:
    writer = table.writer(wal_dir=wal_dir, flush_interval_s=NEVER)
    writer.upsert({"id": 1, "name": "a"}).result()
    writer.delete(keys={"id": 2}).result()
    abandon(writer)
    other = rs.open_table(table.uri)
    other.upsert([{"id": 2, "name": "b"}])
    other.rename_column("id", "number")
    other.add_column("more", pa.int64(), default=7)
    with other.writer(wal_dir=wal_dir) as again:
        again.upsert({"number": 3, "name": "c", "more": 9})
    rows = other.scan(order_by_key=True).to_arrow().to_pylist()
    assert rows == [
        {"number": 1, "name": "a", "more": 7},
        {"number": 3, "name": "c", "more": 9},
    ]


def test_a_table_that_combines_values_refuses_upserts(tmp_path: Path, wal_dir: Path) -> None:
    table = rs.create_table(
        tmp_path / "sums",
        pa.schema([("id", pa.int64()), ("visits", pa.int64())]),
        key=["id"],
        properties={"combine": "visits: sum"},
    )
    with table.writer(wal_dir=wal_dir) as writer:
        with pytest.raises(UnsupportedOperation, match="combines values"):
            writer.upsert({"id": 1, "visits": 1})
        writer.delete(keys={"id": 1}).result()


def test_a_table_that_keeps_history_refuses_changes_before_they_are_acknowledged(
    tmp_path: Path, wal_dir: Path
) -> None:
    """No commit of them would succeed, and the writer would be dead with what is in its log."""
    names = ("id", "begin", "end")
    table = rs.create_table(
        tmp_path / "history", pa.schema([(name, pa.int64()) for name in names]), key=names[:2]
    )
    events = [{"op": "u", "at": 10, "id": 1}]
    table.apply_changes(events, op="op", sequence="at", history=("begin", "end"))
    with table.writer(wal_dir=wal_dir) as writer:
        row = {"id": 2, "begin": 1, "end": None}
        with pytest.raises(UnsupportedOperation, match="history of its rows in"):
            writer.upsert(row)
        with pytest.raises(UnsupportedOperation, match="history of its rows in"):
            writer.delete(keys=row)
    assert table.count() == 1


@pytest.mark.parametrize("sync", ["interval", "off"])
def test_other_ways_to_sync(table: rs.Table, wal_dir: Path, sync: Any) -> None:
    with table.writer(
        wal_dir=wal_dir, sync=sync, sync_interval_s=0.01, flush_interval_s=NEVER
    ) as writer:
        for number in range(20):
            writer.upsert({"id": number, "name": "a"}).result()
        assert writer.flush() == 1
        assert path_of(writer)._durable == path_of(writer)._wal.last_sequence
        writer.upsert({"id": 99, "name": "b"})
    assert len(rows_of(table)) == 21


def test_a_flush_by_rows_bytes_and_time(tmp_path: Path) -> None:
    for name, settings in {
        "rows": {"flush_rows": 2, "flush_interval_s": NEVER},
        "bytes": {"flush_bytes": 1, "flush_interval_s": NEVER},
        "time": {"flush_interval_s": 0.001},
    }.items():
        table = rs.create_table(tmp_path / name, SCHEMA, key=["id"])
        with table.writer(wal_dir=tmp_path / f"wal-{name}", **settings) as writer:  # type: ignore[arg-type]
            writer.upsert([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]).result()
            while writer._intake.buffered:
                threading.Event().wait(0.002)
            assert rows_of(table) == {1: "a", 2: "b"}


def test_coroutines_share_a_writer(table: rs.Table, wal_dir: Path) -> None:
    async def story() -> list[int]:
        with table.writer(wal_dir=wal_dir, max_buffered=5, flush_interval_s=0.001) as writer:
            ups = [writer.upsert_async({"id": number, "name": "a"}) for number in range(40)]
            done = await asyncio.gather(*ups)
            done.append(await writer.delete_async(keys=[{"id": 3}]))
            with pytest.raises(SchemaMismatch):
                await writer.upsert_async({"id": 1, "name": 5})
            return done

    sequences = asyncio.run(story())
    assert len(sequences) == 41
    assert sorted(rows_of(table)) == [number for number in range(40) if number != 3]


def test_threads_share_a_writer(table: rs.Table, wal_dir: Path) -> None:
    with table.writer(wal_dir=wal_dir, flush_interval_s=0.01) as writer:

        def write(first: int) -> None:
            for number in range(first, 400, 8):
                writer.upsert({"id": number, "name": str(number)}).result()
                if number % 5 == 0:
                    writer.delete(keys={"id": number}).result()

        threads = [threading.Thread(target=write, args=(first,)) for first in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert rows_of(table) == {number: str(number) for number in range(400) if number % 5}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"durability": "wal"}, "needs wal_dir="),
        ({"durability": "commit", "wal_dir": "x"}, "there is no log"),
        ({"wal_dir": "x", "flush_rows": 0}, "flush_rows must be above 0"),
        ({"wal_dir": "x", "sync": "sometimes"}, "sync"),
    ],
)
def test_settings_that_are_refused(
    table: rs.Table, settings: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        table.writer(**settings)


def test_a_table_at_a_version_has_no_writer(table: rs.Table, wal_dir: Path) -> None:
    with pytest.raises(UnsupportedOperation, match="read-only"):
        rs.open_table(table.uri, version=0).writer(wal_dir=wal_dir)
    assert not wal_dir.exists()


def test_a_writer_compacts_what_is_due(table: rs.Table, wal_dir: Path) -> None:
    with table.writer(wal_dir=wal_dir, flush_interval_s=NEVER, compact=True) as writer:
        for number in range(40):
            writer.upsert(
                [{"id": number, "name": "a"}, {"id": 0, "name": str(number)}][number == 0 :]
            )
            writer.flush()
        while not any(commit.operation == "compact" for commit in table.history()):
            threading.Event().wait(0.01)
        writer.upsert({"id": 99, "name": "unflushed"}).result()
        table.refresh()
        assert table.to_dataset().count_rows() == 41
    rows = rows_of(table)
    assert (rows[0], len(rows)) == ("39", 41)


# Group commit


def test_calls_of_threads_are_one_commit(table: rs.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    with table.writer(durability="commit") as writer:
        writer._intake.pause()
        calls = [writer.upsert({"id": number, "name": "a"}) for number in range(20)]
        calls.append(writer.delete(keys=[{"id": 7}]))
        bad = writer.upsert({"id": 1, "name": 5})
        assert not any(call.done() for call in calls)
        writer._intake.resume()
        assert {call.result() for call in calls} == {1}
        with pytest.raises(SchemaMismatch):
            bad.result()
        assert sorted(rows_of(table)) == [number for number in range(20) if number != 7]


def test_a_commit_that_fails_fails_its_calls(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with table.writer(durability="commit") as writer:
        with monkeypatch.context() as patch:

            def conflict(*_: Any) -> Any:
                raise CommitConflict("no")

            patch.setattr("rowsieve.writer.committed.commit_changes", conflict)
            with pytest.raises(CommitConflict):
                writer.upsert({"id": 1, "name": "a"}).result()
        writer.upsert({"id": 2, "name": "b"}).result()
        table.delete("id = 2")
    assert rows_of(table) == {}


def test_a_group_commit_follows_the_columns_of_the_table(table: rs.Table) -> None:
    with table.writer(durability="commit") as writer:
        rs.open_table(table.uri).add_column("more", pa.int64(), default=7)
        writer.upsert({"id": 1, "name": "a"}).result()
        writer.upsert({"id": 2, "name": "b", "more": 1}).result()
    assert table.scan(order_by_key=True).to_arrow()["more"].to_pylist() == [7, 1]


def test_the_log_is_small_after_a_flush(table: rs.Table, wal_dir: Path) -> None:
    with table.writer(wal_dir=wal_dir, flush_interval_s=NEVER) as writer:
        for number in range(50):
            writer.upsert({"id": number, "name": "a" * 1000})
    with table.writer(wal_dir=wal_dir):
        pass
    assert sum(path.stat().st_size for path in wal_dir.iterdir()) < 3000
    wal = Wal(wal_dir, table.detail()["uuid"], b"{}")
    assert wal.recovered == []
    wal.close()


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = {*threading.enumerate()}  # other tests may leave a writer open
    yield
    names = [thread.name for thread in threading.enumerate() if thread not in before]
    assert not [name for name in names if name.startswith("rowsieve-writer")]
