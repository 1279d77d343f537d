"""Object stores: what every one of them owes, and what the local disk owes on top."""

from __future__ import annotations

import os
import socket
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import CorruptData, InvalidInput, StoreError, UnsupportedOperation
from rowsieve.objects import (
    LocalStore,
    ObjectExists,
    ObjectNotFound,
    ObjectStore,
    open_store,
    put_fresh,
)
from rowsieve.objects.remote import RemoteStore
from rowsieve.objects.store import SyncFailed
from tests.faults.files import FileCalls
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Crash, Fault
from tests.profiles import examples
from tests.storage.log_fixtures import memory_store


@pytest.fixture(params=["local", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "s3":
        s3 = request.getfixturevalue("s3")
        return open_store(s3.fresh_uri(), s3.options)
    return LocalStore(tmp_path / "table") if request.param == "local" else memory_store()


def test_an_object_reads_back_whole_and_in_ranges(store: ObjectStore) -> None:
    store.put_new("data/a.parquet", b"0123456789")
    assert store.get("data/a.parquet") == b"0123456789"
    assert store.get_range("data/a.parquet", 2, 5) == b"234"
    assert store.get_range("data/a.parquet", 4, 4) == b""
    assert store.size("data/a.parquet") == 10
    assert store.exists("data/a.parquet")


def test_any_buffer_can_be_put(store: ObjectStore) -> None:
    store.put_new("a", memoryview(b"abc"))
    store.put_new("b", pa.py_buffer(b"abc"))
    put_fresh(store, "c", pa.py_buffer(b""))
    assert (store.get("a"), store.get("b"), store.get("c")) == (b"abc", b"abc", b"")


def test_put_new_creates_and_never_overwrites(store: ObjectStore) -> None:
    store.put_new("a", b"first")
    with pytest.raises(ObjectExists) as raised:
        store.put_new("a", b"second")
    assert raised.value.path == "a"
    assert store.get("a") == b"first"


def test_absent_objects_are_not_found(store: ObjectStore) -> None:
    store.put_new("data/a", b"")
    for read in (
        store.get,
        store.size,
        store.open_input,
        lambda path: store.get_range(path, 0, 1),
    ):
        for path in ("b", "data/b", "data"):
            with pytest.raises(ObjectNotFound, match=path):
                read(path)
    assert not store.exists("b")
    assert not store.exists("data")


def test_a_range_beyond_the_end_is_corrupt_not_short(store: ObjectStore) -> None:
    store.put_new("a", b"0123456789")
    with pytest.raises((CorruptData, StoreError)):
        store.get_range("a", 20, 30)
    with pytest.raises(CorruptData, match="truncated"):
        store.get_range("a", 5, 11)
    with pytest.raises(InvalidInput, match="not a range"):
        store.get_range("a", 5, 4)


def test_listings_are_sorted_and_bounded(store: ObjectStore) -> None:
    """Invariants, rule 5: local listings are unordered by nature."""
    paths = [f"log/{number:020d}.json" for number in (3, 11, 1, 2, 10)] + ["log/ff.arrow", "other"]
    for path in paths:
        store.put_new(path, b"")
    listed = sorted(paths[:6])
    assert store.list("log") == listed
    assert store.list("log", listed[1]) == listed[2:]
    assert store.list("log", listed[1], "log/1") == listed[2:5]
    assert store.list("") == [*listed, "other"]
    assert store.list("nothing") == []
    assert store.children() == ["log", "other"]
    assert store.children("nothing") == []


def test_invariant_rule_5_a_store_that_lists_in_no_order_is_sorted_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = memory_store()
    for name in "badc":
        store.put_new(f"log/{name}", b"")
    in_order = obstore.list
    monkeypatch.setattr(
        obstore, "list", lambda *args, **options: [next(iter(in_order(*args, **options)))[::-1]]
    )
    assert store.list("log") == ["log/a", "log/b", "log/c", "log/d"]
    assert store.list("log", "log/a", "log/d") == ["log/b", "log/c"]


@pytest.mark.parametrize(
    "path", ["../a", "a/../b", "/a", "a//b", "", ".", "a/.", "a b", "a\\b", "é", ".tmp-x", "a\n"]
)
def test_paths_stay_inside_the_table(store: ObjectStore, path: str) -> None:
    for use in (store.get, store.size, store.exists, lambda name: store.put_new(name, b"")):
        with pytest.raises(InvalidInput, match="not valid"):
            use(path)


def test_pyarrow_reads_through_open_input(store: ObjectStore) -> None:
    table = pa.table({"x": list(range(100_000))})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=10_000)
    store.put_new("data/a.parquet", sink.getvalue())
    with store.open_input("data/a.parquet") as file:
        assert pq.ParquetFile(file).read_row_group(3).equals(table.slice(30_000, 10_000))


@examples(50)
@given(data=st.binary(max_size=300), ends=st.tuples(st.integers(0, 300), st.integers(0, 300)))
def test_ranges_are_slices(data: bytes, ends: tuple[int, int]) -> None:
    store = memory_store()
    store.put_new("a", data)
    start, stop = sorted(min(end, len(data)) for end in ends)
    assert store.get_range("a", start, stop) == data[start:stop]
    file = store.open_input("a")
    file.seek(start)
    assert file.read(stop - start) == data[start:stop]


# URIs.


def test_memory_stores_are_found_again_by_name() -> None:
    name = uuid.uuid4().hex
    open_store(f"memory:///{name}/t").put_new("a", b"1")
    assert open_store(f"memory:///{name}/t").get("a") == b"1"
    assert open_store(f"memory:///{name}").list("") == ["t/a"]
    assert open_store(f"memory:///{name}/u").list("") == []


def test_local_uris_and_paths_mean_the_same(tmp_path: Path) -> None:
    for uri in (tmp_path / "a b", str(tmp_path / "a b"), f"file://{tmp_path}/a%20b"):
        assert open_store(uri).uri == f"file://{tmp_path}/a%20b"


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("", "empty"),
        ("ftp://host/t", "no store for scheme 'ftp'"),
        ("file://host/t", "names the host 'host'"),
        ("memory:///", "needs a name"),
    ],
)
def test_a_uri_of_no_store_is_refused(uri: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        open_store(uri)


def test_options_of_local_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"storage_options \(region\)") as raised:
        open_store(str(tmp_path), {"region": "SECRET"})
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize(
    "uri", ["s3://user:SECRET@bucket/t", "s3://bucket/t?X-Token=SECRET", "abfss://c:SECRET@a/t"]
)
def test_secrets_in_a_uri_are_refused_and_not_repeated(uri: str) -> None:
    with pytest.raises(InvalidInput, match="storage_options") as raised:
        open_store(uri)
    assert "SECRET" not in str(raised.value)


def test_storage_options_are_never_printed() -> None:
    options = {"aws_secret_access_key": "SECRET1", "aws_access_key_id": "SECRET2", "region": "x"}
    store = open_store("s3://bucket/t", options)
    assert store.uri == "s3://bucket/t"
    assert repr(store) == "RemoteStore('s3://bucket/t')"
    with pytest.raises(InvalidInput, match="no_such_option") as raised:
        open_store("s3://bucket/t", {**options, "no_such_option": "SECRET3"})
    assert "SECRET" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_errors_of_a_remote_store_carry_no_secret() -> None:
    class Failing:
        def __getattr__(self, name: str) -> Any:
            raise OSError("GET https://u:p@host/t?sig=SIGNED with key SECRET failed\nDebug: SECRET")

    store = RemoteStore(Failing(), "az://c/t", secrets=("SECRET",))
    error = Exception()
    try:
        with store._failing("read", "a"):
            Failing().anything()
    except StoreError as raised:
        error = raised
    assert str(error) == (
        "cannot read a in az://c/t: OSError: GET https://host/t with key *** failed"
    )
    assert error.__cause__ is None
    assert error.__suppress_context__


# The local disk.


def test_invariant_rule_3_a_file_is_synced_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path / "table")
    calls = FileCalls(monkeypatch)
    store.put_new("data/a", b"abc")
    monkeypatch.undo()
    root = str(tmp_path / "table")
    names = [(name, target.replace(root, "T")) for name, target in calls.log]
    temporary = names[4][1]
    assert temporary.startswith("T/data/.tmp-")
    assert names == [
        ("mkdir", "T"),
        ("fsync", str(tmp_path)),
        ("mkdir", "T/data"),
        ("fsync", "T"),
        ("write", temporary),
        ("fsync", temporary),
        ("link", "T/data/a"),
        ("unlink", temporary),
        ("fsync", "T/data"),
    ]


def test_a_directory_that_someone_else_made_is_synced_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "table" / "data").mkdir(parents=True)
    store = LocalStore(tmp_path / "table")
    calls = FileCalls(monkeypatch)
    store.put_new("data/a", b"")
    store.put_new("data/b", b"")
    monkeypatch.undo()
    synced = [target for name, target in calls.log if name == "fsync" and ".tmp-" not in target]
    root = str(tmp_path / "table")
    assert synced == [str(tmp_path), root, f"{root}/data", f"{root}/data"]


def test_a_crash_at_any_system_call_leaves_the_object_whole_or_absent(tmp_path: Path) -> None:
    for fail_at in range(20):
        directory = tmp_path / str(fail_at)
        store = LocalStore(directory)
        with pytest.MonkeyPatch.context() as patch:
            FileCalls(patch, fail_at=fail_at)
            try:
                store.put_new("data/a", b"abc")
            except Crash:
                finished = False
            else:
                finished = True
        reopened = LocalStore(directory)
        if reopened.exists("data/a"):
            assert reopened.get("data/a") == b"abc"
        else:
            assert not finished
            reopened.put_new("data/a", b"abc")
        assert reopened.list("") == ["data/a"]
        if finished:
            assert fail_at > 5
            return
    raise AssertionError("a put makes fewer calls than that")


def test_an_error_of_the_disk_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    FileCalls(monkeypatch, Fault.NO_SPACE, 0, ["write"])
    with pytest.raises(StoreError, match=r"cannot create a in file://.*: No space left on device"):
        store.put_new("a", b"abc")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_of_a_crash_are_not_listed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put_new("data/a", b"")
    (tmp_path / "data" / ".tmp-0").write_bytes(b"half")
    assert store.list("data") == ["data/a"]
    assert store.children("data") == ["a"]


def test_a_disk_without_hard_links_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FileCalls(monkeypatch, names=["link"]).meet_where(Fault.NO_LINKS, "link")
    with pytest.raises(UnsupportedOperation, match="without hard links"):
        LocalStore(tmp_path).put_new("a", b"")


def test_symbolic_links_out_of_the_table_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "table" / "data").mkdir(parents=True)
    (tmp_path / "table" / "file").symlink_to(tmp_path / "secret")
    (tmp_path / "table" / "folder").symlink_to(tmp_path)
    (tmp_path / "table" / "inside").symlink_to(tmp_path / "table" / "data")
    store = LocalStore(tmp_path / "table")
    for use in (store.get, store.exists, store.open_input, lambda p: store.put_new(p, b"")):
        for path in ("file", "folder/secret", "folder/new"):
            with pytest.raises(InvalidInput, match="symbolic link"):
                use(path)
    store.put_new("inside/a", b"1")
    assert store.get("data/a") == b"1"
    assert store.list("") == ["data/a"]


def test_a_table_directory_may_itself_be_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "table").symlink_to(tmp_path / "real")
    store = open_store(str(tmp_path / "table"))
    store.put_new("a", b"1")
    assert store.uri == f"file://{tmp_path}/real"


def test_a_fifo_in_the_place_of_a_file_is_an_error_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    store = LocalStore(tmp_path)
    for use in (
        *(store.size, store.open_input, store.get, store.exists),
        partial(store.get_range, start=0, stop=1),
    ):
        with pytest.raises(CorruptData, match=r"cannot read pipe .* it is a FIFO, not a regular"):
            use("pipe")
    with pytest.raises(SyncFailed):
        store.make_durable("pipe")


def test_a_socket_or_device_in_the_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        with pytest.raises(CorruptData, match="it is a socket"):
            LocalStore(tmp_path).size("s")
        with pytest.raises(StoreError, match="cannot read s "):
            LocalStore(tmp_path).get("s")
    with pytest.raises(CorruptData, match="it is a device"):
        LocalStore("/dev").get("zero")


def test_a_folder_is_no_object(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    store = LocalStore(tmp_path)
    assert not store.exists("folder")
    for use in (store.size, store.open_input, store.get):
        with pytest.raises(ObjectNotFound):
            use("folder")


def test_a_directory_removed_under_an_open_store_is_made_again(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "table")
    store.put_new("data/a", b"1")
    (tmp_path / "table" / "data" / "a").unlink()
    (tmp_path / "table" / "data").rmdir()
    store.put_new("data/a", b"2")
    assert store.get("data/a") == b"2"


def test_a_file_where_the_table_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"is a file, .* a table is a directory"):
        open_store(str(tmp_path / "t")).children()


# Fresh names.


@pytest.mark.parametrize(
    "fault", [Fault.UNAVAILABLE, Fault.LOST_ANSWER, Fault.EXISTS_BEFORE, Fault.EXISTS_AFTER]
)
def test_a_fresh_object_lands_whatever_the_store_reports(fault: Fault) -> None:
    """Invariants, rules 1 and 4: "already exists" may be our own put behind a hidden retry."""
    inner = memory_store()
    store = FaultyStore(inner, fault, 0)
    put_fresh(store, "a", b"ours")
    assert store.failed == ("put_new", "a")
    assert inner.get("a") == b"ours"


def test_a_fresh_name_that_holds_other_bytes_is_an_error() -> None:
    store = memory_store()
    store.put_new("a", b"theirs")
    with pytest.raises(CorruptData, match="an object with other contents exists there"):
        put_fresh(store, "a", b"ours")


def test_a_fresh_put_that_never_lands_is_an_error() -> None:
    down = FaultyStore(memory_store()).meet_where(Fault.UNAVAILABLE, "put_new")
    with pytest.raises(StoreError, match="in 5 attempts: an error, and nothing was applied"):
        put_fresh(down, "a", b"ours")


@pytest.mark.parametrize("value", ["true", True])
def test_client_options_may_stand_among_the_others(value: object) -> None:
    store = open_store(
        "s3://bucket/table", {"region": "eu-west-1", "allow_http": value, "timeout": "30s"}
    )
    assert store.uri == "s3://bucket/table"


def test_an_option_that_the_client_does_not_take_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="region"):
        open_store("s3://bucket/table", {"region": "x", "timeout": "soon"})


def test_slashes_do_not_make_another_memory_table() -> None:
    store = open_store("memory://slashes/t")
    store.put_new("a", b"1")
    assert open_store("memory:///slashes//t/").get("a") == b"1"


@pytest.mark.parametrize(
    "endpoint",
    ["::::x", "http://", "x", "http://[", "ftp://x", "http://a b", "", " ", "http://a:99999", "\0"],
)
def test_an_endpoint_that_is_not_a_url_is_rejected_before_any_request(endpoint: str) -> None:
    """obstore's client panics over most of them at its first request."""
    options = {"region": "x", "access_key_id": "a", "secret_access_key": "SECRET"}
    for name in ("endpoint", "aws_endpoint_url"):
        with pytest.raises(InvalidInput, match=name) as raised:
            open_store("s3://bucket/t", {**options, name: endpoint})
        assert "SECRET" not in str(raised.value)


def test_a_table_cannot_be_a_file_or_inside_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "fifo")
    for place in ("file", "fifo", "file/t", "file/t/u"):
        store = LocalStore(tmp_path / place)
        for use in (store.list, store.children, partial(store.put_new, data=b"")):
            with pytest.raises(InvalidInput, match="is a file, or lies in one"):
                use("log")


def test_the_root_of_the_disk_is_a_directory_like_others(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    store = LocalStore("/")
    assert store.uri == "file:///"
    assert store.get(f"{tmp_path}/a".removeprefix("/")) == b"1"
    store.put_new(f"{tmp_path}/b".removeprefix("/"), b"2")
    assert (tmp_path / "b").read_bytes() == b"2"
