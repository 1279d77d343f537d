"""A purge and another call: one of them runs between any two requests of the other.

A call that loses to the purge says that the table is gone, never that the log or a file is damaged.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Catalog, Table
from rowsieve.errors import (
    CommitConflict,
    CorruptData,
    SnapshotExpired,
    TableNotFound,
    UnsupportedOperation,
)
from rowsieve.objects import RemoteStore, open_store
from rowsieve.retention import dropping
from rowsieve.storage.log.checkpoint import checkpoint_path, write_checkpoint
from rowsieve.storage.log.log_entry import log_path
from rowsieve.storage.log.log_head import _seen
from tests.faults.stores import EveryStore
from tests.profiles import IS_DEEP

REQUESTS = ("get", "list", "details", "exists", "put_new", "delete", "children", "folders")
STEP = 1 if IS_DEEP else 9


def purge(catalog: Catalog, _: Table) -> None:
    rs.Catalog(catalog.uri).drop_table("db.t", purge=True)


def clone(_: Catalog, table: Table) -> None:
    table.clone(f"memory:///{uuid.uuid4().hex}")


CALLS: dict[str, Callable[[Catalog, Table], Any]] = {
    "purge": purge,
    "write": lambda _, t: t.upsert(pa.table({"id": [9]})),
    "delete": lambda _, t: t.delete("id = 1"),
    "compact": lambda _, t: t.compact(),
    "clone": clone,
    "read": lambda _, t: t.scan().to_arrow(),
    "read a version": lambda _, t: t.scan(version=1).to_arrow(),
    "history": lambda _, t: t.history(),
    "open": lambda _, t: rs.open_table(t.uri).scan().to_arrow(),
    "vacuum": lambda _, t: t.vacuum(retain_last=1, grace_s=0),
}
LOSES = (TableNotFound, SnapshotExpired)
WAITS = (*LOSES, UnsupportedOperation, CommitConflict)  # for a lease, or for another purge


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other purge goes on once this one has ended."""
    monkeypatch.setattr(dropping, "PATIENCE_S", 0.0)


def catalog_with_table() -> tuple[Catalog, Table]:
    catalog = rs.Catalog(f"memory:///{uuid.uuid4().hex}")
    table = catalog.create_table("db.t", pa.table({"id": [0, 1]}), ["id"])
    for number in range(2, 5):
        table.upsert(pa.table({"id": [number]}))
    return catalog, table


def interleaved(number: int, first: Callable[[], Any], second: Callable[[], Any]) -> bool:
    """Call `second` before a request of `first`; whether `first` came that far."""
    with pytest.MonkeyPatch.context() as patch:
        stores = EveryStore(patch, RemoteStore, REQUESTS).overtake(second, after=number)
        first()
    return stores.is_over


@pytest.mark.parametrize("is_inner", [True, False], ids=["inside", "around"])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_loses_to_a_purge_finds_no_table(name: str, is_inner: bool) -> None:
    for number in range(len(name) % STEP, 400, STEP):
        catalog, table = catalog_with_table()
        errors = WAITS if name == "purge" else LOSES
        call = partial(lose, CALLS[name], catalog, rs.open_table(table.uri), errors)
        drop = partial(lose, purge, catalog, table, WAITS)
        if not interleaved(number, *((drop, call) if is_inner else (call, drop))):
            return
        lose(purge, catalog, table, LOSES)
        assert catalog.tables() == []
    raise AssertionError("never ended")


def lose(
    call: Callable[[Catalog, Table], Any],
    catalog: Catalog,
    table: Table,
    errors: tuple[type[Exception], ...],
) -> None:
    with suppress(*errors):
        call(catalog, table)


@pytest.mark.parametrize("lost", [[2], [1, 2], [0]])
def test_a_table_that_lost_entries_is_not_purged(lost: list[int]) -> None:
    """Its log may be restored from a copy; then it reads as before."""
    catalog, table = catalog_with_table()
    store = table.handle.store
    copies = {log_path(version): store.get(log_path(version)) for version in lost}
    store.delete(list(copies))
    _seen.clear()  # as another process would
    before = store.list("")
    with pytest.raises(CorruptData, match="without purge, then delete the folder"):
        purge(catalog, table)
    assert catalog.tables() == ["db.t"]
    assert store.list("") == before
    for path, data in copies.items():
        store.put_new(path, data)
    assert rs.open_table(table.uri).count() == 5
    purge(catalog, table)
    assert store.list("") == []


def test_a_table_that_lost_its_newest_entries_is_not_purged() -> None:
    catalog, table = catalog_with_table()
    table.handle.store.delete([log_path(2), log_path(3)])  # files are named for version 2
    _seen.clear()
    before = table.handle.store.list("")
    with pytest.raises(CorruptData, match="later entries of the log were lost"):
        purge(catalog, table)
    assert table.handle.store.list("") == before


@pytest.mark.parametrize("rest", ["entry", "checkpoint", "both"])
def test_the_rest_of_a_dropped_table_is_no_damaged_table(rest: str) -> None:
    """An interrupted deletion leaves the closing entry; earlier releases left its checkpoint."""
    catalog, table = catalog_with_table()
    head = dropping.close(table.handle.store)
    assert head is not None
    write_checkpoint(table.handle.store, head)
    names = {"entry": log_path(head.version), "checkpoint": checkpoint_path(head.version)}
    keep = {names[rest]} if rest in names else set(names.values())
    keep |= {
        path for path in table.handle.store.list("_rowsieve/checkpoints") if path.endswith(".arrow")
    }
    table.handle.store.delete(
        [path for path in table.handle.store.list("_rowsieve") if path not in keep]
    )
    _seen.clear()
    with pytest.raises(TableNotFound):
        rs.open_table(table.uri).upsert(pa.table({"id": [9]}))
    with pytest.raises(TableNotFound):
        catalog.rename_table("db.t", "db.u")
    assert dropping.is_dropped(open_store(table.uri))
    purge(catalog, table)
    assert table.handle.store.list("") == []
