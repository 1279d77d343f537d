"""Reads of many parts: fetched ahead by a window that rolls, and counted without files."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.executor import decode_row_group, execute
from rowsieve.parquet import page_reader
from rowsieve.providers.datafusion import SessionContext
from tests.small_tables import fresh_uri
from tests.stores.proxy import Proxy, proxy_to
from tests.stores.s3_server import S3
from tests.stores.trips import counted
from tests.stores.trips_table import forget

PARTS, ROWS, WINDOW = 12, 5, 5


@pytest.fixture(scope="module")
def proxy(s3: S3) -> Iterator[Proxy]:
    with proxy_to(s3) as running:
        yield running


@pytest.fixture(scope="module")
def table(s3: S3, proxy: Proxy) -> Table:
    """A table of parts that do not overlap."""
    uri = s3.fresh_uri()
    writer = rs.create_table(uri, rows(0), key=["id"], storage_options=s3.options)
    for number in range(1, PARTS):
        writer.upsert(rows(number))
    return rs.open_table(uri, storage_options=S3(proxy.endpoint).options)


def rows(number: int) -> pa.Table:
    ids = range(number * ROWS, (number + 1) * ROWS)
    return pa.table({"id": ids, "v": [number] * ROWS})


READS: dict[str, Callable[[Table], int]] = {
    "a scan": lambda table: table.scan().to_arrow().num_rows,
    "an ordered scan": lambda table: table.scan(order_by_key=True).to_arrow().num_rows,
    "a scan under a predicate": lambda table: table.scan("v >= 0").to_arrow().num_rows,
    "a count under a predicate": lambda table: table.scan("id % 3 = 0").count() * 3,
}


@pytest.mark.parametrize("name", READS)
def test_the_window_of_a_read_rolls_over_all_parts(
    name: str, table: Table, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "PIECES_AHEAD", WINDOW - 1)
    monkeypatch.setattr(execute, "PARTS_TOGETHER", 1)
    forget(monkeypatch)
    with counted(proxy) as trips:
        assert READS[name](table) == PARTS * ROWS
    refresh = 1
    assert trips.count <= refresh + -(-PARTS // WINDOW)
    assert sum(trips.requests) == 3 + PARTS


def test_a_count_of_clean_parts_opens_no_file(
    table: Table, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(monkeypatch)
    with counted(proxy) as trips:
        assert table.scan().count() == PARTS * ROWS
        assert table.scan("v >= 0").count() == PARTS * ROWS  # proved by the manifest
    assert trips.requests == [3, 3]  # the two refreshes


def test_a_count_opens_only_the_files_that_decide_it(
    s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = s3.fresh_uri()
    writer = rs.create_table(uri, rows(0), storage_options=s3.options)
    for number in range(1, 4):
        writer.append(rows(number))
    writer.delete("id = 7")
    table = rs.open_table(uri, storage_options=S3(proxy.endpoint).options)
    forget(monkeypatch)
    with counted(proxy) as trips:
        assert table.scan().count() == 4 * ROWS - 1
    assert trips.requests == [3]
    with counted(proxy) as trips:
        assert table.scan("id % 5 = 2").count() == 4 - 1
    assert sum(trips.requests) == 3 + 4 + 1  # the files, and the vector of one


def test_pages_of_rows_here_and_there_are_requested_at_once(
    s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_reader, "GAP_BYTES", 0)
    monkeypatch.setattr(decode_row_group, "BYTES_OF_A_ROUND_TRIP", 0)
    uri, count = s3.fresh_uri(), 60_000
    noise = np.random.default_rng(39).integers(0, 10**12, (2, 3, count))
    first, second = (
        pa.table({"id": np.arange(start, start + count), "a": a, "b": b, "c": c})
        for start, (a, b, c) in zip((0, count), noise, strict=True)
    )
    rs.create_table(uri, first, storage_options=s3.options).append(second)
    table = rs.open_table(uri, storage_options=S3(proxy.endpoint).options)
    forget(monkeypatch)
    with counted(proxy) as trips:
        assert table.scan("id % 19997 = 7").to_arrow().num_rows == 2 * count // 19997 + 1
    assert sum(trips.requests) > 25
    assert trips.count <= 1 + 1 + 1 + 1  # the refresh, the ends of files, the condition, its rows


VISIBLE: dict[str, Callable[[Table], int]] = {
    "a count": lambda table: table.scan().count(),
    "a scan": lambda table: table.scan().to_arrow().num_rows,
    "a count under a predicate": lambda table: table.scan("v >= 0").count(),
}


@pytest.mark.parametrize("name", VISIBLE)
def test_visible_rows_of_groups_of_parts_are_found_at_once(
    name: str, s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, count = 5, 30_000
    noise = np.random.default_rng(39).integers(0, 10**12, (groups, count))
    parts = [
        pa.table({"id": np.arange(i * count, (i + 1) * count), "v": v}) for i, v in enumerate(noise)
    ]
    uri = s3.fresh_uri()
    writer = rs.create_table(uri, parts[0], key=["id"], storage_options=s3.options)
    for part in parts[1:]:
        writer.upsert(part)
    for part in parts:
        writer.upsert(part.slice(count // 2, 2))
    table = rs.open_table(uri, storage_options=S3(proxy.endpoint).options)
    forget(monkeypatch)
    with counted(proxy) as trips:
        assert VISIBLE[name](table) == groups * count
    assert trips.count <= 1 + 1 + 2 + 1  # the refresh, ends of files, their keys, the rows


def test_stored_vectors_of_a_group_of_parts_are_requested_at_once(
    s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = s3.fresh_uri()
    writer = rs.create_table(uri, rows(0), key=["id"], storage_options=s3.options)
    for number in range(1, PARTS):
        writer.upsert(pa.table({"id": [number % ROWS, 100 + number], "v": [number] * 2}))
        writer.build_deletion_vectors()  # of one part, in a file of its own
    table = rs.open_table(uri, storage_options=S3(proxy.endpoint).options)
    forget(monkeypatch)
    with counted(proxy) as trips:
        assert table.scan("v >= 0").count() == ROWS + PARTS - 1
    assert trips.count <= 1 + 1  # the refresh, ends of files and vectors


def test_explain_says_why_our_dataset_reads_a_store(table: Table) -> None:
    session = SessionContext()
    session.register_table("t", table)
    session.register_table("m", rs.create_table(fresh_uri(), rows(0), key=["id"]))
    plan = session.sql("EXPLAIN SELECT t.v FROM t JOIN m ON t.id = m.id").to_pydict()["plan"][-1]
    assert "12 of 12 parts; our dataset reads them, because across a network it reads fewer" in plan
    assert "1 of 1 parts; our dataset reads them, because it is in memory of this process" in plan


def test_a_count_of_overlapping_parts_with_contiguous_keys_opens_no_file(
    s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest has their keys; a part with other keys is read, but not what it overlaps."""
    uri, files = s3.fresh_uri(), {"inline_bytes": 0}
    writer = rs.create_table(uri, rows(0), key=["id"], storage_options=s3.options, properties=files)
    for number in (1, 2, 1):
        writer.upsert(rows(number))
    table = rs.open_table(uri, storage_options=S3(proxy.endpoint).options)
    forget(monkeypatch)
    with counted(proxy) as trips:
        assert table.scan().count() == 3 * ROWS
    assert trips.requests == [3]
    writer.upsert(rows(0).take([0, 2, 4]))
    table = rs.open_table(uri, storage_options=S3(proxy.endpoint).options)
    forget(monkeypatch)
    with counted(proxy) as trips:
        assert table.scan().count() == 3 * ROWS
    assert trips.requests == [3, 1]  # the end of the newest file, which has its keys
