"""Sizes, times and deletion: what retention needs of a store."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

import pytest

from rowsieve.errors import InvalidInput, StoreError
from rowsieve.objects import LocalStore, ObjectStore, open_store


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    name = uuid.uuid4().hex
    return open_store(tmp_path / name if request.param == "local" else f"memory:///{name}")


def test_details_have_sizes_and_times_in_order(store: ObjectStore) -> None:
    before_us = time.time_ns() // 1000 - 2_000_000
    for path, content in (("data/b", b"12"), ("data/a/c", b""), ("other/a", b"1")):
        store.put_new(path, content)
    found = store.details("data")
    assert [(path, each.size_bytes) for path, each in found.items()] == [
        ("data/a/c", 0),
        ("data/b", 2),
    ]
    assert all(each.modified_us > before_us for each in found.values())
    assert store.details("nothing") == {}


def test_an_absent_object_is_no_error(store: ObjectStore) -> None:
    for name in "abc":
        store.put_new(f"data/{name}", b"1")
    store.delete(["data/x", "data/a", "data/a", "none/at/all", "data/c", "data/b/under"])
    assert list(store.details("data")) == ["data/b"]
    store.delete([])
    store.delete(["data/b"])
    store.put_new("data/b", b"again")
    assert store.get("data/b") == b"again"


@pytest.mark.parametrize("path", ["../x", "data/../../x", "/etc/x", "", "data/", "a//b", "data/é"])
def test_paths_that_lead_elsewhere_are_refused(store: ObjectStore, path: str) -> None:
    with pytest.raises(InvalidInput):
        store.delete([path])


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"1")
    store = LocalStore(tmp_path / "t")
    store.put_new("data/a", b"1")
    (tmp_path / "t" / "data" / "link").symlink_to(outside)
    (tmp_path / "t" / "data" / "file").symlink_to(outside / "kept")
    assert list(store.details("data")) == ["data/a"]
    with pytest.raises(InvalidInput, match="leads out"):
        store.delete(["data/link/kept"])
    store.delete(["data/file"])
    assert (outside / "kept").exists()


def test_a_folder_is_not_deleted(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t")
    store.put_new("data/a/b", b"1")
    with pytest.raises(StoreError, match="cannot delete data/a"):
        store.delete(["data/a"])
    assert store.exists("data/a/b")


def test_leftovers_are_listed_and_deleted_apart(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t")
    store.put_new("data/a", b"1")
    names = ["data/.tmp-1", "_rowsieve/log/.tmp-2", "elsewhere/.tmp-3"]
    for name in names:
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_bytes(b"123")
    assert sorted(store.leftovers()) == sorted(names[:2])
    assert {each.size_bytes for each in store.leftovers().values()} == {3}
    assert list(store.details("data")) == ["data/a"]
    store.delete(names[:2])
    assert store.leftovers() == {}
    assert (tmp_path / "t" / names[2]).exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may delete everywhere")
def test_a_folder_without_permission_says_so(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t")
    store.put_new("data/a", b"1")
    (tmp_path / "t" / "data").chmod(0o500)
    try:
        with pytest.raises(StoreError, match="cannot delete data/a"):
            store.delete(["data/a"])
    finally:
        (tmp_path / "t" / "data").chmod(0o700)
