"""Every operation of the log, by the call that commits it: the feed replays what it changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import CorruptData, InvalidInput, UnsupportedProtocol
from rowsieve.procedures.built_ins.rewrite_data_files import RewriteDataFiles, Rows
from rowsieve.providers.datafusion import SessionContext
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.conflicts import OPERATIONS, Kind
from rowsieve.storage.log.log_entry import decode_entry, encode_entry, log_path
from tests.small_tables import KV, apply, fresh_uri, kv

SILENT = {Kind.REWRITING, Kind.SETTING, Kind.ALTERING}
ALL = "options => map('rewrite-all', 'true')"


class Negate(RewriteDataFiles):
    """Changes values in place."""

    name = "negate"

    def changed(self, rows: Rows, notes: Mapping[str, str]) -> Rows:
        """Negate the values that are positive."""
        place = rows.schema.get_field_index("v")
        values = pa.array([-abs(v.as_py() or 0) for v in rows.column(place)], pa.int64())
        return rows.set_column(place, rows.schema.field(place), values)


class Copying(RewriteDataFiles):
    """Changes nothing, under a name of its own."""

    name = "copying"


def sql(statement: str, table: rs.Table) -> None:
    context = SessionContext()
    context.register_table("t", table)
    context.sql(statement).to_pylist()


def call(statement: str, table: rs.Table, _catalog: Any = None) -> None:
    catalog = rs.Catalog(table.uri.rpartition("/db/")[0])
    for procedure in (Negate(), Copying()):
        catalog.procedures.add(procedure)
    catalog.call(f"CALL system.{statement}")


def fragmented(table: rs.Table) -> None:
    """Hidden rows in several parts, with two files of vectors."""
    for start in (60, 70):
        table.upsert(kv(*((k, 1) for k in range(start, start + 10))))
        table.upsert(kv(*((k, 2) for k in range(start, start + 10, 2))))
        table.build_deletion_vectors()


def joined(table: rs.Table) -> None:
    fragmented(table)
    table.rewrite_position_delete_files()


def migrated(table: rs.Table) -> None:
    table.add_column("w", "int64")
    call("migrate('db', 't')", table)


def expired(table: rs.Table) -> None:
    table.set_properties({"isolation": "snapshot"})
    table.expire_versions(retain_last=3)


def orphaned(table: rs.Table) -> None:
    path = f"_rowsieve/log/{'a' * 32}.stats"
    table.handle.store.put_new(path, b"x")
    table.remove_orphans(grace_s=0)


def unset(table: rs.Table) -> None:
    table.set_properties({"isolation": "snapshot"})
    table.unset_properties(["isolation"])


def published(table: rs.Table) -> None:
    branch = table.branch("audit")
    (branch.upsert if branch.key else branch.append)(kv((90, 9)))
    table.fast_forward("audit")


def dropped(table: rs.Table, kind: str) -> None:
    getattr(table, kind)("old")
    getattr(table, f"drop_{kind}")("old")


def in_transaction(table: rs.Table) -> None:
    with table.transaction() as tx:
        tx.delete("k = 2")
        tx.delete("k = 3")


BOTH: dict[str, Callable[[rs.Table], Any]] = {
    "create": lambda _: None,
    "create_branch": lambda t: t.branch("audit"),
    "create_tag": lambda t: t.tag("old"),
    "drop_branch": lambda t: dropped(t, "branch"),
    "drop_tag": lambda t: dropped(t, "tag"),
    "fast_forward": published,
    "move": lambda t: rs.Database(fresh_uri()).move_in("t", t.uri),
    "transaction": in_transaction,
    "delete": lambda t: t.delete("k = 2"),
    "update": lambda t: t.update({"v": "v + 1"}, where="k >= 2"),
    "overwrite": lambda t: t.overwrite(kv((2, 20), (8, 80))),
    "restore": lambda t: t.restore(1),
    "compact": lambda t: t.compact(),
    "rewrite_data_files": partial(call, f"rewrite_data_files('db', 't', {ALL})"),
    "rewrite_rows": partial(call, f"negate('db', 't', {ALL})"),
    "migrate": migrated,
    "analyze": partial(call, "analyze('db', 't', distinct_counts => TRUE)"),
    "set_properties": lambda t: t.set_properties({"isolation": "snapshot"}),
    "unset_properties": unset,
    "expire_versions": expired,
    "remove_orphans": orphaned,
    "alter": lambda t: t.rename_column("v", "w"),
}
KEYED: dict[str, Callable[[rs.Table], Any]] = {
    "upsert": lambda t: t.upsert(kv((2, 22), (7, 7))),
    "apply": lambda t: apply(t, ("insert", 7, 7), ("delete", 2, None)),
    "delete_keys": lambda t: t.delete(keys=pa.table({"k": [2, 99]})),
    "insert": partial(sql, "INSERT INTO t VALUES (7, 7)"),
    "merge": partial(
        sql,
        "MERGE INTO t USING (VALUES (2, 5), (7, 7)) s (k, v) ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)",
    ),
    "build_deletion_vectors": fragmented,
    "rewrite_position_delete_files": joined,
}
DIFFERENTIAL = {"append_updates", "advance_since"}  # tests/differential/ has what they change
WITHOUT_A_KEY: dict[str, Callable[[rs.Table], Any]] = {"append": lambda t: t.append(kv((7, 7)))}


def made(*, key: bool) -> rs.Table:
    catalog = rs.Catalog(fresh_uri())
    table = catalog.create_table("db.t", kv((1, 1), (2, 2)), ["k"] if key else None)
    for rows in (kv((3, 3)), kv((4, 4), (5, 5))):
        (table.upsert if key else table.append)(rows)
    return table


def values(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows by their first two columns, with their number."""
    return Counter(zip(*(rows.column(i).to_pylist() for i in (0, 1)), strict=True))


def replayed(table: rs.Table, before: Counter[tuple[Any, ...]], version: int) -> Any:
    """The rows after the changes of a version, and whether there were any."""
    found = table.changes(version, version).read_all()
    after = Counter(before)
    for row in found.to_pylist():
        gone = row["_change_type"] in ("delete", "update_preimage")
        after[tuple(row.values())[:2]] += -1 if gone else 1
    assert min(after.values(), default=1) >= 0
    return +after, found.num_rows > 0


def check(table: rs.Table, first: int) -> None:
    """Every version from `first` on is the one before it with its changes."""
    operations = {commit.version: commit.operation for commit in table.history()}
    for version in range(first, table.version + 1):
        before = values(table.scan(version=version - 1).to_arrow()) if version else Counter()
        after, any_changes = replayed(table, before, version)
        assert after == values(table.scan(version=version).to_arrow()), operations[version]
        if OPERATIONS[operations[version]] in SILENT:
            assert not any_changes, operations[version]


def test_the_calls_below_are_all_operations() -> None:
    assert {*BOTH, *KEYED, *WITHOUT_A_KEY, *DIFFERENTIAL} == set(OPERATIONS)


@pytest.mark.parametrize(
    ("operation", "key"),
    [
        *((name, key) for name in BOTH for key in (False, True)),
        *((name, True) for name in KEYED),
        *((name, False) for name in WITHOUT_A_KEY),
    ],
)
def test_the_feed_replays_every_operation(operation: str, key: bool) -> None:  # invariant 34
    table = made(key=key)
    {**BOTH, **KEYED, **WITHOUT_A_KEY}[operation](table)
    table = rs.open_table(table.uri)
    assert operation in {commit.operation for commit in table.history()}
    oldest = int(table.history()[-1].version)
    check(table, oldest + 1 if oldest else 0)


@pytest.mark.parametrize("key", [False, True])
def test_a_procedure_of_any_name_that_only_moves_rows_is_silent(key: bool) -> None:
    table = made(key=key)
    call(f"copying('db', 't', {ALL})", table)
    newest = rs.open_table(table.uri).history()[0]
    assert (newest.operation, newest.metadata) == ("rewrite_data_files", {"procedure": "copying"})
    check(rs.open_table(table.uri), 0)


def test_an_operation_without_a_kind_is_not_committed() -> None:
    table = made(key=False)
    before = table.handle.store.list("")
    head = table.handle.pinned
    with pytest.raises(InvalidInput, match="'sprinkle' has no kind"):
        CommitLog(table.handle.store).commit(
            CommitRequest("sprinkle"), head, lambda *_: pytest.fail("no")
        )
    assert table.handle.store.list("") == before


@pytest.mark.parametrize("key", [False, True])
def test_the_feed_refuses_an_operation_of_a_newer_writer(key: bool) -> None:
    table = made(key=key)
    path = log_path(2)
    data = table.handle.store.get(path)
    table.handle.store.delete([path])
    entry = replace(decode_entry(data, 2, path), operation="sprinkle")
    table.handle.store.put_new(path, encode_entry(entry))
    late = rs.open_table(table.uri)
    assert late.changes(1, 1).read_all().num_rows == 1
    with pytest.raises(UnsupportedProtocol, match=r"version 2 .* operation 'sprinkle'"):
        late.changes(1).read_all()


def test_without_its_entry_a_commit_of_a_table_without_a_key_is_not_guessed() -> None:
    table = rs.create_table(fresh_uri(), KV, properties={"checkpoint_interval": "2"})
    table.append(kv((1, 1)))
    table.append(kv((2, 2)))
    table.append(kv((3, 3)))
    table.handle.store.delete([log_path(2)])
    with pytest.raises(CorruptData, match=r"entry of version 2|0002\.json is absent"):
        rs.open_table(table.uri).changes(1).read_all()
