"""How many requests it takes to open a table on a store, at every version of it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.storage.log import checkpoint_turns, log_head
from rowsieve.storage.log.checkpoint import CHECKPOINTS, checkpoint_path
from tests.objects.background import finish_background
from tests.stores.proxy import Proxy, proxy_to
from tests.stores.s3_server import S3
from tests.stores.trips import counted

COMMITS = 16
LISTINGS, CHECKPOINT, PROBE = 2, 1, 1


@pytest.fixture(scope="module")
def proxy(s3: S3) -> Iterator[Proxy]:
    with proxy_to(s3) as running:
        yield running


def rows(number: int, count: int) -> pa.Table:
    ids = pa.array(range(number, number + count), pa.int64())
    return pa.table({"id": ids, "text": [f"{number} {i:0200}" for i in range(count)]})


def create(s3: S3, count: int, **properties: int) -> Table:
    return rs.create_table(
        s3.fresh_uri(),
        rows(0, count),
        key=["id"],
        storage_options=s3.options,
        properties={"inline_bytes": 16_384, **properties},
    )


def requests_of_an_open(table: Table, proxy: Proxy) -> list[int]:
    """The requests of each round trip of opening the table at its version."""
    with counted(proxy) as trips:
        opened = rs.open_table(table.uri, storage_options=S3(proxy.endpoint).options)
    assert opened.version == table.version
    assert opened.count() == table.count()
    return trips.requests


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("count", [3, 200], ids=["inline rows", "files"])
def test_an_open_takes_six_requests_in_two_round_trips(
    count: int, is_large: bool, s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_large:
        monkeypatch.setattr(checkpoint_turns, "_SMALL_BYTES", -1)
    table = create(s3, count)
    for number in range(1, COMMITS):
        table.upsert(rows(number, count))
        finish_background()
        requests = requests_of_an_open(table, proxy)
        assert sum(requests) <= LISTINGS + CHECKPOINT + 2 + PROBE == 6
        assert len(requests) == 2
    assert not [path for path in table.handle.store.list(CHECKPOINTS) if path.endswith(".arrow")]


def test_an_open_of_a_long_log_reads_as_many_entries_as_usually_follow_a_checkpoint(
    s3: S3, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_head, "_LISTED", 10)
    table = create(s3, 3)
    for number in range(1, COMMITS):
        table.upsert(rows(number, 3))
        finish_background()
        requests = requests_of_an_open(table, proxy)
        if number > 13:
            assert sum(requests) == LISTINGS + CHECKPOINT + 1 + 1 + 2 + PROBE
            assert len(requests) == 2


@pytest.mark.parametrize(
    ("properties", "expected"),
    [({"checkpoint_interval": 8}, [8]), ({"inline_bytes": 0}, []), ({}, [3, 6, 9])],
)
def test_a_stated_interval_holds_and_tables_of_older_releases_have_the_former_one(
    properties: dict[str, int], expected: list[int], s3: S3
) -> None:
    table = create(s3, 3, **properties)
    for number in range(1, 11):
        table.upsert(rows(number, 3))
    finish_background()
    names = {checkpoint_path(version) for version in expected}
    assert {each for each in table.handle.store.list(CHECKPOINTS) if each[-5:] == ".json"} == names


@pytest.mark.parametrize("is_large", [False, True])
def test_retention_removes_checkpoints_that_are_one_object(
    is_large: bool, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_large:
        monkeypatch.setattr(checkpoint_turns, "_SMALL_BYTES", -1)
    table = create(s3, 200)
    for number in range(1, 14):
        table.upsert(rows(number, 200))
    finish_background()
    table.expire_versions(retain_last=2)
    table.remove_orphans()
    store = table.handle.store
    oldest = table.version - 4
    assert all(path >= f"{CHECKPOINTS}/{oldest:020d}." for path in store.list(CHECKPOINTS))
    opened = rs.open_table(table.uri, storage_options=s3.options)
    assert opened.to_arrow().num_rows == table.count()
    assert table.verify().is_whole
