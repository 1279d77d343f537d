"""Dependent round trips to an S3 server: how often a caller waits across the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.compaction import slices
from rowsieve.storage.log import log_head
from tests import profiles
from tests.objects.background import finish_background
from tests.stores.proxy import Proxy, proxy_to
from tests.stores.s3_server import S3
from tests.stores.trips import counted, replayed
from tests.stores.trips_table import KEYS, forget, lines, measure, part, trips_of
from tests.stores.trips_table import PARTS as DOCUMENTED

PARTS = 100 if profiles.IS_DEEP else 12
LARGE_PARTS, LARGE_KEYS = 4, 140_000  # three row groups each

OPEN, REFRESH, CATCH_UP, COMMIT = 3, 1, 3, 3
LOOKUP, WARM_LOOKUP = 4, 2  # by a scan, with the refresh before
LOOKUP_BESIDE, WARM_LOOKUP_BESIDE = 3, 1  # in one call, with the refresh beside


@pytest.fixture(scope="module")
def proxy(s3: S3) -> Iterator[Proxy]:
    with proxy_to(s3) as running:
        yield running


@pytest.fixture(scope="module")
def uri(s3: S3) -> str:
    """A table of parts that all overlap, each with its number in `v`."""
    found = s3.fresh_uri()
    table = rs.create_table(found, part(0), key=["id"], storage_options=s3.options)
    for number in range(1, PARTS):
        table.upsert(part(number))
    return found


@pytest.fixture(scope="module")
def large_uri(s3: S3) -> str:
    """A table of overlapping parts of several row groups, each far longer than its tail."""
    found = s3.fresh_uri()
    table = rs.create_table(found, part(0, LARGE_KEYS), key=["id"], storage_options=s3.options)
    for number in range(1, LARGE_PARTS):
        table.upsert(part(number, LARGE_KEYS))
    table.delete(keys=part(1, LARGE_KEYS).select(["id"]))  # a large file of tombstones
    return found


def options(proxy: Proxy) -> dict[str, str]:
    return S3(proxy.endpoint).options


LATEST = max(number for number in range(PARTS) if number % 3 == 17 % 3)
Read = Callable[[rs.Scan], object]

# (what is read, which value of `v` it must find, round trips cold and warm with the refresh)
READS: dict[str, tuple[Read, str | None, int, int]] = {
    "a point lookup": (lambda scan: scan.to_arrow()["v"].to_pylist(), "id = 17", 2, 2),
    "a lookup by another column, too": (
        lambda scan: scan.to_arrow()["v"].to_pylist(), f"v = {LATEST} AND id = 17", 2, 2),
    "a scan": (lambda scan: scan.to_arrow().num_rows, None, 2, 2),
    "a scan under a predicate": (lambda scan: scan.to_arrow().num_rows, "v >= 0", 2, 2),
    "a count under a predicate": (lambda scan: scan.count(), "v >= 0", 2, 2),
    "a count at a key": (lambda scan: [scan.count()], "id = 17", 4, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_a_read_over_any_number_of_parts_takes_few_round_trips(
    name: str, uri: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, where, cold, warm = READS[name]
    table = rs.open_table(uri, storage_options=options(proxy))
    expected = [LATEST] if where and "17" in where else KEYS
    expected = [1] if name == "a count at a key" else expected

    def run() -> None:
        assert read(table.scan(where)) == expected

    forget(monkeypatch)
    with counted(proxy) as trips:
        run()
    assert trips.count <= cold
    assert trips_of(proxy, run) <= warm
    forget(monkeypatch)
    replayed(proxy, run, trips.requests)


@pytest.mark.parametrize("is_beside", [False, True])
def test_a_lookup_in_large_parts_takes_few_round_trips(
    is_beside: bool, large_uri: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rs.open_table(large_uri, storage_options=options(proxy))
    key = LARGE_KEYS + 2 - LARGE_KEYS % 3  # written by part 2 alone

    def run() -> None:
        where = f"id = {key}"
        rows = table.to_arrow(where) if is_beside else table.scan(where).to_arrow()
        assert rows["v"].to_pylist() == [2]

    forget(monkeypatch)
    with counted(proxy) as trips:
        run()
    assert trips.count <= (LOOKUP_BESIDE if is_beside else LOOKUP)
    assert trips_of(proxy, run) <= (WARM_LOOKUP_BESIDE if is_beside else WARM_LOOKUP)
    forget(monkeypatch)
    replayed(proxy, run, trips.requests)


def test_a_lookup_in_one_large_part_reads_no_filter(
    s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = s3.fresh_uri()
    rs.create_table(uri, part(0, LARGE_KEYS), key=["id"], storage_options=s3.options)
    table = rs.open_table(uri, storage_options=options(proxy))
    forget(monkeypatch)
    with counted(proxy) as trips:
        assert table.to_arrow(f"id = {LARGE_KEYS // 3 * 2 + 1}").num_rows <= 1
    assert trips.count <= 1 + 1  # the refresh beside the end of the file, the pages


def grown(s3: S3, interval: str, commits: int) -> Table:
    """A table of some commits."""
    properties = {"checkpoint_interval": interval}
    table = rs.create_table(
        s3.fresh_uri(),
        part(0),
        key=["id"],
        storage_options=s3.options,
        properties=properties,
    )
    for number in range(1, 1 + commits):
        table.upsert(part(number))
    finish_background()  # checkpoints
    return table


@pytest.mark.parametrize("interval", ["1000", "4", "1"])
def test_opening_and_catching_up_take_three_round_trips_and_a_refresh_one(
    interval: str, s3: S3, proxy: Proxy
) -> None:
    writer = grown(s3, interval, 5)
    assert trips_of(proxy, lambda: rs.open_table(writer.uri, storage_options=options(proxy))) <= 3
    table = rs.open_table(writer.uri, storage_options=options(proxy))
    assert table.version == writer.version
    assert trips_of(proxy, table.refresh) == REFRESH
    for number in range(3):
        writer.upsert(part(number))
    finish_background()
    assert trips_of(proxy, table.refresh) <= CATCH_UP
    assert table.version == writer.version == 8


def test_a_time_far_behind_the_head_takes_as_many_round_trips_as_one_close_to_it(
    s3: S3, proxy: Proxy
) -> None:
    writer = grown(s3, "1000", 20)
    table = rs.open_table(writer.uri, storage_options=options(proxy))
    times = {commit.version: commit.timestamp for commit in writer.history()}
    trips = []
    for version in (1, 19):

        def read_old(version: int = version) -> None:
            assert table.scan(as_of=times[version]).version == version

        trips.append(trips_of(proxy, read_old))
    assert trips[0] == trips[1] <= 10


@pytest.mark.parametrize("interval", ["1000", "4", "1"])
def test_a_commit_takes_three_round_trips_with_its_refresh(
    interval: str, s3: S3, proxy: Proxy
) -> None:
    uri = grown(s3, interval, 1).uri
    table = rs.open_table(uri, storage_options=options(proxy))
    table.upsert(part(0))  # proves create-only puts
    for _ in range(5):
        assert trips_of(proxy, lambda: table.upsert(part(1))) <= COMMIT
        assert trips_of(proxy, lambda: table.delete(keys=pa.table({"id": [1, 2]}))) <= COMMIT
    assert table.version == 12
    assert rs.open_table(uri, storage_options=s3.options).version == 12


def test_a_commit_with_stored_vectors_takes_three_round_trips_more(
    s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends of older files beside the upload, their keys, the vectors."""
    uri = s3.fresh_uri()
    eager = {"visibility": "eager", "inline_bytes": "0"}
    groups, count = 4, 20_000
    parts = [
        pa.table({"id": np.arange(count) + i * count, "v": np.random.default_rng(i).random(count)})
        for i in range(groups)
    ]
    writer = rs.create_table(
        uri, parts[0], key=["id"], storage_options=s3.options, properties=eager
    )
    for each in parts[1:]:
        writer.upsert(each)
    table = rs.open_table(uri, storage_options=options(proxy))
    table.upsert(parts[0].slice(0, 1))  # proves create-only puts
    for each in parts:
        writer.upsert(each.slice(5, 7))
    table.refresh()
    spread = pa.concat_tables(each.slice(9, 1000) for each in parts)
    forget(monkeypatch)
    assert trips_of(proxy, lambda: table.upsert(spread)) <= COMMIT + 3
    forget(monkeypatch)
    reader = rs.open_table(uri, storage_options=options(proxy))
    assert trips_of(proxy, reader.count) == REFRESH
    assert reader.count() == groups * count


def test_the_version_before_is_restored_in_three_round_trips(s3: S3, proxy: Proxy) -> None:
    writer = grown(s3, "1000", 3)
    table = rs.open_table(writer.uri, storage_options=options(proxy))
    table.upsert(part(1))  # proves create-only puts
    rows = table.to_arrow().sort_by("id")
    for _ in range(2):
        table.delete("id < 9")
        assert trips_of(proxy, lambda: table.restore(table.version - 1)) == COMMIT
        assert table.to_arrow().sort_by("id") == rows
    table.delete("id < 9")
    undone = table.version - 1
    writer.upsert(part(2))  # others commit between
    finish_background()
    table.restore(undone)
    assert table.version == writer.version + 1
    for each in (table, rs.open_table(table.uri, storage_options=s3.options)):
        assert each.to_arrow().sort_by("id") == rows
    table.delete("id < 9")
    writer.expire_versions(retain_last=1, grace_s=0)
    with pytest.raises(rs.errors.SnapshotExpired):
        table.restore(table.version - 1)
    assert rs.open_table(table.uri, storage_options=s3.options).count("id < 9") == 0


def test_a_log_longer_than_a_page_of_a_listing_opens_in_three_round_trips(
    s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = grown(s3, "4", 6)

    def open_again() -> None:
        found = rs.open_table(table.uri, storage_options=options(proxy))
        assert found.version == 6
        assert found.handle.pinned == table.handle.pinned

    for listed in range(1, 9):  # the pages end before, at and after checkpoint and head
        monkeypatch.setattr(log_head, "_LISTED", listed)
        assert trips_of(proxy, open_again) <= OPEN


def test_an_ordered_scan_takes_few_round_trips(
    uri: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rs.open_table(uri, storage_options=options(proxy))
    forget(monkeypatch)

    def run() -> None:
        ids = table.scan(order_by_key=True).to_arrow()["id"].to_pylist()
        assert ids == list(range(KEYS))

    assert trips_of(proxy, run) <= 3


def test_a_catalog_opens_the_table_of_a_name_whatever_its_folder_holds(
    s3: S3, proxy: Proxy
) -> None:
    place = s3.fresh_uri()
    writer = rs.Catalog(place, storage_options=s3.options)
    for name, number in (("db.old", 1), ("db.other", 2)):
        writer.create_table(name, part(number), key=["id"])
    catalog = rs.Catalog(place, storage_options=options(proxy))

    def value_of(name: str) -> int:
        return int(catalog.open_table(name).head(1)["v"][0].as_py())

    assert (value_of("db.old"), value_of("db.other")) == (1, 2)
    writer.drop_table("db.other")
    writer.rename_table("db.old", "db.other")  # its folder stays db/old, and db/other has a table
    writer.create_table("db.old", part(4), key=["id"])
    assert (value_of("db.old"), value_of("db.other")) == (4, 1)
    assert trips_of(proxy, lambda: catalog.open_table("db.other")) <= OPEN
    writer.drop_table("db.other")
    with pytest.raises(rs.errors.TableNotFound, match=r"db\.other"):
        catalog.open_table("db.other")


def test_an_old_version_is_refused_once_the_head_gives_it_up(s3: S3, proxy: Proxy) -> None:
    writer = grown(s3, "4", 9)
    table = rs.open_table(writer.uri, storage_options=options(proxy))
    assert table.scan(version=5).version == 5  # is kept in memory
    writer.expire_versions(retain_last=2, grace_s=1)
    for version in (3, 5):
        with pytest.raises(rs.errors.SnapshotExpired):
            table.scan(version=version)
    with pytest.raises(rs.errors.VersionNotFound):
        table.scan(version=10**9)


COMPACTION_PASS = 4  # all inputs beside the refresh, new files with their list, entry, neighbours


def test_a_pass_of_a_compaction_takes_four_round_trips_whatever_footers_are_cached(
    s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = grown(s3, "1000", 5).uri
    table = rs.open_table(uri, storage_options=options(proxy))
    assert table.scan("v >= 0").to_arrow().num_rows == KEYS  # caches footers, not pages
    assert table.upsert(part(6)).version == 6  # has none in the cache
    assert trips_of(proxy, table.compact) <= COMPACTION_PASS

    monkeypatch.setattr(slices, "MAX_COMMITS", 4)  # so that the first of two passes merges slices
    monkeypatch.setattr(slices, "MIN_COMMITS", 2)
    for number in range(6):
        table.upsert(part(number))
    assert table.scan("v >= 0").to_arrow().num_rows == KEYS
    table.upsert(part(6))
    assert trips_of(proxy, table.compact) <= 2 * COMPACTION_PASS
    assert table.version == 16
    assert len(table.handle.pinned.parts) == 1


def test_a_change_by_predicate_without_a_key_takes_four_round_trips(
    s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = rs.create_table(s3.fresh_uri(), part(0), storage_options=s3.options)
    for number in range(1, 6):
        writer.append(part(number))
    table = rs.open_table(writer.uri, storage_options=options(proxy))
    table.append(part(6))  # proves create-only puts
    table.delete("id = 15")  # some parts have vectors
    assert trips_of(proxy, lambda: table.update({"v": "v + 100"}, where="id = 16")) <= 4
    assert table.to_arrow("v >= 100")["v"].to_pylist() == [101, 104]
    forget(monkeypatch)
    assert trips_of(proxy, lambda: table.update({"v": "v + 100"}, where="v >= 100")) <= 4
    assert sorted(table.to_arrow("v >= 100")["v"].to_pylist()) == [201, 204]
    assert trips_of(proxy, lambda: table.delete("v >= 100")) <= 4
    assert table.count("id = 16") == 0


def test_a_change_by_predicate_with_a_new_part_among_read_ones_takes_four_round_trips(
    s3: S3, proxy: Proxy
) -> None:
    uri = s3.fresh_uri()
    properties = {"inline_bytes": "0"}
    writer = rs.create_table(
        uri, part(0), key=["id"], storage_options=s3.options, properties=properties
    )
    for number in range(1, 12):
        writer.upsert(part(number))
    table = rs.open_table(uri, storage_options=options(proxy))
    table.upsert(part(0))  # proves create-only puts
    row_count = table.to_arrow().num_rows  # reads all tails, and no filter
    changes: list[Callable[[], object]] = [
        lambda: table.delete("id = 17"),
        lambda: table.delete("id = 19"),
        lambda: table.update({"w": "'x'"}, where="id = 16"),
    ]
    for change in changes:
        table.upsert(part(1))
        assert trips_of(proxy, change) <= 4
    rows = table.to_arrow()
    assert rows.num_rows == row_count - 1  # 19 is in each new part
    assert rows.filter(pa.compute.equal(rows["w"], "x"))["id"].to_pylist() == [16]


def test_no_size_is_asked_for(uri: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    table = rs.open_table(uri, storage_options=options(proxy))
    forget(monkeypatch)
    before = len(proxy.requests)
    assert table.scan().to_arrow().num_rows == KEYS
    assert table.scan("v >= 0").to_arrow().num_rows == KEYS
    assert {request.method for request in proxy.requests[before:]} == {"GET"}
    # Nothing is fetched twice: two refreshes, and one request a file.
    data = [request.path for request in proxy.requests[before:] if "/data/" in request.path]
    assert len(data) <= 3 * PARTS


def test_the_documented_round_trips_are_those_that_are_counted(s3: S3, proxy: Proxy) -> None:
    counts = DOCUMENTED if profiles.IS_DEEP else DOCUMENTED[:1]
    document = Path("docs/how-to/object-stores.md").read_text(encoding="utf-8").splitlines()
    start = document.index(lines(DOCUMENTED, [{}])[0])
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in document[start + 2 :]]
    told = {row[0]: row[1:] for row in rows[: rows.index([])]}
    for place, found in enumerate(measure(s3, proxy, parts) for parts in counts):
        assert {name: int(row[place]) for name, row in told.items()} == found
