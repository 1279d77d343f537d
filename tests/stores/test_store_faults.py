"""Tables on an S3 server that fails: no row is wrong, and a commit counts once or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.errors import RowsieveError, StoreError
from rowsieve.objects import store_opening
from tests.faults.vocabulary import Fault
from tests.small_tables import KV, kv
from tests.stores.proxy import WIRE_FAULTS, Proxy, Request, Rule, proxy_to
from tests.stores.s3_server import S3, SECRET

LASTING = (
    Fault.REFUSED,
    Fault.DENIED,
    Fault.EXPIRED_TOKEN,
    Fault.ELSEWHERE,
    Fault.SKEWED_CLOCK,
)
OF_READS = (Fault.TRUNCATED, Fault.STALE_LIST)
OF_PUTS = (Fault.EXISTS_AFTER, Fault.EXISTS_BEFORE)
FAULTS = [  # what may pass by itself, whatever the request
    fault for fault in WIRE_FAULTS if fault not in (*LASTING, *OF_READS, *OF_PUTS)
]


@pytest.fixture
def proxy(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy in front of the server, and a client that loses patience soon."""
    few = {
        "max_retries": 2,
        "retry_timeout": timedelta(seconds=60),
        "backoff": {
            "init_backoff": timedelta(milliseconds=1),
            "max_backoff": timedelta(milliseconds=2),
            "base": 2,
        },
    }
    monkeypatch.setattr(store_opening, "_RETRIES", few)
    with proxy_to(s3) as running:
        yield running


def options(proxy: Proxy, timeout: str = "30s") -> dict[str, str]:
    return {**S3(proxy.endpoint).options, "timeout": timeout}


def made(s3: S3) -> str:
    """A table of two overlapping parts."""
    uri = s3.fresh_uri()
    table = rs.create_table(uri, KV, key=["k"], storage_options=s3.options)
    table.upsert(kv(*((i, 0) for i in range(100))))
    table.upsert(kv(*((i, 1) for i in range(50, 150))))
    return uri


def rows(table: Table, where: str | None = None) -> list[tuple[int, int]]:
    return sorted((row["k"], row["v"]) for row in table.scan(where).to_arrow().to_pylist())


EXPECTED = [(i, int(i >= 50)) for i in range(150)]


def once_per_object(fault: Fault, method: str) -> Rule:
    """The first request of each object meets the fault."""
    met: set[str] = set()

    def rule(request: Request) -> Fault | None:
        if request.method != method or request.path in met:
            return None
        met.add(request.path)
        return fault

    return rule


@pytest.mark.parametrize("fault", [*FAULTS, *OF_READS], ids=lambda fault: fault.name)
def test_reads_come_through_a_fault_at_each_object(fault: Fault, s3: S3, proxy: Proxy) -> None:
    uri = made(s3)
    proxy.rule = once_per_object(fault, "GET")
    is_slow = fault in (Fault.SLOW_BODY, Fault.TIMEOUT_AFTER)
    table = rs.open_table(uri, storage_options=options(proxy, "0.3s" if is_slow else "30s"))
    assert rows(table) == EXPECTED
    assert rows(table, "k = 60") == [(60, 1)]
    assert len(proxy.faults) > 4


@pytest.mark.parametrize("fault", [*FAULTS, *OF_PUTS], ids=lambda fault: fault.name)
def test_a_commit_through_a_fault_at_each_put_counts_once(
    fault: Fault, s3: S3, proxy: Proxy
) -> None:
    uri = made(s3)
    is_slow = fault in (Fault.SLOW_BODY, Fault.TIMEOUT_AFTER)
    table = rs.open_table(uri, storage_options=options(proxy, "0.3s" if is_slow else "30s"))
    proxy.rule = once_per_object(fault, "PUT")
    table.upsert(kv((1, 7)))
    table.upsert(kv((2, 7)))
    assert len(proxy.faults) >= 6
    found = rs.open_table(uri, storage_options=s3.options)
    assert found.version == 4
    assert [line.operation for line in found.history(2)] == ["upsert", "upsert"]
    assert rows(found) == [(k, 7 if k in (1, 2) else v) for k, v in EXPECTED]


@pytest.mark.parametrize("fault", [*FAULTS, *LASTING], ids=lambda fault: fault.name)
def test_a_fault_that_stays_is_an_error_and_never_a_wrong_row(
    fault: Fault, s3: S3, proxy: Proxy
) -> None:
    uri = made(s3)
    is_slow = fault in (Fault.SLOW_BODY, Fault.TIMEOUT_AFTER)
    table = rs.open_table(uri, storage_options=options(proxy, "0.1s" if is_slow else "30s"))
    proxy.rule = lambda request: fault if "/data/" in request.path else None
    with pytest.raises(RowsieveError) as raised:
        rows(table)
    assert_told_well(raised.value, proxy)
    proxy.rule = lambda request: fault if "/data/" in request.path else None
    if fault not in (Fault.BROKEN_BODY, Fault.SLOW_BODY):  # a put is answered without a body
        with pytest.raises(RowsieveError) as raised:
            table.upsert(kv((1, 7)))
        assert_told_well(raised.value, proxy)
    proxy.rule = lambda request: None
    assert rows(table) == EXPECTED


def assert_told_well(error: BaseException, proxy: Proxy) -> None:
    """The message names the host, and neither it nor its causes tell a secret."""
    assert isinstance(error, StoreError)
    assert proxy.endpoint.removeprefix("http://") in str(error)
    told: BaseException | None = error
    while told is not None:
        for secret in (SECRET, "AKIAIOSFODNN7EXAMPLE", "ECHOED", "Signature="):
            assert secret not in str(told) + repr(told)
        told = told.__cause__


def test_a_store_that_refuses_conditional_puts_is_asked_before_a_table_is_created(
    s3: S3, proxy: Proxy
) -> None:
    uri = s3.fresh_uri()
    proxy.rule = lambda request: Fault.REFUSED if request.conditional else None
    with pytest.raises(StoreError, match=r"whether .* honours create-only puts") as raised:
        rs.create_table(uri, kv((1, 1)), key=["k"], storage_options=options(proxy))
    assert_told_well(raised.value, proxy)
    assert {request.path for request in proxy.requests if request.method == "PUT"} == {
        f"/tables/{uri.rpartition('/')[2]}/_rowsieve/create-only"
    }


def test_a_store_that_no_longer_takes_conditional_puts_takes_no_commit(
    s3: S3, proxy: Proxy
) -> None:
    uri = made(s3)
    proxy.rule = lambda request: Fault.REFUSED if request.conditional else None
    table = rs.open_table(uri, storage_options=options(proxy))
    with pytest.raises(StoreError, match="NotImplemented") as raised:
        table.upsert(kv((1, 7)))
    assert_told_well(raised.value, proxy)
    assert rows(rs.open_table(uri, storage_options=s3.options)) == EXPECTED


def test_a_host_that_is_not_there_is_named(s3: S3, proxy: Proxy) -> None:
    gone = {**options(proxy), "endpoint": "http://127.0.0.1:9"}
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:9") as raised:
        rs.open_table(s3.fresh_uri(), storage_options=gone)
    assert SECRET not in str(raised.value)
