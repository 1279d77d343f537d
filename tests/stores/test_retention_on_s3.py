"""Retention across a network: deletes of many objects, the store's times, leases."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import SnapshotExpired
from rowsieve.objects import open_store
from rowsieve.objects import remote as remote_module
from rowsieve.retention.leases import LEASES
from tests.faults.vocabulary import Fault
from tests.retention.small_histories import ROWS, expected, paths, rows_of, table_of
from tests.stores.proxy import proxy_to
from tests.stores.s3_server import S3


@pytest.fixture
def table(s3: S3) -> Table:
    """A table whose version n has the rows (0, n) and (n, n)."""
    uri, options = s3.fresh_uri(), s3.options
    made = rowsieve.create_table(uri, ROWS, key=["id"], storage_options=options)
    made.upsert(table_of((0, 0)))
    for version in range(1, 6):
        made.upsert(table_of((0, version), (version, version)))
    return made


def test_objects_are_deleted_in_runs_and_absent_ones_are_no_error(
    s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_module, "DELETED_AT_ONCE", 3)
    store = open_store(s3.fresh_uri(), s3.options)
    names = [f"data/{uuid.uuid4().hex}" for _ in range(8)]
    for name in names:
        store.put_new(name, b"12345")
    found = store.details("data")
    assert list(found) == sorted(names)
    assert {each.size_bytes for each in found.values()} == {5}
    assert all(each.modified_us > 1_700_000_000_000_000 for each in found.values())
    store.delete([*names[:5], "data/absent", names[0]])
    assert list(store.details("data")) == sorted(names[5:])
    store.delete(["data/absent"])
    store.delete([])
    assert store.leftovers() == {}
    store.delete(names)
    assert store.details("data") == {}


def test_a_table_on_s3_is_vacuumed_and_read_again(s3: S3, table: Table) -> None:
    table.compact()
    with table.lease(version=3) as pinned:
        assert table.vacuum(retain_last=1, grace_s=0).leased_version == 3
        assert rows_of(pinned) == expected(2)
    shown = table.vacuum(retain_last=1, grace_s=0, dry_run=True)
    removed = table.vacuum(retain_last=1, grace_s=0)
    assert set(removed.sizes) == set(shown.sizes)
    assert (removed.oldest_version, removed.files["data"]) == (7, 6)
    assert paths(table.handle.store, "data") == set(table.files()["path"].to_pylist())
    assert paths(table.handle.store, LEASES) == set()
    fresh = rowsieve.open_table(table.uri, storage_options=s3.options)
    assert rows_of(fresh) == expected(5)
    with pytest.raises(SnapshotExpired, match="versions 7 to"):
        fresh.scan(version=2)
    fresh.upsert(table_of((0, 6), (6, 6)))
    assert rows_of(table) == expected(6)


def test_a_process_that_slept_through_expiries_goes_on(s3: S3, table: Table) -> None:
    sleeper: Any = rowsieve.open_table(table.uri, storage_options=s3.options)
    for version in range(6, 9):
        table.upsert(table_of((0, version), (version, version)))
        table.vacuum(retain_last=1, grace_s=0)
    assert rows_of(sleeper) == expected(8)
    sleeper.upsert(table_of((0, 9), (9, 9)))
    assert rows_of(table) == expected(9)


def test_a_server_without_deletes_of_many_objects_deletes_each(s3: S3) -> None:
    with proxy_to(s3) as proxy:
        proxy.rule = lambda request: Fault.REFUSED if request.method == "POST" else None
        store = open_store(s3.fresh_uri(), S3(proxy.endpoint).options)
        for _ in range(3):
            names = [f"data/{uuid.uuid4().hex}" for _ in range(4)]
            for name in names:
                store.put_new(name, b"12345")
            store.delete([*names[:3], "data/absent"])
            assert list(store.details("data")) == names[3:]
            store.delete(names[3:])
        asked = Counter(request.method for request in proxy.requests)
    assert asked["DELETE"] == 3 * 5
    assert asked["POST"] == 2 * 2  # two refusals, each tried again; then it is known


def test_a_vacuum_removes_files_where_the_server_deletes_singly(s3: S3, table: Table) -> None:
    with proxy_to(s3) as proxy:
        proxy.rule = lambda request: Fault.REFUSED if request.method == "POST" else None
        own = rowsieve.open_table(table.uri, storage_options=S3(proxy.endpoint).options)
        own.compact()
        removed = own.vacuum(retain_last=1, grace_s=0)
        assert removed.files["data"] > 0
        left = open_store(own.uri, s3.options).details("data")
        assert not set(removed.sizes) & set(left)


def test_one_refusal_does_not_decide(s3: S3) -> None:
    with proxy_to(s3) as proxy:
        posts = iter(range(100))
        proxy.rule = lambda request: (
            Fault.UNAVAILABLE if request.method == "POST" and next(posts) < 2 else None
        )
        store = open_store(s3.fresh_uri(), S3(proxy.endpoint).options)
        for _ in range(3):
            names = [f"data/{uuid.uuid4().hex}" for _ in range(2)]
            for name in names:
                store.put_new(name, b"1")
            store.delete(names)
            assert store.details("data") == {}
        asked = Counter(request.method for request in proxy.requests)
    assert (asked["POST"], asked["DELETE"]) == (4, 2)
