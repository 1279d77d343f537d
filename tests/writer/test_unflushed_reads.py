"""Reads through a table with an open writer see what it acknowledged; other processes do not."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from datafusion import SessionContext as PlainContext

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext
from tests.writer.test_writer import NEVER, SCHEMA, rows_of

WHERE = "name = 'odd'"


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(tmp_path / "t", SCHEMA, key=["id"])


def seen(table: rs.Table) -> dict[int, Any]:
    rows = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["name"] for row in rows}


def check_every_reader(table: rs.Table, context: SessionContext, expected: dict[int, Any]) -> None:
    """Every reader of the process gives these rows, whole and by conditions on key and value."""
    assert seen(table) == expected
    assert table.count() == len(expected)
    odd = sorted(key for key, name in expected.items() if name == "odd")
    assert table.scan(WHERE, order_by_key=True).to_arrow()["id"].to_pylist() == odd
    assert table.count(WHERE) == len(odd)
    for key in (0, 3, 11, 500):
        found = table.scan(f"id = {key}").to_arrow()["name"].to_pylist()
        assert found == ([expected[key]] if key in expected else [])
    first = sorted(expected)[:3]
    assert table.scan(order_by_key=True, limit=3).to_arrow()["id"].to_pylist() == first
    assert table.head(3)["id"].to_pylist() == first
    data = table.to_dataset()
    assert data.count_rows() == len(expected)
    assert sorted(data.to_table(filter=pads.field("name") == "odd")["id"].to_pylist()) == odd
    answer = context.sql(f"SELECT id FROM t WHERE {WHERE} ORDER BY id").to_pydict()["id"]
    assert answer == odd
    count = context.sql("SELECT count(*) AS n FROM t").to_pydict()["n"]
    assert count == [len(expected)]
    twice = context.sql("SELECT a.id FROM t a JOIN t b ON a.id = b.id AND a.name = b.name")
    names = [name for name in expected.values() if name is not None]
    assert twice.count() == len(names)
    plain = PlainContext()
    table.refresh()
    plain.register_table("t", table)
    assert plain.sql("SELECT id FROM t").count() == len(expected)


@pytest.mark.parametrize("seed", range(4))
def test_every_reader_sees_what_is_acknowledged(table: rs.Table, tmp_path: Path, seed: int) -> None:
    draws, expected = random.Random(seed), dict[int, Any]()
    committed = dict[int, Any]()
    context = SessionContext()
    context.register_table("t", table)
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=NEVER) as writer:
        for step in range(25):
            keys = draws.sample(range(12), draws.randint(1, 4))
            match draws.choice(("upsert", "upsert", "delete", "flush", "direct", "read")):
                case "upsert":
                    name = draws.choice(("odd", f"step {step}", None))
                    writer.upsert([{"id": key, "name": name} for key in keys]).result()
                    expected.update(dict.fromkeys(keys, name))
                case "delete":
                    writer.delete(keys={"id": keys}).result()
                    expected = {k: v for k, v in expected.items() if k not in keys}
                case "flush":
                    writer.flush()
                    committed = dict(expected)
                case "direct":
                    table.delete(f"id = {keys[0]}")
                    expected.pop(keys[0], None)
                    committed = dict(expected)
                case "read":
                    check_every_reader(table, context, expected)
            assert rows_of(table) == committed
        check_every_reader(table, context, expected)
    check_every_reader(table, context, expected)
    assert rows_of(table) == expected


def test_an_append_table_shows_its_unflushed_rows(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", SCHEMA)
    table.append([{"id": 1, "name": "a"}])
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=NEVER) as writer:
        writer.append([{"id": 1, "name": "a"}]).result()
        assert table.scan().to_arrow()["id"].to_pylist() == [1, 1]
        assert table.count("name = 'a'") == 2
        writer.flush()
        assert table.count() == 2
        writer.append([{"id": 2}]).result()
        assert table.count() == 3
        table.delete("id = 1")
        assert table.count() == 1


def test_late_events_are_not_shown(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("lsn", pa.int64())])
    table = rs.create_table(tmp_path / "t", schema, key=["id"], sequence=["lsn"])
    table.upsert([{"id": 1, "name": "stored", "lsn": 10}, {"id": 2, "name": "stored", "lsn": 10}])
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=NEVER) as writer:
        writer.upsert({"id": 1, "name": "late", "lsn": 5})
        writer.upsert({"id": 2, "name": "newer", "lsn": 20})
        writer.delete(keys={"id": [1], "lsn": [4]}).result()
        assert seen(table) == {1: "stored", 2: "newer"}
        other = rs.open_table(table.uri)
        other.upsert([{"id": 2, "name": "newest", "lsn": 30}])
        assert seen(table) == {1: "stored", 2: "newest"}
    assert seen(table) == {1: "stored", 2: "newest"}


def test_another_process_changes_rows_below_the_memtable(table: rs.Table, tmp_path: Path) -> None:
    table.upsert([{"id": 1, "name": "old"}, {"id": 2, "name": "old"}])
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=NEVER) as writer:
        writer.upsert({"id": 1, "name": "ours"}).result()
        rs.open_table(table.uri).upsert([{"id": 1, "name": "theirs"}, {"id": 3, "name": "theirs"}])
        assert seen(table) == {1: "ours", 2: "old", 3: "theirs"}
        assert table.count("name = 'theirs'") == 1
        rs.open_table(table.uri).compact()
        assert seen(table) == {1: "ours", 2: "old", 3: "theirs"}


def test_a_constraint_of_another_process_proves_nothing_about_the_memtable(
    table: rs.Table, tmp_path: Path
) -> None:
    """A scan that trusted the constraint would skip the part."""
    writer = table.writer(wal_dir=tmp_path / "wal", flush_interval_s=NEVER)
    writer.upsert({"id": 1, "name": "long name"}).result()
    rs.open_table(table.uri).add_constraint("short", "length(name) < 5")
    assert table.scan("length(name) >= 5").to_arrow()["id"].to_pylist() == [1]
    with pytest.raises(rs.errors.WriterFailed, match="is violated"):
        writer.close()


def test_an_engine_keeps_its_version_while_memtables_are_flushed(
    table: rs.Table, tmp_path: Path
) -> None:
    context = PlainContext()
    context.register_table("t", table)
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=NEVER) as writer:
        writer.upsert({"id": 1, "name": "a"}).result()
        table.refresh()
        assert context.sql("SELECT * FROM t").count() == 1
        writer.upsert({"id": 2, "name": "b"}).result()
        writer._path.flush()  # in the background, as by time
        assert context.sql("SELECT * FROM t").count() == 1
        assert table.version == 0
        assert table.refresh() == 1
        assert context.sql("SELECT * FROM t").count() == 2


def test_statements_that_change_rows_see_the_memtable(table: rs.Table, tmp_path: Path) -> None:
    context = SessionContext()
    context.register_table("t", table)
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=NEVER) as writer:
        writer.upsert({"id": [1, 2], "name": ["a", "b"]}).result()
        context.sql("UPDATE t SET name = name || '!' WHERE id = 1")
        context.sql("INSERT INTO t SELECT id + 10, name FROM t")
        writer.upsert({"id": 2, "name": "last"}).result()
        context.sql("DELETE FROM t WHERE name = 'b'")
        assert seen(table) == {1: "a!", 2: "last", 11: "a!"}


def test_readers_never_miss_a_row_while_it_is_flushed(table: rs.Table, tmp_path: Path) -> None:
    missed, last = list[Any](), [0]
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            at_least = last[0]
            rows = table.scan().to_arrow()["id"].to_pylist()
            if len(rows) < at_least or sorted(rows) != list(range(len(rows))):
                missed.append((at_least, rows))

    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=0.005) as writer:
        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for number in range(150):
            writer.upsert({"id": number, "name": "a"}).result()
            last[0] = number + 1
        ended.set()
        for reader in readers:
            reader.join()
    assert missed == []


def test_a_forked_process_sees_commits(table: rs.Table, tmp_path: Path) -> None:
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=NEVER) as writer:
        writer.upsert({"id": 1, "name": "a"}).result()
        child = os.fork()
        if not child:
            os._exit(table.count())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert table.count() == 1


def test_what_reads_commits_first_commits_what_was_acknowledged(tmp_path: Path) -> None:
    """Copies, publications, leases and the change feed have what every other reader sees."""
    properties = {"row_versions": "kept"}
    context, expected = SessionContext(), dict[int, Any]()
    table = rs.create_table(tmp_path / "t", SCHEMA, key=["id"], properties=properties)
    context.register_table("t", table)

    def leased() -> dict[int, Any]:
        with table.lease() as pinned:
            return seen(pinned)

    def published() -> dict[int, Any]:
        table.publish("delta", tmp_path / "delta")
        assert rows_of(table) == expected
        return expected

    def listed(rows: Any) -> dict[int, Any]:
        return {row["id"]: row["name"] for row in rows.to_pylist()}

    reads: list[Callable[[], dict[int, Any]]] = [
        lambda: seen(table.clone(tmp_path / "copy")),
        leased,
        published,
        lambda: listed(table.changes(0).read_all()),
        lambda: listed(table.last_changed(0).read_all()),
        lambda: listed(context.sql("SELECT * FROM changes('t', 0)")),
        lambda: listed(context.sql("SELECT * FROM last_changed('t', 0)")),
        lambda: seen(table.tag("now")),
        lambda: seen(table.branch("next")),
    ]
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=NEVER) as writer:
        for number, read in enumerate(reads):
            expected[number] = f"row {number}"
            writer.upsert({"id": number, "name": expected[number]}).result()
            assert read() == expected, number
            assert rows_of(table) == expected


def test_reads_of_given_versions_commit_nothing(table: rs.Table, tmp_path: Path) -> None:
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=NEVER) as writer:
        writer.upsert({"id": 1, "name": "a"}).result()
        assert table.changes(0, 0).read_all().num_rows == 0
        with table.lease(version=0) as pinned:
            assert seen(pinned) == {}
        assert rows_of(table) == {}


def test_a_transaction_sees_what_a_writer_acknowledged_before_it(
    table: rs.Table, tmp_path: Path
) -> None:
    """What is acknowledged after it began counts as a commit of another one."""
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=NEVER) as writer:
        writer.upsert({"id": 1, "name": "a"}).result()
        with table.transaction() as tx:
            assert tx.to_arrow("id = 1")["name"].to_pylist() == ["a"]
            tx.update({"name": "name || '!'"}, where="id = 1")
            writer.upsert({"id": 2, "name": "b"}).result()
            assert tx.to_arrow("id = 1")["name"].to_pylist() == ["a!"]
            assert seen(table) == {1: "a", 2: "b"}
        assert seen(table) == rows_of(table) == {1: "a!", 2: "b"}
        transaction = table.transaction()
        transaction.update({"name": "name || '?'"}, where="id = 1")
        writer.upsert({"id": 1, "name": "newer"}).result()
        with pytest.raises(rs.errors.TransactionConflict):
            transaction.commit()
        assert seen(table) == {1: "newer", 2: "b"}
