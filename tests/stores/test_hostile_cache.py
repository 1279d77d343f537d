"""The cache folder of somebody who means no good, and of processes that die: rows stay right."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.metrics import store_cache
from rowsieve.objects import open_store
from rowsieve.objects.byte_files import ByteFiles
from rowsieve.objects.private_folder import is_private
from tests.faults.files import FileCalls, write_halves
from tests.faults.vocabulary import Fault
from tests.objects.background import finish_background
from tests.processes import start
from tests.stores.proxy import Proxy, proxy_to
from tests.stores.s3_server import S3
from tests.stores.trips_table import forget

ROWS = 20
REFRESH = 3  # requests of the one round trip that asks for the newest version
PLACE = "s3://b/t"


@pytest.fixture(scope="module")
def proxy(s3: S3) -> Iterator[Proxy]:
    with proxy_to(s3) as running:
        yield running


@pytest.fixture(scope="module")
def uri(s3: S3) -> str:
    rows = pa.table({"id": range(ROWS), "v": range(ROWS)})
    table = rs.create_table(s3.fresh_uri(), rows, key=["id"], storage_options=s3.options)
    table.delete(keys=pa.table({"id": [0]}))
    finish_background()
    return table.uri


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    former = rs.configure(rs.Config(cache_dir=tmp_path / "cache", cache_data=True))
    forget(monkeypatch)
    yield tmp_path / "cache"
    rs.configure(former)


def opened(uri: str, proxy: Proxy) -> Table:
    return rs.open_table(uri, storage_options=S3(proxy.endpoint).options)


def read(uri: str, proxy: Proxy, patch: pytest.MonkeyPatch) -> int:
    """Read everything as a new process would, check it, and return the number of requests."""
    finish_background()
    forget(patch)
    before = len(proxy.requests)
    ids = opened(uri, proxy).scan(order_by_key=True).to_arrow()["id"].to_pylist()
    assert ids == list(range(1, ROWS))
    return len(proxy.requests) - before


def test_folders_are_created_for_their_owner_alone(
    uri: str, proxy: Proxy, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = os.umask(0)
    try:
        read(uri, proxy, monkeypatch)
        assert read(uri, proxy, monkeypatch) == 2 * REFRESH
    finally:
        os.umask(former)
    folders = [cache, cache / "ranges", cache / "tables", *(cache / "ranges").glob("*/*")]
    assert len(folders) > 4
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


def _writable_by_others(cache: Path) -> None:
    cache.chmod(0o777)


def _writable_ranges(cache: Path) -> None:
    (cache / "ranges").chmod(0o770)


def _linked_tables(cache: Path) -> None:
    (cache / "tables").rename(cache.parent / "elsewhere")
    (cache / "tables").symlink_to(cache.parent / "elsewhere")


def _of_another_user(cache: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(cache, 12_345, 12_345)


def _below_one_that_is_writable(cache: Path) -> None:
    cache.parent.chmod(0o777)


def _with_planted_ranges(cache: Path) -> None:
    """Another user's, in which the folder that is absent cannot be created."""
    cache.chmod(0o777)
    (cache / "tables").rename(cache.parent / "elsewhere")
    (cache / "tables").touch()


@pytest.mark.parametrize(
    "change",
    [
        _writable_by_others,
        _writable_ranges,
        _linked_tables,
        _of_another_user,
        _below_one_that_is_writable,
        _with_planted_ranges,
    ],
)
def test_a_folder_that_others_can_change_is_not_used(
    change: Callable[[Path], None],
    uri: str,
    proxy: Proxy,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = read(uri, proxy, monkeypatch)
    finish_background()
    change(cache)
    before = store_cache()
    with caplog.at_level(logging.WARNING):
        assert read(uri, proxy, monkeypatch) == first
    assert store_cache() == before
    assert "is not used" in caplog.text


@pytest.mark.parametrize("place", ["of the link", "it leads to", "far above"])
def test_a_folder_whose_place_others_can_take_is_not_private(tmp_path: Path, place: str) -> None:
    for name in ("links", "a/b/c"):
        (tmp_path / name).mkdir(parents=True, mode=0o700)
    (tmp_path / "links/to").symlink_to(tmp_path / "a/b")
    folder = tmp_path / "links/to/c"
    assert is_private(folder)
    changed = {"of the link": "links", "it leads to": "a/b", "far above": "a"}[place]
    (tmp_path / changed).chmod(0o777)
    assert not is_private(folder)
    (tmp_path / changed).chmod(0o1777)
    assert is_private(folder)


def test_a_folder_in_one_with_the_sticky_bit_is_used(
    uri: str, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    former = rs.configure(rs.Config(cache_dir=shared, cache_data=True))
    try:
        read(uri, proxy, monkeypatch)
        assert read(uri, proxy, monkeypatch) == 2 * REFRESH
    finally:
        rs.configure(former)


def test_a_bucket_of_the_same_name_on_another_server_is_another_store(
    uri: str, s3: S3, proxy: Proxy, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read(uri, proxy, monkeypatch)
    with proxy_to(s3) as other:
        assert read(uri, other, monkeypatch) == first
    assert read(uri, proxy, monkeypatch) == 2 * REFRESH
    places = {
        open_store("az://tables/t", {"account_name": name, "account_key": "a2V5"}).cache_place  # type: ignore[attr-defined]
        for name in ("one", "two")
    }
    assert len(places) == 2


def _fifo(file: Path) -> None:
    os.mkfifo(file)


def _endless(file: Path) -> None:
    file.symlink_to("/dev/zero")


def _link_to_a_copy(file: Path) -> None:
    file.symlink_to(file.with_name("copy"))


def _folder(file: Path) -> None:
    file.mkdir()


def _huge(file: Path) -> None:
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)


@pytest.mark.parametrize("change", [_fifo, _endless, _link_to_a_copy, _folder, _huge])
def test_what_is_no_file_of_ours_is_fetched_again(
    change: Callable[[Path], None],
    uri: str,
    proxy: Proxy,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read(uri, proxy, monkeypatch)
    finish_background()
    entries = [*cache.glob("ranges/*/*/*")]
    assert len(entries) >= 3
    for entry in entries:
        entry.rename(entry.with_name("copy"))
        change(entry)
    assert read(uri, proxy, monkeypatch) > 2 * REFRESH


def test_entries_of_a_folder_that_became_read_only_are_used(
    uri: str, proxy: Proxy, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(uri, proxy, monkeypatch)
    finish_background()
    for entry in cache.glob("ranges/*/*/*"):
        os.utime(entry, (0, 0))

    FileCalls(monkeypatch, names=["utime"]).meet_where(Fault.READ_ONLY, "utime")
    assert read(uri, proxy, monkeypatch) == 2 * REFRESH


def test_a_full_disk_leaves_no_halves(
    uri: str, proxy: Proxy, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = store_cache().failed_writes
    with pytest.MonkeyPatch.context() as patch:
        write_halves(patch, lambda file: file.is_relative_to(cache / "ranges"))
        read(uri, proxy, monkeypatch)
    assert store_cache().failed_writes > before
    assert not [*cache.glob("ranges/*/*/*")]
    read(uri, proxy, monkeypatch)
    assert read(uri, proxy, monkeypatch) == 2 * REFRESH


def test_a_relative_folder_stays_where_it_was_given(
    uri: str, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for given, place in (("kept", tmp_path / "kept"), ("~/kept", tmp_path / "home" / "kept")):
        former = rs.configure(rs.Config(cache_dir=given))
        try:
            forget(monkeypatch)
            table = opened(uri, proxy)
            monkeypatch.chdir("/")
            assert table.scan().to_arrow().num_rows == ROWS - 1
        finally:
            rs.configure(former)
            monkeypatch.chdir(tmp_path)
        assert [*place.glob("ranges/*/*/*")]


def content(number: int) -> bytes:
    return bytes([number]) * (500 + number)


def churn(folder: str, seconds: float) -> None:
    """Put and get entries of a folder that is too small for them, and check each."""
    files = ByteFiles(Path(folder), 12_000)
    ends = time.monotonic() + seconds
    number = os.getpid()
    while time.monotonic() < ends:
        number = (number * 7 + 3) % 61
        path = f"data/{number}"
        files.put(PLACE, path, 0, len(content(number)), content(number))
        data = files.get(PLACE, path, 0, len(content(number)))
        assert data in (None, content(number))
        if number % 9 == 0:
            files.forget(PLACE, path)


def test_processes_that_share_a_folder_and_die_leave_it_whole(tmp_path: Path) -> None:
    processes = [start(churn, str(tmp_path), seconds) for seconds in (0.4, 0.4, 60.0)]
    for process in processes[:2]:
        process.join()
    processes[2].kill()
    processes[2].join()
    assert [process.exitcode for process in processes[:2]] == [0, 0]
    files = ByteFiles(tmp_path, 12_000)
    draft = next(tmp_path.glob("ranges/*/*")) / f".{'0' * 32}"
    draft.write_bytes(bytes(100))  # as a process leaves it that dies
    os.utime(draft, (0, 0))
    for number in range(61):
        data = files.get(PLACE, f"data/{number}", 0, len(content(number)))
        assert data in (None, content(number))
        files.put(PLACE, f"data/{number}", 0, len(content(number)), content(number))
    assert not draft.exists()
    sizes = [file.stat().st_size for file in tmp_path.glob("ranges/*/*/*")]
    assert sum(sizes) < 14_000
