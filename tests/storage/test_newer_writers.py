"""Changes that a newer writer protocol refuses put no file, whoever calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import UnsupportedProtocol
from rowsieve.providers.datafusion import SessionContext
from tests.small_tables import KV, apply, fresh_uri, kv

ALL = "options => map('rewrite-all', 'true')"


def sql(statement: str) -> Callable[[rs.Table], Any]:
    def run(table: rs.Table) -> None:
        context = SessionContext()
        context.register_table("t", table)
        context.sql(statement).to_pylist()

    return run


def call(statement: str) -> Callable[[rs.Table], Any]:
    def run(table: rs.Table) -> None:
        rs.Catalog(table.uri.rpartition("/db/")[0]).call(f"CALL system.{statement}")

    return run


CHANGES: dict[str, Callable[[rs.Table], Any]] = {
    "upsert": lambda t: t.upsert(kv((9, 9))),
    "merge columns": lambda t: t.upsert(
        pa.table({"k": [9], "v": [9], "w": [9]}), schema_mode="merge"
    ),
    "apply": lambda t: apply(t, ("insert", 9, 9)),
    "delete_keys": lambda t: t.delete(keys=pa.table({"k": [1]})),
    "delete": lambda t: t.delete("k = 1"),
    "update": lambda t: t.update({"v": "v + 1"}, where="k = 1"),
    "overwrite": lambda t: t.overwrite(kv((5, 5))),
    "overwrite where": lambda t: t.overwrite(kv((1, 8)), where="k = 1"),
    "restore": lambda t: t.restore(1),
    "cherry_pick": lambda t: t.cherry_pick(1),
    "compact": lambda t: t.compact(),
    "analyze": lambda t: t.analyze(distinct_counts=True),
    "build_deletion_vectors": lambda t: t.build_deletion_vectors(),
    "rewrite_position_delete_files": lambda t: t.rewrite_position_delete_files(),
    "set_properties": lambda t: t.set_properties({"isolation": "snapshot"}),
    "add_column": lambda t: t.add_column("x", "int64"),
    "expire_versions": lambda t: t.expire_versions(retain_last=1),
    "remove_orphans": lambda t: t.remove_orphans(grace_s=0),
    "vacuum": lambda t: t.vacuum(retain_last=1, grace_s=0),
    "maintain": lambda t: t.maintain(retain_last=1, grace_s=0),
    "sql insert": sql("INSERT INTO t VALUES (7, 7)"),
    "sql delete": sql("DELETE FROM t WHERE k = 1"),
    "sql update": sql("UPDATE t SET v = 5 WHERE k = 1"),
    "sql merge": sql(
        "MERGE INTO t USING (VALUES (1, 5)) s (k, v) ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = 1"
    ),
    "call rewrite": call(f"rewrite_data_files('db', 't', {ALL})"),
    "call migrate": call("migrate('db', 't')"),
    "call analyze": call("analyze('db', 't', distinct_counts => TRUE)"),
    "call compact": call("compact('db', 't')"),
    "call vectors": call("build_deletion_vectors('db', 't')"),
    "call merge vectors": call("rewrite_position_delete_files('db', 't')"),
    "call expire": call("expire_snapshots(table => 'db.t', retain_last => 1)"),
    "call orphans": call("remove_orphan_files(table => 'db.t')"),
    "call vacuum": call("vacuum(table => 'db.t', retain_last => 1)"),
    "call rollback": call("rollback_to_snapshot('db', 't', 1)"),
    "drop": lambda t: rs.Catalog(t.uri.rpartition("/db/")[0]).drop_table("db.t", purge=True),
}


PICKED_LATE = ("cherry_pick", True)  # refused earlier: a newer version has not undone the commit


def made() -> rs.Table:
    table = rs.Catalog(fresh_uri()).create_table("db.t", KV, ["k"])
    for rows in (kv((1, 1), (2, 2)), kv((2, 3), (3, 3)), kv((1, 7))):
        table.upsert(rows)
    return table


@pytest.mark.parametrize(
    ("name", "is_stale"),
    [(name, late) for name in CHANGES for late in (False, True) if (name, late) != PICKED_LATE],
)
def test_a_refused_change_leaves_no_file(
    name: str, is_stale: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made()
    late = rs.open_table(table.uri)
    table.build_deletion_vectors()  # needs writers of protocol 4
    before = table.handle.store.list("")
    monkeypatch.setattr("rowsieve.storage.log.commit_log.WRITER_VERSION", 3)
    puts: list[str] = []
    put_new = type(table.handle.store).put_new

    def noted(store: Any, path: str, data: Any) -> None:
        puts.append(path)
        put_new(store, path, data)

    monkeypatch.setattr(type(table.handle.store), "put_new", noted)
    with pytest.raises(UnsupportedProtocol, match="writer protocol 4"):
        CHANGES[name](late if is_stale else rs.open_table(table.uri))
    assert table.handle.store.list("") == before
    passing = ("_catalog", "leases/dropping")  # of calls that take turns, and gone again
    assert [path for path in puts if not any(name in path for name in passing)] == []
    assert rs.open_table(table.uri).scan().count() == 3
