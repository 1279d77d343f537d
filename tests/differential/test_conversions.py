"""Change feeds as updates and back, and the differences of two collections."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve import Table, errors
from tests.differential.updates import differential, sums, updates
from tests.profiles import examples
from tests.small_tables import KV, keyed, kv

BATCHES = st.lists(st.dictionaries(st.integers(0, 3), st.integers(0, 2), max_size=3), max_size=5)


def changed(batches: list[dict[int, int]]) -> Table:
    """A table whose commits write these rows, and delete the keys of value 0."""
    table = keyed()
    for batch in batches:
        table.upsert(kv(*batch.items()))
        table.delete("v = 0")
    return table


@given(BATCHES)
@examples(150)
def test_a_change_feed_is_updates_and_updates_are_a_change_feed(
    batches: list[dict[int, int]],
) -> None:
    table = changed(batches)
    own = rs.changes_to_updates(table.changes(0))
    collection = differential(KV)
    collection.append_updates(
        own, time="_rowsieve_time", diff="_rowsieve_diff", upper=table.version + 1
    )
    for version in range(table.version + 1):
        old = table.scan(version=version)
        assert rs.differences(old, collection.scan(at=version)).num_rows == 0
    copy = keyed()
    changes = rs.updates_to_changes(own, key=["k"])
    if changes.num_rows:
        copy.apply_changes(changes, op="op", sequence="_rowsieve_time")
    assert rs.differences(table, copy).num_rows == 0


def test_differences_turn_one_collection_into_another() -> None:
    old, new = keyed({"k": [1, 2, 3], "v": [1, 2, 3]}), kv((2, 2), (3, 9), (4, 4))
    difference = rs.differences(old, new)
    assert sorted(tuple(row.values()) for row in difference.to_pylist()) == [
        (1, 1, -1),
        (3, 3, -1),
        (3, 9, 1),
        (4, 4, 1),
    ]
    sums_of = differential()
    sums_of.append_updates(updates((1, "a", 0, 2), (2, "b", 1, 1)), upper=2)
    changed = rs.differences(sums_of.scan(at=0), sums_of.scan(at=1))
    assert changed.to_pylist() == [{"k": 2, "v": "b", "_rowsieve_diff": 1}]


def test_collections_of_other_columns_have_no_differences() -> None:
    with pytest.raises(errors.SchemaMismatch, match="other columns"):
        rs.differences(kv((1, 1)), pa.table({"k": [1]}))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(1, "a", 0, 2)], "more than once"),
        ([(1, "a", 0, 1), (1, "b", 0, 1)], "one of several"),
    ],
)
def test_updates_that_no_keyed_table_has_are_refused(
    rows: list[tuple[int, str, int, int]], message: str
) -> None:
    own = updates(*rows).rename_columns(["k", "v", "_rowsieve_time", "_rowsieve_diff"])
    with pytest.raises(errors.InvalidData, match=message):
        rs.updates_to_changes(own, key=["k"])
    with pytest.raises(errors.SchemaMismatch, match="no column"):
        rs.updates_to_changes(updates(*rows), key=["k"])
    with pytest.raises(errors.SchemaMismatch, match="_change_type"):
        rs.changes_to_updates(updates(*rows))


def test_a_subscription_has_every_update_once_and_its_progress() -> None:
    table = differential()
    table.append_updates(updates((1, "a", 0, 1), (1, "a", 1, 1)), upper=2)
    stream = table.subscribe(0, follow=False)
    table.append_updates(updates((1, "a", 2, -1), (2, "b", 3, 1), (2, "b", 3, -1)), upper=5)
    first, second = stream
    assert (first.lower, first.upper, first.rows.num_rows) == (0, 1, 1)
    assert (second.lower, second.upper) == (1, 2)  # of the version that it began with
    items = [*table.subscribe(1, follow=False)]
    assert [(i.lower, i.upper, i.rows.num_rows, i.version) for i in items] == [
        (1, 2, 1, 2),
        (2, 5, 1, 2),
    ]
    assert items[0].rows.to_pylist() == [
        {"k": 1, "v": "a", "_rowsieve_time": 1, "_rowsieve_diff": 2}
    ]
    assert [*table.subscribe(4, snapshot=False, follow=False)] == []
    assert sums(table) == {(1, "a"): 1}


def test_a_subscription_follows_new_versions() -> None:
    table = differential()
    table.append_updates(updates((1, "a", 0, 1)), upper=1)
    stream = table.subscribe(0, interval_s=0.01)
    next(stream)
    rs.open_table(table.uri).append_updates(updates((2, "b", 1, 1)), upper=3)
    item = next(stream)
    assert (item.lower, item.upper, item.rows.column("k").to_pylist()) == (1, 3, [2])
    table.append_updates(updates(), lower=3, upper=8)
    assert (next(stream).upper, table.upper) == (8, 8)
    table.append_updates(updates((3, "c", 8, 1)), upper=10)
    table.advance_since(9)
    with pytest.raises(errors.SnapshotExpired, match="given up"):
        next(stream)
    with pytest.raises(errors.InvalidInput, match="from since to upper"):
        table.subscribe(3)


def test_a_subscription_never_has_updates_again_that_since_moved_to_its_next_time() -> None:
    table = differential()
    table.append_updates(updates((1, "a", 0, 1)), upper=3)
    items = table.subscribe(0, snapshot=False, interval_s=0.01)
    assert next(items).upper == 3
    table.append_updates(updates((1, "a", 3, 1)), upper=5)
    table.advance_since(3)  # the next time of the subscription
    table.compact()
    with pytest.raises(errors.SnapshotExpired, match="may have updates of earlier times"):
        next(items)
