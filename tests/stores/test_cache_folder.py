"""The cache folder: what a second process asks, and what happens when the folder is not well."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.metrics import store_cache
from rowsieve.objects.byte_files import ByteFiles
from rowsieve.storage.log.kept_snapshots import kept_snapshot
from tests.objects.background import finish_background
from tests.stores.proxy import Proxy, proxy_to
from tests.stores.s3_server import S3
from tests.stores.trips import counted
from tests.stores.trips_table import forget

PARTS, ROWS = 4, 5
REFRESH = 3  # requests of the one round trip that asks for the newest version


@pytest.fixture(scope="module")
def proxy(s3: S3) -> Iterator[Proxy]:
    with proxy_to(s3) as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    former = rs.configure(rs.Config(cache_dir=tmp_path / "cache"))
    forget(monkeypatch)
    yield tmp_path / "cache"
    rs.configure(former)


@pytest.fixture
def uri(s3: S3) -> str:
    writer = rs.create_table(s3.fresh_uri(), rows(0), key=["id"], storage_options=s3.options)
    for number in range(1, PARTS):
        writer.upsert(rows(number))
    finish_background()
    return writer.uri


def rows(number: int) -> pa.Table:
    ids = range(number * ROWS, (number + 1) * ROWS)
    return pa.table({"id": ids, "v": [number] * ROWS})


def opened(uri: str, proxy: Proxy) -> Table:
    return rs.open_table(uri, storage_options=S3(proxy.endpoint).options)


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def warm(uri: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill the folder, then forget everything in memory, as another process would begin."""
    assert ids(opened(uri, proxy)) == list(range(PARTS * ROWS))
    finish_background()
    forget(monkeypatch)


def test_a_warm_open_asks_only_for_the_newest_version(
    uri: str, proxy: Proxy, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm(uri, proxy, monkeypatch)
    with counted(proxy) as trips:
        table = opened(uri, proxy)
    assert trips.requests == [REFRESH]
    with counted(proxy) as trips:
        assert ids(table) == list(range(PARTS * ROWS))
    assert trips.requests == [REFRESH]  # small files are kept whole
    assert store_cache().hits > 0
    assert list(cache.glob("ranges/*/*/*"))


def test_another_process_opens_and_reads_from_the_folder(
    uri: str, proxy: Proxy, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm(uri, proxy, monkeypatch)
    before = len(proxy.requests)
    code = (
        "import sys, rowsieve as rs\n"
        "rs.configure(rs.Config(cache_dir=sys.argv[1]))\n"
        "table = rs.open_table(sys.argv[2])\n"
        "print(sorted(table.scan().to_arrow()['id'].to_pylist()) == list(range(20)))\n"
    )
    environment = S3(proxy.endpoint).environment
    answer = subprocess.run(
        [sys.executable, "-c", code, str(cache), uri],
        env={**environment, "PYTHONPATH": str(Path.cwd())},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert answer.stdout.split() == ["True"]
    assert len(proxy.requests) - before == 2 * REFRESH


def test_later_commits_are_read_on_from_the_kept_version(
    uri: str, s3: S3, proxy: Proxy, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm(uri, proxy, monkeypatch)
    writer = rs.open_table(uri, storage_options=s3.options)
    writer.upsert(rows(PARTS))
    writer.delete(keys=pa.table({"id": [3]}))
    finish_background()
    forget(monkeypatch)
    table = opened(uri, proxy)
    assert table.version == writer.version
    assert ids(table) == [n for n in range((PARTS + 1) * ROWS) if n != 3]


def test_a_table_that_took_the_place_of_another_is_read(
    uri: str, s3: S3, proxy: Proxy, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm(uri, proxy, monkeypatch)
    bucket = rs.objects.open_store(uri, s3.options)
    bucket.delete([*bucket.details("data"), *bucket.details("_rowsieve")])
    other = rs.create_table(uri, rows(7), key=["id"], storage_options=s3.options)
    for _ in range(2 * PARTS):
        other.upsert(rows(8))
    finish_background()
    forget(monkeypatch)
    for _ in range(2):
        table = opened(uri, proxy)
        assert table.handle.pinned.table.uuid == other.handle.pinned.table.uuid
        assert ids(table) == list(range(7 * ROWS, 9 * ROWS))
        finish_background()


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty"])
def test_damaged_entries_are_fetched_again(
    damage: str, uri: str, proxy: Proxy, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm(uri, proxy, monkeypatch)
    files = [file for file in cache.rglob("*") if file.is_file()]
    assert len(files) > PARTS
    for file in files:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        kept = {"flipped": content, "cut": content[: len(content) // 3], "empty": b""}[damage]
        file.write_bytes(bytes(kept))
    before = store_cache().damaged
    assert ids(opened(uri, proxy)) == list(range(PARTS * ROWS))
    assert store_cache().damaged > before
    finish_background()
    forget(monkeypatch)
    with counted(proxy) as trips:
        assert ids(opened(uri, proxy)) == list(range(PARTS * ROWS))
    assert trips.requests == [REFRESH, REFRESH]


def test_bytes_that_arrived_damaged_are_fetched_again(
    uri: str, proxy: Proxy, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder's own checksum holds, the manifest's does not."""
    warm(uri, proxy, monkeypatch)
    kept = ByteFiles(cache, 1 << 30)
    for file in cache.glob("ranges/*/*/*"):
        data = bytearray(file.read_bytes()[16:])
        data[-20] ^= 1
        kept._write(file, bytes(data))
    assert ids(opened(uri, proxy)) == list(range(PARTS * ROWS))


def test_a_folder_that_cannot_be_written_changes_nothing(
    uri: str, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    former = rs.configure(rs.Config(cache_dir=blocked))
    try:
        forget(monkeypatch)
        before = store_cache().failed_writes
        assert ids(opened(uri, proxy)) == list(range(PARTS * ROWS))
        assert store_cache().failed_writes > before
    finally:
        rs.configure(former)


def test_the_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    kept = ByteFiles(tmp_path, 16_000)
    for number in range(40):
        kept.put("s3://b/t", f"data/{number}", 0, 1_000, bytes(1_000))
    sizes = [file.stat().st_size for file in tmp_path.glob("ranges/*/*/*")]
    assert 8_000 < sum(sizes) <= 17_100
    assert kept.get("s3://b/t", "data/39", 0, 1_000) == bytes(1_000)
    assert kept.get("s3://b/t", "data/0", 0, 1_000) is None
    assert kept.get("s3://b/t", "data/39", 10, 20) == bytes(10)
    kept.put("s3://b/t", "data/large", 0, 8_000, bytes(8_000))  # more than a quarter
    assert kept.get("s3://b/t", "data/large", 0, 8_000) is None


def test_versions_of_tables_count_and_the_least_recently_opened_go_first(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, limit = tmp_path / "cache", 60_000

    def files(pattern: str = "*") -> list[Path]:
        return [file for file in folder.rglob(pattern) if file.is_file()]

    stores: dict[str, object] = {}
    former = rs.configure(rs.Config(cache_dir=folder, cache_bytes=limit, inline_bytes=0))
    try:
        tables = [
            rs.create_table(s3.fresh_uri(), rows(number), storage_options=s3.options)
            for number in range(12)
        ]
        for table in tables:
            for file in files():  # used an hour earlier
                os.utime(file, (file.stat().st_mtime - 3600,) * 2)
            for each in (tables[0], table):
                forget(monkeypatch)
                own = rs.open_table(each.uri, storage_options=s3.options)
                assert own.to_arrow().num_rows == ROWS
                finish_background()
                stores[each.uri] = own.handle.store
            assert sum(file.stat().st_size for file in files()) <= limit * 17 / 16
        kept = [kept_snapshot(store) is not None for store in stores.values()]
        assert (kept[0], kept[1], kept[-1]) == (True, False, True)
    finally:
        rs.configure(former)


def test_data_is_kept_by_choice(
    s3: S3, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 200_000
    large = pa.table({"id": range(count), "v": [i * 7919 % 1_000_003 for i in range(count)]})
    uri = rs.create_table(s3.fresh_uri(), large, key=["id"], storage_options=s3.options).uri
    for keeps, requests in ((False, 2 * REFRESH + 1), (True, 2 * REFRESH)):
        folder = tmp_path / str(keeps)
        former = rs.configure(rs.Config(cache_dir=folder, cache_data=keeps))
        try:
            for _ in range(2):
                finish_background()
                forget(monkeypatch)
                with counted(proxy) as trips:
                    assert opened(uri, proxy).scan(columns=["v"]).to_arrow().num_rows == count
        finally:
            rs.configure(former)
        asked = sum(trips.requests)
        assert asked >= requests if not keeps else asked == requests


def test_settings_that_make_no_sense_are_refused() -> None:
    for bad in ({"cache_dir": ""}, {"cache_dir": 5}, {"cache_bytes": 0}, {"cache_data": "yes"}):
        with pytest.raises(rs.errors.InvalidInput, match="Config: cache_"):
            rs.Config(**bad)
