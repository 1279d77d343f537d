"""Every way to write keeps the order of events, or is refused by name before it commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.errors import UnsupportedOperation
from rowsieve.providers.datafusion import SessionContext
from tests.changes.event_order.test_event_order import SCHEMA, apply, ordered, rows
from tests.small_tables import meddled
from tests.storage.sharded import tiny_shards


def sql(table: Table, statement: str) -> None:
    session = SessionContext()
    session.register_table("t", table)
    session.sql(statement).collect()


START = ((1, 10, "a"), (2, 50, "b"), (3, 50, None))

STATEMENTS: list[Any] = [
    pytest.param(
        "INSERT INTO t VALUES (3, 40, 'late'), (4, 1, 'new')",
        [(1, 10, "a"), (2, 50, "b"), (4, 1, "new")],
        id="insert below a delete",
    ),
    pytest.param(
        "INSERT INTO t VALUES (3, 60, 'new')",
        [(1, 10, "a"), (2, 50, "b"), (3, 60, "new")],
        id="insert above a delete",
    ),
    pytest.param("UPDATE t SET v = 'u' WHERE id = 1", [(1, 10, "u"), (2, 50, "b")], id="update"),
    pytest.param("UPDATE t SET lsn = 49, v = 'u' WHERE id = 2", [(1, 10, "a"), (2, 50, "b")],
                 id="update to an earlier sequence"),
    pytest.param("UPDATE t SET lsn = lsn + 1 WHERE id = 2", [(1, 10, "a"), (2, 51, "b")],
                 id="update to a later sequence"),
    pytest.param("DELETE FROM t WHERE id = 2", [(1, 10, "a")], id="delete"),
    pytest.param(
        "MERGE INTO t USING (VALUES (1, 9, 'late'), (2, 60, 'new'), (3, 49, 'late')) AS s (i, l, w)"
        " ON t.id = s.i WHEN MATCHED THEN UPDATE SET lsn = l, v = w"
        " WHEN NOT MATCHED THEN INSERT (id, lsn, v) VALUES (i, l, w)",
        [(1, 10, "a"), (2, 60, "new")],
        id="merge",
    ),
    pytest.param(
        "MERGE INTO t USING (VALUES (2)) AS s (i) ON t.id = s.i WHEN MATCHED THEN DELETE",
        [(1, 10, "a")],
        id="merge that deletes",
    ),
    pytest.param("TRUNCATE TABLE t", [], id="truncate"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "expected"), STATEMENTS)
def test_statements_obey_the_order(statement: str, expected: list[Any]) -> None:
    table = ordered(*START)
    sql(table, statement)
    assert rows(table) == expected


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        ("UPDATE t SET lsn = 49 WHERE id = 2", 0),
        ("UPDATE t SET lsn = id * 24", 1),
        ("INSERT INTO t VALUES (3, 40, 'late'), (4, 1, 'new')", 1),
        (
            (
                "INSERT INTO t VALUES (2, 49, 'late') "
                "ON CONFLICT (id) DO UPDATE SET lsn = excluded.lsn"
            ),
            0,
        ),
        (
            (
                "MERGE INTO t USING (VALUES (1, 9), (2, 60)) AS s (i, l) ON t.id = s.i "
                "WHEN MATCHED THEN UPDATE SET lsn = l"
            ),
            1,
        ),
    ],
)
def test_late_rows_of_statements_are_not_counted(statement: str, count: int) -> None:
    session = SessionContext()
    session.register_table("t", ordered(*START))
    assert session.sql(statement).to_pylist() == [{"count": count}]


def test_a_delete_by_sql_has_the_sequence_of_the_row() -> None:
    for statement in (
        "DELETE FROM t WHERE id = 2",
        "MERGE INTO t USING (VALUES (2)) AS s (i) ON t.id = s.i WHEN MATCHED THEN DELETE",
    ):
        table = ordered(*START)
        sql(table, statement)
        assert apply(table, (2, 49, "late"), (3, 49, "late")) == 2
        assert apply(table, (2, 51, "new")) == 0
        assert rows(table) == [(1, 10, "a"), (2, 51, "new")]


def test_an_emptied_table_takes_every_event() -> None:
    table = ordered(*START)
    sql(table, "TRUNCATE TABLE t")
    assert apply(table, (1, 1, "old"), (3, 1, None)) == 0
    assert rows(table) == [(1, 1, "old")]


def test_an_append_is_refused() -> None:
    with pytest.raises(UnsupportedOperation, match="use upsert"):
        ordered().append(pa.table({"id": [1], "lsn": [1], "v": ["a"]}))


def test_new_columns_and_rows_come_in_order() -> None:
    table = ordered(*START)
    data = pa.table({"id": [1], "lsn": [11], "v": ["b"], "w": [1]})
    assert table.upsert(data, schema_mode="merge").rows_late == 0
    late = pa.table({"id": [1], "lsn": [9], "v": ["c"], "w": [1], "x": [1]})
    assert table.upsert(late, schema_mode="merge").rows_late == 1
    assert table.schema.names == ["id", "lsn", "v", "w"]  # a late change adds no column
    assert rows(table) == [(1, 11, "b"), (2, 50, "b")]


WRITERS: list[Any] = [
    pytest.param(lambda t: t.upsert([{"id": 1, "lsn": 20, "v": "ours"}]), id="upsert"),
    pytest.param(
        lambda t: t.upsert([{"id": 1, "lsn": 20, "v": "ours", "w": 1}], schema_mode="merge"),
        id="upsert with a new column",
    ),
    pytest.param(lambda t: apply(t, (1, 20, "ours")), id="apply_changes"),
    pytest.param(lambda t: apply(t, (1, 20, None)), id="a delete in a stream"),
    pytest.param(lambda t: t.delete(keys=[{"id": 1, "lsn": 20}]), id="delete by key"),
    pytest.param(
        lambda t: t.upsert([{"id": 1, "lsn": 20, "v": "ours"}], columns="given"), id="some columns"
    ),
]


@pytest.mark.parametrize("write", WRITERS)
def test_a_newer_version_that_is_committed_meanwhile_wins(write: Callable[[Table], Any]) -> None:
    table = ordered((1, 10, "a"))

    def meddle(number: int) -> None:
        if number == 0:
            apply(table, (1, 30, "theirs"))

    write(meddled(table, meddle))
    table.refresh()
    assert rows(table) == [(1, 30, "theirs")]


def test_an_older_version_that_is_committed_meanwhile_is_no_conflict() -> None:
    table = ordered((1, 10, "a"))
    tries: list[int] = []

    def meddle(number: int) -> None:
        tries.append(number)
        if number == 0:
            apply(table, (1, 20, "theirs"))

    assert apply(meddled(table, meddle), (1, 30, "ours")) == 0
    table.refresh()
    assert (tries, rows(table)) == ([0, 1], [(1, 30, "ours")])


def test_an_overwrite_that_is_committed_meanwhile_is_what_a_change_is_compared_with() -> None:
    table = ordered((1, 90, "a"), (2, 1, "b"))

    def meddle(number: int) -> None:
        if number == 0:
            table.overwrite([{"id": 1, "lsn": 50, "v": "o"}], where="id = 1")

    late = apply(meddled(table, meddle), (1, 70, "new"), (2, 2, "new"))
    table.refresh()
    assert (late, rows(table)) == (0, [(1, 70, "new"), (2, 2, "new")])


def test_files_are_not_placed_in_a_table_with_an_order(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA, ["id"], sequence=["lsn"])
    apply(table, *START)
    pq.write_table(pa.table({"id": [1], "lsn": [5], "v": ["late"]}, SCHEMA), tmp_path / "f.parquet")
    source = tmp_path / "f.parquet"
    with pytest.raises(UnsupportedOperation, match="upsert: the table has an event order"):
        catalog.call(f"CALL system.add_files(table => 'db.t', source => '{source}')")
    assert rows(table) == [(1, 10, "a"), (2, 50, "b")]


def test_a_commit_that_a_restore_has_undone_is_repeated_in_order() -> None:
    table = ordered((1, 10, "a"))
    version = table.version
    apply(table, (1, 30, "b"), (2, 30, None))
    table.restore(version)
    table.cherry_pick(version + 1)
    assert rows(table) == [(1, 30, "b")]
    assert apply(table, (1, 29, "late"), (2, 29, "late")) == 2


UPKEEP: list[Any] = [
    pytest.param(lambda table: table.compact(), id="compact"),
    pytest.param(lambda table: table.maintain(), id="maintain"),
    pytest.param(lambda table: table.build_deletion_vectors(), id="vectors"),
    pytest.param(lambda table: table.analyze(rewrite_all=True), id="analyze"),
    pytest.param(lambda table: table.vacuum(retain_last=1, grace_s=0), id="vacuum"),
    pytest.param(lambda table: table.set_properties({"visibility": "eager"}), id="eager"),
]


@pytest.mark.parametrize("upkeep", UPKEEP)
def test_upkeep_keeps_the_order(upkeep: Callable[[Table], Any]) -> None:
    table = ordered(*START)
    apply(table, (1, 20, "c"), (4, 5, None))
    upkeep(table)
    assert apply(table, (1, 19, "l"), (2, 49, "l"), (3, 49, "l"), (4, 4, "l")) == 4
    assert apply(table, (3, 51, "n"), (4, 6, "n"), (2, 51, None)) == 0
    assert rows(table) == [(1, 20, "c"), (3, 51, "n"), (4, 6, "n")]


def test_bounds_in_a_sharded_checkpoint_are_read() -> None:
    for _ in tiny_shards(3):
        table = ordered(
            *((i, 100 + i, "a") for i in range(4)), properties={"checkpoint_interval": "2"}
        )
        for i in range(4, 12):
            apply(table, (i, 100 + i, "a" if i % 3 else None))
        opened = rs.open_table(table.uri)
        assert not opened.handle.newest.parts.in_memory
        assert apply(opened, (1, 100, "late"), (5, 104, "late"), (9, 200, "new")) == 2
        opened.compact()
        assert apply(opened, (1, 100, "late"), (5, 104, "late"), (9, 199, "late")) == 3
