"""Reads in one call, which begin while the newest version is looked up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Scan, Table
from tests.objects.background import finish_background
from tests.stores.proxy import Proxy, proxy_to
from tests.stores.s3_server import S3
from tests.stores.trips_table import forget, part, trips_of

Read = Callable[[Table], Any]
READS: dict[str, Read] = {
    "to_arrow": lambda t: sorted(t.to_arrow()["v"].to_pylist()),
    "to_arrow of some": lambda t: sorted(t.to_arrow("v >= 0", columns=["v"])["v"].to_pylist()),
    "to_pandas": lambda t: sorted(t.to_pandas()["v"]),
    "to_polars": lambda t: sorted(t.to_polars()["v"]),
    "head": lambda t: t.head(100)["v"].to_pylist(),
    "count": lambda t: t.count(),
    "count of some": lambda t: t.count("v > 3"),
}


@pytest.fixture(scope="module")
def proxy(s3: S3) -> Iterator[Proxy]:
    with proxy_to(s3) as running:
        yield running


@pytest.fixture
def writer(s3: S3) -> Table:
    return rs.create_table(s3.fresh_uri(), rows([1, 2, 3]), key=["id"], storage_options=s3.options)


def rows(values: list[int]) -> pa.Table:
    return pa.table({"id": values, "v": values})


def opened(table: Table, proxy: Proxy) -> Table:
    finish_background()
    return rs.open_table(table.uri, storage_options=S3(proxy.endpoint).options)


def test_a_lookup_waits_twice_cold_and_once_warm(
    s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = rs.create_table(s3.fresh_uri(), part(0), key=["id"], storage_options=s3.options)
    for number in range(1, 6):
        writer.upsert(part(number))
    own = opened(writer, proxy)
    forget(monkeypatch)

    def lookup() -> int:
        return int(own.to_arrow("id = 17")["v"][0].as_py())

    assert lookup() == 5
    for read in (lookup, lambda: own.count("v >= 0"), own.count, own.to_arrow):
        read()
        assert trips_of(proxy, read) == 1
    forget(monkeypatch)
    assert trips_of(proxy, lookup) <= 2


@pytest.mark.parametrize("name", READS)
def test_a_read_sees_what_others_committed_before_it(
    name: str, writer: Table, proxy: Proxy
) -> None:
    own, read = opened(writer, proxy), READS[name]
    for value in (4, 5):
        assert read(own) == read(writer)
        writer.upsert(rows([value, value + 10]))
        writer.delete(f"id = {value - 3}")
        assert read(own) == read(writer)
    own.upsert(rows([9]))
    assert read(own) == read(rs.open_table(own.uri, storage_options=own.handle.storage_options))


def test_an_error_of_an_old_version_is_not_raised(writer: Table, proxy: Proxy) -> None:
    own = opened(writer, proxy)
    writer.add_column("w", "int64")
    writer.upsert(pa.table({"id": [4], "v": [4], "w": [7]}))
    assert own.to_arrow("w = 7")["v"].to_pylist() == [4]
    with pytest.raises(rs.errors.InvalidPredicate):
        own.to_arrow("x = 7")
    with pytest.raises(rs.errors.InvalidPredicate):
        own.count("x = 7")


def test_an_error_of_the_look_up_is_raised(
    writer: Table, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = opened(writer, proxy)

    def fail() -> Any:
        raise rs.errors.StoreError("no answer")

    monkeypatch.setattr(own.handle, "latest", fail)
    for read in READS.values():
        with pytest.raises(rs.errors.StoreError, match="no answer"):
            read(own)


def test_a_read_that_was_overtaken_ends_early(
    writer: Table, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.upsert(rows(list(range(10, 400_000))))
    own = opened(writer, proxy)
    writer.upsert(rows([4]))
    finish_background()
    batches: list[int] = []
    original = Scan.to_batches

    def counted(scan: Scan) -> Iterator[pa.RecordBatch]:
        for batch in original(scan):
            while own.handle.newest.version < writer.version:
                time.sleep(0.001)
            batches.append(scan.version)
            yield batch

    monkeypatch.setattr(Scan, "to_batches", counted)
    reports: list[Any] = []
    own.report_to(SimpleNamespace(report=reports.append))
    assert own.to_arrow().num_rows == writer.count()
    assert batches.count(writer.version - 1) <= 2 < batches.count(writer.version)
    assert [(each.version, each.error) for each in reports] == [(writer.version, None)]


def test_a_writer_and_a_transaction_read_their_own_rows(
    writer: Table, proxy: Proxy, tmp_path: Any
) -> None:
    own = opened(writer, proxy)
    with own.transaction() as transaction:
        transaction.upsert(rows([7]))
        assert transaction.count() == 4
        assert transaction.to_arrow("id = 7").num_rows == 1
    with own.writer(durability="wal", wal_dir=tmp_path / "wal") as buffer:
        buffer.upsert(rows([8])).result()
        assert own.count() == 5
        assert own.to_arrow("id = 8").num_rows == 1
