"""Changes that are written or computed while the newest version is looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from tests.objects.background import finish_background
from tests.stores.proxy import Proxy, proxy_to
from tests.stores.s3_server import S3
from tests.stores.trips import counted
from tests.stores.trips_table import trips_of

ROWS = 5


@pytest.fixture(scope="module")
def proxy(s3: S3) -> Iterator[Proxy]:
    with proxy_to(s3) as running:
        yield running


@pytest.fixture
def writer(s3: S3) -> Table:
    return rs.create_table(
        s3.fresh_uri(), rows(range(ROWS)), key=["id"], storage_options=s3.options
    )


def rows(ids: range | list[int], value: int = 0) -> pa.Table:
    return pa.table({"id": list(ids), "v": [value] * len(ids)})


def opened(table: Table, proxy: Proxy) -> Table:
    """The same table through the proxy, which has proved create-only puts."""
    own = rs.open_table(table.uri, storage_options=S3(proxy.endpoint).options)
    own.upsert(rows([0]))
    finish_background()
    table.refresh()
    return own


def values(table: Table) -> dict[int, int]:
    found = table.scan().to_arrow()
    return dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


def test_a_blind_change_waits_three_times(writer: Table, proxy: Proxy) -> None:
    own = opened(writer, proxy)
    assert trips_of(proxy, lambda: own.upsert(rows([1], 7))) == 3
    assert trips_of(proxy, lambda: own.delete(keys=pa.table({"id": [2]}))) == 3
    with counted(proxy) as trips:
        own.upsert(rows([3], 8))
        finish_background()
    assert sum(trips.requests) == 3 + 2 + 1 + 2  # refresh, files, entry, neighbours
    assert values(own) == {0: 0, 1: 7, 3: 8, 4: 0}


CHANGES: dict[str, tuple[Callable[[Table], object], dict[int, int]]] = {
    "upsert": (lambda t: t.upsert(rows([1], 9)), {0: 0, 1: 9, 2: 0, 3: 5, 4: 0, 7: 5}),
    "delete by key": (
        lambda t: t.delete(keys=pa.table({"id": [3]})), {0: 0, 1: 0, 2: 0, 4: 0, 7: 5}),
    "delete by predicate": (lambda t: t.delete("v = 5"), {0: 0, 1: 0, 2: 0, 4: 0}),
    "update by predicate": (
        lambda t: t.update({"v": "v + 1"}, where="v = 5"), {0: 0, 1: 0, 2: 0, 3: 6, 4: 0, 7: 6}),
    "overwrite by predicate": (
        lambda t: t.overwrite(rows([7], 1), where="v = 5 OR id = 7"),
        {0: 0, 1: 0, 2: 0, 4: 0, 7: 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_sees_what_others_committed_before_it(
    name: str, writer: Table, proxy: Proxy
) -> None:
    """The handle is one version behind when the call begins."""
    change, expected = CHANGES[name]
    own = opened(writer, proxy)
    writer.upsert(rows([3, 7], 5))
    finish_background()
    change(own)
    assert values(own) == expected
    assert own.version == writer.version + 1
    assert values(rs.open_table(own.uri, storage_options=S3(proxy.endpoint).options)) == expected
    change(own)  # refreshes first now


def test_an_error_of_an_old_version_is_not_raised(writer: Table, proxy: Proxy) -> None:
    own = opened(writer, proxy)
    own.add_constraint("small", "v < 3")
    writer.refresh()
    writer.drop_constraint("small")
    finish_background()
    own.upsert(rows([1], 9))
    assert values(own)[1] == 9


def test_an_error_of_the_newest_version_is_raised(writer: Table, proxy: Proxy) -> None:
    own = opened(writer, proxy)
    own.add_constraint("small", "v < 3")
    with pytest.raises(rs.errors.ConstraintViolation):
        own.upsert(rows([1], 9))
    writer.refresh()
    writer.add_constraint("tiny", "v < 2")
    finish_background()
    with pytest.raises(rs.errors.ConstraintViolation):
        own.upsert(rows([1], 2))
    assert values(own) == dict.fromkeys(range(ROWS), 0)


def test_a_column_that_was_dropped_meanwhile_is_noticed(writer: Table, proxy: Proxy) -> None:
    own = opened(writer, proxy)
    writer.drop_column("v")
    finish_background()
    with pytest.raises(rs.errors.RowsieveError):
        own.upsert(rows([1], 9))
    assert own.refresh() is not None
    assert own.scan().to_arrow().column_names == ["id"]
