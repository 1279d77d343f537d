"""Tables on stores that list late, deny, mislead or hold out, and settings that are wrong."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import rowsieve as rs
from rowsieve import clock
from rowsieve.errors import InvalidInput, RowsieveError, StoreError
from rowsieve.objects import open_store
from tests.faults.vocabulary import Fault
from tests.objects.background import finish_background
from tests.small_tables import KV, kv
from tests.stores.proxy import Proxy, Request
from tests.stores.s3_server import S3
from tests.stores.test_store_faults import (
    EXPECTED,
    assert_told_well,
    made,
    options,
    proxy,
    rows,
)

__all__ = ["proxy"]


def is_listing(request: Request) -> bool:
    return "list-type=2" in request.path


def test_a_store_that_lists_late_hides_no_commit(s3: S3, proxy: Proxy) -> None:
    uri = s3.fresh_uri()
    properties = {"checkpoint_interval": "3"}
    rs.create_table(uri, KV, key=["k"], storage_options=s3.options, properties=properties)
    table = rs.open_table(uri, storage_options=options(proxy))
    rs.open_table(uri, storage_options=options(proxy)).refresh()
    proxy.rule = lambda request: Fault.STALE_LIST if is_listing(request) else None
    writer = rs.open_table(uri, storage_options=s3.options)
    for version in range(1, 9):
        writer.upsert(kv((version, version)))
        finish_background()
        assert rs.open_table(uri, storage_options=options(proxy)).version == version
        if version % 2:
            assert table.refresh() == version
    assert table.upsert(kv((9, 9))).version == 9
    assert rows(table) == [(k, k) for k in range(1, 10)]
    with pytest.raises(rs.errors.TableExists):
        rs.create_table(uri, KV, key=["k"], storage_options=options(proxy))
    assert any(fault is Fault.STALE_LIST for _, fault in proxy.faults)


@pytest.mark.parametrize("etag", [lambda _: f'"{uuid.uuid4().hex}"', lambda _: None])
def test_etags_mean_nothing(etag: Callable[[str], str | None], s3: S3, proxy: Proxy) -> None:
    uri = made(s3)
    proxy.etag = etag
    met: set[str] = set()

    def rule(request: Request) -> Fault | None:
        if request.method != "GET" or request.path in met:
            return None
        met.add(request.path)
        return Fault.BROKEN_BODY  # so that an answer is continued

    proxy.rule = rule
    table = rs.open_table(uri, storage_options=options(proxy))
    assert rows(table) == EXPECTED
    table.upsert(kv((1, 7)))
    found = rs.open_table(uri, storage_options=s3.options)
    assert found.version == 3
    assert rows(found, "k = 1") == [(1, 7)]


def test_head_requests_may_be_refused(s3: S3, proxy: Proxy) -> None:
    proxy.rule = lambda request: Fault.DENIED if request.method == "HEAD" else None
    uri = s3.fresh_uri()
    table = rs.create_table(uri, kv((1, 1)), key=["k"], storage_options=options(proxy))
    table.upsert(kv((2, 2)))
    with pytest.raises(rs.errors.TableExists):
        rs.create_table(uri, KV, key=["k"], storage_options=options(proxy))
    again = rs.create_table(uri, KV, key=["k"], if_exists="ignore", storage_options=options(proxy))
    assert rows(again) == [(1, 1), (2, 2)]
    data = open_store(uri, s3.options).list("data")[0]
    open_store(uri, s3.options)._store.delete(f"{uri.rpartition('/')[2]}/{data}")  # type: ignore[attr-defined]
    with pytest.raises(RowsieveError, match=r"gone|missing"):
        rows(rs.open_table(uri, storage_options=options(proxy)))


def test_credentials_that_only_read_read_and_write_nothing(s3: S3, proxy: Proxy) -> None:
    uri = made(s3)
    proxy.rule = lambda request: None if request.method in ("GET", "HEAD") else Fault.DENIED
    table = rs.open_table(uri, storage_options=options(proxy))
    assert rows(table) == EXPECTED
    acts: list[Callable[[], object]] = [
        lambda: table.upsert(kv((1, 7))),
        lambda: table.delete("k = 1"),
        table.compact,
        lambda: rs.create_table(s3.fresh_uri(), kv((1, 1)), storage_options=options(proxy)),
    ]
    for act in acts:
        with pytest.raises(StoreError, match="access denied") as raised:
            act()
        assert_told_well(raised.value, proxy)
    assert rows(rs.open_table(uri, storage_options=s3.options)) == EXPECTED


def test_a_bucket_that_is_missing_is_told(s3: S3, proxy: Proxy) -> None:
    acts: list[Callable[[], object]] = [
        lambda: rs.open_table("s3://no-such-bucket/t", storage_options=options(proxy)),
        lambda: rs.create_table("s3://no-such-bucket/t", KV, storage_options=options(proxy)),
    ]
    for act in acts:
        with pytest.raises(StoreError, match="NoSuchBucket") as raised:
            act()
        assert_told_well(raised.value, proxy)


@pytest.mark.parametrize("ending", ["?a=b", "/?", "/path?x", "#part", "/#"])
def test_an_endpoint_with_a_query_or_a_fragment_is_refused(ending: str, s3: S3) -> None:
    wrong = {**s3.options, "endpoint": f"{s3.endpoint}{ending}"}
    with pytest.raises(InvalidInput, match="the setting endpoint is not the URL of a server"):
        rs.open_table(s3.fresh_uri(), storage_options=wrong)


def test_an_endpoint_may_have_a_path(s3: S3, proxy: Proxy) -> None:
    proxy.below = "/gate/way"
    uri = made(s3)
    through = {**options(proxy), "endpoint": f"{proxy.endpoint}/gate/way"}
    table = rs.open_table(uri, storage_options=through)
    table.upsert(kv((1, 7)))
    assert rows(table, "k < 3") == [(0, 0), (1, 7), (2, 0)]
    assert all(request.path.startswith("/gate/way/tables") for request in proxy.requests)
    elsewhere = {**options(proxy), "endpoint": f"{proxy.endpoint}/away"}
    with pytest.raises(StoreError) as raised:
        rs.open_table(uri, storage_options=elsewhere)
    assert_told_well(raised.value, proxy)


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_storm_ends_by_a_deadline_and_not_by_a_count_alone(
    method: str, s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = made(s3)
    table = rs.open_table(uri, storage_options=options(proxy))
    passed = [0.0]

    def later() -> float:
        passed[0] += 40.0  # each look at the clock
        return passed[0]

    monkeypatch.setattr(clock, "monotonic_s", later)
    proxy.rule = lambda request: Fault.THROTTLED if request.method == method else None
    before = len(proxy.requests)
    with pytest.raises(StoreError, match="SlowDown") as raised:
        table.upsert(kv((1, 7)))
    assert_told_well(raised.value, proxy)
    tried = [request.path for request in proxy.requests[before:]]
    retries = 3  # of the client itself
    assert max(tried.count(path) for path in tried) <= 2 * retries
    proxy.rule = lambda _: None
    assert rows(rs.open_table(uri, storage_options=s3.options)) == EXPECTED


def test_of_many_that_create_a_table_one_does_and_the_others_find_it(s3: S3) -> None:
    for _ in range(3):
        uri = s3.fresh_uri()

        def make(number: int, uri: str = uri) -> tuple[str, str]:
            rows = kv((number, number))
            try:
                table = rs.create_table(uri, rows, key=["k"], storage_options=s3.options)
            except rs.errors.TableExists:
                table = rs.open_table(uri, storage_options=s3.options)
                return "found", table.detail()["uuid"]
            return "made", table.detail()["uuid"]

        with ThreadPoolExecutor(6) as pool:
            ended = list(pool.map(make, range(6)))
        assert [what for what, _ in ended].count("made") == 1
        assert len({table for _, table in ended}) == 1
        assert len(rows(rs.open_table(uri, storage_options=s3.options))) == 1
